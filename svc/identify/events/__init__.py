"""Stored identifications: their rows, archives, counters, and the queries that find them."""
