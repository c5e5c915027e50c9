"""Erasure of events, visitors and accounts, and the removal of organizations."""
