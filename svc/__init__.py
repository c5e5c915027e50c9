"""svc: an open, self-hosted visitor identification service."""

__version__ = "0.1.0"
