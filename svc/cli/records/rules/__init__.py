"""`svc rule` and `svc list`."""
