"""Credentials, sessions and tokens, and the audit of who changed what."""
