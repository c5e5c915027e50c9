"""svc: an open, self-hosted visitor identification service."""
