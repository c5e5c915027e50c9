"""Conditions are compiled one by one before a transaction or a read asks for them: others go on in between.

What may live here: what compiles the rules of a request, and those that are saved. One condition may take ten
milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from svc.features.rules.jobs import ruleset_in_force
from svc.features.rules.language.conditions import is_valid, known
from svc.features.rules.ruleset import MAX_RULES, Rule
from svc.features.rules.tables import RULESETS
from svc.http.callers.limits import condition_work
from svc.http.route import Services
from svc.identify.velocity.counts import KINDS, EnvironmentKind, kind_of
from svc.kernel.values.fields import Environment
from svc.kernel.values.refusals import Refusal
from svc.kernel.work.slices import Slice


async def compile_rules(services: Services, number: int, rules: Sequence[Rule], at_ms: int) -> Refusal | None:
    """Compile the conditions of an organization's rules, before a transaction or a read asks for them: others go on in
    between. `429 rate_limited` after much work.
    """
    if len(rules) > MAX_RULES:
        return None  # refused for that
    refusal = services.limits.work_refusal(number, condition_work(rule.condition for rule in rules), at_ms)
    if refusal is not None:
        return refusal
    time = Slice(services.world)
    for rule in rules:
        is_valid(rule.condition)
        await time.pause()
    return None


async def prepare_rules(services: Services, number: int, environment: Environment) -> None:
    """Compile the ruleset in force before an identification is recorded, unless this process has done so: its
    organization waits for that, not the transaction that all share. One that is saved meanwhile is compiled where it is
    asked first.
    """
    place = KINDS.index(kind_of(environment))
    ruleset = await services.store.query(lambda snapshot: snapshot.get(RULESETS, number, place), recent=True)
    if ruleset is None or ruleset.is_prepared:  # the initial one takes no time
        return
    await compile_saved(services, (rule for rule in ruleset.rules if rule.mode != "off"))
    assert ruleset.prepared


async def compile_saved(services: Services, rules: Iterable[Rule]) -> None:
    """Compile the conditions of saved rules that this process has not compiled, before a read asks for them: others go
    on in between.
    """
    time = Slice(services.world)
    for rule in rules:
        known(rule.condition)
        await time.pause()


async def compile_in_force(services: Services, number: int, *kinds: EnvironmentKind) -> None:
    """Compile all conditions of the rulesets in force, as `compile_saved` does."""
    for kind in kinds:
        ruleset = await services.store.query(partial(ruleset_in_force, number=number, kind=kind))
        await compile_saved(services, ruleset.rules)
