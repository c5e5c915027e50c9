"""Changes: every event once, and again what happens to it later, for copies that follow the store (decisions 19)."""

from svc.features.feature import Feature

FEATURE = Feature(__name__, routes=("routes",), retention=("jobs",))
