"""What `svc inspect` and exports show of a store, row by row."""
