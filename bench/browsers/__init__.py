"""Real browsers, opened the way a person opens them and driven by nothing, and what the service finds in them."""
