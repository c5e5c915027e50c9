"""The visitors and blocks of an organization in one transaction: what matching reads of them, and what it changes.

What may live here: rows of matching, and the numbers that a worker has taken in advance for new visitors
(docs/adr/0056). Whose report it is decides `svc.identify.matching`.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from svc.identify.matching import EMPTY_BLOCK, Block, BlockKey, Recognition, Visitor
from svc.identify.tables import (
    BLOCKS,
    DEFERRED_REPORTS,
    DELETED_VISITORS,
    DOCUMENTS,
    EVENTS,
    VISITOR_COUNTS,
    VISITOR_IDS,
    VISITORS,
)
from svc.kernel.limits.quotas import Holding, row_bytes
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants.queries import refuse_given

REPORTS = (DOCUMENTS, DEFERRED_REPORTS)
"""Where archived reports lie."""


def report_bytes(snapshot: Snapshot, number: int, request_id: bytes) -> int:
    """Return the `row_bytes` of the archived reports of an event; 0 if it has none."""
    return sum(row_bytes(snapshot.length(table, number, request_id)) for table in REPORTS)


def counted(snapshot: Snapshot, number: int) -> Holding:
    """Return what an organization holds, by reading all rows; the counts of the day are 0, and keys left out."""
    found = Holding()
    for table in REPORTS:
        for key in snapshot.scan_keys_reverse(table, (number,), (number + 1,)):
            found = found.plus(report_bytes=row_bytes(snapshot.length(table, *key)))
    events = sum(1 for _ in snapshot.scan_keys_reverse(EVENTS, (number,), (number + 1,)))
    visitors = sum(1 for _ in snapshot.scan_keys_reverse(VISITORS, (number,), (number + 1,)))
    return found.plus(events=events, visitors=visitors)


class Applied(NamedTuple):
    """The visitor to which an identification was assigned: its id, and its number in the store."""

    id: str
    number: int | None = None
    """`None` for a visitor who cannot be known again."""
    record: Visitor | None = None
    """Its record after the identification, but for its activity; `None` likewise."""
    is_changed: bool = False
    """Whether the record differs from what is stored."""


TAKEN_AT_ONCE: Final = 32
"""Numbers that a worker takes with one first visit, where there are others."""
MAX_HELD: Final = 65_536
"""Numbers in hand, of all organizations together: about 5 MB."""


class NextNumber(NamedTuple):
    """The number that one identification may give to a new visitor."""

    number: int | None = None
    """A number held for this identification alone; `None` = it takes the organization's next one."""
    at_once: int = 1
    """How many it then takes: the first for itself, the others for later ones."""


ANY_NUMBER: Final = NextNumber()
"""The next one of the organization, and no other with it."""


class VisitorNumbers:
    """The numbers in the hands of one worker. A number is in hand only once the transaction that took it is committed;
    those that are lost, by a crash or for want of capacity here, are given to nobody.
    """

    def __init__(self, at_once: int = 1, most: int = MAX_HELD) -> None:
        """Take `at_once` numbers together: 1 for a worker that is alone, which then never holds an unused one."""
        self._at_once = at_once
        self._most = most
        self._held: OrderedDict[int, deque[int]] = OrderedDict()
        """By organization, the least recently used first; none is empty."""
        self._count = 0

    def hand_out(self, organizations: Iterable[int]) -> list[NextNumber]:
        """Return a visitor number for each identification, in order. `organizations`: the number of the organization of
        each. A number that is not given back is never used.
        """
        return [NextNumber(self._pop(organization), self._at_once) for organization in organizations]

    def give_back(self, organization: int, handed: NextNumber, used: int | None) -> None:
        """Give back a number that was not used, after the commit. `used`: the number of the new visitor, `None` if
        there was none. Do not call this after a failed commit, which may still be on disk.
        """
        if handed.number is None:
            if used is not None:
                self._keep(organization, range(used + 1, used + handed.at_once))
        elif used is None:
            self._keep(organization, (handed.number,))

    def _pop(self, organization: int) -> int | None:
        held = self._held.get(organization)
        if held is None:
            return None
        self._count -= 1
        number = held.popleft()
        if not held:
            del self._held[organization]
        return number

    def _keep(self, organization: int, numbers: Iterable[int]) -> None:
        held = self._held.pop(organization, deque[int]())
        before = len(held)
        held.extend(numbers)
        if held:
            self._held[organization] = held
        self._count += len(held) - before
        while self._count > self._most:
            _, lost = self._held.popitem(last=False)
            self._count -= len(lost)


class VisitorTables:
    """The store as matching sees it, for one organization and one transaction: it answers what matching asks, writes
    what it changes, and keeps what was read so that nothing is read twice.
    """

    def __init__(self, transaction: Transaction, organization: int, next_number: NextNumber = ANY_NUMBER) -> None:
        self._transaction = transaction
        self._organization = organization
        self._next_number = next_number
        self._blocks: dict[BlockKey, Block] = {}
        self._visitors: dict[int, Visitor | None] = {}

    def block(self, key: BlockKey) -> Block:
        """Return the block under this key with the changes of this identification; an empty one when there is none."""
        block = self._blocks.get(key)
        if block is None:
            block = self._blocks[key] = self._transaction.get(BLOCKS, self._organization, key) or EMPTY_BLOCK
        return block

    def visitor(self, number: int) -> Visitor | None:
        """Return the visitor's record as it was before this identification; `None` if it was deleted. Raises
        `CorruptionError` if a corrupt table hides it, since the visitor would then get another id.
        """
        if number not in self._visitors:
            found = self._visitors[number] = self._transaction.get(VISITORS, self._organization, number)
            if found is None and not self._transaction.has(DELETED_VISITORS, self._organization, number):
                raise CorruptionError(f"visitor {number} is missing, and a block has it")
        return self._visitors[number]

    def first_seen_s(self, number: int | None, now_s: int) -> int:
        """Return when a visitor was first seen, in Unix seconds; `now_s` if it had no record before."""
        known = None if number is None else self.visitor(number)
        return now_s if known is None else known.first_seen_s

    def apply(self, recognition: Recognition, new_visitor_id: str) -> Applied:
        """Write the blocks and the other visitors that a recognition changes; return its own visitor, whose record is
        for `put`. A new visitor gets `new_visitor_id` and the `next_number` of the index; nothing is written for one
        without a record.
        """
        number, visitor = recognition.number, recognition.visitor
        if number is None:
            if visitor is None:
                return Applied(new_visitor_id)
            visitor = msgspec.structs.replace(visitor, visitor_id=new_visitor_id)
            number = self._new_number(new_visitor_id)
        for key, weight in recognition.postings:
            self._put_block(key, self.block(key).with_posting(number, weight))
        if recognition.left is not None:
            self._transaction.put(VISITORS, (self._organization, recognition.split_from), recognition.left)
        if recognition.disputed is not None:
            other, record = recognition.disputed
            self._transaction.put(VISITORS, (self._organization, other), record)
        if visitor is not None:
            return Applied(visitor.visitor_id, number, visitor, is_changed=True)
        known = self.visitor(number)
        assert known is not None, "matching returned a visitor that it never read"
        return Applied(known.visitor_id, number, known)

    def put(self, visitor: Applied, activity: bytes) -> None:
        """Write the record of the own visitor with its activity, if there is one and anything of it has changed."""
        record = visitor.record
        if record is None or not (visitor.is_changed or activity != record.activity):
            return
        after = msgspec.structs.replace(record, activity=activity)
        self._transaction.put(VISITORS, (self._organization, visitor.number), after)

    def _new_number(self, visitor_id: str) -> int:
        number, at_once = self._next_number
        if number is None:
            taken = self._transaction.get(VISITOR_COUNTS, self._organization) or 0
            number = taken + 1
            refuse_given(self._transaction, VISITORS, self._organization, number)
            self._transaction.put(VISITOR_COUNTS, (self._organization,), taken + at_once)
        self._transaction.put(VISITOR_IDS, (self._organization, visitor_id.encode()), number)
        return number

    def _put_block(self, key: BlockKey, block: Block) -> None:
        if block is not self._blocks[key]:
            self._blocks[key] = block
            self._transaction.put(BLOCKS, (self._organization, key), block)
