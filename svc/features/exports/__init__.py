"""Exports: files of events, and a table for SQL."""

from svc.features.feature import Command, Feature

FEATURE = Feature(
    __name__,
    routes=("console_routes",),
    commands={
        "export": Command("Read and export", "Write events or a visitor to a file."),
        "sql": Command("Maintain the store", "Keep events in a table for SQL, on PostgreSQL.", "command"),
    },
)
