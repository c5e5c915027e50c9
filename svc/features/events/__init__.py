"""Events for people and servers: read, listed, changed, and watched as they come in."""
