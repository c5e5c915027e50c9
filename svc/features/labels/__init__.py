"""Labels: what identifications turned out to be, and the performance and weights that follow from it (decisions 14)."""

from svc.features.feature import Command, Feature

FEATURE = Feature(
    __name__,
    tables=("tables",),
    erasure=("jobs",),
    retention=("jobs",),
    routes=("routes",),
    invariants=("invariants",),
    commands={
        "label": Command("Manage access", "Import what identifications turned out to be."),
        "weights": Command("Manage access", "Suggest weights from labels."),
    },
)
