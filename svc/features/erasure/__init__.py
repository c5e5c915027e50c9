"""Erasure of events, visitors and accounts, and the removal of organizations."""

from svc.features.feature import Feature

FEATURE = Feature(
    __name__,
    tables=("tables",),
    erasure=("of_identifications",),
)
