"""Erasure of an id from what people wrote (decisions 7.6, 11.6): the fields `WRITTEN` of every personal table, such as
notes of list entries and of closed reviews; notes of proposals of rules; and saved views.

The last step of an erasure leaves a row in `text_erasures`; each further step reads `STEP_LOOKS` rows at most, masks
the id where it stands as a word of its own, and keeps where it came to, so that retention ends what an interruption has
begun. A view that names the id is deleted: without that value it would be another view. Rules, also those of a proposal
and of earlier revisions, filters of webhooks, and names of lists decide something, or are named by what does: they stay
as they are, and `remaining` tells which ones name the id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, islice
from typing import Any, Final
from uuid import UUID

import msgspec

from svc.features.erasure.tables import TEXT_ERASURES
from svc.features.lists.queries import lists_of
from svc.features.lists.tables import LIST_ENTRIES
from svc.features.reviews.jobs import change_note
from svc.features.reviews.queries import subject_stem
from svc.features.reviews.reviews import Review
from svc.features.reviews.tables import NOTES, REVIEWS
from svc.features.rules.ruleset import Rule
from svc.features.rules.tables import RULE_PROPOSALS, RULESET_HISTORY, RULESETS
from svc.features.tables import TABLES as EVERY_TABLE
from svc.features.views.tables import SAVED_VIEWS, View
from svc.features.webhooks.tables import ENDPOINTS
from svc.identify.events.listing import filters_of
from svc.identify.model import SUBJECTS, Subject
from svc.identify.queries.events import events_matching
from svc.identify.records import TextErasure
from svc.identify.velocity.counts import KINDS
from svc.kernel.store.schema.codec import CorruptionError, Record
from svc.kernel.store.schema.table import WRITTEN, NotPersonal, Table
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.steps import STEP_LOOKS, STEP_ROWS

MASK: Final = "[erased]"
UNREADABLE_NAMED: Final = 100
_FIRST: Final[tuple[Table[Any], ...]] = (LIST_ENTRIES, NOTES, SAVED_VIEWS, RULE_PROPOSALS, REVIEWS)


def searched(tables: Iterable[Table[Any]]) -> tuple[Table[Any], ...]:
    """Return what is searched of these tables. Places are stored: those of a later version stand behind the others."""
    written = (table for table in tables if isinstance(table.value, Record) and WRITTEN & {*table.value.fields})
    later = [table for table in written if not isinstance(table.personal, NotPersonal) and table not in _FIRST]
    return (*_FIRST, *sorted(later, key=lambda table: (table.since, table.name)))


TABLES: Final = searched(EVERY_TABLE)


def begin_texts(transaction: Transaction, number: int, subject: Subject, subject_id: str) -> bool:
    """Begin to take the id of a visitor or an account out of notes. Return as `continue_texts`."""
    stem = subject_stem(number, subject, subject_id)
    transaction.put(TEXT_ERASURES, (number, *stem), TextErasure(subject_id))
    return _continue(transaction, number, stem)


def continue_texts(transaction: Transaction, number: int, subject: Subject, digest: int) -> bool:
    """Take the id with this digest out of further notes. Return `True` if nothing is left, or no erasure is pending."""
    return _continue(transaction, number, (SUBJECTS.index(subject), digest))


def _continue(transaction: Transaction, number: int, stem: tuple[int, int]) -> bool:
    erasure = transaction.get(TEXT_ERASURES, number, *stem)
    if erasure is None:
        return True
    read = changed = 0
    subject, needle = SUBJECTS[stem[0]], erasure.text.encode()
    for place in range(erasure.table, len(TABLES)):
        table = TABLES[place]
        start = table.key.unpack(erasure.next_key) if erasure.next_key and place == erasure.table else (number,)
        rows = list(islice(transaction.stored(table, start, (number + 1,)), STEP_LOOKS - read))
        for raw, stored in rows:
            if read == STEP_LOOKS - 1 or changed >= STEP_ROWS // 2:
                transaction.put(TEXT_ERASURES, (number, *stem), TextErasure(erasure.text, place, raw))
                return False
            read += 1
            if needle in stored or table is REVIEWS:  # whose earlier notes are in webhooks alone
                changed += _erase(transaction, table, raw, stored, subject, erasure.text)
    transaction.delete(TEXT_ERASURES, number, *stem)
    return True


def _erase(
    transaction: Transaction, table: Table[Any], raw: bytes, stored: bytes, subject: Subject, subject_id: str
) -> int:
    """Mask the id in a row, or delete a view that names it; return how many rows that took beside the first look."""
    try:
        row = table.decode(raw, stored)
    except CorruptionError:
        if subject_id.encode() in stored:
            transaction.get(table, *table.key.unpack(raw))  # which notes it (`unreadable`)
        return 0
    key, pattern = table.key.unpack(raw), _word(subject_id)
    if isinstance(row, View):
        return row.names(subject, subject_id) and transaction.delete(table, *key)
    if isinstance(row, Review):
        return change_note(transaction, key[0], row, partial(pattern.sub, MASK))
    written = {name: getattr(row, name) for name in WRITTEN.intersection(row.__struct_fields__)}
    changed = msgspec.structs.replace(row, **{name: pattern.sub(MASK, text) for name, text in written.items() if text})
    if changed == row:
        return 0
    transaction.put(table, key, changed)
    return 1


def unreadable_events(snapshot: Snapshot, number: int, subject: Subject, subject_id: str) -> list[CorruptionError]:
    """Return what is wrong with events that erasure has left to `svc store quarantine` (decisions 17.5): corrupt ones
    that the index has for a visitor or an account, or may have. The first `UNREADABLE_NAMED` of them.
    """
    found = events_matching(snapshot, number, filters_of(subject, subject_id))
    unreadable = (UUID(bytes=request_id) for request_id, event in found if event is None)
    return [
        CorruptionError(f"event {request_id}, which cannot be read: `svc store quarantine`")
        for request_id in islice(unreadable, UNREADABLE_NAMED)
    ]


def remaining(snapshot: Snapshot, number: int, subject_id: str) -> list[str]:
    """Return where the id of an erased visitor or account still stands, in words: rules whose name, note or condition
    name it, in force, proposed or replaced, webhook endpoints with it in their filter or description, and lists with
    it in their name. What cannot be read the erasure has reported.
    """
    word = _word(subject_id)
    lists = [f"list {name!r}" for name in lists_of(snapshot, number) if subject_id in name]
    endpoints = (endpoint for _, endpoint in snapshot.scan(ENDPOINTS, number))
    named = [each.id for each in endpoints if any(map(word.search, (each.description, each.filter or "")))]
    return [*_rules_with(snapshot, number, word), *(f"webhook {name}" for name in named), *lists]


def _rules_with(snapshot: Snapshot, number: int, pattern: re.Pattern[str]) -> Iterator[str]:
    for place, kind in enumerate(KINDS):
        ruleset = snapshot.get(RULESETS, number, place)
        yield from (f"rule {name!r} of {kind}" for name in _naming(ruleset.rules if ruleset else (), pattern))
        for _, proposal in snapshot.scan(RULE_PROPOSALS, number, place):
            yield from (f"rule {name!r} of {proposal.id} of {kind}" for name in _naming(proposal.rules, pattern))
        saved = chain.from_iterable(replaced.rules for _, replaced in snapshot.scan(RULESET_HISTORY, number, place))
        yield from (f"rule {name!r} of the history of {kind}" for name in dict.fromkeys(_naming(saved, pattern)))


def _naming(rules: Iterable[Rule], pattern: re.Pattern[str]) -> Iterator[str]:
    return (rule.name for rule in rules if any(map(pattern.search, (rule.name, rule.note, rule.condition))))


def _word(text: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(text)}(?!\w)")
