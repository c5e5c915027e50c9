"""The feed: every event once, for a reader that keeps a position."""
