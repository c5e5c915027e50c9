"""What is built on identifications: one folder each."""
