"""Literals of conditions, checked when a condition is saved (decisions 13.4), and regular expressions with their price.

What may live here: which literals can never be read, such as `cidr(address.ip, "office")`, which are refused at their
place; and which no event can ever have, such as `level == "hihg"`, about which the author is warned.

RE2 (github.com/google/re2) takes time linear in the text. Where the states of a pattern's automaton do not fit into
memory, each byte costs the whole program. So a match costs the bytes of the text times the size of the program
(docs/adr/0171).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache, partial
from typing import Any, Final, NamedTuple, get_args

import re2  # pyright: ignore[reportMissingTypeStubs]

from svc.features.lists.lists import canonical
from svc.features.rules.language.tree import Node, Place
from svc.features.rules.language.values import EvaluationError, read_duration, read_time_zone, read_timestamp
from svc.identify.model import LABELS, AnonymityNetwork, DeviceKind, Level, VisitorKind
from svc.identify.network.timezones import country_codes
from svc.identify.scoring.signals import CATALOG, GROUPS
from svc.identify.velocity.counts import ACCOUNT_ID, ACTION, MOST, OTHERS, SUBJECTS, WINDOWS, EnvironmentKind
from svc.kernel.net.addresses import parse_ip
from svc.kernel.net.origins import normalize_origin
from svc.kernel.values.fields import ENVIRONMENTS, Platform
from svc.kernel.values.ids import is_visitor_id

_re2: Any = re2
"""Without types."""

MEMORY_BYTES: Final = 1 << 18
"""Of one pattern: its program and the states that are kept of its automaton."""
_FIXED_UNITS: Final = 25
_UNITS_A_STEP: Final = 0.06
"""Of a byte and an instruction: 4.4 ns at most were measured, of patterns made to have no state twice."""


_SHORTEST: Final = 64
"""Bytes that a search is priced for at least: a pattern takes memory and is compiled, whatever it is asked of."""


_ESCAPED_MARK = re.compile(r"\\[^0-9A-Za-z]")
_BEYOND_ASCII = re.compile(r"\.|\[\^|\(\?(?!:)|\\[^dswbBAz]")
"""What may match other characters: any one, classes that are negated or of Unicode, and flags such as that of case."""


class PatternError(ValueError):
    """A pattern that RE2 does not take."""


class Pattern(NamedTuple):
    """A regular expression that is ready."""

    expression: Any
    """As RE2 compiled it."""
    program: int
    """Instructions of its two programs, of which one goes through the text from the end."""
    is_ascii: bool
    """Whether nothing beyond ASCII can match: the bytes of other characters lead back to the first state."""

    def units(self, characters: int, bytes_each: float = 1) -> int:
        """Return what a search costs at most (`cost.BUDGET`) in a text of so many characters, so many bytes each."""
        length = characters if self.is_ascii else int(characters * bytes_each)
        return _FIXED_UNITS + int(max(length, _SHORTEST) * self.program * _UNITS_A_STEP)

    def is_in(self, text: bytes) -> bool:
        """Return whether a part of a text in UTF-8 matches."""
        return self.expression.search(text) is not None


def read_pattern(text: str) -> Pattern:
    """Return the pattern. Raises `PatternError`, in RE2's words."""
    options = _re2.Options()
    options.max_mem = MEMORY_BYTES
    options.log_errors = False
    options.never_capture = True
    try:
        found = _re2.compile(text.encode(errors="surrogatepass"), options)
    except _re2.error as error:
        (problem,) = error.args
        raise PatternError(problem.decode(errors="replace") if isinstance(problem, bytes) else str(problem)) from None
    return Pattern(found, max(found.programsize, found.reverseprogramsize), _is_ascii(text))


def _is_ascii(text: str) -> bool:
    return text.isascii() and _BEYOND_ASCII.search(_ESCAPED_MARK.sub("", text)) is None


class Fault(NamedTuple):
    """A literal that cannot be used."""

    at: Place
    words: str


def faults(tree: Node) -> Iterator[Fault]:
    """Yield the literals that can never be read, and what stands in the place of a literal."""
    for node in tree.walk():
        if node.kind == "call":
            for index, read in _READ.get(node.name, ()):
                if index < len(node.parts):
                    yield from _fault(node, node.parts[index], read)
            if node.name == "_[_]":
                yield from _velocity_fault(*node.parts)
        elif node.kind in ("select", "has"):
            yield from _velocity_fault(node.parts[0], Node("constant", node.at, node.type, value=node.name))


def readable(tree: Node) -> Node:
    """Return the tree with the literals of `cidr` as networks without host bits, as lists have them."""
    parts = tuple(map(readable, tree.parts))
    if tree.kind == "call" and tree.name == "cidr" and parts[1].kind == "constant":
        value = canonical("address", parts[1].value)
        parts = (parts[0], parts[1] if value is None else parts[1]._replace(value=value))
    return tree._replace(parts=parts) if parts else tree


def _fault(call: Node, literal: Node, read: Callable[[str], str | None]) -> Iterator[Fault]:
    if call.name in ("duration", "timestamp") and literal.type.name != "string":
        return
    if literal.kind != "constant":
        yield Fault(literal.at, _NEEDS[call.name])
        return
    problem = read(literal.value)
    if problem is not None:
        yield Fault(literal.at, problem)


def _network(text: str) -> str | None:
    if canonical("address", text) is not None:
        return None
    return f'{text!r} is not an address or network: write one such as "10.0.0.0/8"'


def _pattern(text: str) -> str | None:
    try:
        read_pattern(text)
    except PatternError as error:
        return f"the regular expression {text!r} cannot be used (RE2): {error}"
    return None


def _by(read: Callable[[str], object]) -> Callable[[str], str | None]:
    def problem(text: str) -> str | None:
        try:
            read(text)
        except EvaluationError as error:
            return str(error).replace("a text is", f"{text!r} is", 1)
        return None

    return problem


def _any(_: str) -> None:
    return None


_ZONED = (
    *("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear"),
    *("getHours", "getMinutes", "getSeconds", "getMilliseconds"),
)
_READ: Final[Mapping[str, tuple[tuple[int, Callable[[str], str | None]], ...]]] = {
    "cidr": ((1, _network),),
    "matches": ((1, _pattern),),
    "duration": ((0, _by(read_duration)),),
    "timestamp": ((0, _by(read_timestamp)),),
    "in_list": ((0, _any),),
    "present": ((0, _any),),
    **{name: ((1, _by(read_time_zone)),) for name in _ZONED},
}
"""Function -> which of its arguments are literals, and how each is read."""
_NEEDS: Final = {
    "cidr": 'cidr() needs a network in quotes, such as "10.0.0.0/8"',
    "matches": "matches() needs a regular expression in quotes, so that its cost is known",
    "duration": "duration() needs one text in quotes",
    "timestamp": "timestamp() needs one text in quotes",
    "in_list": "in_list() needs one name in quotes",
    "present": "present() needs one name in quotes",
    **dict.fromkeys(_ZONED, 'a time zone must be in quotes, such as "Europe/Paris"'),
}


def _velocity_fault(operand: Node, index: Node) -> Iterator[Fault]:
    """Yield the fault of a key in a map of velocity that is not a known subject, count or window in quotes."""
    known = _below(operand)
    if known is None:
        return
    shown = ", ".join(f'"{name}"' for name in known)
    if index.kind != "constant":
        yield Fault(index.at, f"write one of {shown}: what is asked of velocity must be known before")
    elif index.value not in known:
        yield Fault(index.at, f"there is no {index.value!r} in velocity here: write one of {shown}")


def _below(node: Node) -> tuple[str, ...] | None:
    """Return the keys of a map of velocity; `None` for anything else."""
    path = _path(node)
    match path:
        case None:
            return None
        case ():
            return SUBJECTS
        case (subject,):
            kinds = {str(name): others for name, others in OTHERS.items()}.get(subject)
            return None if kinds is None else ("events", *kinds)
        case _:
            return tuple(WINDOWS) if len(path) == 2 else None


def _path(node: Node) -> tuple[str, ...] | None:
    """Return the path of an expression in `velocity`; `None` for any other expression."""
    if node.kind == "name" and node.name.partition(".")[0] == "velocity":
        return tuple(node.name.split(".")[1:])
    if node.kind == "call" and node.name == "_?_:_":
        return _path(node.parts[1]) or _path(node.parts[2])
    if node.kind == "select" or (node.kind == "call" and node.name == "_[_]" and node.parts[1].kind == "constant"):
        outer = _path(node.parts[0])
        return None if outer is None else (*outer, node.name if node.kind == "select" else str(node.parts[1].value))
    return None


class _Domain(NamedTuple):
    """The set of texts that a value may have."""

    called: str
    """What such a text is."""
    includes: Callable[[str], bool]
    examples: tuple[str, ...] = ()
    """All of them, where they can be shown."""
    spelling: Callable[[str], str | None] | None = None
    """The one spelling of a text; `None` for one that is no such text."""


def _one_of(called: str, names: tuple[str, ...]) -> _Domain:
    return _Domain(called, frozenset(names).__contains__, names)


def _is_country(text: str) -> bool:
    return text in country_codes()


def _by_form(form: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: form.fullmatch(text) is not None


def _spelled(called: str, read: Callable[[str], str | None]) -> _Domain:
    """Return the domain of texts in the one spelling that `read` returns."""

    def is_spelled(text: str) -> bool:
        return read(text) == text

    return _Domain(called, is_spelled, spelling=read)


def _system(text: str) -> str:
    """Return a common system in the spelling of events; any other text as it is: there are many systems."""
    return _systems().get(text.casefold(), text)


@cache
def _systems() -> dict[str, str]:
    from svc.identify.useragent.systems import HINTED_SYSTEMS  # noqa: PLC0415  its package has the parser of user agents, which commands do not load

    return {said.casefold(): name for said, name in HINTED_SYSTEMS.items()}


_SIGNALS = _one_of("a signal", tuple(CATALOG))
_GROUPS = _one_of("a group of signals", tuple(GROUPS))
_DOMAINS: Final[dict[str, _Domain]] = {
    "level": _one_of("a level", get_args(Level)),
    "signals": _SIGNALS,
    "groups": _GROUPS,
    "visitor.id": _Domain("a visitor id (20 letters and digits)", is_visitor_id),
    "account.id": _Domain("an account id", _by_form(ACCOUNT_ID)),
    "action": _Domain("an action (lower-case letters, digits, _ . -; a letter first)", _by_form(ACTION)),
    "platform": _one_of("a platform", get_args(Platform)),
    "origin": _spelled("an origin such as https://shop.example, without a path", normalize_origin),
    "address.ip": _spelled("an address", parse_ip),
    "address.country": _Domain("a country by ISO 3166-1, such as GB or DE in capitals", _is_country),
    "address.asn": _spelled("a number of a network, without AS", partial(canonical, "asn")),
    "address.anonymity_network": _one_of("an anonymity network", get_args(AnonymityNetwork)),
    "os": _spelled("a system", _system),
    "device_kind": _one_of("a kind of device", get_args(DeviceKind)),
    "visitor_kind": _one_of("a kind of visitor", get_args(VisitorKind)),
    "labels.visitor": _one_of("a label", LABELS),
    "labels.account": _one_of("a label", LABELS),
}
"""Of a variable, or of the elements of one that is a list."""
_ENVIRONMENTS: Final[dict[EnvironmentKind, _Domain]] = {
    "live": _one_of("an environment of these rules", ENVIRONMENTS[:1]),
    "test": _one_of("an environment of these rules", ENVIRONMENTS[1:]),
}
_FEW: Final = 6
"""Texts of a domain that are all shown."""


class _Range(NamedTuple):
    """The whole numbers that a value may be."""

    least: int
    largest: int
    said: str
    """In words."""


def _parts(field: str, name: str, least: int, largest: int, first: str = "") -> dict[str, _Range]:
    """Return the range of a part of a time, by the overloads that ask for it."""
    found = _Range(least, largest, f"{name}() is {least} to {largest}{first}")
    return dict.fromkeys((f"timestamp_to_{field}", f"timestamp_to_{field}_with_tz", f"timestamp_to_{field}_tz"), found)


_COUNTS: Final = _Range(0, MOST, f"a count of velocity is 0 to {MOST}")
_RANGES: Final = {"visitor.confidence": _Range(0, 100, "it is 0 to 100")}
_PARTS: Final = {
    **_parts("month", "getMonth", 0, 11, ", and January is 0"),
    **_parts("day_of_month_1_based", "getDate", 1, 31),
    **_parts("day_of_month", "getDayOfMonth", 0, 30, ", and the first is 0"),
    **_parts("day_of_week", "getDayOfWeek", 0, 6, ", and Sunday is 0"),
    **_parts("day_of_year", "getDayOfYear", 0, 365, ", and January 1 is 0"),
    **_parts("hours", "getHours", 0, 23),
    **_parts("minutes", "getMinutes", 0, 59),
    **_parts("seconds", "getSeconds", 0, 59),
    **_parts("milliseconds", "getMilliseconds", 0, 999),
}
_TURNED: Final = {"_<_": "_>_", "_<=_": "_>=_", "_>_": "_<_", "_>=_": "_<=_", "_==_": "_==_", "_!=_": "_!=_"}


def warnings(tree: Node, kind: EnvironmentKind) -> list[str]:
    """Return a sentence for each literal that no event of this kind of environment can have."""
    return list(dict.fromkeys(_Looking(kind).at(tree, {})))


class _Looking:
    def __init__(self, kind: EnvironmentKind) -> None:
        self._domains = {**_DOMAINS, "environment": _ENVIRONMENTS[kind]}

    def at(self, node: Node, scope: Mapping[str, str]) -> Iterator[str]:
        """Yield warnings about a node. `scope`: name of an element of a macro -> the variable that it is of."""
        inner = scope
        if node.kind == "macro":
            inner = {**scope, node.variable: self._variable(node.parts[0], scope)}
        if node.kind == "call":
            yield from self._call(node, scope)
        for index, part in enumerate(node.parts):
            yield from self.at(part, inner if index else scope)

    def _variable(self, node: Node, scope: Mapping[str, str]) -> str:
        if node.kind == "name":
            return scope.get(node.name, node.name)
        if node.kind == "macro" and node.name == "filter":
            return self._variable(node.parts[0], scope)
        return ""

    def _call(self, node: Node, scope: Mapping[str, str]) -> Iterator[str]:
        if len(node.parts) != 2:
            return
        left, right = node.parts
        if node.name == "@in":
            if left.kind == "constant" and right.kind == "name":
                yield from self._compared(right, left, scope)
            elif right.kind == "list":
                for one in right.parts:
                    yield from self._compared(left, one, scope)
                    yield from self._ranged(left, "_==_", one, scope)
        elif node.name in ("_==_", "_!=_"):
            yield from self._compared(left, right, scope)
            yield from self._compared(right, left, scope)
        if node.name in _TURNED:
            yield from self._ranged(left, node.name, right, scope)
            yield from self._ranged(right, _TURNED[node.name], left, scope)

    def _compared(self, value: Node, literal: Node, scope: Mapping[str, str]) -> Iterator[str]:
        name = self._variable(value, scope)
        domain = self._domains.get(name)
        if domain is None or literal.kind != "constant" or not isinstance(literal.value, str):
            return
        if domain.includes(literal.value):
            return
        other = next((of for of in ("signals", "groups") if self._domains[of].includes(literal.value)), None)
        if name in ("signals", "groups") and other is not None:
            hint = f'; it is {self._domains[other].called}: write "{literal.value}" in {other}'
        else:
            spelled = None if domain.spelling is None else domain.spelling(literal.value)
            if spelled is not None:
                yield f'{_at(literal)}: no event has {literal.value!r} there: write "{spelled}"'
                return
            few = domain.examples if len(domain.examples) <= _FEW else ()
            near = few or get_close_matches(literal.value, domain.examples, 1)
            hint = f"; write {_listed(near)}" if near else ""
        yield f"{_at(literal)}: no event has {literal.value!r} there, since it is not {domain.called}{hint}"

    def _ranged(self, value: Node, operator: str, literal: Node, scope: Mapping[str, str]) -> Iterator[str]:
        found = self._range(value, scope)
        if found is None or literal.kind != "constant" or type(literal.value) is not int:
            return
        number, (least, largest, said) = literal.value, found
        is_beyond = not least <= number <= largest or (number, operator) in ((least, "_<_"), (largest, "_>_"))
        if is_beyond and operator != "_!=_":
            yield f"{_at(literal)}: {said}, so that a comparison with {number} is the same for every event"

    def _range(self, value: Node, scope: Mapping[str, str]) -> _Range | None:
        path = _path(value)
        if path is not None and len(path) == 3:
            return _COUNTS
        return _PARTS.get(value.overload) or _RANGES.get(self._variable(value, scope))


def _listed(names: tuple[str, ...] | list[str]) -> str:
    *others, last = (f'"{name}"' for name in names)
    return f"{', '.join(others)} or {last}" if others else last


def _at(node: Node) -> str:
    return f"line {node.at[0]}, column {node.at[1]}"
