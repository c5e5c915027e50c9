"""Commands that keep a store and its data directory."""
