"""One browser, one visitor."""
