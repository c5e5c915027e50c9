"""What the log says of a request to people, beside the fields that programs read.

What may live here: the choice of fields. A line for a program has no path and no visitor, so that logs may be kept for
long; a person who watches a service wants to see both.
"""

from __future__ import annotations

from typing import Any

from svc.http.schema import IdentifyAnswer
from svc.http.traffic import RequestContext

_OF_VERDICT = (
    "visitor_id", "visitor_is_new", "visitor_confidence", "suspect_score", "suspect_level", "identifiable"
)  # fmt: skip


def details(context: RequestContext) -> dict[str, Any]:
    """`method` and `path` without its query; of an identification its verdict; `fields` of a body or query
    that was refused.
    """
    fields: dict[str, Any] = {}
    if context.request is not None:
        fields["method"] = context.request.method
        fields["path"] = context.request.path.decode("latin-1")
    body = context.body
    if isinstance(body, IdentifyAnswer):
        fields |= {name: getattr(body, name) for name in _OF_VERDICT}
    refusal = context.refusal
    if refusal is not None and refusal.details:
        fields["fields"] = [f"{detail.field or 'body'}: {detail.issue}" for detail in refusal.details]
    return fields
