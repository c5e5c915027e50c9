"""Views: filters of lists in the console that people keep by a name, for themselves or for their organization."""

from svc.features.feature import Feature
from svc.kernel.values.error_codes import ErrorCode

FEATURE = Feature(
    __name__,
    tables=("tables",),
    erasure=("erasure",),
    retention=("retention",),
    routes=("routes",),
    refusals={
        "view_exists": ErrorCode(409, "There is a view of this name on this screen. Choose another name."),
        "view_limit": ErrorCode(409, "The organization has 500 saved views, and may not have more. Delete some first."),
    },
)
