"""A large store of one organization, as `bench.workplace` asks it: months of visits.

A tenth as many visitors as events; accounts, some shared and some of a farm; bots and Tor; rules, of which one opens
reviews; people who judge them; lists; notes; members. Virtual time ends now. A sixth of the events goes through the
transaction of an identification, with the matching, the rules and everything else; the others are copies of these at
other times, with their reports. Index and counters are made of all of them at the end.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from bench.reports import device_report, identified, submitted
from svc.features.labels.jobs import LabelChange, label_request
from svc.features.lists.jobs import NewEntry, add_entries, create_list
from svc.features.lists.queries import named_list
from svc.features.members.jobs import add_member
from svc.features.organizations.command import create_organization
from svc.features.reviews.jobs import Closing, add_note, close_review
from svc.features.reviews.queries import find_review
from svc.features.reviews.tables import OPEN_REVIEWS
from svc.features.rules.jobs import ruleset_in_force, save_rules
from svc.features.rules.ruleset import Rule
from svc.identify.identification import Submission
from svc.identify.index.queries import Scope
from svc.identify.indexing.jobs import rebuild_indexes, step
from svc.identify.matching import Statistics
from svc.identify.model import RequestFacts
from svc.identify.network.facts import AutonomousSystem, Country, Known, Range
from svc.identify.network_data.lists import COUNTRY_NAMES
from svc.identify.records import Document, Event
from svc.identify.tables import DOCUMENTS, EVENTS
from svc.kernel.access.members import Member
from svc.kernel.access.roles import Role
from svc.kernel.net.addresses import Address, read_address
from svc.kernel.store.directory import Opened, open_directory
from svc.kernel.store.snapshot import Transaction
from svc.kernel.values.fields import ENVIRONMENTS
from svc.kernel.values.ids import DAY_MS
from svc.world import World, twenty_characters

BATCH = 64
COPIES = 5
"""Of each event that was identified."""
RECENT = 20_000
"""Events of which one is copied."""
INDEXED_AFTER = 20
"""Batches."""
JUDGED_AFTER = 40
ORIGIN = "https://shop.example"
ZONES = {
    "US": "America/New_York", "GB": "Europe/London", "DE": "Europe/Berlin", "FR": "Europe/Paris", "IN": "Asia/Kolkata",
    "JP": "Asia/Tokyo", "BR": "America/Sao_Paulo", "ES": "Europe/Madrid", "IT": "Europe/Rome", "PL": "Europe/Warsaw",
    "NL": "Europe/Amsterdam", "SE": "Europe/Stockholm", "MX": "America/Mexico_City", "AU": "Australia/Sydney",
    "CA": "America/Toronto", "KR": "Asia/Seoul", "TR": "Europe/Istanbul", "ZA": "Africa/Johannesburg",
    "NG": "Africa/Lagos", "EG": "Africa/Cairo", "ID": "Asia/Jakarta", "TH": "Asia/Bangkok", "VN": "Asia/Ho_Chi_Minh",
    "AR": "America/Argentina/Buenos_Aires", "CL": "America/Santiago", "PT": "Europe/Lisbon", "NO": "Europe/Oslo",
    "FI": "Europe/Helsinki", "GR": "Europe/Athens", "NZ": "Pacific/Auckland",
}  # fmt: skip
"""Countries, the first ones with the most addresses, and a time zone of each."""
COUNTRIES = tuple(ZONES)
TOR_SHARE = 0.05
NEW_SHARE = 0.61
"""Of the visits: a tenth of the events, and a little more, so that all devices have come before the end."""
LABEL_SHARE = 0.06
"""Of the visits, beside those of reviews that are closed."""
CLOSED_SHARE = 0.7
"""Of reviews."""
LISTED = 20_000
"""Addresses in the list of blocked ones."""
ROLES: tuple[Role, ...] = ("admin", "developer", "analyst", "viewer")
DESKTOP = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/137.0.0.0 Safari/537.36"
CONDITIONS = (
    'action == "sign_up" && velocity.visitor.accounts["30d"] > 3',
    'velocity.address.accounts["1h"] >= 20',
    '"bot" in groups && score > 60',
    'velocity.account.visitors["30d"] > 6 && velocity.account.countries["30d"] > 1',
    "!visitor.is_new && visitor.age_days > 80",
)


class Places:
    """What is known of each address: its country, its network, and that some are exits of Tor."""

    @lru_cache(maxsize=65536)  # noqa: B019  lives as long as the program
    def find(self, address: Address, /) -> Known:
        chance = random.Random(int(address) >> 12)
        code = COUNTRIES[int(len(COUNTRIES) * chance.random() ** 2)]
        system = AutonomousSystem(64_512 + chance.randrange(300), "Homes and Offices Ltd", "bench")
        ranges = (Range("tor", "Tor", "bench"),) if chance.random() < TOR_SHARE else ()
        return Known(ranges, Country(code, COUNTRY_NAMES[code], "bench"), system)

    def publishes(self, _: str, /) -> bool:
        return True


class Workplace:
    """One organization's months. `days` until now, evenly."""

    def __init__(self, directory: Path, events: int, days: int, seed: int = 11) -> None:
        self._chance = random.Random(seed)
        self._events, self._days = events, days
        self._real = World.real()
        self._end_ms = self._real.now_ms()
        self._at_ms = self._end_ms - days * DAY_MS
        self._world = World(lambda: self._at_ms, self._real.entropy, self._real.run_sync)
        self._learned, self._places = Statistics(), Places()
        self._devices = 0
        self._new_devices = events // 10
        self._recent: list[tuple[Event, Document]] = []
        self.found: Opened = open_directory(directory, self._real.run_sync, self._real.entropy, durable=False)
        self.number = 0
        self.organization_id = ""

    def build(self) -> None:
        """Everything, oldest first; says now and then how far it is."""
        self._prepare()
        began = time.perf_counter()
        visits, done, batches = self._visits(), 0, 0
        while batch := list(islice(visits, BATCH)):
            self._identify(batch)
            done, batches = done + len(batch) * (1 + COPIES), batches + 1
            if batches % INDEXED_AFTER == 0:
                self._index()
            if batches % JUDGED_AFTER == 0:
                self._judge()
                print(f"{done:,} events, {self._devices:,} devices, {time.perf_counter() - began:.0f} s", flush=True)
        self._judge()
        self.found.store.change_log(rebuild_indexes)
        print(f"indexed: {time.perf_counter() - began:.0f} s", flush=True)
        self.found.store.close()

    def _prepare(self) -> None:
        made = create_organization(self.found, self._world, "bench", credit=None, rate_limit=0)
        self.number, self.organization_id = made.number, made.id
        self._do(self._add_people)
        self._do(self._add_rules)
        for start in range(0, LISTED, 1000):
            self._do(partial(self._add_entries, start=start))

    def _add_people(self, transaction: Transaction) -> None:
        for number in range(20):
            member = Member(
                id=f"mem_{twenty_characters(self._chance.randbytes)}",
                email=f"person{number}@shop.example",
                name=f"Person {number}",
                role=ROLES[number % 4],
                status="active",
                created_at_ms=self._at_ms,
            )
            add_member(transaction, self.number, member)

    def _add_rules(self, transaction: Transaction) -> None:
        now = ruleset_in_force(transaction, self.number, "live")
        kept = [
            *now.rules,
            Rule(id=_rule_id(99), name="Look at Tor", condition='"tor" in signals', action="review"),
            *(
                Rule(
                    id=_rule_id(number),
                    name=f"Rule {number}",
                    condition=f"({CONDITIONS[number % len(CONDITIONS)]}) && score != {number + 1000}",
                    action="challenge",
                    mode="active" if number % 3 else "shadow",
                )
                for number in range(8)
            ),
        ]
        save_rules(transaction, self.number, "live", now.revision, kept, "", self._at_ms)
        create_list(transaction, self.number, f"lst_{0:020}", "partners", "account", self._at_ms)

    def _add_entries(self, transaction: Transaction, start: int) -> None:
        blocked = named_list(transaction, self.number, "blocked_addresses")
        assert blocked is not None
        entries = [
            NewEntry(f"203.{number >> 8 & 255}.{number & 255}.0/24", "seen by a partner")
            for number in range(start, start + 1000)
        ]
        add_entries(transaction, self.number, blocked.id, entries, self._at_ms)

    def _visits(self) -> Iterator[Submission]:
        begin_ms = self._at_ms
        visits = self._events // (1 + COPIES)
        for number in range(visits):
            self._at_ms = begin_ms + (self._end_ms - begin_ms) * number // visits
            yield self._visit()

    def _visit(self) -> Submission:
        chance = self._chance
        if not self._devices or (chance.random() < NEW_SHARE and self._devices < self._new_devices):
            device = self._devices
            self._devices += 1
        else:
            device = int(self._devices * chance.random() ** (2 if chance.random() < 0.3 else 1))
        moves = chance.random() < 0.1
        farmed, is_bot = device % 500 == 7, device % 100 == 13
        account = f"user-{device * 7 // 10}" if chance.random() < 0.85 and not is_bot else None
        if farmed:
            account = f"farmed-{chance.randrange(10**9)}"
        home = device * 40_503 & 0xFFFFFF
        place = chance.getrandbits(24) if moves else home
        system = "X11; Linux x86_64" if is_bot else "Windows NT 10.0; Win64; x64"
        agent = f"Mozilla/5.0 ({system}) {DESKTOP.replace('Chrome', 'HeadlessChrome') if is_bot else DESKTOP}"
        zone = ZONES[self._country(_address(home))]
        signals = device_report(device) | {"userAgent": agent, "timezone": zone}
        signals |= {"client_token": f"{device:032x}", "nonce": chance.randbytes(8).hex()}
        if is_bot:
            signals["webdriver"] = True
        return submitted(
            self._world,
            signals,
            RequestFacts(ip=_address(place), user_agent=agent),
            organization=self.number,
            environment="production" if chance.random() < 0.95 else "development",
            origin=ORIGIN,
            tag=f"order {chance.getrandbits(32)}" if chance.random() < 0.3 else None,
            account_id=account,
            account_verified=account is not None,
            action="sign_up" if farmed else chance.choice(("log_in", "log_in", "checkout")) if account else None,
        )

    def _country(self, ip: str) -> str:
        address = read_address(ip)
        assert address is not None
        country = self._places.find(address).country
        assert country is not None
        return country.code

    def _identify(self, batch: list[Submission]) -> None:
        labels: list[Callable[[Transaction], Any]] = []
        recorded = identified(self.found.store, batch, self._places, self._learned)
        for submission, one in zip(batch, recorded, strict=True):
            assert one.event is not None, one
            if self._chance.random() < LABEL_SHARE:
                labels.append(partial(self._label, submission=submission, score=one.event.verdict.suspect_score))
        if labels:
            self.found.store.write_now(labels)
        self._do(partial(self._copy, batch=batch))

    def _copy(self, transaction: Transaction, batch: list[Submission]) -> None:
        """Copies of recent events, at the times of a batch; and its own events are recent from then on."""
        for submission in batch:
            for _ in range(COPIES if self._recent else 0):
                event, document = self._chance.choice(self._recent)
                self._at_ms = submission.at_ms
                request_id = self._world.request_id(self._at_ms)
                verdict = msgspec.structs.replace(event.verdict, visitor_is_new=False)
                copy = msgspec.structs.replace(event, occurred_at_ms=self._at_ms, verdict=verdict)
                transaction.put(EVENTS, (self.number, request_id.bytes), copy)
                transaction.put(DOCUMENTS, (self.number, request_id.bytes), document)
        for submission in batch:
            key = (self.number, submission.request_id.bytes)
            event, document = transaction.get(EVENTS, *key), transaction.get(DOCUMENTS, *key)
            assert event is not None
            assert document is not None
            found = (msgspec.structs.replace(event, label=None, label_reason=None), document)
            if len(self._recent) < RECENT:
                self._recent.append(found)
            else:
                self._recent[self._chance.randrange(RECENT)] = found

    def _label(self, transaction: Transaction, submission: Submission, score: int | None) -> None:
        is_fraud = (score or 0) > 20 or self._chance.random() < 0.05
        change = LabelChange("fraud", "chargeback") if is_fraud else LabelChange("legitimate")
        label_request(transaction, self.number, submission.request_id.bytes, change, submission.at_ms)

    def _index(self) -> None:
        for place in range(len(ENVIRONMENTS)):
            job = partial(step, scope=Scope(self.number, place), before_ms=self._at_ms)
            while self.found.store.write_now([job]) == [True]:
                pass

    def _judge(self) -> None:
        """Close most of the reviews that are open; write a note about a visitor of each tenth."""
        with self.found.store.read() as snapshot:
            opened = [key[1] for key in snapshot.scan_keys(OPEN_REVIEWS, (self.number,), (self.number + 1,))]
            found = [find_review(snapshot, self.number, f"rev_{raw.decode()}") for raw in opened[-400:]]
        for review in found:
            if review is None or self._chance.random() > CLOSED_SHARE / 2:
                continue
            label = self._chance.choice(("fraud", "legitimate"))
            closing = Closing(label, "other" if label == "fraud" else None, None)
            jobs: list[Callable[[Transaction], Any]] = [
                partial(close_review, number=self.number, review_id=review.id, closing=closing, now_ms=self._at_ms)
            ]
            if self._chance.random() < 0.1:
                jobs.append(partial(self._note, visitor_id=review.visitor_id))
            self.found.store.write_now(jobs)

    def _note(self, transaction: Transaction, visitor_id: str) -> None:
        entropy = self._world.entropy(20)
        add_note(transaction, self.number, "visitor", visitor_id, "called, no answer", self._at_ms, entropy)

    def _do(self, job: Callable[[Transaction], Any]) -> Any:
        return self.found.store.write_one_now(job)


def _rule_id(number: int) -> str:
    return f"rul_{number:020}"


def _address(place: int) -> str:
    return f"81.{place >> 16 & 255}.{place >> 8 & 255}.{place & 255}"
