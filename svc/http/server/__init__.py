"""An HTTP/1.1 server for trio: from bytes on a socket to requests, and back."""
