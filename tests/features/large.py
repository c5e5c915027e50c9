"""An organization of 20,000 events, made once in a run and copied for each test that needs one.

It begins as any filled one (`house.py`). Then visitors are identified by the transaction itself, each event gets
copies within its own second, so that every count holds, and jobs of the features add what people do.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import httpx
import msgspec

from svc.features.identification.transaction import Recorded, identify
from svc.features.labels.jobs import LabelChange, label_request
from svc.features.lists.jobs import NewEntry, add_entries, create_list
from svc.features.reviews.jobs import open_review
from svc.features.rules.jobs import ruleset_in_force, save_rules
from svc.features.rules.ruleset import Rule
from svc.features.views.jobs import save_view
from svc.features.views.tables import View
from svc.identify.identification import Submission, assess
from svc.identify.matching import Statistics
from svc.identify.model import RequestFacts
from svc.identify.queries.events import put_event
from svc.identify.records import Event
from svc.identify.tables import EVENTS
from svc.kernel.store.snapshot import Transaction
from svc.kernel.tenants.jobs import add
from svc.kernel.tenants.queries import find_organization
from svc.kernel.values.ids import ordered_id
from svc.kernel.values.refusals import Refusal
from svc.world import twenty_characters
from tests.features.house import House, Names
from tests.spec.subscriber import Names as Hosts
from tests.support import live as live_services
from tests.support.effort import LONG
from tests.support.live import ORIGIN, USER_AGENT, Live, live_service, report
from tests.support.receivers import OK, Receivers, always
from tests.support.run_folder import run_folder
from tests.support.worlds import Everywhere

T = TypeVar("T")


class Size(NamedTuple):
    visitors: int
    accounts: int
    labels: int
    reviews: int
    events: int = 20_000
    rules: int = 100
    lists: int = 50
    entries: int = 5_000
    """Of one list; the others have as many in all."""
    shared_views: int = 190
    own_views: int = 1_000
    """Of 20 members."""


SHARE, WHOLE = Size(800, 600, 1_200, 300), Size(3_000, 2_000, 5_000, 1_000)
"""Visitors cost the most: at a commit there are fewer of them, and of what is opened about each; in a database always,
where each read of an identification is a round trip.
"""


def size() -> Size:
    """How large it is in this run, on the engine of the test."""
    return WHOLE if LONG and live_services.ENGINE == "lmdb" else SHARE


SPAN_MS = 20 * 24 * 3_600_000
"""From the first event to the last."""
MARK = "annaxq"
PATIENCE_S = 120
"""For one response, on a machine that does much else."""
OFTEN = 10
"""One visit in so many is of one visitor with one account; another one of one account, each time with another visitor.
"""


def in_jobs(items: Sequence[T], size: int = 50) -> Iterator[Sequence[T]]:
    """So many of the items at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))


class Filling:
    """The work of making it, on a running service."""

    def __init__(self, live: Live, house: House) -> None:
        self._live, self._house, self._number = live, house, house.organization.number
        self._size, self._statistics = size(), Statistics()

    def fill(self) -> None:
        """Everything, and what the names of the house stand for then: whatever there is most of."""
        visits = self._size.visitors * OFTEN // (OFTEN - 1)
        made = [self._visit(at, visits) for at in range(visits)]
        copies = -(-self._size.events // visits) - 1
        for some in in_jobs(made):
            self._do(partial(self._copy, some=some, copies=copies))
        with self._live.found.store.read() as snapshot:
            events = {key[1]: event for key, event in snapshot.scan(EVENTS, self._number)}
        for some in in_jobs([*events][:: len(events) // self._size.labels]):
            self._do(partial(self._label, some=some))
        for some in in_jobs([*enumerate(made[-self._size.reviews :])]):
            self._do(partial(self._open, some=some, events=events))
        self._house.names["revision"] = str(self._do(self._save_rules).revision)
        self._lists()
        for some in in_jobs(range(self._size.shared_views + self._size.own_views)):
            self._do(partial(self._save_views, some=some))
        often = events[made[-OFTEN].bytes]
        self._house.names |= {"request_id": str(made[-OFTEN]), "visitor_id": often.verdict.visitor_id}
        self._house.names |= {"account_id": "user-0", "address": often.ip_address, "tag": "order 0"}

    def _do(self, *jobs: Callable[[Transaction], Any]) -> Any:
        done = self._live.found.store.write_now(jobs)
        for outcome in done:
            assert not isinstance(outcome, Exception | Refusal), outcome
        return done[0]

    def _visit(self, at: int, visits: int) -> UUID:
        live, is_often = self._live, (visits - at) % OFTEN == 0
        live.clock.advance(seconds=SPAN_MS / visits / 1000)
        now_ms, device = live.clock.now_ms // 1000 * 1000, 10 if is_often else 11 + at
        account = 0 if is_often else 1 if at % OFTEN == 3 else at % self._size.accounts
        signals = report(device)
        submission = Submission(
            request_id=live.world.request_id(now_ms),
            new_visitor_id=twenty_characters(live.world.entropy),
            at_ms=now_ms,
            organization=self._number,
            key_id=self._house.names["key_id"],
            touched_key=None,
            environment="development",
            sdk_platform="web",
            sdk_version="1.0",
            origin=ORIGIN,
            tag=f"order {account}",
            idempotency=None,
            facts=RequestFacts(ip=f"81.2.{device >> 8 & 255}.{device & 255}", user_agent=USER_AGENT),
            signals=signals,
            signals_json=msgspec.json.encode(signals),
            account_id=f"user-{account}",
            action=("log_in", "sign_up", "checkout")[at % 3],
        )
        assessment = assess(submission, Everywhere())
        recorded = self._do(partial(identify, assessment=assessment, statistics=self._statistics))
        assert isinstance(recorded, Recorded)
        if recorded.statistics_update is not None:
            self._statistics.learn(recorded.statistics_update)
        return submission.request_id

    def _copy(self, transaction: Transaction, some: Sequence[UUID], copies: int) -> None:
        for request_id in some:
            event = transaction.get(EVENTS, self._number, request_id.bytes)
            assert event is not None
            verdict = msgspec.structs.replace(event.verdict, visitor_is_new=False)
            for at_ms in range(event.occurred_at_ms + 1, event.occurred_at_ms + copies + 1):
                copy = msgspec.structs.replace(event, occurred_at_ms=at_ms, verdict=verdict, has_document=False)
                put_event(transaction, self._number, self._live.world.request_id(at_ms), copy)
        more = len(some) * copies
        add(transaction, self._number, 0, lambda held: msgspec.structs.replace(held, events=held.events + more))

    def _label(self, transaction: Transaction, some: Sequence[bytes]) -> None:
        for raw_id in some:
            change = LabelChange("legitimate" if raw_id[-1] % 3 else "fraud")
            label_request(transaction, self._number, raw_id, change, self._live.clock.now_ms)

    def _open(self, transaction: Transaction, some: Sequence[tuple[int, UUID]], events: dict[bytes, Event]) -> None:
        for at, request_id in some:
            event, entropy = events[request_id.bytes], at.to_bytes(16)
            open_review(transaction, self._number, request_id.bytes, event, self._live.clock.now_ms, entropy)

    def _save_rules(self, transaction: Transaction) -> Any:
        now = ruleset_in_force(transaction, self._number, "test")
        more = [
            Rule(id=f"rul_{at:020}", name=f"Rule {at}", condition=f"score >= {at + 100}", action="challenge")
            for at in range(self._size.rules - len(now.rules))
        ]
        rules = [*now.rules, *more]
        return save_rules(transaction, self._number, "test", now.revision, rules, "", self._live.clock.now_ms)

    def _save_views(self, transaction: Transaction, some: Sequence[int]) -> None:
        for at in some:
            owner = None if at < self._size.shared_views else f"mem_{at % 20:020}"
            view = View(
                id=ordered_id("view", self._live.clock.now_ms, at.to_bytes(16)),
                name=f"view {at}",
                screen="events",
                query=(("account_id", f"user-{at % 3}"), *((f"p{'x' * more}", "x" * 200) for more in range(19))),
                saved_at_ms=self._live.clock.now_ms,
                owner=owner,
            )
            assert save_view(transaction, self._number, view) == view

    def _lists(self) -> None:
        given = {"number": self._number, "now_ms": self._live.clock.now_ms}
        for at in range(self._size.lists):
            list_id = f"lst_{at:020}"
            self._do(partial(create_list, list_id=list_id, name=f"list_{at}", kind="account", **given))
            for some in in_jobs(range(self._size.entries // (self._size.lists if at else 1)), 400):
                entries = [NewEntry(f"user-{number}", "seen") for number in some]
                self._do(partial(add_entries, list_id=list_id, entries=entries, **given))
        self._house.names["list_id"] = f"lst_{0:020}"


async def make(directory: Path) -> dict[str, Any]:
    """Make it in an empty directory; what is known of it then."""
    async with live_service(directory, transport=Receivers(always(OK, 0)), resolver=Hosts(), with_check=False) as live:
        house = House(live, live.organization, MARK)
        await house.fill()
        Filling(live, house).fill()
        await house.make_of_subjects()
        await house.index()
        return {"names": dict(house.names), "organization": live.organization.id, "now_ms": live.clock.now_ms}


async def made_once(directory: Path) -> dict[str, Any]:
    """A copy of that of this run, in an empty directory; what is known of it."""
    if live_services.ENGINE != "lmdb":  # a database has no copies
        return await make(directory)
    original = run_folder() / "large"
    with (run_folder() / "large.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (original / "known.json").exists():
            known = await make(original / "data")
            (original / "known.json").write_text(json.dumps(known))
    shutil.copytree(original / "data", directory, dirs_exist_ok=True)
    return json.loads((original / "known.json").read_text())


@asynccontextmanager
async def large(directory: Path, **settings: Any) -> AsyncGenerator[House]:
    """The large organization in a running service; `settings` as of `live_service`."""
    known = await made_once(directory)
    given = {"transport": Receivers(always(OK, 0)), "resolver": Hosts(), "now_ms": known["now_ms"], **settings}
    async with live_service(directory, **given) as live:
        live.client.timeout = httpx.Timeout(PATIENCE_S)
        with live.found.store.read() as snapshot:
            found = find_organization(snapshot, known["organization"])
        assert found is not None
        house = House(live, found, MARK)
        house.names = Names(known["names"])
        await house.come_in()
        yield house
