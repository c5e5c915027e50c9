"""One identification reads and writes a bounded number of rows, however large the store is (identification.py)."""

from __future__ import annotations

import gc
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from svc.features.checks.invariants import violations
from svc.features.identification.transaction import Recorded, identify
from svc.features.lists.jobs import Added, NewEntry, add_entries
from svc.features.lists.lists import first_list_id
from svc.features.lists.tables import FILLED_LISTS, LISTED
from svc.features.organizations.jobs import create_organization
from svc.features.reviews.tables import OPEN_CASES, OPEN_REVIEWS, REVIEWS, SUBJECT_REVIEWS
from svc.features.rules.jobs import save_rules
from svc.features.rules.ruleset import FIRST, Rule, Ruleset
from svc.features.rules.tables import RULESETS
from svc.features.webhooks.jobs.endpoints import NewEndpoint, create_endpoint
from svc.features.webhooks.tables import DELIVERIES, DUE, ENDPOINT_COUNTS, ENDPOINTS, WEBHOOK_EVENTS
from svc.features.weights.jobs import save_weights
from svc.identify.history.evidence import SAMPLED_VISITORS
from svc.identify.history.newcomers import READ
from svc.identify.identification import Identified, Submission, assess
from svc.identify.matching import Statistics
from svc.identify.model import RequestFacts
from svc.identify.network.facts import Country, Known
from svc.identify.scoring.score import WeightsChange
from svc.identify.tables import (
    ACCOUNTS,
    ADDRESSES,
    BLOCKS,
    REPORT_FINGERPRINTS,
    VISITOR_PLACES,
    VISITORS,
    WEIGHTS,
)
from svc.kernel.store.directory import open_directory
from svc.kernel.store.snapshot import Transaction
from svc.kernel.tenants.jobs import add_credit
from svc.kernel.tenants.tables import ORGANIZATIONS
from svc.world import World, twenty_characters
from tests.support.live import report
from tests.support.worlds import Everywhere

HISTORY = (VISITOR_PLACES.name, ADDRESSES.name, REPORT_FINGERPRINTS.name)
RULES = (RULESETS.name, FILLED_LISTS.name, LISTED.name)


class Somewhere(Everywhere):
    """Ranges by which every address is in one country."""

    def find(self, _: object, /) -> Known:
        return Known(country=Country("GB", "United Kingdom", "test"))


class Counted(Transaction):
    """A transaction that keeps count of the rows it touches, by table."""

    def __init__(self, of: Transaction) -> None:
        super().__init__(of.writer)
        self._of = of
        self._asked: set[tuple[str, Any]] = set()
        self.read: Counter[str] = Counter()
        self.written: Counter[str] = Counter()

    def get(self, table: Any, *key: Any) -> Any:
        self.read[table.name] += 1
        return super().get(table, *key)

    def has(self, table: Any, *key: Any) -> bool:
        self.read[table.name] += 1
        return super().has(table, *key)

    def scan(self, table: Any, *prefix: Any, start: Any = None) -> Iterator[tuple[tuple[Any, ...], Any]]:
        """An empty range costs a read too, as does each row of another."""
        self.read[table.name] += 1
        for place, row in enumerate(super().scan(table, *prefix, start=start)):
            self.read[table.name] += place > 0
            yield row

    def put_all(self, table: Any, keys: Iterable[tuple[Any, ...]], value: Any) -> None:
        for key in keys:
            self.put(table, key, value)

    def put(self, table: Any, key: tuple[Any, ...], value: Any) -> int:
        self.written[table.name] += 1
        return super().put(table, key, value)

    def update(self, table: Any, key: tuple[Any, ...], step: Any) -> None:
        """A row that was asked about is at hand."""
        self.read[table.name] += (table.name, key) not in self._asked
        self.written[table.name] += 1
        self._of.update(table, key, step)

    def ask(self, table: Any, key: tuple[Any, ...], question: Any) -> Any:
        self.read[table.name] += 1
        self._asked.add((table.name, key))
        return self._of.ask(table, key, question)

    def delete(self, table: Any, *key: Any) -> bool:
        self.written[table.name] += 1
        return super().delete(table, *key)


def submission(number: int, chance: random.Random) -> Submission:
    """A visit of one of a few look-alike devices, now with its token and now without, from one of a few networks.

    Its history is as busy as can be: reports come again with their nonce, from addresses that many countries share.
    """
    world = World.real()
    device = chance.randrange(40)
    changes = {"canvas": f"{chance.randrange(3):032x}", "webgl": {"vendor": "Intel", "renderer": "UHD 620"}}
    signals = {**report(device % 4), **changes}
    signals["timezone"] = chance.choice(("Europe/London", "Asia/Tokyo", "Africa/Lagos", "America/Lima"))
    signals["nonce"] = f"{chance.randrange(400):08d}"
    if chance.random() < 0.6:
        signals["client_token"] = f"{device:032x}"
    return Submission(
        request_id=world.request_id(world.now_ms()),
        new_visitor_id=twenty_characters(world.entropy),
        at_ms=1_767_225_600_000 + number * 3_600_000,
        organization=1,
        key_id="key_test",
        touched_key=b"k" * 32,
        environment="production",
        sdk_platform="web",
        sdk_version=None,
        origin=None,
        tag=f"order {number}",
        idempotency=number.to_bytes(16),
        facts=RequestFacts(ip=f"81.2.{device % 3}.160"),
        signals=signals,
        signals_json=msgspec.json.encode(signals),
    )


def made_organization(transaction: Transaction) -> None:
    """One that has neither rules nor a rate limit."""
    create_organization(transaction, organization_id="org_x", name="x", now_ms=0, rate_limit_per_s=0)


@pytest.mark.slow
def test_an_identification_accesses_no_more_rows_than_declared(tmp_path: Path):
    world = World.real()
    found = open_directory(tmp_path, world.run_sync, world.entropy, durable=False, map_bytes=64 << 20)

    def prepare(transaction: Transaction) -> None:
        made_organization(transaction)
        add_credit(transaction, 1, entry_id=world.request_id(0), micros=10**9, now_ms=0, note="")
        add_entries(transaction, 1, first_list_id(1, "trusted_visitors"), [NewEntry("0" * 20)], 0)

    found.store.write_now([prepare])
    chance, statistics = random.Random(5), Statistics()
    most_read: Counter[str] = Counter()
    most_of_history: Counter[str] = Counter()
    most_beside = most_written = most_accounts_written = 0
    for number in range(600):
        given = msgspec.structs.replace(submission(number, chance), account_id=f"account {number % 50}")
        assessment = assess(given, Somewhere())
        kept: list[Counted] = []

        def job(transaction: Transaction, kept: list[Counted] = kept, assessment: Any = assessment) -> Recorded:
            kept.append(Counted(transaction))
            return identify(kept[0], assessment, statistics)

        (recorded,) = found.store.write_now([job])
        assert isinstance(recorded, Recorded)
        if recorded.statistics_update is not None:  # a report that was sent before teaches nothing
            statistics.learn(recorded.statistics_update)
        (counted,) = kept
        most_read |= counted.read
        most_accounts_written = max(most_accounts_written, counted.written[ACCOUNTS.name])
        most_of_history |= Counter({name: counted.written[name] for name in HISTORY})
        counted_apart = (*RULES, *HISTORY)
        apart = (BLOCKS.name, VISITORS.name, WEIGHTS.name, ENDPOINT_COUNTS.name, *counted_apart)
        most_beside = max(most_beside, counted.read.total() - sum(counted.read[name] for name in apart))
        assert isinstance(recorded.outcome, Identified)
        most_written = max(most_written, counted.written.total() - sum(counted.written[name] for name in counted_apart))
    with found.store.read() as snapshot:
        assert list(violations(snapshot)) == []
    found.store.close()
    assert most_read[BLOCKS.name] <= 9 + 1
    assert 8 < most_read[VISITORS.name] <= 20 + READ, "look-alikes were there to be read"
    assert [most_read[name] for name in HISTORY] == [1, 2, 2]
    assert [most_of_history[name] for name in HISTORY] == [1, 1, 1]
    assert [most_read[name] for name in (*RULES, WEIGHTS.name)] == [1, 1, 1, 2], "of six lists one has entries"
    assert (most_read[ENDPOINT_COUNTS.name], most_read[ENDPOINTS.name]) == (1, 0)
    assert (most_read[ACCOUNTS.name], most_accounts_written) == (1, 1)
    assert most_beside <= 14
    assert 15 < most_written <= 23


@pytest.mark.slow
@pytest.mark.parametrize("copied", [False, True])
def test_a_busy_address_costs_no_more_than_a_quiet_one(tmp_path: Path, copied: bool):
    """Its row is read and written once, and does not grow when its day is sampled, or it floods with reports that
    others sent before.
    """
    world = World.real()
    found = open_directory(tmp_path, world.run_sync, world.entropy, durable=False, map_bytes=64 << 20)
    chance, statistics = random.Random(5), Statistics()
    written: list[int] = []
    read: Counter[str] = Counter()

    def job(transaction: Transaction, given: Submission) -> None:
        counted = Counted(transaction)
        identify(counted, assess(given, Everywhere()), statistics)
        written.append(counted.written[ADDRESSES.name])
        read.update(counted.read)

    found.store.write_now([made_organization])
    addresses = [f"81.3.{place}.1" for place in range(120 if copied else 0)] + ["81.2.69.160"] * 120
    for number, ip in enumerate(addresses):
        signals = {**report(number % 120), "client_token": f"{number:032x}", "client_token_is_new": copied}
        given = msgspec.structs.replace(
            submission(number, chance),
            at_ms=1_767_225_600_000 + number,
            environment="development",
            facts=RequestFacts(ip=ip),
            signals=signals,
            signals_json=msgspec.json.encode(signals),
        )
        assert found.store.write_now([partial(job, given=given)]) == [None]
    with found.store.read() as snapshot:
        rows = list(snapshot.scan(ADDRESSES))
    found.store.close()
    assert set(written) == {1}
    assert read[ADDRESSES.name] <= 2 * len(addresses)
    (busy,) = (activity for _, activity in rows if len(activity.history.visitors) > 1)
    assert len(busy.history.visitors) == SAMPLED_VISITORS
    assert len(busy.history.pack()) < 200
    assert len(ADDRESSES.value.encode(busy)) < 4 + 12 + 64 * 4 + 3 * 64 * 12 + 200


@pytest.mark.parametrize(
    ("endpoints", "condition", "told"),
    [(1, None, 1), (10, None, 10), (10, 'in_list("blocked_addresses")', 0), (10, '!in_list("blocked_addresses")', 10)],
)
def test_webhook_endpoints_cost_two_rows_each_for_each_event(
    tmp_path: Path, endpoints: int, condition: str | None, told: int
):
    """Every identification is suspicious here, and every endpoint subscribes to both of its events. A list that all
    filters name is looked up once, and what they hold back writes nothing.
    """
    world = World.real()
    found = open_directory(tmp_path, world.run_sync, world.entropy, durable=False, map_bytes=64 << 20)
    counts: list[tuple[Counter[str], Counter[str]]] = []

    def prepare(transaction: Transaction) -> None:
        made_organization(transaction)
        save_weights(transaction, 1, None, "web", WeightsChange(threshold=1, weights={"automation": 100}), 0)
        for place in range(endpoints):
            new = NewEndpoint(
                id=f"whk_{place}",
                url="https://receiver.example/",
                description="",
                environment="test",
                events=("identification.completed", "visitor.suspect"),
                filter=condition,
            )
            create_endpoint(transaction, 1, new, b"", 0)

    def job(transaction: Transaction) -> Recorded:
        counted = Counted(transaction)
        signals = {**report(1), "webdriver": True}
        given = msgspec.structs.replace(
            submission(1, random.Random(1)),
            environment="development",
            facts=RequestFacts(ip="81.2.69.160", user_agent="HeadlessChrome"),
            signals=signals,
            signals_json=msgspec.json.encode(signals),
        )
        recorded = identify(counted, assess(given, Everywhere()), Statistics())
        counts.append((counted.read, counted.written))
        return recorded

    assert found.store.write_now([prepare]) == [None]
    (recorded,) = found.store.write_now([job])
    found.store.close()
    assert isinstance(recorded, Recorded)
    assert len(recorded.queues) == told
    ((read, written),) = counts
    found_by = (ENDPOINT_COUNTS, ENDPOINTS, ORGANIZATIONS, FILLED_LISTS, LISTED)
    assert [read[table.name] for table in found_by] == [1, endpoints, 1, 0, 0]
    events = 2 if told else 0
    assert [written[table.name] for table in (WEBHOOK_EVENTS, DELIVERIES, DUE)] == [events, 2 * told, 2 * told]
    assert read[RULESETS.name] == 0


def test_lists_that_nobody_uses_cost_no_read(tmp_path: Path):
    """The rules of the start name all six. One rule beside them costs the row of the ruleset; a list that has an entry
    its row, and where an entry may be looked for one more.
    """
    world = World.real()
    found = open_directory(tmp_path, world.run_sync, world.entropy, durable=False, map_bytes=64 << 20)
    reads: list[Counter[str]] = []

    def prepare(transaction: Transaction) -> None:
        create_organization(transaction, organization_id="org_x", name="x", now_ms=0, rate_limit_per_s=0)

    def save(transaction: Transaction) -> None:
        rule = Rule(id="rul_x", name="x", condition="score > 100", action="review")
        assert isinstance(save_rules(transaction, 1, "test", 0, [*FIRST.rules, rule], "", 0), Ruleset)

    def block(transaction: Transaction) -> None:
        entry = NewEntry("0" * 20)
        assert add_entries(transaction, 1, first_list_id(1, "blocked_visitors"), [entry], 0) == Added(1, 0)

    def job(transaction: Transaction, number: int) -> None:
        counted = Counted(transaction)
        signals = {**report(1), "client_token": "0" * 32, "nonce": f"{number:08d}"}
        fields = {"signals": signals, "signals_json": msgspec.json.encode(signals), "account_id": "a"}
        given = msgspec.structs.replace(submission(number, random.Random(1)), environment="development", **fields)
        identify(counted, assess(given, Everywhere()), Statistics())
        reads.append(counted.read)

    visits = iter(range(9))
    for step in (prepare, save, block):
        for each in (step, partial(job, number=next(visits)), partial(job, number=next(visits))):
            assert found.store.write_now([each]) == [None]
    found.store.close()
    bare, ruled, listed = reads[1::2]
    assert ruled - bare == {RULESETS.name: 1}
    assert listed - ruled == {FILLED_LISTS.name: 1, LISTED.name: 1}
    assert not bare - ruled
    assert not ruled - listed


def test_a_decision_review_reads_two_rows_and_writes_five_at_most(tmp_path: Path):
    """The event that opens a review writes; later ones of its visitor and account read."""
    world = World.real()
    found = open_directory(tmp_path, world.run_sync, world.entropy, durable=False, map_bytes=64 << 20)
    counts: list[tuple[int, int]] = []

    def prepare(transaction: Transaction) -> None:
        create_organization(transaction, organization_id="org_x", name="x", now_ms=0, rate_limit_per_s=0)
        rules = [Rule(id="rul_x", name="x", condition="true", action="review")]
        save_rules(transaction, 1, "test", 0, rules, "", 0)

    def job(transaction: Transaction, number: int) -> Recorded:
        counted = Counted(transaction)
        signals = {**report(1), "client_token": "0" * 32, "nonce": f"{number:08d}"}
        fields = {"signals": signals, "signals_json": msgspec.json.encode(signals), "account_id": "a"}
        given = msgspec.structs.replace(submission(number, random.Random(1)), environment="development", **fields)
        recorded = identify(counted, assess(given, Everywhere()), Statistics())
        tables = {REVIEWS.name, OPEN_REVIEWS.name, OPEN_CASES.name, SUBJECT_REVIEWS.name}
        counts.append((sum(counted.read[name] for name in tables), sum(counted.written[name] for name in tables)))
        return recorded

    assert found.store.write_now([prepare]) == [None]
    found.store.write_now([partial(job, number=number) for number in range(3)])
    found.store.close()
    assert counts == [(1, 5), (2, 0), (2, 0)]


def test_an_identification_leaves_nothing_to_the_garbage_collector(tmp_path: Path):
    """A cycle in each costs a tenth of the CPU: looking for it goes through all that was made since the last time."""
    world, chance, statistics = World.real(), random.Random(6), Statistics()
    found = open_directory(tmp_path, world.run_sync, world.entropy, durable=False, map_bytes=64 << 20)
    left: list[int] = []

    def prepare(transaction: Transaction) -> None:
        made_organization(transaction)
        add_credit(transaction, 1, entry_id=world.request_id(0), micros=10**9, now_ms=0, note="")
        add_entries(transaction, 1, first_list_id(1, "trusted_visitors"), [NewEntry("0" * 20)], 0)

    def job(transaction: Transaction, number: int) -> Recorded:
        given = msgspec.structs.replace(submission(number, chance), account_id=f"account {number % 9}")
        assessment = assess(given, Somewhere())
        gc.collect()
        recorded = identify(transaction, assessment, statistics).finish(transaction)
        left.append(gc.collect())
        return recorded

    found.store.write_now([prepare])
    gc.disable()
    gc.collect()
    gc.freeze()  # what other tests left is not searched again
    try:
        for number in range(30):
            (recorded,) = found.store.write_now([partial(job, number=number)])
            assert isinstance(recorded, Recorded), recorded
    finally:
        gc.enable()
        found.store.close()
    assert sorted(left)[20] == 0, "some make what is made once"
