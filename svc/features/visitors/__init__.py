"""Visitors for people and servers: listed, shown and erased."""
