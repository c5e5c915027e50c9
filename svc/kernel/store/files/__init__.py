"""Files that are written whole, and files that one process holds."""
