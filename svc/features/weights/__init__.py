"""Risk weights: saved, previewed and compared."""
