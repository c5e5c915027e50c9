"""Commands for who builds on the service: a service for development, replays, webhooks, documentation."""
