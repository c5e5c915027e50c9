"""What an event is as a row and in its archive, and how events are listed."""
