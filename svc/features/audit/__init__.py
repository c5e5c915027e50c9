"""The audit log, for reading."""
