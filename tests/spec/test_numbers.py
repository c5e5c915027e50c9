"""Interface 2 to 9 and decisions 1 to 19: their numbers, as the code has them.

Many tests take a limit from the code, and would follow it wherever it went. What the contract says stands here.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import astuple

from svc.features.accounts.bodies import MAX_SHOWN
from svc.features.exports.console_routes import MAX_ROWS
from svc.features.keys.jobs import ENDED_KEY_MS
from svc.features.labels.outcomes import OUTCOME_MS
from svc.features.labels.routes import DEFAULT_WINDOW_MS as DEFAULT_PERFORMANCE_MS
from svc.features.labels.suggested_weights import LEAST_LABELS
from svc.features.lists.lists import FIRST_LISTS, LONGEST_NOTE, LONGEST_TAG, MAX_AT_ONCE, MAX_ENTRIES, MAX_LISTS
from svc.features.members.sign_in.openid import ATTEMPT_MS, LEEWAY_MS
from svc.features.members.sign_in.passwords import COMMON_PASSWORDS, LONGEST_PASSWORD, SHORTEST_PASSWORD
from svc.features.members.sign_in.second_factor import RECOVERY_CODES
from svc.features.reviews import reviews
from svc.features.rules.language.language import MAX_LENGTH as LONGEST_CONDITION
from svc.features.rules.routes import MAX_PREVIEWED
from svc.features.rules.ruleset import MAX_NAME, MAX_RULES
from svc.features.webhooks import addresses, queues, records, retries
from svc.features.webhooks.commands.forwarding import TOLERANCE_S
from svc.features.webhooks.jobs.endpoints import MAX_OVERLAP_HOURS
from svc.features.webhooks.records import HISTORY_MS, MAX_ENDPOINTS
from svc.features.webhooks.transport import connections
from svc.features.webhooks.transport.transport import DEADLINE_S
from svc.http import body, listing
from svc.http.callers.visitor_facts import MAX_HEADERS_BYTES, MAX_USER_AGENT_BYTES
from svc.identify.attestation import challenge
from svc.identify.events import listing as events
from svc.identify.history import newcomers
from svc.identify.keys import browser_keys, deferred
from svc.identify.matching import parameters, tokens
from svc.identify.records import IDEMPOTENCY_MS, REPLAYED_MS, RETENTION_MS
from svc.identify.scoring.score import DEFAULT_THRESHOLD, LARGEST_THRESHOLD, SMALLEST_THRESHOLD
from svc.identify.scoring.signals import MAX_WEIGHT
from svc.identify.velocity.counts import MOST, WINDOWS
from svc.identify.velocity.record import DAYS_TO_KNOW, KNOWN_S
from svc.kernel.access.jobs import LAST_USED_STEP_MS
from svc.kernel.access.members import INVITATION_MS
from svc.kernel.access.sessions import IDLE_MS, SESSION_MS
from svc.kernel.config import Config
from svc.kernel.limits.quotas import MAX_ACTIVE_KEYS
from svc.kernel.net.origins import MAX_ORIGINS
from svc.kernel.store.write_health import FAILING_S
from svc.kernel.tenants import billing
from svc.kernel.tenants.organization import DEFAULT_LIMIT_PER_S, AccountThresholds
from svc.kernel.work import clock
from svc.kernel.work.store_watch import STALLED_S

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
DEFAULTS = Config()

NUMBERS: list[tuple[str, Any, Any]] = [
    ("interface 2.5: bytes of a challenge", challenge.CHALLENGE_BYTES, 32),
    ("interface 8: body", body.MAX_BODY_BYTES, 1 << 20),
    ("interface 8: deferred token", deferred.LIFETIME_MS, 24 * HOUR_MS),
    ("interface 8: challenge", challenge.LIFETIME_MS, 5 * MINUTE_MS),
    ("interface 8: events and their windows", (RETENTION_MS, events.MAX_WINDOW_MS), (30 * DAY_MS, 30 * DAY_MS)),
    ("interface 4.2: default window", events.DEFAULT_WINDOW_MS, DAY_MS),
    ("interface 8: offset of a page", events.MAX_OFFSET, 10_000),
    ("interface 8: webhook endpoints", MAX_ENDPOINTS, 10),
    ("interface 8: overlap of secrets", MAX_OVERLAP_HOURS, 168),
    ("interface 8: response to a webhook", DEADLINE_S, 10),
    ("interface 8: redelivery and history", HISTORY_MS, 30 * DAY_MS),
    ("interface 9.6: default threshold", DEFAULT_THRESHOLD, 30),
    ("1.4: nesting and values", (body.MAX_DEPTH, body.MAX_VALUES), (32, 20_000)),
    ("2.3: last use", LAST_USED_STEP_MS, MINUTE_MS),
    ("2.5: active keys, revoked ones", (MAX_ACTIVE_KEYS, ENDED_KEY_MS), (200, 400 * DAY_MS)),
    ("2.6: origins", MAX_ORIGINS, 100),
    ("2.9: forwarded user agent and headers", (MAX_USER_AGENT_BYTES, MAX_HEADERS_BYTES), (1_024, 2_048)),
    ("3.2: idempotency keys, original response", (IDEMPOTENCY_MS, REPLAYED_MS), (24 * HOUR_MS, MINUTE_MS)),
    ("3.6: attributes", parameters.IDENTIFIABLE_ATTRIBUTES, 4),
    ("4: rate of an organization", DEFAULT_LIMIT_PER_S, 100),
    ("4: parts of it", DEFAULTS.shares(), (0.25, 0.25, 10)),
    ("4: a day outside production, share of the store", DEFAULTS.quotas()[::3], (100_000, 0.5)),
    ("5.1: prices", (billing.IDENTIFIABLE_MICROS, billing.UNIDENTIFIABLE_MICROS), (3_000, 500)),
    ("5.3, 5.4: overdue, settled", (billing.OVERDUE_MS, billing.SETTLED_AFTER_MS), (7 * DAY_MS, 5 * MINUTE_MS)),
    ("6.1: weights and thresholds", (MAX_WEIGHT, SMALLEST_THRESHOLD, LARGEST_THRESHOLD), (100, 1, 1_000)),
    ("7.1: length of a tag", events.MAX_TAG_LENGTH, 1_024),
    ("8.1: tolerance of signatures", TOLERANCE_S, 300),
    ("8.2: steps, in seconds", [ms // 1000 for ms in retries.STEPS_MS], [5, 30, 120, 600, 1800, 3600, 7200, 11_700]),
    ("8.2: shift of a step", retries.JITTER, 0.1),
    ("8.2, 8.3: body and head", (connections.MAX_BODY_BYTES, connections.MAX_HEAD_BYTES), (16 << 10, 64 << 10)),
    ("8.4: failing", (retries.FAILURES_TO_FAIL, retries.FAILING_AFTER_MS), (5, 10 * MINUTE_MS)),
    ("8.7: length of a URL", addresses.MAX_URL_LENGTH, 2_048),
    ("8.7: ports", (addresses.ALWAYS_PORT, addresses.FIRST_FREE_PORT), (443, 1_024)),
    ("8.9: refusals", records.REFUSALS_EVERY_MS, MINUTE_MS),
    ("11.3: rows of a subject, default page", (MAX_SHOWN, listing.DEFAULT_LIMIT), (100, 50)),
    ("11.4: counts, windows", (MOST, WINDOWS), (64, {"1h": 3_600, "24h": 86_400, "30d": 2_592_000})),
    ("11.5: thresholds", astuple(AccountThresholds()), (3, 5, 20, 6)),
    ("11.5: known accounts and pairs", (KNOWN_S, DAYS_TO_KNOW), (86_400, 2)),
    ("12.1: entries of a request, notes, tags", (MAX_AT_ONCE, LONGEST_NOTE, LONGEST_TAG), (1_000, 500, 1_024)),
    ("12.1, 12.2: lists and entries", (MAX_LISTS, MAX_ENTRIES, len(FIRST_LISTS)), (100, 100_000, 6)),
    ("13.1: rules", (MAX_RULES, MAX_NAME, LONGEST_CONDITION, MAX_PREVIEWED), (100, 80, 2_000, 10_000)),
    ("14.1, 14.2: outcomes, performance", (OUTCOME_MS, DEFAULT_PERFORMANCE_MS), (400 * DAY_MS, 30 * DAY_MS)),
    ("14.3: labels", LEAST_LABELS, 50),
    ("14.5: notes", (reviews.LONGEST_NOTE, reviews.MAX_NOTES), (2_000, 100)),
    ("15.2: invitations", INVITATION_MS, 7 * DAY_MS),
    ("15.3: passwords", (SHORTEST_PASSWORD, LONGEST_PASSWORD, COMMON_PASSWORDS), (12, 256, 10_000)),
    ("15.3: recovery codes", RECOVERY_CODES, 10),
    ("15.4: attempts", (ATTEMPT_MS, LEEWAY_MS), (10 * MINUTE_MS, MINUTE_MS)),
    ("15.6: sessions", (SESSION_MS, IDLE_MS), (12 * HOUR_MS, 30 * MINUTE_MS)),
    ("16.1: retention of events", DEFAULTS.event_retention_days, 30),
    ("16.3: rows of an export", MAX_ROWS, 1_000_000),
    ("16.4: days of credit", billing.WARNED_DAYS, 7),
    ("17.1, 17.3: clocks", (clock.LEAD_MS, clock.BEHIND_MS, clock.AHEAD_MS), (HOUR_MS, HOUR_MS, DAY_MS)),
    ("17.3: a clock that has jumped", clock.BELIEVED_AFTER_S, 3_600),
    ("17.4: the store, hung workers", (STALLED_S, FAILING_S, DEFAULTS.worker_hang_s), (10, 10, 30)),
    ("17.7: probes", (queues.PROBE_MS, queues.MAX_PROBE_MS), (5_000, 5 * MINUTE_MS)),
    ("18.1: living tokens, unproven", (parameters.LIVING_DAYS, parameters.UNPROVEN_CONFIDENCE), (30, 89)),
    ("18.2: days of a key", (tokens.KEY_DAYS_AT_HOME, tokens.KEY_DAYS), (3, 5)),
    ("18.6: shared keys", (browser_keys.MAX_TOKENS, browser_keys.BACK_WITHIN_S), (3, 3_600)),
    ("18.6: proofs of an origin", (browser_keys.WINDOW, browser_keys.ENOUGH), (20, 18)),
    ("18.6: renewed storage", newcomers.THIRD, 3),
]  # fmt: skip
"""(section and what it is about, as it is, as the contract says)."""


@pytest.mark.parametrize(
    ("is_now", "says"), [(is_now, says) for _, is_now, says in NUMBERS], ids=[row[0] for row in NUMBERS]
)
def test_a_number_of_the_contract_is_the_one_of_the_code(is_now: Any, says: Any):
    assert is_now == says
