"""Conditions: CEL, checked, bounded in cost, and evaluated."""
