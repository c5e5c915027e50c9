"""What any durable service with many tenants needs, and nothing of visitors: store, access, limits, actors."""
