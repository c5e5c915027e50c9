"""Webhooks: what is sent, to whom, when, and how it is signed (interface 2.9, 2.10, 6; decisions 8).

What may live here: pure rules and the records they read. Storage is in `svc.features.webhooks.jobs`, sending in
`svc.features.webhooks.sending`.
"""

from svc.features.feature import Command, Feature

FEATURE = Feature(
    __name__,
    tables=("tables",),
    erasure=("erasure",),
    retention=("retention",),
    routes=("routes",),
    checks=("checks",),
    commands={
        "webhook": Command(
            "Manage access", "List endpoints; receive, verify and recover webhook deliveries.", "commands.webhook"
        ),
    },
)
