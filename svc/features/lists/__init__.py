"""Lists of visitors, accounts, addresses and more, which rules look up (decisions 12)."""
