"""The rule of rulesets: what is in force is one revision, which its history leads to, and its lists are there."""

from __future__ import annotations

from collections.abc import Iterator

from svc.domain.accounts.velocity import KINDS
from svc.domain.rules.ruleset import FIRST
from svc.store.schema.tables import RULESET_HISTORY, RULESETS
from svc.store.snapshot import Snapshot
from svc.store.transactions.rules.rulesets import MOST_REVISIONS
from svc.store.views.lists import list_names


def ruleset_faults(snapshot: Snapshot, number: int) -> Iterator[str]:
    """What is wrong with the rules of an organization, in words."""
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
