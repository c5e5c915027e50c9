"""Decisions 13.4: conditions of rules, what they may name, and where their errors are."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from svc.domain.rules.conditions import (
    MAX_LENGTH,
    MOST_DEPTH,
    VARIABLES,
    ConditionError,
    compiled,
    environment,
    question,
)

VALUES: dict[str, Any] = {
    "score": 40,
    "level": "medium",
    "signals": ["tor", "headless"],
    "visitor.is_new": True,
    "velocity": {"visitor": {"accounts": {"1h": 1, "24h": 2, "30d": 7}}},
    "velocity.visitor.accounts": {"1h": 1, "24h": 2, "30d": 7},
    "address.ip": "10.1.2.3",
    "action": "sign_up",
    "now": datetime(2026, 1, 5, tzinfo=UTC),
}


def is_true(text: str, values: dict[str, Any] = VALUES) -> bool | None:
    return question(values, lambda name: name == "blocked_visitors")(compiled(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("score >= 30 && visitor.is_new", True),
        ('velocity.visitor.accounts["30d"] > 7', False),
        ('velocity["visitor"]["accounts"]["24h"] == 2', True),
        ('"tor" in signals && !("vpn" in signals)', True),
        ('signals.exists(name, name.startsWith("head"))', True),
        ('in_list("blocked_visitors")', True),
        ("in_list('trusted_visitors')", False),
        ('cidr(address.ip, "10.0.0.0/8")', True),
        ('cidr(address.ip, "2001:db8::/32")', False),
        ('present("account.id")', False),
        ('present("action") && action == "sign_up"', True),
        ('now > timestamp("2026-01-01T00:00:00Z")', True),
        ('level.matches("^(low|medium)$")', True),
        ('score > 1 || account.id == "a"', True),
        ('account.id == "a" || score > 1', True),
        ('account.id == "a"', None),
        ('velocity.visitor.accounts["7d"] > 1', None),
        ('cidr(address.ip, "no network")', None),
        ("true", True),
        ("// a comment with in_list(x)\nscore == 40", True),
        ('level == "in_list(x)"', False),
    ],
)
def test_a_condition_is_true_false_or_fails(text: str, expected: bool | None):
    assert is_true(text) is expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("score +", "line 1, column 8: Syntax error"),
        ("score >= 1 &&\n  visitor.idd == 'a'", "line 2, column 10: undeclared reference to 'visitor.idd'"),
        ("visits > 1", "line 1, column 1: undeclared reference to 'visits'"),
        ('score == "a"', "line 1, column 7: found no matching overload"),
        ("score", "is not true or false"),
        ('level == "low" && present("account.idd")', "line 1, column 27: there is no variable 'account.idd'"),
        ("in_list(level)", "line 1, column 1: in_list() needs one name in quotes"),
        ('in_list("a" + "b")', "in_list() needs one name in quotes"),
        ("in_list(", "in_list() needs one name in quotes"),
        ("signals.all(a, signals.all(b, a == b))", "nested macros are too expensive"),
        (
            "signals.map(a, a).exists(a, true) && signals.all(a, true) && groups.all(a, true)",
            "macros are too expensive",
        ),
        ("(" * (MOST_DEPTH + 1) + "true" + ")" * (MOST_DEPTH + 1), "too deep"),
        ("score > " + "1" * MAX_LENGTH, f"more than {MAX_LENGTH} characters"),
        ("", "Syntax error"),
        ("1 / 0 == 1 ; true", "Syntax error"),
        ("import_everything()", "undeclared reference"),
    ],
)
def test_a_condition_that_cannot_be_used_says_where(text: str, says: str):
    with pytest.raises(ConditionError, match=None) as refused:
        compiled(text)
    assert says in str(refused.value)
    assert "<input>" not in str(refused.value)


def test_a_condition_tells_which_variables_and_lists_it_names():
    found = compiled(
        'in_list("a") && (score > 1 || present("tag")) && velocity.visitor.accounts["1h"] > 1 || in_list("b")'
    )
    assert found.lists == {"a", "b"}
    assert found.names == {"score", "tag", "velocity.visitor.accounts"}


def test_every_variable_can_be_named():
    for name, kind in VARIABLES.items():
        compiled(f'present("{name}") && {name} == {name}')
        assert kind.name()


def test_the_dearest_condition_that_can_be_saved_is_within_the_budget():
    """Three macros over the longest literals that fit: each goes through its list once."""
    numbers = "[" + ",".join(["1"] * 310) + "]"
    text = " && ".join(f"{numbers}.all(a, a == 1)" for _ in range(3))
    assert MAX_LENGTH - 100 < len(text) <= MAX_LENGTH
    assert is_true(text) is True


def test_what_is_beyond_the_budget_of_the_runtime_fails():
    """A macro within another cannot be saved; the runtime has a bound of its own."""
    ten = str([1] * 10)
    nested = f"{ten}.all(a, {ten}.all(b, {ten}.all(c, {ten}.all(d, a + b + c + d > 0))))"
    with pytest.raises(ConditionError, match="too expensive"):
        compiled(nested)
    unchecked = compiled("true")._replace(expression=environment().compile(nested))
    assert question(VALUES, lambda _: False)(unchecked) is None
