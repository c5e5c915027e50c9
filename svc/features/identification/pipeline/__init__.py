"""The actors of an identification: admission, scorer and visitor index."""
