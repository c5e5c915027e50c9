"""What nodes on one database know of each other: leases, shares, notices, the clock."""
