"""Accounts: how often and with whom visitors, accounts and addresses were seen, and what that shows."""
