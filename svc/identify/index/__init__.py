"""The index of events: its segments, searches over them, and what puts events into segments."""
