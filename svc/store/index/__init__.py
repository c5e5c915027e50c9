"""The index by which events are found, and what it is made of."""
