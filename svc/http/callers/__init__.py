"""Who sends a request: keys and sessions, what may be known of the sender, and how much it may ask."""
