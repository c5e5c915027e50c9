"""Statistics of an environment, for the console."""
