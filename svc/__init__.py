"""svc: an open, self-hosted visitor identification service."""

__version__ = "0.3.0"
DISTRIBUTION = "svc-visitor-id"
"""The name of the package in a registry, where `svc` is another project's."""
