"""What must be true of visitors, their tokens and counts in every store."""
