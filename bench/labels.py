"""What labels are worth and what they cost: weights from an organization's own labels beside the defaults, and the
bytes and CPU of outcomes (ADR 119, 120).

Honest visits of a linkage stream, real automated browsers, and a farm that signs up many accounts in private windows
behind addresses of homes go through the service's own transaction. A tenth of the labels is wrong. Precision and recall
are by cross-validation, as `svc weights suggest` prints them. Needs the extra `analysis`, and the shared data.

    python -m bench.labels [--data ../shared/data] [--stream small] [--honest 3000]
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec

from bench.detection.automation import read_captures
from bench.linkage.streams import client_token, read_stream
from bench.reports import submitted
from svc.domain.identification import assess
from svc.domain.labels.outcomes import Outcome
from svc.domain.labels.suggestion import Suggestion, labeled_of, suggest
from svc.domain.matching import Statistics
from svc.domain.model import RequestFacts
from svc.domain.scoring.score import default_profile
from svc.network_data.lookup import BuiltInRanges, NetworkData
from svc.store.directory import open_directory
from svc.store.schema.tables import EVENTS, OUTCOMES
from svc.store.snapshot import Transaction
from svc.store.transactions.identification import identify
from svc.store.transactions.labels.labels import MOST_IN_SEGMENT, archive
from svc.store.transactions.organizations import add_credit, create_organization
from svc.store.views.labels import stored_outcome
from svc.world import World

BOTS, FARM_ACCOUNTS = 400, 200
NOISE = 0.1
START_MS, APART_MS = 1_767_225_600_000, 60_000
KEY_BYTES = 20 + 4 + 10
"""Key, checksum, and what LMDB adds to a row."""
STEP = 32
"""Events that retention deletes in one transaction."""


class Visit(NamedTuple):
    """A visit and the truth about it."""

    signals: dict[str, Any]
    facts: RequestFacts
    account: str | None
    is_fraud: bool


def honest(data: Path, stream: str, count: int) -> Iterator[Visit]:
    """The first visits of a stream, each browser with an account of its own."""
    found, seen = read_stream(data / "linkage" / stream), set[str]()
    for request, visit in zip(found.requests[:count], found.visits[:count], strict=True):
        signals = dict(request.signals)
        if request.storage_id:
            signals |= {
                "client_token": client_token(request.storage_id),
                "client_token_is_new": request.storage_id not in seen,
            }
            seen.add(request.storage_id)
        facts = RequestFacts(ip=request.ip, user_agent=request.signals.get("userAgent") or "")
        yield Visit(signals, facts, f"user {visit.browser}", is_fraud=False)


def bots(data: Path, chance: random.Random) -> Iterator[Visit]:
    """Captured automated browsers, each again and again from homes."""
    captures = [capture for capture in read_captures(data) if capture.kind == "automated"]
    for number in range(BOTS):
        capture = chance.choice(captures)
        facts = msgspec.structs.replace(capture.facts, ip=f"81.{chance.randrange(1, 250)}.69.{number % 250}")
        yield Visit(capture.signals, facts, None, is_fraud=True)


def farm(data: Path, stream: str, chance: random.Random) -> Iterator[Visit]:
    """One operator: a few browsers in private windows, a new account and another address each time, two visits each."""
    reports = [request.signals for request in read_stream(data / "linkage" / stream).requests[-2000::400]]
    for account in range(FARM_ACCOUNTS):
        signals = chance.choice(reports)
        facts = RequestFacts(ip=f"92.{account}.17.5", user_agent=signals.get("userAgent") or "")
        for _ in range(2):
            yield Visit(dict(signals), facts, f"farmed {account}", is_fraud=True)


def outcomes_of(directory: Path, visits: list[Visit]) -> list[Outcome]:
    """What the service makes of them, and the costs of archiving it, which are printed."""
    world = World.real()
    found = open_directory(directory, world.run_sync, world.entropy, durable=False, map_bytes=1 << 30)

    def prepare(transaction: Transaction) -> None:
        create_organization(transaction, organization_id="org_x", name="x", now_ms=0, rate_limit_per_s=0)
        add_credit(transaction, 1, entry_id=world.request_id(0), micros=10**12, now_ms=0, note="")

    found.store.write_now([prepare])
    learned, ranges = Statistics(), NetworkData(BuiltInRanges(), {})
    ids: list[bytes] = []
    for number, visit in enumerate(visits):
        at_ms = START_MS + number * APART_MS
        given = submitted(world, visit.signals, visit.facts, account_id=visit.account, at_ms=at_ms)
        found.store.write_now([partial(identify, assessment=assess(given, ranges), statistics=learned)])
        ids.append(given.request_id.bytes)
    with found.store.read() as snapshot:
        events = [snapshot.get(EVENTS, 1, request_id) for request_id in ids]
        outcomes = [
            stored_outcome(snapshot, 1, request_id, event)
            for request_id, event in zip(ids, events, strict=True)
            if event is not None
        ]
    began = time.process_time()
    for start in range(0, len(ids), STEP):
        found.store.write_now([partial(archive, number=1, request_ids=ids[start : start + STEP])])
    took = time.process_time() - began
    with found.store.read() as snapshot:
        archived = sum(snapshot.length(OUTCOMES, *key) for key, _ in snapshot.scan(OUTCOMES, 1))
        pages = snapshot.size(OUTCOMES)
    found.store.close()
    rows = [(each.at_ms, each.visitor, each.account, each.facts) for each in outcomes]
    row_bytes = KEY_BYTES + sum(len(msgspec.msgpack.encode(row)) for row in rows) / len(rows)
    print(f"outcomes: {len(outcomes)}, at most {MOST_IN_SEGMENT} in a row")
    print(f"bytes of an outcome in segments: {archived / len(rows):.1f}; with their pages {pages / len(rows):.1f}")
    print(f"bytes of an outcome as a row of its own: {row_bytes:.0f}")
    print(f"CPU of archiving, after the identification: {took / len(outcomes) * 1e6:.0f} us an event\n")
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--stream", default="small")
    parser.add_argument("--honest", type=int, default=3000)
    arguments = parser.parse_args()
    chance = random.Random(7)
    visits = [
        *honest(arguments.data, arguments.stream, arguments.honest),
        *bots(arguments.data, chance),
        *farm(arguments.data, arguments.stream, chance),
    ]
    chance.shuffle(visits)
    with TemporaryDirectory() as directory:
        outcomes = outcomes_of(Path(directory), visits)
    labeled = [
        outcome.with_label("fraud" if visit.is_fraud != (chance.random() < NOISE) else "legitimate", None)
        for outcome, visit in zip(outcomes, visits, strict=True)
    ]
    show(suggest(labeled_of(labeled, "web"), default_profile("web"), "web"))


def show(found: Suggestion) -> None:
    print(f"{found.fraud} events labeled as fraud, {found.legitimate} as legitimate, a tenth of them wrongly\n")
    print("| weights | precision | recall |\n|---|---:|---:|")
    for name, quality in (("defaults", found.today), ("suggested", found.suggested)):
        print(f"| {name} | {quality.precision:.3f} | {quality.recall:.3f} |")
    print("\n| signal | default | suggested | events | fraud |\n|---|---:|---:|---:|---:|")
    for one in found.weights:
        print(f"| `{one.signal}` | {one.before} | {one.after} | {one.events} | {one.fraud} |")


if __name__ == "__main__":
    main()
