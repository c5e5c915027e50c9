"""Tools for those who work on this project; no part of the package `svc`."""
