"""Reviews: cases that a person decides, and notes (decisions 14.4, 14.5)."""
