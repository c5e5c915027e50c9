"""The rules of rulesets in every store."""

from __future__ import annotations

from collections.abc import Iterator

from svc.features.lists.queries import list_names
from svc.features.rules.jobs import MAX_REVISIONS
from svc.features.rules.ruleset import FIRST
from svc.features.rules.tables import RULESET_HISTORY, RULESETS
from svc.identify.velocity.counts import KINDS
from svc.kernel.store.snapshot import Snapshot


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
    """Return the earlier revisions that are kept: the first, and the latest ones."""
    return sorted({FIRST.revision, *range(max(FIRST.revision, revision - MAX_REVISIONS), revision)})


RULES = {"rulesets": ruleset_faults}
