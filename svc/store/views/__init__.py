"""What is read of a store, beside transactions."""
