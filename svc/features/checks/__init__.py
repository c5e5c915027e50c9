"""What holds in every store, and how that is checked."""
