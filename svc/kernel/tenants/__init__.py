"""Organizations: their records, their money, and what they hold of the store."""
