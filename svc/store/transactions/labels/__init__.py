"""Labels, outcomes, reviews and notes, as they are changed (decisions 14)."""
