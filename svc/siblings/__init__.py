"""What the workers of one service share: token buckets, counts, and a bus (docs/adr/0043)."""
