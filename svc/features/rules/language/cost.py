"""What a condition may cost: an upper bound in units, from its checked tree alone.

What may live here: the sizes that variables may have, and the price of each kind of node, after the cost model that
Kubernetes has for the same language. A unit is a tenth of a microsecond of CPU on the machine of `bench.rules`, which
searches for conditions that cost more than is said here (docs/adr/0171).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from svc.features.rules.language.evaluators import STRING_UNITS, searched_units
from svc.features.rules.language.literals import PatternError, read_pattern
from svc.features.rules.language.tree import Node
from svc.identify.scoring.signals import CATALOG, GROUPS

UNITS_A_MS: Final = 10_000
BUDGET: Final = 2 * UNITS_A_MS
"""Of a ruleset for one event (decisions 13.4)."""
FILTER_BUDGET: Final = BUDGET // 10
"""Of the filter of one webhook endpoint, of which an organization has ten."""
_HASHED_UNITS: Final = 50
"""Characters of a key that is looked up for one unit."""
CONDITION_UNITS: Final = 8
"""Of a condition, whatever it asks; an evaluation that fails takes as much."""
LIST_UNITS: Final = 100
"""A list that is asked: the rows that are read. Each list is asked once for an event, whatever names it."""
PREFIX_UNITS: Final = 30
"""A prefix length of a list of addresses and networks that is asked: a row of its own."""


class Size(NamedTuple):
    """How large a value may be: characters of a text, elements of a list or map; 1 of any other."""

    length: int
    element: Size | None = None
    bytes_each: int = 1
    """Of a text: bytes of a character in UTF-8, at most."""


ONE: Final = Size(1)
_WORD, _NAME, _WINDOWS = Size(64), Size(256, bytes_each=4), Size(3, Size(3))
_SIZES: Final[dict[str, Size]] = {
    "signals": Size(len(CATALOG), Size(32)),
    "groups": Size(len(GROUPS), Size(32)),
    "account.id": Size(256, bytes_each=4),
    "tag": Size(1_024, bytes_each=4),
    "origin": Size(300),
    "sdk_platform": Size(64, bytes_each=4),
    "address.asn_name": _NAME,
    "agent": _NAME,
    "os": _NAME,
    "velocity": Size(3, Size(4, Size(3))),
    "labels.visitor": Size(2, Size(16)),
    "labels.account": Size(2, Size(16)),
}
_FETCHED: Final[dict[str, int]] = {"velocity": 150, "labels.visitor": 200, "labels.account": 200}
"""Of variables that take more than a look at the event: once for an event."""


class Estimate(NamedTuple):
    """What a part costs at most, and how large its value is."""

    units: int
    size: Size = ONE


def units_of(tree: Node) -> int:
    """Return what an evaluation of a condition costs at most, without the variables and lists that it names."""
    return CONDITION_UNITS + _of(tree, {}).units


def in_ms(units: int) -> str:
    """Return units as milliseconds, in words where there are so many that their number says nothing."""
    return f"{units / UNITS_A_MS:.1f}" if units < 1_000 * UNITS_A_MS else "more than 1,000"


def fetched_units(names: Iterable[str], lists: Mapping[str, int]) -> int:
    """Return what it costs to fetch variables, and lists by name -> prefix lengths that it has."""
    fetched = sum(_FETCHED.get(name, 10 if name.startswith("velocity.") else 2) for name in names)
    return fetched + sum(LIST_UNITS + PREFIX_UNITS * prefixes for prefixes in lists.values())


def _of(node: Node, scope: Mapping[str, Size]) -> Estimate:
    match node.kind:
        case "constant":
            return Estimate(1, Size(len(node.value), bytes_each=4) if isinstance(node.value, str | bytes) else ONE)
        case "name":
            size = scope.get(node.name) or _SIZES.get(node.name) or (_WINDOWS if _is_map(node) else _WORD)
            return Estimate(2, size)
        case "macro":
            return _macro(node, scope)
        case _:
            return _of_parts(node, [_of(part, scope) for part in node.parts])


def _is_map(node: Node) -> bool:
    return node.type.name == "map"


def _macro(node: Node, scope: Mapping[str, Size]) -> Estimate:
    sequence, *parts = node.parts
    over = _of(sequence, scope)
    element = over.size.element or ONE
    if _is_map(sequence):  # its keys: windows and the like, or literals, which are counted with the values
        element = Size(max(16, element.length), bytes_each=4)
    inner = {**scope, node.variable: element}
    each = [_of(part, inner) for part in parts]
    loop = over.size.length * (sum(one.units for one in each) + 4)
    size = ONE
    if node.name == "filter":
        size = Size(over.size.length, element)
    elif node.name == "map":
        size = Size(over.size.length, each[-1].size)
    return Estimate(over.units + loop + 10, size)


def _of_parts(node: Node, parts: list[Estimate]) -> Estimate:
    units = sum(part.units for part in parts)
    sizes = [part.size for part in parts]
    if node.kind in ("list", "map"):
        return Estimate(units + len(parts) + 2, Size(len(parts), _largest(sizes)))
    if node.kind in ("select", "has"):
        return Estimate(units + 2, sizes[0].element or ONE)
    return Estimate(units + _called(node, sizes), _result(node, sizes))


def _called(node: Node, sizes: list[Size]) -> int:  # noqa: C901, PLR0911, PLR0912  a case for each price
    """Return the units of a call without its arguments."""
    match node.overload:
        case "matches" | "matches_string":
            return 5 + _matched(node.parts[-1], sizes[0])
        case "contains_string":
            length, sought = sizes[0].length, sizes[1].length
            return 5 + searched_units(length, min(sought, (length + 1) // 2))
        case "in_list":
            return 5 + sizes[1].length // 3 * (1 + _compared(sizes[1].element or ONE))
        case "equals" | "not_equals":
            return 4 + min(map(_compared, sizes))
        case "add_string" | "add_bytes":
            return 5 + sum(size.length for size in sizes) // STRING_UNITS
        case "add_list":
            return 5 + sum(size.length for size in sizes) // 10
        case "starts_with_string" | "ends_with_string":
            return 5 + sizes[1].length // STRING_UNITS
        case "in_map":
            return 4 + sizes[0].length // _HASHED_UNITS
        case "index_map":
            return 4 + sizes[1].length // _HASHED_UNITS
        case "in_list_of_event" | "present_of_event":
            return 5
        case "cidr_of_event":
            return 30
        case "string_to_timestamp" | "string_to_duration" if node.parts[0].kind == "constant":
            return 0
        case overload if "string" in overload or "bytes" in overload:
            return 10 + sizes[0].length // 20
        case overload if "timestamp" in overload or "duration" in overload:
            return 60 if overload.endswith("_tz") else 15
        case _:
            return 4


def _matched(pattern: Node, text: Size) -> int:
    try:
        return read_pattern(pattern.value).units(text.length, text.bytes_each)
    except (PatternError, AttributeError):  # one of an earlier version, which fails when it is reached
        return 1


def _compared(size: Size) -> int:
    """Return the units of comparing two values of this size."""
    if size.element is None:
        return size.length // STRING_UNITS
    return size.length * (1 + _compared(size.element)) // 3


def _result(node: Node, sizes: list[Size]) -> Size:
    match node.name, sizes:
        case "_?_:_", [_, yes, no]:
            return _largest([yes, no])
        case "_+_", [left, right] if node.type.name in ("string", "bytes", "list"):
            elements = [size.element for size in (left, right) if size.element is not None]
            return Size(
                left.length + right.length,
                _largest(elements) if elements else None,
                max(left.bytes_each, right.bytes_each),
            )
        case "_[_]", [operand, _]:
            return operand.element or ONE
        case (("string" | "bytes"), [operand]):
            return operand._replace(length=max(operand.length * operand.bytes_each, 64), bytes_each=4)
        case _:
            return ONE


def _largest(sizes: list[Size]) -> Size:
    if not sizes:
        return ONE
    elements = [size.element for size in sizes if size.element is not None]
    return Size(
        max(size.length for size in sizes),
        _largest(elements) if elements else None,
        max(size.bytes_each for size in sizes),
    )
