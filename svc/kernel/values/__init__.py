"""Small values and their spelling: ids, times, addresses, texts, errors. Pure."""
