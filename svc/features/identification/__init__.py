"""The endpoints of identify: what an SDK, a proxy or a server sends."""

from svc.features.feature import Feature
from svc.kernel.values.errors import ErrorCode

FEATURE = Feature(
    __name__,
    routes=("routes", "health_routes"),
    refusals={
        "idempotency_key_too_long": ErrorCode(422, "The Idempotency-Key is over 255 characters. Send a shorter one."),
    },
)
