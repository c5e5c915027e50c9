"""Retention: what has expired, and when it is deleted."""
