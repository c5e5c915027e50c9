"""Revocation of browsers' keys."""

from svc.features.feature import Feature

FEATURE = Feature(
    __name__,
    routes=("routes",),
)
