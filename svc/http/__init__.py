"""One request from its first header to its response, and the table of routes."""
