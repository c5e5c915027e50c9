"""What rules and accounts cost: CPU and rows of an identification, from the report to the transaction.

In one process and in turn, so that ratios hold on a busy machine: no rules of its own, 2, 20 and 100 rules of ten
kinds, each without and with an account. With `--webhooks` instead: no endpoint, three without a filter, and three of
which filters hold everything back or nothing. No HTTP and no disk: what is measured is what the service adds.

    python -m bench.rules [--events 1500] [--rounds 3] [--webhooks]
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import time
from collections import Counter
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.reports import device_report, submitted
from bench.retention import Everywhere
from svc.domain.identification import assess
from svc.domain.matching import Statistics
from svc.domain.model import RequestFacts
from svc.domain.rules.ruleset import Rule
from svc.store.directory import open_directory
from svc.store.snapshot import Transaction
from svc.store.transactions.identification import Recorded, identify
from svc.store.transactions.organizations import add_credit, create_organization
from svc.store.transactions.rules.rulesets import save_rules
from svc.store.transactions.webhooks.endpoints import NewEndpoint, create_endpoint
from svc.world import World

CONDITIONS = (
    'action == "sign_up" && velocity.visitor.accounts["30d"] > 60',
    'velocity.address.accounts["1h"] >= 60',
    'groups.exists(group, group in ["bot", "tampering"]) && score > 300',
    'velocity.account.visitors["30d"] > 60 && velocity.account.countries["30d"] > 1',
    'present("account.id") && velocity.visitor.accounts["1h"] >= 60',
    '"account_new_device" in signals && present("address.anonymity_network")',
    'in_list("blocked_visitors") || in_list("blocked_addresses")',
    'cidr(address.ip, "203.0.113.0/24")',
    "!visitor.is_new && visitor.age_days > 300",
    'score >= 400 && device_kind == "desktop" && os != "Windows"',
)


HOLDING = (CONDITIONS[1], 'present("tag") && score > 300', 'in_list("trusted_visitors") && score >= 0')
PASSING = (f"!({CONDITIONS[1]})", '!present("tag") || score <= 300', '!in_list("trusted_visitors") && score >= 0')
ENDPOINTS: dict[str, tuple[str | None, ...]] = {
    "no endpoint": (),
    "3 that are sent nothing": HOLDING,
    "3 that are sent everything": PASSING,
    "3 without a filter": (None, None, None),
}


class Counted:
    """A transaction that counts the rows it reads and writes."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self.read: Counter[str] = Counter()
        self.written: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transaction, name)

    def get(self, table: Any, *key: Any) -> Any:
        self.read[table.name] += 1
        return self._transaction.get(table, *key)

    def put(self, table: Any, key: Any, value: Any) -> int:
        self.written[table.name] += 1
        return self._transaction.put(table, key, value)


def prepared(directory: Path, rules: int, filters: tuple[str | None, ...] = ()) -> tuple[Any, World]:
    """An open store with one organization that has this number of rules of its own, and an endpoint for each filter."""
    world = World.real()
    found = open_directory(directory, world.run_sync, world.entropy, durable=False, map_bytes=512 << 20)

    def prepare(transaction: Transaction) -> None:
        create_organization(transaction, organization_id="org_x", name="x", now_ms=0, rate_limit_per_s=0)
        add_credit(transaction, 1, entry_id=world.request_id(0), micros=10**12, now_ms=0, note="")
        kept = [
            Rule(
                id=f"rul_{number:020}",
                name=f"rule {number}",
                condition=f"({CONDITIONS[number % 10]}) && score != {number + 1000}",
                action="review",
            )
            for number in range(rules)
        ]
        if kept:
            save_rules(transaction, 1, "live", 0, kept, "", 0)
        for number, condition in enumerate(filters):
            new = NewEndpoint(
                id=f"whk_{number:020}",
                url="https://shop.example/",
                description="",
                environment="live",
                events=("identification.completed",),
                filter=condition,
            )
            create_endpoint(transaction, 1, new, b"", 0)

    found.store.write_now([prepare])
    return found, world


def measured(
    directory: Path, rules: int, events: int, *, account: bool, filters: tuple[str | None, ...] = ()
) -> tuple[float, float, float]:
    """(microseconds of CPU, rows read, rows written) of an identification."""
    found, world = prepared(directory, rules, filters)
    learned, chance, ranges = Statistics(), random.Random(7), Everywhere()
    read = written = 0
    given = []
    for number in range(events):
        device = chance.randrange(events // 3)
        facts = RequestFacts(ip=f"81.2.{device % 250}.{number % 250}", user_agent=device_report(1)["userAgent"])
        named = {"account_id": f"account {device % 400}", "action": "log_in"} if account else {}
        given.append(submitted(world, device_report(device) | {"client_token": f"token {device:012}"}, facts, **named))
    gc.collect()
    gc.disable()
    began = time.process_time()
    for submission in given:
        job = partial(identify, assessment=assess(submission, ranges), statistics=learned)
        found.store.write_now([job])
    took = time.process_time() - began
    gc.enable()
    for submission in given[:50]:
        kept: list[Counted] = []

        def counted(transaction: Transaction, submission: Any = submission, kept: list[Counted] = kept) -> Recorded:
            kept.append(Counted(transaction))
            return identify(kept[0], assess(submission, ranges), learned)  # pyright: ignore[reportArgumentType]

        found.store.write_now([counted])
        read, written = read + kept[0].read.total(), written + kept[0].written.total()
    found.store.close()
    return took / events * 1e6, read / 50, written / 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--webhooks", action="store_true")
    arguments = parser.parse_args()
    if arguments.webhooks:
        webhooks(arguments.events, arguments.rounds)
        return
    cases = [(rules, account) for rules in (0, 2, 20, 100) for account in (False, True)]
    figures: dict[tuple[int, bool], list[tuple[float, float, float]]] = {case: [] for case in cases}
    for _ in range(arguments.rounds):
        for case in cases:
            with TemporaryDirectory() as directory:
                figures[case].append(measured(Path(directory), case[0], arguments.events, account=case[1]))
    base = statistics.median(one[0] for one in figures[0, False])
    print("| rules | account | CPU, us | ratio | rows read | written |\n|---|---|---|---|---|---|")
    for (rules, account), found in figures.items():
        cpu = statistics.median(one[0] for one in found)
        _, read, written = found[0]
        print(f"| {rules} | {'yes' if account else 'no'} | {cpu:.0f} | {cpu / base:.2f} | {read:.1f} | {written:.1f} |")


def webhooks(events: int, rounds: int) -> None:
    """Print what endpoints and their filters cost."""
    figures: dict[str, list[tuple[float, float, float]]] = {case: [] for case in ENDPOINTS}
    for _ in range(rounds):
        for case, filters in ENDPOINTS.items():
            with TemporaryDirectory() as directory:
                figures[case].append(measured(Path(directory), 0, events, account=True, filters=filters))
    base = statistics.median(one[0] for one in figures["no endpoint"])
    print("| endpoints | CPU, us | ratio | rows read | written |\n|---|---|---|---|---|")
    for case, found in figures.items():
        cpu = statistics.median(one[0] for one in found)
        _, read, written = found[0]
        print(f"| {case} | {cpu:.0f} | {cpu / base:.2f} | {read:.1f} | {written:.1f} |")


if __name__ == "__main__":
    main()
