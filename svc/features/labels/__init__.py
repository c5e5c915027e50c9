"""What identifications turned out to be (decisions 14): labels, what they are judged by, reviews, notes, weights."""
