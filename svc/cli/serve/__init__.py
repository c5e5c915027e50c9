"""Commands that run the service."""
