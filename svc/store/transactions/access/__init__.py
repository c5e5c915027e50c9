"""Keys, sessions and members: who may do what."""
