"""Organizations as the operator manages them, and their settings."""
