"""Who may do what: keys, members, sessions, roles, and the audit of changes."""
