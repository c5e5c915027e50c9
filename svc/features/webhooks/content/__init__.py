"""What a webhook says, and how it is signed."""
