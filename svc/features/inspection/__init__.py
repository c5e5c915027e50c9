"""Looking into a store: what lies in it, row by row."""
