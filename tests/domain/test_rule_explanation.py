"""Decisions 13: why a rule matched, term by term."""

from __future__ import annotations

from typing import Any

import pytest

from svc.features.rules.explanation import LONGEST_VALUE, Operand, Term, explain, shown, written
from svc.features.rules.language.conditions import compiled
from svc.features.rules.language.cost import BUDGET
from svc.features.rules.language.evaluation import Evaluation, Values
from svc.features.rules.language.language import checked_tree
from svc.features.rules.language.tree import Node, Type
from tests.support.condition_grammar import conditions

VALUES: dict[str, Any] = {
    "score": 40,
    "level": "medium",
    "signals": ["tor", "headless"],
    "visitor.is_new": True,
    "velocity.visitor.accounts": {"1h": 1, "24h": 2, "30d": 7},
    "address.ip": "10.1.2.3",
    "now": 1_767_571_200_000_000_000,
}


def explained(text: str) -> Term:
    compiled(text)
    found = explain(text, Evaluation(Values(VALUES.get), lambda name: name == "blocked_visitors", BUDGET))
    assert found is not None
    return found


def test_a_comparison_shows_the_value_of_the_event():
    term = explained('velocity.visitor.accounts["30d"] > 2')
    assert (term.kind, term.result, term.operator) == ("term", True, ">")
    assert term.left == Operand('velocity.visitor.accounts["30d"]', "7")
    assert term.right == Operand("2", None), "a literal says itself what it is"


def test_terms_are_those_of_the_language():
    """`&&` binds tighter than `||`, `!` than both, and brackets tightest."""
    term = explained('score >= 50 || visitor.is_new && !("vpn" in signals) && (level == "low" || level == "medium")')
    assert (term.kind, term.result) == ("any", True)
    first, second = term.terms
    assert (first.text, first.result, first.left) == ("score >= 50", False, Operand("score", "40"))
    assert (second.kind, [each.kind for each in second.terms]) == ("all", ["term", "not", "any"])
    assert second.terms[0] == Term("term", "visitor.is_new", True)
    negated = second.terms[1]
    assert (negated.result, negated.terms[0].result, negated.terms[0].operator) == (True, False, "in")
    assert negated.terms[0].right == Operand("signals", '["tor", "headless"]')
    assert [each.text for each in second.terms[2].terms] == ['level == "low"', 'level == "medium"']


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ('in_list("blocked_visitors")', True),
        ('in_list("trusted_visitors")', False),
        ('cidr(address.ip, "10.0.0.0/8")', True),
        ('signals.exists(name, name == "tor" || name == "vpn")', True),
        ('level == "a || b && (c"', False),
        ("visitor.is_new ? score > 1 : score > 100", True),
        ("!visitor.is_new == false", True),
        ("(score > 1)", True),
        ("// why\nscore > 1 // because", True),
    ],
)
def test_what_has_no_parts_is_one_term(text: str, result: bool):
    term = explained(text)
    assert (term.kind, term.result, term.terms) == ("term", result, ())


def test_a_variable_without_a_value_is_named_and_its_term_has_no_result():
    term = explained('account.id == "a" || score > 1')
    assert term.result is True
    assert term.terms[0].result is None
    assert term.terms[0].absent == ("account.id",)
    assert term.terms[0].left == Operand("account.id", None)
    assert term.terms[1].absent == ()


def test_every_part_is_what_the_language_says_of_it():
    def check(term: Term) -> None:
        values = [each.result for each in term.terms]
        if None not in values and term.kind != "term":
            assert term.result == {"all": all(values), "any": any(values), "not": not values[0]}[term.kind]
        for each in term.terms:
            check(each)

    check(explained("!(score > 1 && score < 3) || (visitor.is_new && !(score == 40)) || score - 1 == 39 && true"))


def test_values_are_written_as_a_condition_would_and_cut_where_they_are_long():
    values = [
        (True, "bool", "true"),
        (7, "int", "7"),
        ('a"b', "string", '"a\\"b"'),
        (1.5, "double", "1.5"),
        (1_767_571_200_000_000_000, "timestamp", "2026-01-05T00:00:00Z"),
        (90_000_000_000, "duration", "90s"),
    ]
    for value, of, text in values:
        assert shown(value, Type(of)) == text
    term = explained("velocity.visitor.accounts != velocity.visitor.accounts")
    assert term.left == Operand("velocity.visitor.accounts", '{"1h": 1, "24h": 2, "30d": 7}')
    assert len(shown("x" * 1000, Type("string"))) == LONGEST_VALUE


@pytest.mark.slow(0.3)
def test_a_condition_is_written_as_it_was_read():
    """What is written is read as the same tree again, whatever brackets it needs."""
    for text in conditions(7, 300):
        tree = checked_tree(text)
        again = checked_tree(written(tree))
        assert _plain(again) == _plain(tree), text


def _plain(node: Node) -> tuple[object, ...]:
    """Without places; `a && (b && c)` is `a && b && c`."""
    parts = [
        part
        for each in map(_plain, node.parts)
        for part in (each[-1] if each[1] == node.name in ("_&&_", "_||_") else [each])  # type: ignore[union-attr]
    ]
    return (node.kind, node.name, node.value, node.overload, parts)
