"""What earlier visits of a visitor, an address and a report say."""
