"""Interface 8, decisions 3.2, 7.5: what is kept for how long, and that what is over goes, bounded and in whole rows."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from bench.retention import Months
from svc.features.checks.invariants import violations
from svc.features.contracts.cleanup import ROWS_OF_ONE, Sweep
from svc.features.organizations.jobs import create_organization
from svc.features.retention import sweeper
from svc.features.retention.jobs import begin_pass, expired_by_key, passes, stale_accounts
from svc.features.retention.sweeper import sweep
from svc.features.webhooks.content.payloads import EndpointTest
from svc.features.webhooks.jobs.deliveries import AttemptRecord, enqueue, log_attempt
from svc.features.webhooks.jobs.endpoints import NewEndpoint, create_endpoint
from svc.features.webhooks.queries import endpoints_of
from svc.features.webhooks.records import DeliveryKey
from svc.features.webhooks.retries import AttemptResult
from svc.features.webhooks.tables import (
    ATTEMPT_COUNTS,
    ATTEMPTS,
    ATTEMPTS_BY_ENVIRONMENT,
    ATTEMPTS_BY_EVENT,
    DELIVERIES,
    DUE,
    ENDPOINTS,
    WEBHOOK_EVENTS,
)
from svc.identify.attestation.challenge import period
from svc.identify.history.evidence import REPLAY_MEMORY_S
from svc.identify.recording.proofs import issue_challenge
from svc.identify.records import IDEMPOTENCY_MS, RETENTION_MS, Idempotency, RetentionPass
from svc.identify.tables import (
    ACCOUNTS,
    ADDRESSES,
    BLOCKS,
    CHALLENGES,
    DEFERRED_REPORTS,
    DELETED_VISITORS,
    DOCUMENTS,
    EVENT_TAIL,
    EVENTS,
    IDEMPOTENCY,
    LAST_LOOKS,
    REPORT_FINGERPRINTS,
    RETENTION_PASSES,
    VISITOR_IDS,
    VISITORS,
    WEIGHTS,
)
from svc.identify.velocity.counts import LONGEST_S
from svc.kernel.access.tables import KEY_IDS, KEYS, ORGANIZATION_KEYS
from svc.kernel.store.directory import open_directory
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.steps import EVENT_ROWS, items_of_step
from svc.kernel.tenants.queries import keys_of
from svc.kernel.tenants.tables import LEDGER
from svc.kernel.values.ids import DAY_MS
from svc.kernel.work.clock import ClockWatch
from tests.spec.responses import assert_error, visit
from tests.spec.test_erasure import identified, marked, tell_later
from tests.support.effort import effort
from tests.support.live import Live, report
from tests.support.worlds import EPOCH_MS, sim_world

OF_AN_EVENT = (EVENTS, DOCUMENTS, DEFERRED_REPORTS, EVENT_TAIL)
HISTORIES = (ADDRESSES, REPORT_FINGERPRINTS)
HOUR_MS = 3_600_000
NOTIFIABLE = ("usage.daily_settled",)


async def swept(live: Live, at_ms: int, *, visitor_days: int = 365, with_passes: bool = True) -> None:
    """Set the clock and sweep."""
    live.clock.now_ms = at_ms
    await sweep(live.found.store, at_ms, visitor_days, with_passes=with_passes)


def counts(live: Live, *tables: Any) -> list[int]:
    return [live.count(table) for table in tables]


async def test_an_event_is_deleted_after_30_days_with_all_dependent_rows(live: Live):
    """Interface 8: not a millisecond before; the ledger stays."""
    public, secret = live.issue(environment="production")[1], live.issue("secret", "production")[1]
    answer = await identified(live, public, marked("a"))
    await tell_later(live, public, answer, "a")
    path = f"/api/v1/events/{answer['request_id']}"
    await swept(live, EPOCH_MS + RETENTION_MS)
    assert counts(live, *OF_AN_EVENT) == [1, 1, 1, 1]
    assert (await live.client.get(path, headers={"x-api-key": secret})).status_code == 200
    await swept(live, EPOCH_MS + RETENTION_MS + 1)
    assert counts(live, *OF_AN_EVENT) == [0, 0, 0, 0]
    assert_error(await live.client.get(path, headers={"x-api-key": secret}), 404, "event_not_found")
    assert counts(live, LEDGER, VISITORS) == [2, 1]


async def test_webhooks_are_deleted_after_30_days_delivered_or_not(live: Live):
    """Interface 8: events and attempts of the last 30 days; what waited for a paused endpoint for so long is over."""
    number, now_ms = live.organization.number, live.clock.now_ms
    new = NewEndpoint(
        id="whk_" + "A" * 20, url="https://127.0.0.1/hook", description="", environment="live", events=NOTIFIABLE
    )
    register = partial(create_endpoint, number=number, new=new, secrets_key=b"k" * 32, now_ms=now_ms)
    told = partial(
        enqueue, organization=number, event_type=NOTIFIABLE[0], environment="live", data=EndpointTest("x"), at_ms=now_ms
    )
    live.found.store.write_now([register, told])

    def tried(transaction: Transaction) -> None:
        (endpoint,) = endpoints_of(transaction, number)
        ((_, event_id), event) = next(transaction.scan(WEBHOOK_EVENTS, number))
        result = AttemptResult(1, now_ms, now_ms, duration_ms=5, response_code=None, error="timeout")
        key = DeliveryKey(event_id, "auto")
        attempt_id = live.world.request_id(now_ms)
        log_attempt(transaction, AttemptRecord(attempt_id, endpoint.queue, key, endpoint.endpoint, event, result))
        transaction.put(ENDPOINTS, endpoint.queue, msgspec.structs.replace(endpoint.endpoint, status="paused"))

    assert live.found.store.write_now([tried]) == [None]
    kept = (WEBHOOK_EVENTS, DELIVERIES, DUE, ATTEMPTS, ATTEMPTS_BY_ENVIRONMENT, ATTEMPTS_BY_EVENT, ATTEMPT_COUNTS)
    await swept(live, EPOCH_MS + RETENTION_MS)
    assert counts(live, *kept) == [1, 1, 1, 1, 1, 1, 1]
    await swept(live, EPOCH_MS + RETENTION_MS + 2)
    assert counts(live, *kept) == [0, 0, 0, 0, 0, 0, 0]


@pytest.mark.slow(0.3)
async def test_rows_of_addresses_and_reports_are_deleted_after_their_period_and_the_next(live: Live, key: str):
    await identified(live, key, marked("a"))
    period_ms = REPLAY_MEMORY_S * 1000
    await swept(live, (EPOCH_MS // period_ms + 2) * period_ms - 1)
    assert counts(live, *HISTORIES) == [1, 1]
    await swept(live, (EPOCH_MS // period_ms + 2) * period_ms)
    assert counts(live, *HISTORIES) == [0, 0]


@pytest.mark.slow(0.3)
async def test_what_visitors_and_accounts_did_lately_is_deleted_after_30_to_60_days(live: Live, key: str):
    """Their records stay. Of those who come again nothing is deleted."""
    for device, name in ((1, "a"), (2, "b")):
        await identified(live, key, marked(name, device), account_id=name)
    await swept(live, EPOCH_MS)
    live.clock.advance(hours=24 * 29)
    await identified(live, key, marked("b", 2) | {"nonce": "n00000002"}, account_id="b")

    def kept() -> list[list[bool]]:
        with live.found.store.read() as snapshot:
            visitors = [bool(visitor.activity) for _, visitor in snapshot.scan(VISITORS)]
            return [visitors, sorted(bool(account.activity.last_s) for _, account in snapshot.scan(ACCOUNTS))]

    await swept(live, EPOCH_MS + 29 * DAY_MS)
    assert kept() == [[True, True], [True, True]]
    await swept(live, EPOCH_MS + 31 * DAY_MS)
    assert kept() == [[False, True], [False, True]]
    await swept(live, EPOCH_MS + 62 * DAY_MS)
    assert kept() == [[False, False], [False, False]]


async def test_challenges_are_deleted_when_no_longer_usable(live: Live):
    """Interface 2.5: five minutes; two periods of them after it was issued the row is gone."""
    issue = partial(issue_challenge, number=1, key_id="key_x", challenge=b"c" * 32, now_ms=EPOCH_MS)
    live.found.store.write_now([issue])
    five_ms = 300_000
    await swept(live, EPOCH_MS + five_ms)
    assert counts(live, CHALLENGES) == [1]
    await swept(live, (EPOCH_MS // five_ms + 2) * five_ms)
    assert counts(live, CHALLENGES) == [0]


async def test_an_idempotency_key_is_deleted_after_24_hours(live: Live, key: str):
    """Decisions 3.2; its event stays."""
    await identified(live, key, headers={"idempotency-key": "a"})
    await swept(live, EPOCH_MS + IDEMPOTENCY_MS - 1)
    assert counts(live, IDEMPOTENCY) == [1]
    await swept(live, EPOCH_MS + IDEMPOTENCY_MS)
    assert counts(live, IDEMPOTENCY, EVENTS) == [0, 1]


async def test_a_revoked_key_is_deleted_after_400_days_with_its_weights(live: Live, management: str):
    """Decisions 2.5: its id is free of everything; keys that are not revoked stay, however old."""
    kept, _ = live.issue()
    revoked, secret = live.issue()
    path = f"/api/v1/management/organizations/{live.organization.id}/sdk-keys/{revoked.id}/risk-weights/web"
    assert (
        await live.client.put(path, json={"suspect_threshold": 50}, headers={"x-api-key": management})
    ).status_code == 200
    live.revoke(revoked)
    revoked_ms = live.clock.now_ms
    before = counts(live, KEYS, KEY_IDS, ORGANIZATION_KEYS, WEIGHTS)
    await swept(live, revoked_ms + 400 * DAY_MS - 1)
    assert counts(live, KEYS, KEY_IDS, ORGANIZATION_KEYS, WEIGHTS) == before
    await swept(live, revoked_ms + 400 * DAY_MS)
    assert counts(live, KEYS, KEY_IDS, ORGANIZATION_KEYS, WEIGHTS) == [before[0] - 1, before[1] - 1, before[2] - 1, 0]
    with live.found.store.read() as snapshot:
        assert kept.id in [key.id for key in keys_of(snapshot, live.organization.number)]
    assert (await live.identify(secret)).status_code == 401


async def test_an_expired_key_is_deleted_after_400_days(live: Live):
    """As a revoked one: it does not count as active, so it must not stay for ever."""
    expires_ms = live.clock.now_ms + 60_000
    _, secret = live.issue(expires_at_ms=expires_ms)
    live.issue()
    await swept(live, expires_ms + 400 * DAY_MS - 1)
    assert counts(live, KEYS, KEY_IDS, ORGANIZATION_KEYS) == [2, 2, 2]
    await swept(live, expires_ms + 400 * DAY_MS)
    assert counts(live, KEYS, KEY_IDS, ORGANIZATION_KEYS) == [1, 1, 1]
    assert (await live.identify(secret)).status_code == 401


async def test_a_visitor_unseen_for_the_configured_time_is_purged(live: Live, key: str):
    """`visitor_retention_days`: record, id and places in blocks; a visitor that comes back is somebody new."""
    first = await identified(live, key, marked("a"))
    other = await identified(live, key, marked("b", 2))
    live.clock.now_ms = EPOCH_MS + 100 * DAY_MS
    await identified(live, key, {**marked("b", 2), "nonce": "nonce-again"})
    await swept(live, EPOCH_MS + 365 * DAY_MS - 1)
    assert counts(live, VISITORS, VISITOR_IDS) == [2, 2]
    await swept(live, EPOCH_MS + 365 * DAY_MS)
    assert counts(live, VISITORS, VISITOR_IDS, DELETED_VISITORS) == [1, 1, 0]
    with live.found.store.read() as snapshot:
        assert {number for _, block in snapshot.scan(BLOCKS) for number in block.numbers} == {2}
    again = await identified(live, key, {**marked("a"), "nonce": "nonce-third"})
    assert again["visitor_is_new"]
    assert again["visitor_id"] not in {first["visitor_id"], other["visitor_id"]}


@pytest.mark.slow(0.3)
async def test_a_visit_that_was_not_sure_counts_as_the_last_one(live: Live, key: str):
    """It leaves the record's last visit as it was, and its event is over in 30 days."""
    first = await identified(live, key, marked("a"))
    live.clock.now_ms = EPOCH_MS + 331 * DAY_MS
    changed = {"canvas": "ab" * 16, "fonts": ["Calibri", "Marlett"], "audio": "35.7"}
    unsure = await identified(live, key, report(1, **changed))
    assert unsure["visitor_id"] == first["visitor_id"]
    with live.found.store.read() as snapshot:
        assert [visitor.last_seen_s for _, visitor in snapshot.scan(VISITORS)] == [EPOCH_MS // 1000]
    for day in (362, 369, 331 + 365):
        await swept(live, EPOCH_MS + day * DAY_MS)
        assert counts(live, EVENTS, VISITORS) == [0, 1]
    await swept(live, EPOCH_MS + (331 + 366) * DAY_MS)
    assert counts(live, VISITORS) == [0]


@pytest.mark.slow(0.3)
async def test_a_visitor_is_not_purged_before_its_events(live: Live, key: str):
    """Whatever the setting: an event that can be read names a visitor who is known."""
    await identified(live, key)
    await swept(live, EPOCH_MS + RETENTION_MS, visitor_days=1)
    assert counts(live, EVENTS, VISITORS) == [1, 1]
    await swept(live, EPOCH_MS + RETENTION_MS + 1, visitor_days=1)
    await swept(live, EPOCH_MS + RETENTION_MS + 2, visitor_days=1)
    assert counts(live, EVENTS, VISITORS) == [0, 0]


@pytest.mark.slow(0.5)
async def test_a_clock_jump_deletes_only_expired_rows(live: Live, key: str):
    """Ahead by an hour: what that hour ends and no more. Back, by any time: nothing."""
    for hour in range(4):
        live.clock.now_ms = EPOCH_MS + hour * HOUR_MS
        await identified(live, key, headers={"idempotency-key": str(hour)})
    end_ms = EPOCH_MS + RETENTION_MS
    await swept(live, end_ms)
    assert counts(live, EVENTS) == [4]
    await swept(live, end_ms + HOUR_MS)
    assert [event.occurred_at_ms for _, event in live.events()] == [EPOCH_MS + hour * HOUR_MS for hour in (1, 2, 3)]
    before = kept_contents(live)
    for at_ms in (end_ms, EPOCH_MS, EPOCH_MS - 1000 * DAY_MS, 0):
        await swept(live, at_ms)
        assert kept_contents(live) == before


def kept_contents(live: Live) -> dict[str, Any]:
    """Without where retention has looked."""
    own = {LAST_LOOKS.name, RETENTION_PASSES.name}
    return {name: rows for name, rows in live.contents().items() if name not in own}


async def test_after_a_jump_past_all_expiry_times_the_store_is_valid_at_every_step(live: Live, key: str):
    """Keys that were answered with an event go before it, at the first sweep."""
    for device in range(3):
        sent = marked(f"m{device}", device)
        await identified(live, key, sent, headers={"idempotency-key": str(device)}, account_id=f"a{device}")
    now_ms = live.clock.now_ms = EPOCH_MS + 1000 * DAY_MS
    tasks = [*passes(Sweep(live.organization.number, now_ms, 365, RetentionPass()))]
    with live.found.store.read() as snapshot:
        tasks += expired_by_key(snapshot, live.organization.number, now_ms)
    tasks.append(stale_accounts(live.organization.number, now_ms, 365))
    live.found.store.write_now([partial(begin_pass, number=live.organization.number, now_ms=now_ms)])
    for cleanup in tasks:
        live.found.store.write_now([partial(cleanup.step, cleanup.start)])
        with live.found.store.read() as snapshot:
            assert list(violations(snapshot)) == []
    assert counts(live, *OF_AN_EVENT, IDEMPOTENCY, ACCOUNTS) == [0] * 6


async def test_a_store_without_expired_rows_is_not_written(live: Live, key: str):
    """Each minute one look at each table; a cleanup task begins only where something has expired."""
    await identified(live, key)
    commits = live.found.store.statistics().commits
    await swept(live, EPOCH_MS + DAY_MS // 2, with_passes=False)
    assert live.found.store.statistics().commits == commits


async def test_a_cleanup_step_is_bounded(live: Live):
    """An identification waits for one small transaction at most, however much is over."""
    number, now_ms = live.organization.number, EPOCH_MS + DAY_MS

    def many(transaction: Transaction) -> None:
        for row in range(3 * items_of_step(ROWS_OF_ONE)):
            issue_challenge(transaction, number, "key_x", row.to_bytes(32), EPOCH_MS)

    live.found.store.write_now([many])
    with live.found.store.read() as snapshot:
        (cleanup,) = expired_by_key(snapshot, number, now_ms)
    left = []
    resume: tuple[Any, ...] | None = cleanup.start
    while resume is not None:
        (step,) = live.found.store.write_now([partial(cleanup.step, resume)])
        assert not isinstance(step, Exception)
        resume = step.resume
        left += counts(live, CHALLENGES)
    assert left == [2 * items_of_step(ROWS_OF_ONE), items_of_step(ROWS_OF_ONE), 0, 0]


@pytest.mark.slow
async def test_identifications_continue_while_a_backlog_is_deleted(live: Live, key: str):
    """The sweeper yields between two steps; what it deletes and what is written meanwhile do not meet."""
    for device in range(2 * items_of_step(EVENT_ROWS) + 1):
        await identified(live, key, report(device))
    live.clock.now_ms = EPOCH_MS + RETENTION_MS + 1
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(sweep, live.found.store, live.clock.now_ms, 365, with_passes=True))
        for device in range(20):
            assert (await visit(live, key, report(device))).status_code == 200
    assert counts(live, EVENTS) == [20]


@pytest.mark.slow
def test_the_sweeper_deletes_rows_on_time(tmp_path: Path):
    """The actor on virtual time, each minute a look: what is over by its key goes at the next one, the rest in time."""
    world = sim_world(1)
    found = open_directory(tmp_path, world.run_sync, world.entropy, durable=False, map_bytes=16 << 20)
    gone: dict[str, float] = {}

    def prepare(transaction: Transaction) -> None:
        create_organization(transaction, organization_id="org_x", name="x", now_ms=EPOCH_MS, rate_limit_per_s=0)
        issue_challenge(transaction, 1, "key_x", b"c" * 32, EPOCH_MS)
        transaction.put(IDEMPOTENCY, (1, b"i" * 16), Idempotency(b"r" * 16, EPOCH_MS))

    async def watch() -> None:
        found.store.write_now([prepare])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sweeper.run, found.store, world, 365, ClockWatch(world.now_ms(), world.elapsed_s()))
            while len(gone) < 2:
                await trio.sleep(30)
                with found.store.read() as snapshot:
                    for table in (CHALLENGES, IDEMPOTENCY):
                        if not snapshot.count(table):
                            gone.setdefault(table.name, trio.current_time())
            nursery.cancel_scope.cancel()

    trio.run(watch, clock=trio.testing.MockClock(autojump_threshold=0))
    found.store.close()
    assert 600 <= gone[CHALLENGES.name] <= 600 + 60 + 30
    assert 24 * 3600 <= gone[IDEMPOTENCY.name] <= 30 * 3600 + 120


DAYS = effort(62, 90)
"""Of traffic: twice what is kept, and more by `make test-long`."""


@pytest.mark.slow(7)
def test_in_months_no_row_outlives_its_retention_and_the_file_stays_small(tmp_path: Path):
    """At a constant rate: every row of every day's end is of an age that is kept; the file at most 1.3 times day 31's.

    It grows by what is kept for longer: the ledger, and visitors who come once in a year.
    """
    months = Months(tmp_path, visits_an_hour=1)
    clock = trio.testing.MockClock(autojump_threshold=0)
    days = trio.run(partial(months.run, DAYS, look=nothing_is_over), clock=clock)
    with months.found.store.read() as snapshot:
        assert list(violations(snapshot)) == []
        assert snapshot.count(LEDGER) == 1 + DAYS * 24
    months.found.store.close()
    assert [day.events for day in days[29:]] == [30 * 24] * (DAYS - 29)
    assert max(day.used_bytes for day in days) <= 1.3 * days[30].used_bytes


def nothing_is_over(snapshot: Snapshot, now_ms: int) -> None:
    oldest = [event.occurred_at_ms for _, event in snapshot.scan(EVENTS)]
    assert min(oldest) >= now_ms - RETENTION_MS
    assert {snapshot.count(table) for table in (DOCUMENTS, EVENT_TAIL)} == {len(oldest)}
    assert 0 < snapshot.count(DEFERRED_REPORTS) < len(oldest)
    assert min(row.at_ms for _, row in snapshot.scan(IDEMPOTENCY)) > now_ms - IDEMPOTENCY_MS
    for table, of_now in (
        (ADDRESSES, now_ms // 1000 // LONGEST_S),
        (REPORT_FINGERPRINTS, now_ms // 1000 // REPLAY_MEMORY_S),
        (CHALLENGES, period(now_ms)),
    ):
        assert min((key[1] for key, _ in snapshot.scan(table)), default=of_now) >= of_now - 1
