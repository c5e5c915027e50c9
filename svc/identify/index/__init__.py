"""The index of events: its segments, and searches over them."""
