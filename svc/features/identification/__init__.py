"""The endpoints of identify: what an SDK, a proxy or a server sends."""
