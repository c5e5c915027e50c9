"""Versions of the store, and the upgrade of an older one."""
