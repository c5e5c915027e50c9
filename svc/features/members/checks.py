"""The rules of what an organization keeps of itself: its members, and the lists and rules that it decides by."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from svc.features.lists.lists import StoredList, entry_key, prefix_of
from svc.features.lists.queries import list_names, mark_of, raw_id
from svc.features.lists.tables import LIST_ENTRIES, LIST_EXPIRIES, LIST_MARKS, LISTS
from svc.features.rules.jobs import MOST_REVISIONS
from svc.features.rules.ruleset import FIRST
from svc.features.rules.tables import RULESET_HISTORY, RULESETS
from svc.identify.velocity.counts import KINDS
from svc.kernel.access.members import email_digest
from svc.kernel.access.tables import MEMBER_EMAILS, MEMBERS
from svc.kernel.store.schema.key_parts import LIST_ID, moment
from svc.kernel.store.snapshot import Snapshot


def member_faults(snapshot: Snapshot, number: int) -> Iterator[str]:
    """Yield what is wrong with the members of an organization, in words."""
    for (_, member_id), member in snapshot.scan(MEMBERS, number):
        if member.id != member_id:
            yield f"member {member.id} of organization {number} lies under the id {member_id}"
        if snapshot.get(MEMBER_EMAILS, email_digest(member.email), number) != member_id.encode():
            yield f"the address of member {member_id} of organization {number} does not lead to it"


def address_faults(snapshot: Snapshot) -> Iterator[str]:
    """Yield what is wrong with the addresses of members, of all organizations."""
    for (digest, number), raw_member in snapshot.scan(MEMBER_EMAILS):
        member = snapshot.get(MEMBERS, number, raw_member.decode())
        if member is None or email_digest(member.email) != digest:
            yield f"an address leads to member {raw_member.decode()} of organization {number}, which does not have it"


def list_faults(snapshot: Snapshot, number: int) -> Iterator[str]:
    """Yield a sentence for each fault in the lists of an organization. Entries of a deleted list may exist until
    retention deletes them.
    """
    lists: dict[str, StoredList] = {}
    for (_, name), stored in snapshot.scan(LISTS, number):
        if stored.name != name or stored.id in lists:
            yield f"list {stored.id} of organization {number} is not the one named {name}"
        if not snapshot.has(LIST_MARKS, number, mark_of(raw_id(stored.id))):
            yield f"list {stored.id} of organization {number} has no mark"
        lists[stored.id] = stored
    yield from _miscounted(snapshot, number, lists)
    for _, expires_at_ms, raw_list, key in snapshot.scan_keys(LIST_EXPIRIES, (number,), (number + 1,)):
        entry = snapshot.get(LIST_ENTRIES, number, raw_list, key)
        if entry is None or entry.expires_at_ms != expires_at_ms:
            yield f"at {moment(expires_at_ms)} an entry of organization {number} expires that does not say so"


def _miscounted(snapshot: Snapshot, number: int, lists: dict[str, StoredList]) -> Iterator[str]:
    entries = Counter[str]()
    prefixes: defaultdict[str, Counter[tuple[int, int]]] = defaultdict(Counter)
    for (_, raw_list, key), entry in snapshot.scan(LIST_ENTRIES, number):
        list_id, expires_at_ms = str(LIST_ID.show(raw_list)), entry.expires_at_ms
        name = f"an entry of list {list_id} of organization {number}"
        if entry_key(entry.value) != key:
            yield f"{name} lies under the key of another value"
        if expires_at_ms is not None and not snapshot.has(LIST_EXPIRIES, number, expires_at_ms, raw_list, key):
            yield f"{name} expires at {moment(expires_at_ms)}, and is not listed there"
        if not snapshot.has(LIST_MARKS, number, mark_of(raw_list, entry.value)):
            yield f"{name} has no mark"
        entries[list_id] += 1
        if list_id in lists and lists[list_id].kind == "address":
            prefixes[list_id][prefix_of(entry.value)] += 1
    marks = sum(1 for _ in snapshot.scan_keys(LIST_MARKS, (number,), (number + 1,)))
    if marks > len(lists) + entries.total():
        yield f"organization {number} has {marks} marks, of {len(lists)} lists with {entries.total()} entries"
    for list_id, stored in lists.items():
        counted = {(version, length): count for version, length, count in stored.prefixes}
        if (stored.entries, counted) != (entries[list_id], prefixes[list_id]):
            yield f"list {list_id} of organization {number} has {entries[list_id]} entries, its count says otherwise"


def ruleset_faults(snapshot: Snapshot, number: int) -> Iterator[str]:
    """Yield what is wrong with the rules of an organization, in words."""
    lists = list_names(snapshot, number)
    for place, kind in enumerate(KINDS):
        name = f"the {kind} rules of organization {number}"
        in_force = snapshot.get(RULESETS, number, place)
        kept = {key[2]: row for key, row in snapshot.scan(RULESET_HISTORY, number, place)}
        revision = FIRST.revision if in_force is None else in_force.revision
        expected = [] if in_force is None else _kept(revision)
        if list(kept) != expected:
            yield f"{name} are of revision {revision}, and {len(kept)} before it are kept, not {len(expected)}"
        if any(row.revision != of for of, row in kept.items()):
            yield f"{name} are kept under the number of another revision"
        for rule, condition in () if in_force is None else in_force.prepared.rules:
            for missing in sorted(condition.lists - lists.keys()):
                yield f"{name} name the list {missing} in {rule.id}, and there is none"


def _kept(revision: int) -> list[int]:
    """The revisions before this one that are kept: the first, and the latest."""
    return sorted({FIRST.revision, *range(max(FIRST.revision, revision - MOST_REVISIONS), revision)})
