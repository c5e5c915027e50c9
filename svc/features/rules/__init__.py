"""Rules: conditions over an event, and what they decide (decisions 13)."""
