"""Corrupt events: found, and taken out of the store into files."""
