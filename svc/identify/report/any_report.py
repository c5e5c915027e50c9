"""What any report may carry beside what its collector found, whatever its shape.

What may live here: the fields of `Report` that stand at the top level, and the members that say nothing of the device.
"""

from __future__ import annotations

from svc.identify.report import values
from svc.identify.report.table import FieldTable, fields

IN_ANY_REPORT = FieldTable(
    fields(
        values.text_of(64, shortest=16),
        **{name: name for name in ("client_token", "client_token_before")},
    ),
    fields(values.text_of(128, shortest=8), nonce="nonce"),
    fields(
        values.text_of(128),
        **{name: name for name in ("client_key", "client_proof", "client_key_before", "client_proof_before")},
    ),
    fields(values.flag, **{name: name for name in ("client_token_is_new", "incognito", "developer_tools")}),
    fields(values.epoch_ms, collected_at_ms="collected_at"),
    fields(values.when("deferred", result=True), deferred="tier"),
)
"""Fields of `Report` that stand at the top level."""

NOT_OF_THE_DEVICE = IN_ANY_REPORT.names | {
    "attestation",
    "botd",
    "components",
    "thumbmark",
    "fpscanner",
    "probes",
    "visitorId",
    "requestId",
    "confidence",
    "tag",
}
"""Members of a report that are about the visit, or that another collector put there."""
