"""Webhooks: what is sent, to whom, when, and how it is signed (interface 2.9, 2.10, 6; decisions 8).

What may live here: pure rules and the records they read. Storage is in `svc.features.webhooks.jobs`, sending in
`svc.features.webhooks.sending`.
"""

from svc.features.feature import Command, Feature
from svc.kernel.values.errors import ErrorCode

FEATURE = Feature(
    __name__,
    tables=("tables",),
    erasure=("jobs.cleanup",),
    retention=("jobs.cleanup",),
    routes=("routes",),
    invariants=("invariants",),
    refusals={
        "webhook_limit": ErrorCode(
            409, "The organization has ten webhook endpoints, and may not have more. Delete one first."
        ),
        "webhook_busy": ErrorCode(409, "A test or redelivery is on its way to this endpoint. Wait until it has ended."),
        "webhook_paused": ErrorCode(409, "The endpoint is paused. Resume it first."),
        "webhook_unsigned": ErrorCode(
            409,
            "Chat formats are unsigned: the endpoint has no secret. Change its format to json first.",
        ),
    },
    commands={
        "webhook": Command(
            "Manage access", "List endpoints; receive, verify and recover webhook deliveries.", "commands.webhook"
        ),
    },
)
