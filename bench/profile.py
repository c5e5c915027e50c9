"""The full profile: what an organization that uses every feature adds to an identification.

An account and an action; 60 rules, a third of them in shadow mode, none of which matches; 50 lists of 20 entries each,
of visitors, accounts, addresses with networks, and origins, with a rule each, which have none of those who come; three
webhook endpoints with filters that let everything pass; and a signed report.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from svc.features.lists.jobs import NewEntry, add_entries, create_list
from svc.features.lists.lists import ListKind
from svc.features.rules.jobs import ruleset_in_force, save_rules
from svc.features.rules.ruleset import Rule
from svc.features.webhooks.jobs.endpoints import NewEndpoint, create_endpoint
from svc.kernel.store.snapshot import Transaction

FEATURES: Final = ("account", "rules", "lists", "webhooks", "proof")
RULES, LISTS, ENTRIES = 60, 50, 20
CONDITIONS: Final = (
    'action == "sign_up" && (velocity.visitor.accounts["24h"] > 2 || "incognito" in signals || "replayed" in signals)',
    'action == "sign_up" && velocity.address.accounts["1h"] >= 10',
    'action == "sign_up" && ("bot" in groups || ("tampering" in groups && score >= 30))',
    'velocity.account.visitors["30d"] > 6 && velocity.account.countries["30d"] > 1',
    'action == "log_in" && velocity.visitor.accounts["1h"] >= 5',
    '"vpn" in signals && address.country != "GB"',
    "score > 80 && visitor.age_days < 1",
    'velocity.address.events["1h"] > 500',
    'labels.visitor.exists(l, l == "fraud")',
    'agent.startsWith("curl") || visitor_kind == "ai_agent"',
)
FILTERS: Final = (
    'score >= 0 || "bot" in groups',
    'action == "log_in" && visitor.confidence >= 0',
    'velocity.visitor.events["24h"] > 0',
)
HOOKS: Final = tuple(f"https://hooks-{index}.example/" for index in range(len(FILTERS)))
VALUES: Final[dict[ListKind, Callable[[int], str]]] = {
    "visitor": lambda number: f"{number:020}",
    "account": lambda number: f"listed-{number}",
    "address": lambda number: f"10.{number >> 8}.{number & 255}." + ("0/24" if number % 4 == 0 else "7"),
    "origin": lambda number: f"https://shop-{number}.example",
}


def install(
    transaction: Transaction, number: int, features: Collection[str], now_ms: int, hooks: Sequence[str] = HOOKS
) -> None:
    """Give an organization those of the features that it has to be given. `hooks`: URLs, one for each filter."""
    rules = [*ruleset_in_force(transaction, number, "live").rules]
    if "rules" in features:
        texts = (f"({CONDITIONS[index % len(CONDITIONS)]}) && score != {1000 + index}" for index in range(RULES))
        rules += [_rule(index, text) for index, text in enumerate(texts)]
    for index in range(LISTS if "lists" in features else 0):
        kind = [*VALUES][index % len(VALUES)]
        entries = [NewEntry(VALUES[kind](index * ENTRIES + each)) for each in range(ENTRIES)]
        create_list(transaction, number, f"lst_{index:020}", f"list_{index}", kind, now_ms)
        add_entries(transaction, number, f"lst_{index:020}", entries, now_ms)
        rules.append(_rule(RULES + index, f'in_list("list_{index}")'))
    save_rules(transaction, number, "live", 0, rules, "", now_ms)
    for index, (url, text) in enumerate(zip(hooks, FILTERS, strict=True) if "webhooks" in features else ()):
        made = NewEndpoint(
            id=f"whk_{index:020}", url=url, description="", environment="live",
            events=("identification.completed",), filter=text,
        )  # fmt: skip
        create_endpoint(transaction, number, made, bytes(32), now_ms)


def _rule(index: int, condition: str) -> Rule:
    mode = "active" if index % 3 else "shadow"
    return Rule(id=f"rul_{index:020}", name=f"Rule {index}", condition=condition, action="challenge", mode=mode)
