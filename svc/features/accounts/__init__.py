"""Accounts of a customer's site: their records, lists, links and erasure."""
