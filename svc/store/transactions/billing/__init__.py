"""What an organization owes and holds: its ledger, settled days and visitors that are charged for."""
