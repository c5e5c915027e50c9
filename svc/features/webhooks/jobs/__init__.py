"""Endpoints, deliveries and their recovery."""
