"""Addresses, origins and traces: what requests and webhooks say of where they come from and go to. Pure."""
