"""The endpoints of clients and servers."""
