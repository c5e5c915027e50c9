"""Prices, the ledger, and counts by hour and day."""
