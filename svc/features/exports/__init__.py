"""Exports: files of events, and a table for SQL."""
