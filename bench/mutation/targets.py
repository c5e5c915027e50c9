"""The parts of the service that are tested so, each with the tests that guard it.

Only tests that run the code in their own process count here: what is changed is changed in memory.
"""

from __future__ import annotations

from typing import NamedTuple


class Target(NamedTuple):
    """Paths from the root of the tree."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    """Files of tests."""
    marks: str = "not slow"
    """Which of their tests."""


TARGETS = {
    "outbox": Target(
        modules=(
            "svc/actors/outbox.py",
            "svc/domain/webhooks/envelope.py",
            "svc/domain/webhooks/queues.py",
            "svc/domain/webhooks/payloads.py",
            "svc/domain/webhooks/records.py",
            "svc/domain/webhooks/refused.py",
            "svc/domain/webhooks/schedule.py",
            "svc/domain/webhooks/signature.py",
            "svc/domain/webhooks/states.py",
            "svc/store/transactions/webhook_endpoints.py",
            "svc/store/transactions/webhook_recovery.py",
            "svc/store/transactions/webhooks.py",
            "svc/store/webhook_views.py",
        ),
        tests=(
            "tests/actors/test_outbox.py",
            "tests/actors/test_outbox_edges.py",
            "tests/actors/test_outbox_schedule.py",
            "tests/actors/test_refusal_log.py",
            "tests/domain/test_webhooks.py",
            "tests/domain/test_webhooks_edges.py",
            "tests/domain/test_webhooks_queues.py",
            "tests/spec/test_webhook_deliveries.py",
            "tests/spec/test_webhook_events.py",
            "tests/spec/test_webhook_recovery.py",
            "tests/spec/test_webhooks.py",
            "tests/store/test_identification.py",
            "tests/store/test_webhook_census.py",
            "tests/store/test_webhook_recovery.py",
            "tests/store/test_webhook_turns.py",
            "tests/store/test_webhooks.py",
        ),
    ),
    "ledger": Target(
        modules=(
            "svc/actors/settler.py",
            "svc/domain/billing.py",
            "svc/store/transactions/accounts.py",
            "svc/store/transactions/settlement.py",
        ),
        tests=(
            "tests/actors/test_settler.py",
            "tests/domain/test_billing.py",
            "tests/spec/test_billing.py",
            "tests/spec/test_command_line.py",
            "tests/spec/test_settlement.py",
            "tests/spec/test_webhook_events.py",
            "tests/store/test_invariants.py",
            "tests/store/test_ledger.py",
        ),
    ),
    "idempotency": Target(
        modules=(
            "svc/actors/visitor_index.py",
            "svc/domain/identification.py",
            "svc/store/transactions/identification.py",
        ),
        tests=(
            "tests/actors/test_pipeline.py",
            "tests/actors/test_visitor_index.py",
            "tests/domain/test_attestation.py",
            "tests/spec/test_billing.py",
            "tests/spec/test_idempotency.py",
            "tests/spec/test_identify.py",
            "tests/store/test_identification.py",
            "tests/store/test_identification_bounds.py",
        ),
    ),
    "matching": Target(
        modules=(
            "svc/domain/matching/blocks.py",
            "svc/domain/matching/calibration.py",
            "svc/domain/matching/candidates.py",
            "svc/domain/matching/chance.py",
            "svc/domain/matching/comparison.py",
            "svc/domain/matching/decision.py",
            "svc/domain/matching/features.py",
            "svc/domain/matching/recognition.py",
            "svc/domain/matching/statistics.py",
            "svc/domain/matching/visitor.py",
        ),
        tests=(
            "tests/domain/test_matching.py",
            "tests/domain/test_matching_calibration.py",
            "tests/domain/test_matching_captures.py",
            "tests/domain/test_matching_edges.py",
            "tests/domain/test_matching_figures.py",
            "tests/domain/test_matching_floods.py",
            "tests/domain/test_matching_parts.py",
            "tests/domain/test_matching_pinned.py",
            "tests/domain/test_matching_reads.py",
            "tests/domain/test_matching_records.py",
            "tests/domain/test_matching_network_context.py",
            "tests/store/test_identification_bounds.py",
        ),
    ),
}
