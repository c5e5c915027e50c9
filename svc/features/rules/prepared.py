"""Compiles the rules of an organization before its identification is recorded: what takes milliseconds once after a
save is waited for by that organization alone, and not within the transaction that others share (docs/adr/0172).
"""

from __future__ import annotations

from functools import partial

from svc.features.rules.language.conditions import known
from svc.features.rules.ruleset import Ruleset
from svc.features.rules.tables import RULESETS
from svc.http.route import Services
from svc.identify.velocity.counts import KINDS, kind_of
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.fields import Environment
from svc.kernel.work.slices import Slice


async def prepare_rules(services: Services, number: int, environment: Environment) -> None:
    """Compile the ruleset in force, unless this process has done so. A ruleset that is saved meanwhile is compiled
    where it is asked first.
    """
    place = KINDS.index(kind_of(environment))
    ruleset = await services.store.query(partial(_saved, number=number, place=place), recent=True)
    if ruleset is None or ruleset.is_prepared:
        return
    time = Slice(services.world)
    for rule in ruleset.rules:
        if rule.mode != "off":
            known(rule.condition)
            await time.pause()
    assert ruleset.prepared


def _saved(snapshot: Snapshot, number: int, place: int) -> Ruleset | None:
    """`None` = that of the start, which takes no time."""
    return snapshot.get(RULESETS, number, place)
