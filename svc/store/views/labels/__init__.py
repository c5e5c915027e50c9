"""What is read of labels and reviews."""
