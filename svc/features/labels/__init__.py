"""What identifications turned out to be (decisions 14): labels, what they are judged by, and the weights that they suggest."""

from svc.features.feature import Command, Feature

FEATURE = Feature(
    __name__,
    tables=("tables",),
    erasure=("erasure",),
    retention=("retention",),
    routes=("routes",),
    checks=("checks",),
    commands={
        "label": Command("Manage access", "Import what identifications turned out to be."),
        "weights": Command("Manage access", "Suggest weights from labels."),
    },
)
