"""Making the index of events: the jobs that put events into segments, and the actor that runs them."""
