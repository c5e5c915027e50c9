"""Signals and their weights, the suspect score, and the verdict."""
