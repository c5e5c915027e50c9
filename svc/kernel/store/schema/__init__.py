"""Tables, the bytes of their keys and rows, and the versions of both."""
