"""CATALOG: every code of an error; `svc.kernel.values.refusals` looks it up."""

from __future__ import annotations

from svc.features.registry import FEATURES
from svc.kernel.values.errors import ErrorCode
from svc.kernel.values.refusals import GENERAL

_OF_FEATURES = {code: means for feature in FEATURES for code, means in feature.refusals.items()}

CATALOG: dict[str, ErrorCode] = dict(sorted((GENERAL | _OF_FEATURES).items(), key=lambda refusal: refusal[1].status))
"""By status; of one status the general ones come first, and then those of each feature."""
