"""What nodes on one database know of each other: leases, partitions, notices, the clock."""
