"""What watches the service itself: its clock, store, event loop and network data."""
