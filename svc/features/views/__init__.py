"""Views: filters of lists in the console that people keep by a name, for themselves or for their organization."""

from svc.features.feature import Feature
from svc.kernel.values.errors import ErrorCode

FEATURE = Feature(
    __name__,
    tables=("tables",),
    retention=("jobs",),
    routes=("routes",),
    refusals={
        "view_exists": ErrorCode(409, "There is a view of this name on this screen. Choose another name."),
        "view_limit": ErrorCode(
            409, "A member has at most 50 saved views, and an organization 200 that all share. Delete some first."
        ),
    },
)
