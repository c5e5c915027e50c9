"""The documents that describe the API."""
