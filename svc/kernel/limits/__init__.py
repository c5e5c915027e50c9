"""How much a client, a key and an organization may take, and whose turn it is."""
