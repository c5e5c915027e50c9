"""`svc member` and `svc console`: the people who sign in."""
