"""The tables of identifications and of what matching remembers."""
