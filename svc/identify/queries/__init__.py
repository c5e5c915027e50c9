"""What is read of identifications, beside the transaction that records them."""
