"""The running service, put together: its parts, its process and its metrics."""
