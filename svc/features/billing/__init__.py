"""Settlement of days, credit, and the console's pages about money."""
