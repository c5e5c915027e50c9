"""What addresses, headers and time zones say of where a request comes from."""
