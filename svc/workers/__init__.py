"""Several processes as one service: the parent, the bus between workers, and what they share."""
