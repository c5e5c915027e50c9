"""The endpoints of identify: what an SDK, a proxy or a server sends."""

from svc.features.feature import Feature

FEATURE = Feature(
    __name__,
    routes=("routes", "health_routes"),
)
