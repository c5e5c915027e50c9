"""Commands for developers who build on the service: a service for development, signals, documentation."""
