"""What changes one event or erases somebody reads and writes a bounded number of rows at a time (ADR 12)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import trio
from trio.testing import MockClock

from svc.features.erasure.accounts import continue_account_erasure, erase_account
from svc.features.erasure.organizations import drop_documents
from svc.features.erasure.visitors import continue_erasure, erase_visitor
from svc.features.events.change_jobs import change_event
from svc.features.labels.jobs import LabelChange, label_request
from svc.features.labels.tables import OUTCOMES
from svc.features.lists.jobs import ROWS_OF_AN_ENTRY, NewEntry, add_entries, create_list
from svc.features.lists.tables import LIST_ENTRIES
from svc.features.retention.sweeper import Progress, sweep
from svc.features.reviews.jobs import Closing, close_review, open_review
from svc.features.reviews.tables import REVIEWS
from svc.features.webhooks.queries import Registered
from svc.features.webhooks.tables import ATTEMPTS, DELIVERIES
from svc.identify.indexing.indexer import index
from svc.identify.model import RequestFacts, Subject
from svc.identify.recording.velocity import MAX_COMPARED, MAX_SHARED
from svc.identify.records import Idempotency
from svc.identify.tables import ACCOUNTS, DELETED_VISITORS, DOCUMENTS, EVENTS, IDEMPOTENCY, VISITORS
from svc.identify.velocity.counts import account_digest
from svc.kernel.store.lmdb.transaction import LmdbWriter
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.steps import EVENT_ROWS, STEP_ROWS, items_of_step
from svc.kernel.store.store import Store
from svc.kernel.values.ids import first_id
from svc.kernel.values.refusals import Refusal
from tests.store.test_identification import DAY_MS, EPOCH_MS, Shop
from tests.store.test_identification_bounds import Counted
from tests.support.effort import effort
from tests.support.live import report
from tests.support.outbox import outbox_world


def with_reviews(shop: Shop, count: int, *, notify: bool) -> None:
    """One event of account `a`, and so many closed reviews of it."""
    request_id = UUID(bytes=first_id(EPOCH_MS + 7))
    event = shop.visit(request_id=request_id, account_id="a", environment="development").event
    assert event is not None

    def rounds(transaction: Transaction) -> None:
        for at in range(count):
            number, at_ms = shop.number, EPOCH_MS + at
            made = open_review(transaction, number, request_id.bytes, event, at_ms, at.to_bytes(16), notify=notify)
            assert made.review is not None
            close_review(transaction, number, made.review.id, Closing("fraud", None, None), at_ms)

    shop.world.do(rounds)


def changed(before: dict[str, list[Any]], after: dict[str, list[Any]]) -> int:
    """Rows that are there, gone or other by now."""
    count = 0
    for name, rows in after.items():
        was, now = dict(before[name]), dict(rows)
        count += sum(was.get(key) != now.get(key) for key in was.keys() | now.keys())
    return count


@pytest.mark.slow
@pytest.mark.one_case
@pytest.mark.parametrize("endpoints", [0, 10])
@pytest.mark.parametrize("subject", ["account", "visitor"])
def test_the_erasure_of_somebody_with_many_reviews_takes_steps(tmp_path: Path, subject: Subject, endpoints: int):
    with outbox_world(tmp_path) as world:
        shop = Shop(world)
        for _ in range(endpoints):
            events = ("review.opened", "review.closed")
            world.endpoint(shop.number, "https://shop.example/hook", environment="test", events=events)
        with_reviews(shop, 300, notify=True)
        assert bool(shop.rows(DELIVERIES)) is bool(endpoints)
        (event,) = shop.rows(EVENTS)
        visitor_id = event.verdict.visitor_id
        begin: Callable[[Transaction], Any] = partial(
            erase_account, number=shop.number, account_id="a", now_ms=EPOCH_MS
        )
        go_on: Callable[[Transaction], bool] = partial(
            continue_account_erasure, number=shop.number, digest=account_digest(shop.number, "a"), now_ms=EPOCH_MS
        )
        if subject == "visitor":
            begin = partial(erase_visitor, number=shop.number, visitor_id=visitor_id, now_ms=EPOCH_MS)
            go_on = partial(continue_erasure, number=shop.number, raw_id=visitor_id.encode(), now_ms=EPOCH_MS)
        steps, before, ended = 0, shop.everything(), world.do(begin)
        while True:
            after = shop.everything()
            assert changed(before, after) <= STEP_ROWS
            assert world.violations() == []
            steps += 1
            if ended:
                break
            before, ended = after, world.do(go_on)
        assert steps > 3
        assert "'a'" not in repr(after)
        assert len(shop.rows(REVIEWS)) == (300 if subject == "account" else 0)


@pytest.mark.slow
@pytest.mark.parametrize("endpoints", [0, 10])
def test_a_step_of_the_erasure_of_a_visitor_has_few_rows_no_matter_who_waits_for_webhooks(
    tmp_path: Path, endpoints: int
):
    with outbox_world(tmp_path) as world:
        shop = Shop(world)
        for _ in range(endpoints):
            events = ("identification.completed",)
            world.endpoint(shop.number, "https://shop.example/hook", environment="test", events=events)
        for at in range(40):
            at_ms = EPOCH_MS + at * 1000
            fields: dict[str, Any] = {"at_ms": at_ms, "request_id": UUID(bytes=first_id(at_ms + 7))}
            shop.visit(environment="development", notify=True, **fields)
        visitor_id = shop.rows(EVENTS)[0].verdict.visitor_id
        before = shop.everything()
        ended = world.do(partial(erase_visitor, number=shop.number, visitor_id=visitor_id, now_ms=EPOCH_MS))
        while not ended:
            after = shop.everything()
            assert changed(before, after) <= STEP_ROWS
            before, ended = (
                after,
                world.do(partial(continue_erasure, number=shop.number, raw_id=visitor_id.encode(), now_ms=EPOCH_MS)),
            )
        assert shop.rows(EVENTS) == shop.rows(DELIVERIES) == []


@pytest.mark.slow
def test_the_erasure_of_a_visitor_reads_an_event_twice_and_fills_its_steps(tmp_path: Path):
    """What searches reads it, and what deletes its outcome and its rows has it from there."""
    with outbox_world(tmp_path) as world:
        shop, read = Shop(world), Counter[str]()
        for at in range(80):
            at_ms = EPOCH_MS + at * 1000
            shop.visit(environment="development", at_ms=at_ms, request_id=UUID(bytes=first_id(at_ms + 7)))
        visitor_id = shop.rows(EVENTS)[0].verdict.visitor_id

        def step(transaction: Transaction) -> Any:
            counted = Counted(transaction)
            ended = erase_visitor(counted, shop.number, visitor_id, EPOCH_MS)
            read.update(counted.read)
            return ended

        steps = 1
        while not world.do(step):
            steps += 1
        assert shop.rows(EVENTS) == []
        assert steps <= 3 < 80 / items_of_step(EVENT_ROWS) + 1
        assert read[EVENTS.name] <= 2 * 80 + steps
        assert world.violations() == []


@pytest.mark.slow
def test_an_event_that_leaves_a_large_account_is_compared_with_a_bounded_number(tmp_path: Path):
    """The visitor and the country of the event are those of the oldest events of the account alone, and stay."""
    with outbox_world(tmp_path) as world:
        shop = Shop(world)
        count = MAX_COMPARED + 60
        ids = [UUID(bytes=first_id(EPOCH_MS + at * 1000 + 7)) for at in range(count)]
        for at, request_id in enumerate(ids):
            device, ip = (1, "81.2.69.160") if at < 3 else (2, "81.2.69.161")
            facts = RequestFacts(ip=ip, user_agent=report()["userAgent"])
            fields: dict[str, Any] = {"at_ms": EPOCH_MS + at * 1000, "request_id": request_id, "facts": facts}
            shop.visit(report(device), account_id="big", environment="development", **fields)
        now_ms = EPOCH_MS + DAY_MS

        def moved(request_id: UUID) -> int:
            """Events that were read."""
            read: list[int] = []

            def job(transaction: Transaction) -> None:
                counted = Counted(transaction)
                change_event(
                    counted, shop.number, "development", request_id, {"account_id": "other"}, now_ms, 30 * DAY_MS
                )
                read.append(counted.read[EVENTS.name])

            world.do(job)
            return read[-1]

        def known() -> tuple[int, ...]:
            """Visitors and addresses of the account."""
            digest, now_s = account_digest(shop.number, "big"), now_ms // 1000
            with world.store.read() as snapshot:
                rows = [record.activity for key, record in snapshot.scan(ACCOUNTS) if key[2] == digest]
                (counts,) = [row.counts("account", now_s) for row in rows]
            return tuple(month for _, _, month in counts.others[:2])

        assert known() == (2, 2)
        for at in range(2):
            assert moved(ids[at]) <= MAX_COMPARED + 3 * MAX_SHARED + 10
            assert known() == (2, 2), "another of its events is by this visitor, from this address"
            assert world.violations() == []
        moved(ids[2])
        assert known() == (1, 1)
        assert world.violations() == []


class Commits:
    """How many rows each commit of a store writes or deletes, by their tables."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.each: list[Counter[str]] = []
        engine = store.engine
        write, put_many, put, delete = engine.write, LmdbWriter.put_many, LmdbWriter.put, LmdbWriter.delete

        def counted_write(job: Any, **how: Any) -> Any:
            self.each.append(Counter())
            return write(job, **how)

        def counted_put_many(writer: Any, table: str, rows: Sequence[Any]) -> None:
            self.each[-1][table] += len(rows)
            put_many(writer, table, rows)

        def counted_put(writer: Any, table: str, key: bytes, value: bytes) -> None:
            self.each[-1][table] += 1
            put(writer, table, key, value)

        def counted_delete(writer: Any, table: str, key: bytes) -> bool:
            self.each[-1][table] += 1
            return delete(writer, table, key)

        monkeypatch.setattr(engine, "write", counted_write)
        monkeypatch.setattr(LmdbWriter, "put_many", counted_put_many)
        monkeypatch.setattr(LmdbWriter, "put", counted_put)
        monkeypatch.setattr(LmdbWriter, "delete", counted_delete)

    def assert_bounded(self) -> None:
        largest = max(self.each, key=Counter.total)
        assert largest.total() <= STEP_ROWS, largest
        self.each.clear()


MANY, VISITS = effort(1_200, 10_000), effort(220, 10_000)
LIST = "lst_" + "a" * 20


def large(shop: Shop) -> Registered:
    """An organization with many rows of each kind that retention, a removal or a deletion takes out."""
    number, world = shop.number, shop.world
    endpoint = world.endpoint(number, "https://shop.example/hook", environment="test")
    for at in range(VISITS):
        at_ms = EPOCH_MS + at * 1000
        fields: dict[str, Any] = {"at_ms": at_ms, "request_id": UUID(bytes=first_id(at_ms))}
        shop.visit(report(at), account_id=f"user-{at}", environment="development", notify=True, **fields)
    made = world.do(partial(create_list, number=number, list_id=LIST, name="many", kind="tag", now_ms=EPOCH_MS))
    assert not isinstance(made, Refusal), made
    for start in range(0, MANY, 400):
        entries = [NewEntry(f"tag-{at}", "", EPOCH_MS + DAY_MS + at) for at in range(start, start + 400)]
        added = world.do(partial(add_entries, number=number, list_id=LIST, entries=entries, now_ms=EPOCH_MS))
        assert not isinstance(added, Refusal), added

    def rows(transaction: Transaction) -> None:
        for at in range(MANY):
            digest = b"\xff" + at.to_bytes(15)
            transaction.put(IDEMPOTENCY, (number, digest), Idempotency(bytes(16), EPOCH_MS))
            transaction.put(DELETED_VISITORS, (number, 100_000 + at), EPOCH_MS)

    world.do(rows)
    return endpoint


@pytest.mark.slow
async def test_no_commit_of_retention_or_of_a_removal_has_many_rows(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
):
    with outbox_world(tmp_path) as world:
        shop = Shop(world)
        endpoint = large(shop)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.outbox.run)
            await trio.sleep(120)
            commits = Commits(world.store, monkeypatch)
            for at in range(VISITS):
                at_ms = world.now_ms + 2 * at + 1
                fields: dict[str, Any] = {"at_ms": at_ms, "request_id": UUID(bytes=first_id(at_ms))}
                shop.visit(report(at), environment="development", notify=True, **fields)
            world.remove(endpoint)
            await trio.sleep(5)
            nursery.cancel_scope.cancel()
        commits.assert_bounded()
        assert shop.rows(DELIVERIES) == []
        await index(world.store, world.now_ms + DAY_MS)
        for days in (40, 80):  # visitors go once their events are gone
            progress = Progress(0)
            await sweep(world.store, EPOCH_MS + days * DAY_MS, 30, progress, with_passes=True)
            assert progress.statistics().failed == {}, progress.statistics()
        swept = (ATTEMPTS, EVENTS, IDEMPOTENCY, LIST_ENTRIES, DELETED_VISITORS, VISITORS, ACCOUNTS, OUTCOMES)
        assert {name for commit in commits.each for name in commit} >= {table.name for table in swept}
        commits.assert_bounded()
        assert shop.rows(DELETED_VISITORS) == shop.rows(LIST_ENTRIES) == shop.rows(EVENTS) == []
        assert world.violations() == [], world.violations()[:3]


@pytest.mark.slow
def test_imports_and_changes_of_many_rows_are_small_commits_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Of as many items as the budget gives each: labels, entries that replace others while many have expired, archived
    reports, and notes out of which an id is taken.
    """
    with outbox_world(tmp_path) as world:
        shop, later_ms = Shop(world), EPOCH_MS + 3 * DAY_MS
        large(shop)
        number = shop.number
        with world.store.read() as snapshot:
            ids = [raw_id for (_, raw_id), _ in snapshot.scan(EVENTS, number)]
        commits = Commits(world.store, monkeypatch)

        def labels(transaction: Transaction, some: list[bytes]) -> None:
            for raw_id in some:
                labeled = label_request(transaction, number, raw_id, LabelChange("fraud", "said"), EPOCH_MS + DAY_MS)
                assert not isinstance(labeled, Refusal), labeled

        most = items_of_step(EVENT_ROWS)
        for start in range(0, len(ids), most):
            world.do(partial(labels, some=ids[start : start + most]))
        commits.assert_bounded()
        most = items_of_step(3 * ROWS_OF_AN_ENTRY)
        for start in range(0, MANY // 2, most):
            entries = [NewEntry(f"tag-{at}", "of user-7", later_ms + DAY_MS) for at in range(start, start + most)]
            added = world.do(partial(add_entries, number=number, list_id=LIST, entries=entries, now_ms=later_ms))
            assert not isinstance(added, Refusal), added
        commits.assert_bounded()
        step = partial(erase_account, number=number, account_id="user-7", now_ms=EPOCH_MS)
        while not world.do(step):
            step = partial(
                continue_account_erasure, number=number, digest=account_digest(number, "user-7"), now_ms=EPOCH_MS
            )
        commits.assert_bounded()
        assert "user-7'" not in repr(shop.rows(LIST_ENTRIES))
        while world.do(partial(drop_documents, number=number, beyond=first_id(later_ms + 1))):
            pass
        commits.assert_bounded()
        assert shop.rows(DOCUMENTS) == []
        assert shop.rows(DOCUMENTS) == []
        world.do(lambda transaction: transaction.clear(IDEMPOTENCY))  # of which each names the same request
