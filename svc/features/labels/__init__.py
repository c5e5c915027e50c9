"""Labels: what identifications turned out to be, and the performance and weights that follow from it (decisions 14)."""

from svc.features.feature import Command, Feature
from svc.kernel.values.error_codes import ErrorCode

FEATURE = Feature(
    __name__,
    tables=("tables",),
    erasure=("erasure",),
    retention=("retention",),
    routes=("routes",),
    checks=("checks",),
    refusals={
        "analysis_missing": ErrorCode(
            409,
            "This service runs without what suggestions need. Ask its operator to install svc-visitor-id[analysis].",
        ),
    },
    commands={
        "label": Command("Manage access", "Import what identifications turned out to be."),
        "weights": Command("Manage access", "Suggest weights from labels."),
    },
)
