"""Revocation of browsers' keys."""
