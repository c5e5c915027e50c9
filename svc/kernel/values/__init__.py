"""Small values and their spelling: ids, times, texts, errors. Pure."""
