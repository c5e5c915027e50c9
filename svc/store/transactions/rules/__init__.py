"""Rules in transactions: rulesets, what they decide of an event, and the lists that they ask."""
