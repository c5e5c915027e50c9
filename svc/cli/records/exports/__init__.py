"""Exports of events: their forms, files that are complete or not there, and a folder of hours."""
