"""Every metric, read from what the parts count."""
