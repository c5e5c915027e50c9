"""Decisions 13.4: conditions of rules, what they may name, what they cost, and where their errors are."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from cel_expr_python import cel  # pyright: ignore[reportMissingTypeStubs]

from svc.features.rules.language.compiler import compiled_evaluator
from svc.features.rules.language.conditions import COMPILED_UNITS, compiled, known
from svc.features.rules.language.cost import BUDGET, units_of
from svc.features.rules.language.evaluation import Evaluation, Values
from svc.features.rules.language.evaluators import evaluator
from svc.features.rules.language.language import MAX_LENGTH, VARIABLES, ConditionError, checked_tree, declared
from svc.features.rules.language.literals import readable
from svc.features.rules.language.tree import Node
from svc.features.rules.ruleset import Rule, evaluate, prepared
from svc.kernel.net.addresses import read_address
from tests.support.condition_grammar import conditions
from tests.support.effort import LONG

WINDOWS = {"1h": 1, "24h": 2, "30d": 7}
VALUES: dict[str, Any] = {
    "score": 40,
    "level": "medium",
    "signals": ["tor", "headless"],
    "groups": ["tor", "bot"],
    "visitor.id": "0qppzPLvL54VURDkQrfS",
    "visitor.is_new": True,
    "velocity": {"visitor": {"accounts": WINDOWS}},
    "velocity.visitor.accounts": WINDOWS,
    "address.ip": "10.1.2.3",
    "action": "sign_up",
    "tag": "aabbaabaaé7",
    "labels.visitor": [],
    "now": 1_767_603_901_250_000_000,
}


def in_list(name: str) -> bool:
    return name == "blocked_visitors"


def evaluation(values: dict[str, Any] = VALUES, units: int = BUDGET) -> Evaluation:
    return Evaluation(Values(values.get), in_list, units)


def answer(text: str, values: dict[str, Any] = VALUES) -> bool | str:
    return compiled(text).ask(evaluation(values))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("score >= 30 && visitor.is_new", True),
        ('velocity.visitor.accounts["30d"] > 7', False),
        ('velocity["visitor"]["accounts"]["24h"] == 2', True),
        ('"tor" in signals && !("vpn" in signals)', True),
        ('signals.exists(name, name.startsWith("head"))', True),
        ("signals.exists(name, groups.exists(group, group == name))", True),
        ('in_list("blocked_visitors")', True),
        ("in_list('trusted_visitors')", False),
        ('cidr(address.ip, "10.0.0.0/8")', True),
        ('cidr(address.ip, "10.1.2.9/8")', True),
        ('cidr(address.ip, "::ffff:10.0.0.0/104")', True),
        ('cidr(address.ip, "2001:db8::/32")', False),
        ('present("account.id")', False),
        ('present("action") && action == "sign_up"', True),
        ('now > timestamp("2026-01-01T00:00:00Z")', True),
        ('now.getHours("Europe/Paris") == 10', True),
        ('level.matches("^(low|medium)$")', True),
        ("100-score > 50", True),
        ('score > 1 || account.id == "a"', True),
        ('account.id == "a" || score > 1', True),
        ("true", True),
        ("// a comment with in_list(x)\nscore == 40", True),
        ('level == "in_list(x)"', False),
        ("'''\\\\''' == tag || score == 40", True),
        ("[1].all(x, [2].all(x, [3].all(y, x == 2)) && x == 1)", True),
        ('"a" in {"a": 1} && {-1: 2}[-1] == 2 && {true: 3}[true] == 3', True),
    ],
)
def test_a_condition_is_true_or_false(text: str, expected: bool):
    assert answer(text) is expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('account.id == "a"', "the event has no account.id"),
        ('velocity.account.visitors["1h"] > 1', "the event has no velocity.account.visitors"),
        ("1 / (score - 40) > 1", "divided by zero"),
        ("signals[7] == level", "no element 7"),
        ("int(tag) > 1", "is not a whole number"),
        ('cidr(tag, "10.0.0.0/8")', "not an address"),
        ("score + 9223372036854775807 > 1", "beyond 64 bits"),
    ],
)
def test_an_evaluation_that_fails_says_why(text: str, says: str):
    found = answer(text)
    assert isinstance(found, str)
    assert says in found


@pytest.mark.parametrize(
    "text",
    [
        "true && [5, true][0]",
        "[5, true][0] || false",
        "false || {'a': 'no', 'b': true}['a']",
        "[null, true][0] && true",
        "true ? [5, true][0] : false",
        "score",
    ],
)
def test_a_saved_condition_whose_value_is_neither_true_nor_false_fails(text: str):
    """One that an earlier version took: it cannot be saved any more."""
    with pytest.raises(ConditionError):
        compiled(text)
    assert known(text).ask(evaluation()) == "its value is neither true nor false"
    rule = Rule(id="rul_a", name="", condition=text, action="block")
    facts: Any = SimpleNamespace(values=Values(VALUES.get), in_list=in_list)
    decided = evaluate(prepared([rule], known), facts)
    assert (decided.decision, decided.errors) == (None, ("rul_a",))


def test_a_variable_is_read_once():
    read: list[str] = []

    def value(name: str) -> Any:
        read.append(name)
        return VALUES.get(name)

    text = 'present("tag") && tag != "" && present("tag")'
    assert compiled(text).ask(Evaluation(Values(value), in_list, BUDGET)) is True
    assert read == ["tag"]


def test_what_the_store_fails_of_is_no_error_of_the_condition():
    class BrokenError(Exception):
        pass

    def broken(_: str) -> bool:
        raise BrokenError

    with pytest.raises(BrokenError):
        compiled('in_list("a") || true').ask(Evaluation(Values(VALUES.get), broken, BUDGET))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("score +", "line 1, column 8: the condition ends too early"),
        ("score >= 1 &&\n  visitor.idd == 'a'", "line 2, column 10: there is no variable or function 'visitor.idd'"),
        ("visitor.idd == 'a'", "did you mean visitor.id?"),
        ("visits > 1", "line 1, column 1: there is no variable or function 'visits'"),
        ('visitor == "a"', "visitor alone is not a variable: there is visitor.id, "),
        ('score == "a"', "line 1, column 7: a number is compared with a text"),
        ("score", "is not true or false"),
        ("score = 1", "write == instead of ="),
        ("score > 1 and true", "write && for and"),
        ('tag == "a', "a quote is missing"),
        ("velocity.visitor.accounts > 3", 'a window is missing: ["1h"], ["24h"] or ["30d"]'),
        ("velocity.visitor.accounts[24] > 3", 'must be in quotes, such as ["24h"]'),
        ('velocity.visitor.accounts["7d"] > 3', "line 1, column 27: there is no '7d' in velocity here"),
        ('velocity["visitors"]["accounts"]["1h"] > 3', "there is no 'visitors' in velocity here"),
        ('velocity.visitor["account"]["1h"] > 3', "there is no 'account' in velocity here"),
        ("velocity.visitor.accounts[action] > 3", "must be known before"),
        ('signals.contains("tor")', 'write "name" in signals'),
        ('"vpn" in level', "in needs a list on its right"),
        ("tag == null", 'present("tag")'),
        ('level == "low" && present("account.idd")', "line 1, column 27: there is no variable 'account.idd'"),
        ("in_list(level)", "line 1, column 9: in_list() needs one name in quotes"),
        ('in_list("a" + "b")', "in_list() needs one name in quotes"),
        ("in_list(", "ends too early"),
        ("'''\\\\''' == tag && in_list(tag)", "in_list() needs one name in quotes"),
        ('cidr(address.ip, "office")', "line 1, column 18: 'office' is not an address or network"),
        ('cidr(address.ip, "10.0.0.0/33")', "is not an address or network"),
        ('cidr(address.ip, "10.0.0.0-10.0.0.9")', "is not an address or network"),
        ("cidr(address.ip, tag)", "cidr() needs a network in quotes"),
        ('tag.matches("(?=x)y")', "line 1, column 13: the regular expression '(?=x)y' cannot be used"),
        ("tag.matches(tag)", "matches() needs a regular expression in quotes"),
        ('tag.matches("a" + "b")', "matches() needs a regular expression in quotes"),
        ('tag.matches("\\\\pL{1000}")', "cannot be used"),
        ('now > timestamp("2026-01-01")', "line 1, column 17: '2026-01-01' is not a time"),
        ('now - now > duration("1d")', "line 1, column 22: '1d' is not a duration"),
        ('now.getHours("Europe/Pari") > 1', "there is no time zone 'Europe/Pari'"),
        ("type(score) == int", "type() is not needed"),
        ("dyn(1) == true", "different types"),
        ('[1, "a"] == []', "different types"),
        ("{[1]: 2} == {[1]: 2}", "the keys of a map must be"),
        ("google.protobuf.Timestamp{} == now", "conditions have no google.protobuf.Timestamp"),
        ("(" * 40 + "true" + ")" * 40, "too deep"),
        ("+".join(["score"] * 300) + " > 1", "too deep"),
        ("score > " + "1" * MAX_LENGTH, f"more than {MAX_LENGTH} characters"),
        ("", "ends too early"),
        ("1 / 0 == 1 ; true", "means nothing"),
        ("google.protobuf.NullValue.NULL_VALUE == 0", "there is no variable 'google.protobuf.NullValue.NULL_VALUE'"),
        ("{[1]: 2} == {[1]: 2}", "line 1, column 1: the keys of a map must be texts in quotes or whole numbers"),
        ("size({}) == 0", "the keys of a map must be"),
        ("[1]" + ".map(x, {x: x})" * 24 + " != []", "the keys of a map must be"),
        ("[1]" + ".map(x, [{}].filter(m, m[x] == x)[0])" * 15 + " != []", "the keys of a map must be"),
        (
            "google.protobuf.ListValue{values: [1]" + ".map(x, {x: x})" * 24 + "} == null",
            "conditions have no google.protobuf.ListValue",
        ),
        ("import_everything()", "there is no variable or function"),
    ],
)
def test_a_condition_that_cannot_be_used_says_why_and_where(text: str, says: str):
    with pytest.raises(ConditionError) as refused:
        compiled(text)
    assert says in str(refused.value)
    assert not refused.value.too_expensive
    assert "<input>" not in str(refused.value)
    assert isinstance(known(text).ask(evaluation()), bool | str), "one that was saved stays in force, or fails"


@pytest.mark.parametrize(
    "text",
    [
        'tag.matches("((a{0,30}){0,30})b")',
        "signals.all(a, signals.all(b, signals.all(c, a == b && b == c)))",
        " && ".join(['tag.matches("(a|b)*a(a|b){12}")'] * 20),
    ],
)
def test_what_could_cost_more_than_a_whole_ruleset_may_is_refused(text: str):
    with pytest.raises(ConditionError) as refused:
        compiled(text)
    assert refused.value.too_expensive
    assert refused.value.at is None
    spent = evaluation({**VALUES, "tag": "ab" * 512, "signals": ["a"] * 64})
    assert known(text).ask(spent) == "it has used up its share of time", "one that was saved is bounded when it runs"


@pytest.mark.parametrize(
    "text",
    [
        " || ".join(f"'a'.matches('\\\\pL{{5}}{place}')" for place in range(70)),
        "[tag].map(t, t" + "+t" * 20 + ").map(t, t" + "+t" * 20 + ").all(t, t" + "+t" * 20 + ' != "")',
        "[signals]" + f".map(t, {'+'.join('t' * 12)})" * 12 + ".all(t, " + "t.all(v, " * 24 + "true" + ")" * 25,
        'velocity["visitor"]["accounts"].all(v, ' * 8 + 'now.getDayOfYear("Europe/Paris") > 0' + ")" * 8,
        "[tag" + "+tag" * 10 + "].map(t, t" + "+t" * 10 + ").all(t, " + "t.startsWith(t) && " * 50 + "true)",
    ],
)
def test_what_takes_memory_or_grows_is_refused_as_too_expensive(text: str):
    with pytest.raises(ConditionError) as refused:
        compiled(text)
    assert refused.value.too_expensive


def test_a_condition_tells_which_variables_and_lists_it_names():
    found = compiled(
        'in_list("a") && (score > 1 || present("tag")) && velocity.visitor.accounts["1h"] > 1 || in_list("b")'
    )
    assert found.lists == {"a", "b"}
    assert found.names == {"score", "tag", "velocity.visitor.accounts"}
    assert compiled('100-score > 50 && signals.exists(tag, tag == "a")').names == {"score", "signals"}


def test_every_variable_can_be_named():
    for name in VARIABLES:
        assert compiled(f'present("{name}") && {name} == {name}').names == {name}


def runtime() -> Callable[[str], bool | None]:
    """The evaluation of the language's own runtime, with the same functions."""

    def is_within(ip: str, network: str) -> bool:
        found = read_address(ip)
        assert found is not None
        return compiled(f'cidr("{ip}", "{network}")').ask(evaluation()) is True

    functions: dict[str, tuple[Callable[..., bool], int]] = {
        "present": (lambda name: name in VALUES, 1),
        "in_list": (in_list, 1),
        "cidr": (is_within, 2),
    }
    string, truth = cel.Type.STRING, cel.Type.BOOL
    declarations = [
        cel.FunctionDecl(
            name, [cel.Overload(f"{name}_x", return_type=truth, parameters=[string] * count, impl=implementation)]
        )
        for name, (implementation, count) in functions.items()
    ]
    environment = cel.NewEnv(
        variables={name: declared(of) for name, of in VARIABLES.items()},
        extensions=[cel.CelExtension("svc", declarations)],
    )
    activation = environment.Activation({**VALUES, "now": datetime.fromtimestamp(1_767_603_901.25, UTC)})

    def evaluate(text: str) -> bool | None:
        try:
            value = environment.compile(text).eval(activation).value()
        except RuntimeError:
            return None
        return value if isinstance(value, bool) else None

    return evaluate


@pytest.mark.parametrize("seed", range(20 if LONG else 1))
@pytest.mark.slow(0.9)
def test_an_evaluation_comes_to_what_the_runtime_of_the_language_does(seed: int):
    evaluate = runtime()
    for text in conditions(seed, 1_000):
        found = known(text).ask(evaluation(units=1 << 40))
        assert (None if isinstance(found, str) else found) is evaluate(text), text


EDGES = r"""
!bool("0") ; !bool("F") ; !bool("False") ; bool("1") ; bool("t") ; bool("yes") ; string(b"\xc3\xa4") == "ä" ;
string(b"\xff") == "" ; string(true) == "true" ; string(-5) == "-5" ; string(5u) == "5" ; double("1.5") == 1.5 ;
int("+5") == 5 ; int("9223372036854775807") > 0 ; int("9223372036854775808") > 0 ; int("-9223372036854775808") < 0 ;
uint("18446744073709551615") > 0u ; uint("18446744073709551616") > 0u ; uint("-1") > 0u ; int(-1.9) == -1 ;
int(9223372036854775000.0) > 0 ; int(9223372036854775808.0) > 0 ; uint(18446744073709551615.0) > 0u ; 0u - 1u == 0u ;
-7 / 2 == -3 ; 7 / -2 == -3 ; -7 / -2 == 3 ; 0 / -5 == 0 ; 7 / 0 == 0 ; -7 % 3 == -1 ; 7 % -3 == 1 ; 7 % 0 == 0 ;
9223372036854775807 + 1 > 0 ; -9223372036854775807 - 2 < 0 ; 1.0 / 0.0 > 1.0 ; -1.0 / 0.0 < 1.0 ; 1.0 / -0.0 < 0.0 ;
0.0 / 0.0 < 1.0 ; 0.0 / 0.0 == 0.0 ; [1, 2][0] == 1 ; [1, 2][1] == 2 ; [1, 2][2] == 2 ; [1, 2][-1] == 2 ;
duration("1.5s") == duration("1500ms") ; duration("1h1.5m") == duration("3690s") ;
duration("-1.5h") == duration("-90m") ; duration(".5s") == duration("500ms") ; duration("1.s") == duration("1s") ;
duration("0") == duration("0s") ; string(duration("0s")) == "0s" ; string(duration("-1.25s")) == "-1.25s" ;
string(duration("90m")) == "5400s" ; duration("-90s").getMinutes() == -1 ;
duration("3723.5s").getMilliseconds() == 500 ; now - now == duration("0s") ;
timestamp("2026-01-05T10:00:00.25-03:30") == timestamp("2026-01-05T13:30:00.25Z") ;
timestamp("2026-01-05T10:00:00+03:30") == timestamp("2026-01-05T06:30:00Z") ;
timestamp("2026-01-05T10:00:00.000000001Z") > timestamp("2026-01-05T10:00:00Z") ;
timestamp("0001-01-01T00:00:00Z") < now ; timestamp("9999-12-31T23:59:59.999999999Z") > now ;
timestamp("9999-12-31T23:59:59-00:01") > now ; timestamp("0001-01-01T00:00:00+00:01") < now ;
int(timestamp("1969-12-31T23:59:58.5Z")) == -1 ;
string(timestamp("2026-01-05T10:00:00.25Z")) == "2026-01-05T10:00:00.25Z" ;
timestamp("2026-01-04T10:00:00Z").getDayOfWeek() == 0 ; timestamp("2026-01-05T10:00:00Z").getDayOfYear() == 4 ;
timestamp("2026-01-05T10:00:00Z").getHours("+02:00") == 12 ;
timestamp("2026-01-05T10:00:00Z").getHours("-02:30") == 7
"""
"""Conditions, each but the last followed by a semicolon."""


def test_numbers_texts_and_times_at_their_limits_come_to_what_the_runtime_of_the_language_does():
    evaluate = runtime()
    for text in map(str.strip, EDGES.split(";")):
        found = known(text).ask(evaluation(units=1 << 40))
        assert (None if isinstance(found, str) else found) is evaluate(text), text


@pytest.mark.slow(0.5)
def test_a_compiled_condition_comes_to_what_its_closures_do():
    """With the same error, and the same units left, also where variables are absent or units run out."""
    for text in conditions(7, 500):
        tree = readable(checked_tree(text))
        ways = [known(text)._replace(evaluate=made(tree)) for made in (compiled_evaluator, evaluator)]
        for values in (VALUES, {"score": 30, "signals": ["tor"]}):
            for units in (1 << 40, 3, 40):
                evaluations = [evaluation(values, units) for _ in ways]
                first, second = (way.ask(of) for way, of in zip(ways, evaluations, strict=True))
                assert first == second, text
                assert len({of.units for of in evaluations}) == 1, text


@pytest.mark.parametrize("text", ["!(true)", "-(score) == 1", "true && true", "score + 1 == 1"])
def test_the_deepest_condition_that_is_compiled_can_be_compiled(text: str):
    """Whatever stands in itself as often as its price allows: deeper than the language itself takes."""
    tree = checked_tree(text)
    inner = tree if tree.name in ("!_", "_&&_") else tree.parts[0]

    def nested(depth: int) -> Node:
        node = inner
        for _ in range(depth):
            node = inner._replace(parts=(node, *inner.parts[1:]))
        return node if inner is tree else tree._replace(parts=(node, *tree.parts[1:]))

    depth = max(depth for depth in range(COMPILED_UNITS) if units_of(nested(depth)) <= COMPILED_UNITS)
    assert depth > 30
    compiled_evaluator(nested(depth))


@pytest.mark.parametrize(
    "text", ["[{}, {}].exists(t, t.matches('(a|b)*c'))", "(visitor.is_new ? {} : {}).matches('(a|b)*c')"]
)
def test_of_several_values_each_may_cost_as_much_as_the_longest(text: str):
    short, long = "'a'", f"'{'a' * 500}'"

    def units(*values: str) -> int:
        return units_of(checked_tree(text.format(*values)))

    assert units(short, long) == units(long, short) == units(long, long) > 3 * units(short, short)


@pytest.mark.slow(0.3)
def test_an_evaluation_never_spends_more_than_its_condition_may_cost():
    for text in conditions(100, 500):
        condition, of = known(text), evaluation(units=1 << 40)
        condition.ask(of)
        assert (1 << 40) - of.units <= condition.units, text


def test_evaluations_on_two_threads_do_not_meet():
    """Each asks its own event, two hundred thousand times in all where it is long."""
    condition = compiled('present("account.id") && account.id == "mine" || in_list("blocked_visitors") && false')
    crossed: list[bool] = []

    def ask(values: dict[str, Any], expected: bool) -> None:
        rounds = range(100_000 if LONG else 5_000)
        crossed.extend(True for _ in rounds if condition.ask(evaluation(values)) is not expected)

    threads = [
        threading.Thread(target=ask, args=(values, expected))
        for values, expected in (({**VALUES, "account.id": "mine"}, True), (VALUES, False))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not crossed


@pytest.mark.slow(0.2)
def test_an_evaluation_that_fails_leaves_no_cycle_to_the_garbage_collector():
    """A run of it over what a preview had left took 16 ms of everybody's time."""
    texts = [*conditions(5, 200), "signals.all(a, int(a) > 1)", "signals.exists(a, int(a) > 1)"]
    ready = [known(text) for text in texts]
    gc.collect()
    gc.freeze()  # what other tests left is not searched again
    gc.disable()
    try:
        for condition in ready:
            condition.ask(evaluation(units=1 << 40))
        left = gc.collect()
    finally:
        gc.enable()
    assert left == 0
