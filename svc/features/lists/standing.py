"""Whether an entry of the lists that every organization has decides anything, by a ruleset (decisions 12.2, 13.1).

A list by itself blocks nobody: an active rule must read it, and no rule above may decide first. What may live here: a
ruleset in, sentences for people out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from svc.features.lists.lists import FIRST_LISTS
from svc.features.rules.language.conditions import known
from svc.features.rules.ruleset import Rule, Ruleset
from svc.identify.model import RuleAction

Effect = Literal["always", "sometimes", "never"]
"""How often a value that is in a list is decided as the list says."""
BLOCKING: Final = tuple(name for name in FIRST_LISTS if name.startswith("blocked_"))


class ListEffect(NamedTuple):
    """What an entry of a list does."""

    name: str
    """Of the list."""
    effect: Effect
    reason: str
    """Why it is not `always`, in sentences; empty if it is."""


class _Reader(NamedTuple):
    """A rule, and the lists that its condition names."""

    rule: Rule
    lists: frozenset[str]

    def is_conditional(self, name: str) -> bool:
        """Return whether its condition may be false of a value that is in the list of this name."""
        return name not in known(self.rule.condition).sufficient_lists


def list_effects(ruleset: Ruleset) -> tuple[ListEffect, ...]:
    """Return what an entry of each of the six lists of `FIRST_LISTS` does by a ruleset, in their order."""
    readers = [_Reader(rule, _lists_of(rule)) for rule in ruleset.rules]
    return tuple(_effect(readers, name) for name in FIRST_LISTS)


def ruleset_warnings(ruleset: Ruleset) -> list[str]:
    """Return what is likely to be a mistake in a ruleset as a whole, each in a sentence that begins with the rules that
    it is about: that no active rule reads a list of blocked values (decisions 13.1).
    """
    read = frozenset[str]().union(*(_lists_of(rule) for rule in ruleset.rules if rule.mode == "active"))
    if not read.isdisjoint(BLOCKING):
        return []
    last = len(ruleset.rules) - 1
    whose = {-1: "rules[] is empty", 0: "rules[0] is the only rule"}.get(last, f"rules[0] to rules[{last}]")
    return [f"{whose}: no active rule reads {', '.join(BLOCKING[:-1])} or {BLOCKING[-1]}, so these lists block nobody"]


def _effect(readers: Sequence[_Reader], name: str) -> ListEffect:
    action: RuleAction = "block" if name in BLOCKING else "allow"
    nothing = f"so nothing is {'blocked' if action == 'block' else 'trusted'}."
    naming = [reader for reader in readers if name in reader.lists]
    active = [reader for reader in readers if reader.rule.mode == "active"]
    deciding = [reader for reader in naming if reader in active and reader.rule.action == action]
    if not deciding:
        rule = next((reader.rule for reader in naming if reader in active), None)
        if rule is not None:
            return ListEffect(name, "never", f'Rule "{rule.name}" reads it and decides {rule.action}, {nothing}')
        if naming:
            rule = naming[0].rule
            return ListEffect(name, "never", f'Only rule "{rule.name}" reads it, in mode {rule.mode}, {nothing}')
        return ListEffect(name, "never", f"No active rule reads it, {nothing}")
    reader = next((reader for reader in deciding if not reader.is_conditional(name)), deciding[0])
    reasons: list[str] = []
    if reader.is_conditional(name):
        reasons.append(f'Rule "{reader.rule.name}" decides {action} only if the rest of its condition is true.')
    for above in active[: active.index(reader)]:
        if above.rule.action != action:
            first, own = above.rule, reader.rule.name
            reasons.append(f'Rule "{first.name}" is above rule "{own}" and may decide {first.action} first.')
            break
    return ListEffect(name, "sometimes" if reasons else "always", " ".join(reasons))


def _lists_of(rule: Rule) -> frozenset[str]:
    return known(rule.condition).lists
