"""svc: an open, self-hosted visitor identification service."""

__version__ = "0.2.0"
