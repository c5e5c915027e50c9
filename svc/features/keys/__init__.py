"""API keys: issued, changed and revoked."""
