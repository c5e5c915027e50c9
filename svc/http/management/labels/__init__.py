"""Labels, performance, suggestions of weights, reviews and notes over the management API (decisions 14)."""
