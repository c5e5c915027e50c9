"""The page `/try`: what it asks for."""
