"""What must be true of every store, at every moment: the rules behind `svc check` and behind the crash tests.

Each rule reads its tables in key order and yields a sentence for each violation. Memory is bounded whatever the size of
the store: by the days and credits of one organization's ledger, the hours of its events, the days of its outcomes and
its labeled visitors and accounts, and the minutes of its webhook attempts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from heapq import merge
from itertools import islice, pairwise
from tempfile import TemporaryFile
from typing import Any
from uuid import UUID

from svc.features.erasure import policies
from svc.features.erasure.tables import ERASED_EVENTS
from svc.features.quarantine.jobs import corrupt_rows
from svc.features.registry import FEATURES
from svc.features.tables import TABLES
from svc.identify.events.hour_counts import NOTHING, HourCounts
from svc.identify.invariants import index_faults
from svc.identify.queries.hours import HourKey, hour_key
from svc.identify.recording.visitors import counted
from svc.identify.records import Event
from svc.identify.tables import (
    ATTESTED_KEYS,
    BLOCKS,
    DEFERRED_REPORTS,
    DELETED_VISITORS,
    DOCUMENTS,
    ERASURES,
    EVENTS,
    HOURS,
    IDEMPOTENCY,
    VISITOR_COUNTS,
    VISITOR_IDS,
    VISITOR_KEYS,
    VISITORS,
    WEIGHTS,
    WEIGHTS_SNAPSHOTS,
)
from svc.kernel.access.jobs import counted_keys
from svc.kernel.access.tables import AUDIT, KEY_IDS, KEYS, ORGANIZATION_KEYS
from svc.kernel.store import operations
from svc.kernel.store.engine import EngineError
from svc.kernel.store.files.durable_files import temporary_folder
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.key_parts import moment
from svc.kernel.store.schema.operation_log import unpack_batch
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.store.steps import QUIET, Steps
from svc.kernel.store.tables import OPERATIONS
from svc.kernel.tenants.billing import FIRST_STATUSES, BillingStatus, Usage, counters
from svc.kernel.tenants.jobs import holding
from svc.kernel.tenants.queries import find_sdk_key
from svc.kernel.tenants.queries import organization as find_organization
from svc.kernel.tenants.tables import (
    BALANCES,
    BILLING_CHANGES,
    CREDITS,
    LEDGER,
    LEDGER_DAYS,
    ORGANIZATION_IDS,
    ORGANIZATIONS,
    PAST_DUE,
    SETTLEMENTS,
)
from svc.kernel.values.fields import ENVIRONMENTS, PLATFORMS
from svc.kernel.values.ids import DAY_MS, HOUR_MS, made_at_ms

Rule = Callable[[Snapshot, int], Iterator[str]]


def violations(snapshot: Snapshot, steps: Steps = QUIET) -> Iterator[str]:
    """Yield a sentence for every broken rule, which names the rows; nothing if there is none. Reads every row;
    `steps` gets how many were read.
    """
    with_progress = snapshot.with_progress(steps)
    steps.stage("reading every row", sum(snapshot.count(table) for table in TABLES))

    def found_by_keys(table: Table[Any]) -> Iterator[bool]:
        return (with_progress.has(table, *key) for key, _ in with_progress.scan(table))

    unreadable = list(row_faults(with_progress, found_by_keys))
    yield from unreadable
    if unreadable:
        return  # the other rules read what cannot be read
    steps.stage("checking the rules", sum(len(table.invariants) * snapshot.count(table) for table in TABLES))
    for store_rule in STORE_RULES.values():
        yield from store_rule(with_progress)
    for (number,), organization in with_progress.scan(ORGANIZATIONS):  # the rule `organizations`
        if snapshot.get(ORGANIZATION_IDS, organization.id) != number:
            yield f"organization {number} is not found by its id {organization.id}"
        removed = organization.removed_at_ms is not None
        for name, rule in RULES.items():
            if not removed or name in KEPT_RULES:  # what is being erased may have gone in any order
                yield from rule(with_progress, number)


def row_faults(snapshot: Snapshot, rows: Callable[[Table[Any]], Iterator[bool]]) -> Iterator[str]:
    """Yield a sentence for every table with a row that cannot be read, or with a number of rows other than the recorded
    one. `rows` reads a table and yields, for each row, whether it is found by its key. Raises what reading raises.
    """
    for table in TABLES:
        count = 0
        try:
            for is_found in rows(table):
                count += 1
                if not is_found:
                    yield f"{table.name}, row {count}, is not found by its key"
        except CorruptionError as error:
            yield from corrupt_rows(snapshot, table, count + 1, error)
            continue
        except EngineError as error:
            yield f"{table.name}, row {count + 1}: {error}"
            return  # an engine that failed reads nothing more in this snapshot
        if count != snapshot.count(table):
            yield f"{table.name} has {count} rows and says {snapshot.count(table)}"


def _keys(snapshot: Snapshot) -> Iterator[str]:
    for (digest,), key in snapshot.scan(KEYS):
        if snapshot.get(KEY_IDS, key.id) != digest:
            yield f"key {key.id} is not found by its id"
        if snapshot.get(ORGANIZATION_KEYS, key.organization, key.created_at_ms, key.id) != digest:
            yield f"key {key.id} is not listed for its organization"
        if not snapshot.has(ORGANIZATIONS, key.organization):
            yield f"key {key.id} belongs to organization {key.organization}, which does not exist"


def _audit(snapshot: Snapshot) -> Iterator[str]:
    """Check audit records. An id's time may be ahead of its record's, where the clock was set back, never behind it."""
    for (number, raw_id), record in snapshot.scan(AUDIT):
        name = f"audit record {UUID(bytes=raw_id)}"
        if record.organization != number:
            yield f"{name} is of organization {record.organization} and lies with organization {number}"
        if not snapshot.has(ORGANIZATIONS, number):
            yield f"{name} is of organization {number}, which does not exist"
        if made_at_ms(raw_id) < record.at_ms:
            yield f"{name} has an id from before its own time"


def _money(snapshot: Snapshot, number: int) -> Iterator[str]:
    credited: set[bytes] = set()
    moved: set[tuple[int, bytes]] = set()
    usages: defaultdict[int, Usage] = defaultdict(Usage)
    for (_, raw_id), entry in snapshot.scan(LEDGER, number):
        if entry.kind == "credit":
            credited.add(raw_id)
        if entry.day is not None:
            moved.add((entry.day, raw_id))
        usages[made_at_ms(raw_id) // DAY_MS if entry.day is None else entry.day] += counters((entry,))
    listed = {(day, raw_id) for _, day, raw_id in snapshot.scan_keys_reverse(LEDGER_DAYS, (number,), (number + 1,))}
    for day, raw_id in sorted(moved ^ listed):
        yield f"line {UUID(bytes=raw_id)} of organization {number} counts for day {day} in one table of two"
    indexed = {raw_id for _, raw_id in snapshot.scan_keys_reverse(CREDITS, (number,), (number + 1,))}
    total = sum(usage.change_micros for usage in usages.values())
    for raw_id in sorted(credited ^ indexed):
        yield f"line {UUID(bytes=raw_id)} of organization {number} is a credit in the ledger or in {CREDITS.name} alone"
    balance = snapshot.get(BALANCES, number)
    if balance != total:
        yield f"organization {number} has a balance of {balance} micros, its ledger sums to {total}"
    for (_, day), settled in snapshot.scan(SETTLEMENTS, number):
        usage = usages.get(day, Usage())
        if settled.is_closed and (settled.amount_micros, settled.free) != (usage.charged_micros, usage.free):
            yield f"day {day} of organization {number} was settled with something else than its ledger says"
        # Before 0.3.0 a clock that was set back may have added lines to a day after it was settled.
        elif settled.amount_micros > usage.charged_micros or settled.free > usage.free:
            yield f"day {day} of organization {number} was settled with more than its ledger says"


def _billing(snapshot: Snapshot, number: int) -> Iterator[str]:
    organization = find_organization(snapshot, number)
    if snapshot.has(PAST_DUE, number) != (organization.billing_status == "past_due"):
        yield f"organization {number} is {organization.billing_status}, its term of payment says otherwise"
    left = Counter[BillingStatus]((organization.billing_status,))  # changes of one millisecond may lie in any order
    for _, change in snapshot.scan(BILLING_CHANGES, number):
        left.update((change.previous,))
        left.subtract((change.current,))
    if {status: count for status, count in left.items() if count} not in ({first: 1} for first in FIRST_STATUSES):
        yield f"organization {number} is {organization.billing_status}, its changes of billing status say otherwise"


def _events(snapshot: Snapshot, number: int) -> Iterator[str]:
    """Check that each event has its rows and one index entry, and that hourly counters are the sums of events."""
    hours: dict[HourKey, HourCounts] = {}
    events = 0
    for (_, raw_id), event in snapshot.scan(EVENTS, number):
        events += 1
        yield from _event(snapshot, number, raw_id, event)
        hour = hour_key(number, event)
        hours[hour] = hours.get(hour, NOTHING).plus(event)
    yield from index_faults(snapshot, number, events)
    yield from _miscounted(snapshot, number, hours)
    for table, name in ((DOCUMENTS, "document"), (DEFERRED_REPORTS, "deferred report")):
        for _, raw_id in snapshot.scan_keys_reverse(table, (number,), (number + 1,)):
            if not snapshot.has(EVENTS, number, raw_id):
                yield f"{name} {UUID(bytes=raw_id)} has no event"


def _miscounted(snapshot: Snapshot, number: int, expected: dict[HourKey, HourCounts]) -> Iterator[str]:
    kept = {(number, environment, hour): counts for (_, environment, hour), counts in snapshot.scan(HOURS, number)}
    for key in sorted(expected.keys() | kept.keys()):
        if kept.get(key) != expected.get(key):
            _, environment, hour = key
            yield (
                f"the counters of organization {number}, {ENVIRONMENTS[environment]}, {moment(hour * HOUR_MS)} "
                f"are not what its events add up to"
            )


def _event(snapshot: Snapshot, number: int, raw_id: bytes, event: Event) -> Iterator[str]:
    request_id = UUID(bytes=raw_id)
    document = snapshot.get(DOCUMENTS, number, raw_id)
    if (document is not None) != event.has_document:
        yield f"request {request_id} has {'no' if document is None else 'a'} document, and says otherwise"
    elif document is not None:
        if not snapshot.has(WEIGHTS_SNAPSHOTS, document.weights_digest):
            yield f"request {request_id} was scored with weights that are not kept"
        if (document.split_from or 0) > (snapshot.get(VISITOR_COUNTS, number) or 0):
            yield f"request {request_id} was split from visitor {document.split_from}, a number that is not taken"
        if document.split_from is not None and not event.verdict.visitor_is_new:
            yield f"request {request_id} was split from a visitor and names one that was known"
    line = snapshot.get(LEDGER, number, raw_id)
    if line is None:
        if event.environment == "production":
            yield f"request {request_id} is production traffic and not on the ledger"
    elif line.amount_micros != -event.price_micros:
        yield f"request {request_id} cost {event.price_micros} and was charged {-line.amount_micros}"
    raw_visitor = event.verdict.visitor_id.encode()
    kept = event.verdict.identifiable and event.verdict.linkage != "replayed"
    known = not kept or snapshot.has(VISITOR_IDS, number, raw_visitor)
    if not known and not snapshot.has(ERASURES, number, raw_visitor):
        yield f"request {request_id} names the visitor {event.verdict.visitor_id}, who is not known"


def _answered_once(snapshot: Snapshot, number: int) -> Iterator[str]:
    """Check that no two idempotency keys have the same answer."""
    for request_id in repeated(row.request_id for _, row in snapshot.scan(IDEMPOTENCY, number)):
        yield f"request {UUID(bytes=request_id)} belongs to two idempotency keys"


def _answered_by_events(snapshot: Snapshot, number: int) -> Iterator[str]:
    """Check that idempotency keys lead to an event, except for as many as were erased."""
    may_be_gone = snapshot.get(ERASED_EVENTS, number) or 0
    for _, row in snapshot.scan(IDEMPOTENCY, number):
        if not snapshot.has(EVENTS, number, row.request_id):
            may_be_gone -= 1
            if may_be_gone < 0:
                yield f"an idempotency key leads to request {UUID(bytes=row.request_id)}, which has no event"


def _visitors(snapshot: Snapshot, number: int) -> Iterator[str]:
    taken = snapshot.get(VISITOR_COUNTS, number) or 0
    for (_, visitor_number), visitor in snapshot.scan(VISITORS, number):
        if visitor_number > taken:
            yield f"visitor {visitor_number} of organization {number} is beyond the {taken} numbers taken"
        if snapshot.get(VISITOR_IDS, number, visitor.visitor_id.encode()) != visitor_number:
            yield f"visitor {visitor.visitor_id} is not found by its id"
    for (_, visitor_id), visitor_number in snapshot.scan(VISITOR_IDS, number):
        found = snapshot.get(VISITORS, number, visitor_number)
        if found is None:
            yield f"the visitor id {visitor_id.decode()} leads to no visitor"
        elif found.visitor_id.encode() != visitor_id:
            yield f"the visitor id {visitor_id.decode()} leads to visitor {found.visitor_id}"


def _blocks(snapshot: Snapshot, number: int) -> Iterator[str]:
    for (_, visitor_number), _ in snapshot.scan(DELETED_VISITORS, number):
        if snapshot.has(VISITORS, number, visitor_number):
            yield f"visitor {visitor_number} of organization {number} is gone and known"
    for (_, block_key), block in snapshot.scan(BLOCKS, number):
        for visitor_number in block.numbers:
            known = snapshot.has(VISITORS, number, visitor_number)
            if not known and not snapshot.has(DELETED_VISITORS, number, visitor_number):
                yield f"block {block_key.hex()} names visitor {visitor_number}, who is not known"


def _history(snapshot: Snapshot, number: int) -> Iterator[str]:
    """Check that no visitor who is gone left rows that its number leads to: erasure deletes them together."""
    for table in policies.ERASED_BY_KEY["visitor"]:
        for key, _ in snapshot.scan(table, number) if table is not VISITORS else ():
            if not snapshot.has(VISITORS, number, key[1]):
                yield f"{table.name} has a row of visitor {key[1]} of organization {number}, who is not known"


def _attested_keys(snapshot: Snapshot, number: int) -> Iterator[str]:
    """Check that every attested key is listed once, with the visitor that it names."""
    for (_, key_id), key in snapshot.scan(ATTESTED_KEYS, number):
        listed = snapshot.get(VISITOR_KEYS, number, key.visitor_id.encode())
        if listed is None or listed.key_ids.count(key_id) != 1:
            yield f"attested key {key_id.hex()} of organization {number} is not listed with its visitor"
    for (_, raw_id), listed in snapshot.scan(VISITOR_KEYS, number):
        for key_id in listed.key_ids:
            key = snapshot.get(ATTESTED_KEYS, number, key_id)
            if key is None or key.visitor_id.encode() != raw_id:
                yield f"the list of a visitor of organization {number} has {key_id.hex()}, which is not a key of it"


def _holding(snapshot: Snapshot, number: int) -> Iterator[str]:
    kept, found = holding(snapshot, number), counted(snapshot, number)
    said = (kept.events, kept.visitors, kept.report_bytes)
    counts = (found.events, found.visitors, found.report_bytes)
    if said != counts:
        yield (
            f"organization {number} has {counts[0]} events, {counts[1]} visitors and {counts[2]} bytes of reports, "
            f"its count says {said[0]}, {said[1]} and {said[2]}"
        )


def _active_keys(snapshot: Snapshot, number: int) -> Iterator[str]:
    kept = holding(snapshot, number).active_keys
    found = counted_keys(snapshot, number, 0 if kept is None else kept.as_of_ms)
    if kept not in (None, found):
        yield f"organization {number} has {found.count} active keys, its count says {kept.count}"


def _weights(snapshot: Snapshot, number: int) -> Iterator[str]:
    for (_, platform, key_id), _ in snapshot.scan(WEIGHTS, number):
        if platform >= len(PLATFORMS):
            yield f"organization {number} has weights for platform {platform}, which does not exist"
        if key_id and find_sdk_key(snapshot, number, key_id) is None:
            yield f"organization {number} has weights for key {key_id}, which is none of its SDK keys"


def _operations(snapshot: Snapshot) -> Iterator[str]:
    """Check that the operation log has no gap while somebody follows it, and is empty while nobody does."""
    if operations.recorded(snapshot) is None:
        if snapshot.count(OPERATIONS):
            yield "there is an operation log and nobody who follows it"
        return
    expected = operations.oldest(snapshot)
    for sequence, raw in operations.batches(snapshot, expected):
        if sequence != expected:
            yield f"the operation log goes from {expected - 1} to {sequence}"
        expected = sequence + 1
        try:
            if sequence:
                unpack_batch(raw)
        except ValueError as error:
            yield f"batch {sequence} of the operation log: {error}"


_OWN_OF_STORE = {"keys": _keys, "audit": _audit, "operations": _operations}
_OWN = {
    "money": _money,
    "billing": _billing,
    "events": _events,
    "answered_once": _answered_once,
    "answered_by_events": _answered_by_events,
    "visitors": _visitors,
    "blocks": _blocks,
    "history": _history,
    "attested_keys": _attested_keys,
    "holding": _holding,
    "active_keys": _active_keys,
    "weights": _weights,
}
_CHECKS = [module for feature in FEATURES for module in feature.modules("invariants")]
STORE_RULES: dict[str, Callable[[Snapshot], Iterator[str]]] = _OWN_OF_STORE | {
    name: rule for module in _CHECKS for name, rule in getattr(module, "STORE_RULES", {}).items()
}
"""The rules of the whole store, by the names with which tables declare that they are read through."""
RULES: dict[str, Rule] = _OWN | {name: rule for module in _CHECKS for name, rule in module.RULES.items()}
"""The rules of one organization."""
KEPT_RULES = ("money", "billing")
"""Those that hold for a removed organization, too."""


ID_BYTES = 16
IDS_A_RUN = 1 << 18
"""About 15 MB of them in memory."""


def repeated(ids: Iterable[bytes], ids_a_run: int = IDS_A_RUN) -> Iterator[bytes]:
    """Yield the ids of 16 bytes that equal an earlier one, sorted. Temporary files take 16 bytes for each id; memory
    holds `ids_a_run` of them.
    """
    left = iter(ids)
    with ExitStack() as opened:
        runs: list[Iterator[bytes]] = []
        while run := sorted(islice(left, ids_a_run)):
            file = opened.enter_context(TemporaryFile(dir=temporary_folder()))
            file.writelines(run)
            file.seek(0)
            runs.append(iter(partial(file.read, ID_BYTES), b""))
        for one, other in pairwise(merge(*runs)):
            if one == other:
                yield other
