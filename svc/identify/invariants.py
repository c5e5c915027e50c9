"""What must be true of the index of events, of the tokens of visitors, of velocity and of accounts in every store.

Each event is in the tail of the index or in one segment, under its values and no others; each token leads to those that
have it, and is one browser's; each event of the last 30 days is counted with its visitor, account and address, and each
stored event is within the record of its account. Events may be kept for longer than 30 days, and are in no window then.

Memory is bounded by one segment and one visitor, whatever the number of events; of a corrupt index all events are
looked at again, and of a token as many records are read as its block lists.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final, TypeAlias
from uuid import UUID

from svc.identify.events.segments import Slots, position, slot
from svc.identify.index.digests import digests
from svc.identify.index.queries import (
    FIRST,
    FIRST_PART,
    PARTS,
    SLOTS,
    SMALL,
    Scope,
    is_indexed,
    part_of,
    read_run,
    scope_of,
)
from svc.identify.matching import EMPTY_BLOCK, Visitor
from svc.identify.matching.blocks import BLOCK_LENGTH, token_key
from svc.identify.matching.tokens import DEVICE, IN_DOUBT, RENEWED, STRANGERS, TOKENS, UNKNOWN_ORIGIN, Token
from svc.identify.queries.velocity import EventSubjects, account_key, event_subjects, is_counted, stored_rows
from svc.identify.tables import (
    ACCOUNT_ERASURES,
    ACCOUNTS,
    BLOCKS,
    ERASURES,
    EVENT_SEGMENTS,
    EVENT_TAIL,
    EVENTS,
    LATE_EVENTS,
    RETENTION_PASSES,
    VISITOR_IDS,
    VISITORS,
)
from svc.identify.velocity.counts import LONGEST_S, MOST, OTHERS, SUBJECTS, VelocityRow
from svc.identify.velocity.record import DAY_S, MAX_VISITORS, AccountRecord
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.fields import ENVIRONMENTS


def index_faults(snapshot: Snapshot, number: int, events: int) -> Iterator[str]:
    """Yield a sentence for each fault in the index of an organization. `events`: the number of its events."""
    faults = 0
    found = 0
    for environment in range(len(ENVIRONMENTS)):
        scope = Scope(number, environment)
        for fault in _scope_faults(snapshot, scope):
            if fault is None:
                found += 1
            else:
                faults += 1
                yield fault
    if faults or found != events:  # else the numbers match, so that each event has a slot
        for (_, raw_id), event in snapshot.scan(EVENTS, number):
            if not is_indexed(snapshot, scope_of(number, event), (event.occurred_at_ms, raw_id)):
                yield f"request {UUID(bytes=raw_id)} is not found in the index"


def _scope_faults(snapshot: Snapshot, scope: Scope) -> Iterator[str | None]:
    """Check one environment. Yield `None` for each event that is where it belongs, and a sentence for each fault."""
    yield from _feed_faults(snapshot, scope)
    for key, row in snapshot.scan(EVENT_TAIL, *scope):
        yield _fault(snapshot, scope, key[-2:], row.values, EVENT_TAIL.name)
        if _is_in_segment(Snapshot(snapshot.reader), scope, key[-2:]):
            yield f"request {UUID(bytes=key[-1])} is in {EVENT_TAIL.name} and in {EVENT_SEGMENTS.name}"
    uppers: dict[tuple[int, bytes], int] = {}
    for part in (SMALL, SLOTS):
        for key in snapshot.scan_keys(EVENT_SEGMENTS, (*scope, part), (*scope, part + 1)):
            uppers[key[-2:]] = part
    before = slot(FIRST)
    for upper in sorted(uppers):
        yield from _segment_faults(snapshot, scope, uppers[upper], upper, before)
        before = slot(upper)
    stem = (*scope, FIRST_PART)
    for key in snapshot.scan_keys(EVENT_SEGMENTS, stem, (*scope, FIRST_PART + PARTS)):
        if uppers.get(key[-2:]) != SLOTS:
            yield f"part {key[2]} of {EVENT_SEGMENTS.name} up to {UUID(bytes=key[-1])} belongs to no segment"


def _feed_faults(snapshot: Snapshot, scope: Scope) -> Iterator[str]:
    """Yield a fault for each row of late events whose event is missing, or has another place in the feed."""
    for key in snapshot.scan_keys(LATE_EVENTS, scope, (scope.number, scope.environment + 1)):
        event = snapshot.get(EVENTS, scope.number, key[-1])
        if event is None or (scope_of(scope.number, event), event.feed_at_ms) != (scope, key[2]):
            yield f"{LATE_EVENTS.name} has request {UUID(bytes=key[-1])}, which has no such place in the feed"


def _is_in_segment(snapshot: Snapshot, scope: Scope, here: tuple[int, bytes]) -> bool:
    for part in (SMALL, SLOTS):
        upper = next(snapshot.scan_keys(EVENT_SEGMENTS, (*scope, part, *here), (*scope, part + 1)), None)
        segment = None if upper is None else snapshot.get(EVENT_SEGMENTS, *upper)
        if segment is not None and Slots(segment.slots).find(slot(here)) is not None:
            return True
    return False


def _segment_faults(
    snapshot: Snapshot, scope: Scope, part: int, upper: tuple[int, bytes], before: bytes
) -> Iterator[str | None]:
    run = read_run(snapshot, scope, part, upper)
    name = f"the segment up to request {UUID(bytes=upper[1])}"
    values: list[list[int]] = [[] for _ in range(len(run))]
    for digest, indexes in sorted(run.postings.items()):
        for index in indexes:
            if index < len(values):
                values[index].append(digest)
            else:
                yield f"{name} has a value of an event that it does not have"
    if part == SLOTS:
        for each in range(FIRST_PART, FIRST_PART + PARTS):
            own = snapshot.get(EVENT_SEGMENTS, *scope, each, *upper)
            if own is not None and any(part_of(digest) != each for digest in own.digests):
                yield f"{name} has values in part {each} that belong into another"
    last = before
    living = dict(Slots(run.slots).living())
    for index, found in living.items():
        if not last < found <= slot(upper):
            yield f"{name} has events out of order"
        last = found
        yield _fault(snapshot, scope, position(found), tuple(values[index]), EVENT_SEGMENTS.name)
    if any(of_one for index, of_one in enumerate(values) if index not in living):
        yield f"{name} has values of events that are gone"


def _fault(
    snapshot: Snapshot, scope: Scope, here: tuple[int, bytes], values: tuple[int, ...], table: str
) -> str | None:
    request_id = here[1]
    event = snapshot.get(EVENTS, scope.number, request_id)
    if event is None:
        request = UUID(bytes=request_id)
        return f"{table} names request {request}, which has no event; `svc store quarantine {request}` takes it out"
    if (scope_of(scope.number, event), event.occurred_at_ms) != (scope, here[0]):
        return f"{table} has request {UUID(bytes=request_id)} where it does not belong"
    if digests(event).values != values:
        return f"{table} has request {UUID(bytes=request_id)} under other values than it has"
    if event.feed_at_ms is not None and not snapshot.has(LATE_EVENTS, *scope, event.feed_at_ms, request_id):
        return f"request {UUID(bytes=request_id)} is not found in the feed"
    return None


_PROBATIONS: Final = frozenset((*range(IN_DOUBT + 1), RENEWED, STRANGERS))


def token_faults(snapshot: Snapshot, number: int) -> Iterator[str]:
    """Yield a sentence for each fault in the tokens of an organization's visitors."""
    for (_, visitor_number), visitor in snapshot.scan(VISITORS, number):
        if snapshot.has(ERASURES, number, visitor.visitor_id.encode()):
            continue  # an erasure takes it out of its blocks first
        name = f"visitor {visitor.visitor_id}"
        for fault in _kept(visitor):
            yield f"{name} has {fault}"
        for token in visitor.tokens:
            if token.probation == STRANGERS:
                continue  # the token belongs to another visitor, or will
            block = snapshot.get(BLOCKS, number, token_key(token.hash)) or EMPTY_BLOCK
            if visitor_number not in block.numbers and len(block.numbers) < BLOCK_LENGTH:
                yield f"{name} is not found by a token that it has"
            for other in block.numbers:
                if other < visitor_number and _is_proven_of(snapshot.get(VISITORS, number, other), visitor, token):
                    yield f"{name} and visitor {other} of organization {number} have a token of one browser"


def _kept(visitor: Visitor) -> Iterator[str]:
    """Yield the faults that the visitor's record shows without any other row."""
    if len(visitor.tokens) > TOKENS:
        yield f"{len(visitor.tokens)} tokens, of which {TOKENS} are kept"
    if any(count > 1 for count in Counter(token.hash for token in visitor.tokens).values()):
        yield "a token twice"
    if any(token.probation not in _PROBATIONS for token in visitor.tokens):
        yield "a token on probation for longer than any is"
    devices = [token for token in visitor.tokens if token.origin == DEVICE]
    if len(devices) > 1:
        yield "two device ids"
    if any(token.probation or token.private or token.key for token in devices):
        yield "a device id that is treated as a token"


def _is_proven_of(other: Visitor | None, visitor: Visitor, token: Token) -> bool:
    """Return whether both visitors have the token as proof of who they are. It is none beside a device id, or if an
    earlier version stored it.
    """
    theirs = None if other is None or other.device or visitor.device else other.token(token.hash)
    return theirs is not None and all(one.probation == 0 and one.origin != UNKNOWN_ORIGIN for one in (theirs, token))


AccountKey: TypeAlias = tuple[int, int, int]
SAFE_S = LONGEST_S - 24 * 3600
"""No entry this far before the last event of a row has expired."""


def velocity_faults(snapshot: Snapshot, number: int) -> Iterator[str]:
    """Yield events of an organization that a row of their subjects does not count, in words. Events of earlier versions
    have none, and an account that is being erased is in some rows no longer.
    """
    made = snapshot.get(RETENTION_PASSES, number)
    # Retention may have deleted older velocity; what it noted before store version 9 is when its last pass began.
    kept_from_s = 0 if made is None else max(made.counts_from_s, made.began_at_ms // 1000 - LONGEST_S)
    for (_, request_id), event in snapshot.scan(EVENTS, number):
        if not is_counted(snapshot, number, request_id, event) or event.occurred_at_ms // 1000 < kept_from_s:
            continue
        visitor = snapshot.get(VISITOR_IDS, number, event.verdict.visitor_id.encode())
        who = event_subjects(number, request_id, event, visitor)
        if who.account is not None and snapshot.has(ACCOUNT_ERASURES, number, who.account):
            who = who._replace(account=None, counted_account=None)
        stored = list(stored_rows(snapshot, who))
        for subject in SUBJECTS:
            if who.id_of(subject) is None:
                continue
            others = dict(zip(OTHERS[subject], who.others_of(subject), strict=True))
            # The row of its own period has the event if it was committed after one of the next period.
            rows = [row.velocity for row in stored if row.subject == subject and row.velocity.last_s]
            if subject == "account" and not rows and _had_later(snapshot, who):
                continue
            faults = [list(_uncounted(row, who.at_s, others)) for row in rows]
            for fault in min(faults, key=len, default=["there is no velocity"]):
                yield f"event {UUID(bytes=request_id)} of organization {number}: {fault} of its {subject}"


def _had_later(snapshot: Snapshot, who: EventSubjects) -> bool:
    """Return whether the account of an event had one so much later that the event left the windows. The later one may
    have been erased since, or moved to another account.
    """
    record = snapshot.get(ACCOUNTS, *account_key(who))
    return record is not None and who.at_s <= record.last_s - SAFE_S


def _uncounted(row: VelocityRow, at_s: int, others: dict[str, int | None]) -> Iterator[str]:
    if at_s <= row.last_s - SAFE_S:
        return
    if at_s not in row.events and _is_kept(row.events, at_s):
        yield "it is not among the events"
    for (kind, other), seen in zip(others.items(), row.others, strict=False):
        if other is not None and other not in seen.ids and _is_kept(seen.times, at_s):
            yield f"it is not among the {kind}"


def _is_kept(times: tuple[int, ...], at_s: int) -> bool:
    """Return whether a list with entries of these times must have one of this time, if it was ever added. A full list
    has dropped older entries, and from one that is not full an erasure or another account may have taken entries.
    """
    return 0 < len(times) < MOST and at_s > times[0]


def account_faults(snapshot: Snapshot, number: int) -> Iterator[str]:
    """Yield records of accounts that are not sound, and events whose account or visitor no record has, in words. An
    account that is being erased may have no record any more, and one that ever had more than `MAX_VISITORS` visitors
    may lack any of them, though erasure or retention has made room since.
    """
    for (_, _, account), record in snapshot.scan(ACCOUNTS, number):
        yield from (f"account {account:016x} of organization {number} {fault}" for fault in _faults_of(record))
    lacking: dict[AccountKey, list[str]] = {}
    for (_, request_id), event in snapshot.scan(EVENTS, number):
        visitor = snapshot.get(VISITOR_IDS, number, event.verdict.visitor_id.encode())
        who = event_subjects(number, request_id, event, visitor)
        if not is_counted(snapshot, number, request_id, event) or who.account is None or visitor is None:
            continue
        record = snapshot.get(ACCOUNTS, *account_key(who))
        if record is None:
            if not snapshot.has(ACCOUNT_ERASURES, number, who.account):
                yield f"event {UUID(bytes=request_id)} of organization {number}: its account has no record"
            continue
        fault = f"event {UUID(bytes=request_id)} of organization {number} is not within the record of its account"
        if not (record.first_s <= who.at_s and who.at_s // DAY_S <= record.last_s // DAY_S):
            yield fault
        elif record.of(visitor) is None and len(record.visitors) < MAX_VISITORS:
            lacking.setdefault(account_key(who), []).append(fault)
    if lacking:
        full = _ever_full(snapshot, number, lacking.keys())
        yield from (fault for key, found in lacking.items() if key not in full for fault in found)


def _ever_full(snapshot: Snapshot, number: int, keys: Collection[AccountKey]) -> set[AccountKey]:
    """Which of these accounts may have had more visitors than a record has room for: those of whose stored events too
    many are by different ones, and those whose first event is no longer stored.
    """
    visitors: dict[AccountKey, set[bytes]] = {key: set() for key in keys}
    first_s = dict.fromkeys(keys, sys.maxsize)
    for (_, request_id), event in snapshot.scan(EVENTS, number):
        who = event_subjects(number, request_id, event, None)
        if who.account is not None and (key := account_key(who)) in visitors:
            visitors[key].add(event.verdict.visitor_id.encode())
            first_s[key] = min(first_s[key], who.at_s)
    records = {key: snapshot.get(ACCOUNTS, *key) for key in keys}
    return {
        key
        for key, record in records.items()
        if len(visitors[key]) > MAX_VISITORS or (record is not None and record.first_s < first_s[key])
    }


def _faults_of(record: AccountRecord) -> Iterator[str]:
    numbers = [known.visitor for known in record.visitors]
    if len(set(numbers)) < len(numbers) or len(numbers) > MAX_VISITORS:
        yield "has a visitor twice, or too many"
    if sum(known.is_first for known in record.visitors) > 1:
        yield "has two first visitors"
    for known in record.visitors:
        if not record.first_s <= known.first_s <= known.last_s or known.last_s // DAY_S > record.last_s // DAY_S:
            yield f"has a visitor {known.visitor} at times when it was not seen"


RULES = {"tokens": token_faults, "velocity": velocity_faults, "accounts": account_faults}
