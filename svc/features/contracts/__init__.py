"""What features give erasure and retention of their rows, as types."""
