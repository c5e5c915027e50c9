"""What an adapter reads, as a table of (canonical field ← path, converter), and the one engine that reads through it.

What may live here: paths, the order of evaluation, the bounded walk for what no attribute claims (`path=value` leaves),
and the fields that any report may have at its top level. Nothing here knows the shape of a particular report.

A converter is a total function of JSON values. `None` as a value means "not there", as a result "not said"; it is not
called when all its values are `None`. The first sentence of its docstring gives type, unit and bounds of what it reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Any, NamedTuple

import msgspec

from svc.identify.model import Attribute, Claims
from svc.identify.report import values
from svc.identify.report.values import digest, entries_of, is_unicode, members, scalar_text

Signals = dict[str, Any]
REST = "rest"
"""Fields of this name, of which a table may have several, give lists of `path=value` leaves for near comparison."""
UNKNOWN = "unknown"
"""A field of this name gives (name, value) pairs that are walked for leaves before the unknown members."""

_BRACES = re.compile(r"(.*)\{(.*)\}(.*)")
_DESCRIPTION = re.compile(r"(\[\]|\.\(|\.\*).*")
"""The end of a path that says what the converter reads of the value that it gets."""


class Reading(msgspec.Struct):
    """What one adapter read of a report, before the adapters are joined. No value in it is `None`."""

    collector: str
    claims: Signals
    """Fields of `Claims` by name."""
    attributes: dict[Attribute, str]
    """Canonical text, without the collector's prefix."""
    parts: Signals
    """Everything else by name, such as `frame`, `plugin_names` and `device_id`."""
    rest: list[str]
    """`path=value` leaves that no attribute claims."""


def first_part(readings: Sequence[Reading], name: str) -> Any:
    """Return the part of that name of the first reading that has one, else `None`."""
    for reading in readings:
        if name in reading.parts:
            return reading.parts[name]
    return None


class Field(NamedTuple):
    """A canonical field, where it stands in the report, and how it is converted."""

    name: Attribute | str
    """An attribute, a field of `Claims`, `REST`, or by any other name a part of the reading."""
    paths: list[str]
    """One for each value that the converter gets."""
    convert: Callable[..., Any]


def fields(convert: Callable[..., Any], **paths: str) -> list[Field]:
    """The fields that one converter gives, by name (capitals: an attribute), each with its paths joined by ` + `.

    Each path gives the converter one value. `a.b` is member `b` of `a`; `a.{b,c}` both members, two values; `a|b.c` of
    the first that is an object with members. `a.(b,c)` is `a` itself, of which the converter reads `b` and `c`; `a.*`
    likewise, all members; `a[].b` is the list `a`, of whose entries it reads `b`. `@a` is the claim `a` of this table.
    """
    return [
        Field(
            Attribute[name] if name.isupper() else name,
            [one for path in written.split(" + ") for one in _expanded(path)],
            convert,
        )
        for name, written in paths.items()
    ]


def _expanded(path: str) -> list[str]:
    found = _BRACES.fullmatch(path)
    return [path] if found is None else [f"{found[1]}{name}{found[3]}" for name in found[2].split(",")]


def _keys(path: str) -> list[str]:
    return _DESCRIPTION.sub("", path).split(".")


class FieldTable:
    """The fields of one adapter, and a function made of them: straight code reads twice as fast as a loop over rows.

    Fields of one value are read first, then those of several. `absent`: texts that the collector writes where a value
    is missing.
    """

    def __init__(self, *columns: list[Field], absent: frozenset[str] = frozenset()) -> None:
        self.fields = [field for column in columns for field in column]
        paths = [path for field in self.fields for path in field.paths if path[0] != "@"]
        self.names = frozenset(name for path in paths for name in _keys(path)[0].split("|"))
        """Members that are read of the object given to `read`."""
        code = _Code(absent)
        for field in sorted(self.fields, key=lambda field: len(field.paths) > 1):
            code.add(field)
        self._read = code.compiled()

    def read(self, collector: str, root: Signals) -> Reading:
        """Return every field of this table that `root`, any JSON object, holds in a usable form. Never raises."""
        reading = Reading(collector, {}, {}, {}, [])
        self._read(root, reading.claims, reading.attributes, reading.parts, reading.rest)
        return reading


class _Code:
    """Source of a function that reads a report. It spells out a table's keys, and refers to all else by number."""

    def __init__(self, absent: frozenset[str]) -> None:
        self._known: dict[str, Any] = {"absent": absent, "no_members": {}}
        self._objects: dict[tuple[str, ...], str] = {(): "root"}
        self._lines = ["def read(root, claims, attributes, parts, rest):"]

    def add(self, field: Field) -> None:
        """Read the field's values, and convert them unless they are all missing."""
        values = [f"value{number}" for number in range(len(field.paths))]
        for value, path in zip(values, field.paths, strict=True):
            *parents, key = _keys(path)
            found = f"claims.get({path[1:]!r})" if path[0] == "@" else f"{self._object(tuple(parents))}.get({key!r})"
            self._lines.append(f" {value} = {found}")
            if self._known["absent"]:
                self._lines.append(f" if {value}.__class__ is str and {value} in absent: {value} = None")
        row = len(self._lines)
        self._known[f"convert{row}"], self._known[f"name{row}"] = field.convert, field.name
        store = "attributes" if isinstance(field.name, Attribute) else "parts"
        store = "claims" if field.name in Claims.__struct_fields__ else store
        self._lines += [
            f" if {' or '.join(f'{value} is not None' for value in values)}:",
            f"  found = convert{row}({', '.join(values)})",
            "  if found is not None: " + ("rest += found" if field.name == REST else f"{store}[name{row}] = found"),
        ]

    def _object(self, names: tuple[str, ...]) -> str:
        """Return the variable that holds the object at this path, or an empty one if there is none."""
        if names not in self._objects:
            holder = self._object(names[:-1])
            self._objects[names] = found = f"object{len(self._objects)}"
            first, *others = names[-1].split("|")
            self._lines.append(f" {found} = {holder}.get({first!r})")
            for name in others:
                self._lines.append(
                    f" if {found}.__class__ is not dict or not {found}: {found} = {holder}.get({name!r})"
                )
            self._lines.append(f" if {found}.__class__ is not dict: {found} = no_members")
        return self._objects[names]

    def compiled(self) -> Callable[..., None]:
        exec("\n".join(self._lines), self._known)  # noqa: S102 -- names and keys of tables in this package, quoted
        return self._known["read"]


class ReportPart(NamedTuple):
    """The part of a report that one collector made."""

    root: Signals
    """The object that the paths of the adapter's table start from."""
    unknown: Iterable[tuple[str, Any]] = ()
    """Members that the table does not read, to be walked for leaves."""


def _nothing(_: Reading) -> None: ...


class Adapter(NamedTuple):
    """How the reports of one collector are recognized and read."""

    name: str
    """Prefix of every attribute's value, and what events call the collector."""
    where: str
    """What the paths of the table start from."""
    find: Callable[[Signals, set[str]], ReportPart | None]
    """The collector's part of a report, or `None`: by marks, before anything is walked. Gets the members that earlier
    adapters took, and adds those that no later one may read."""
    table: FieldTable
    complete: Callable[[Reading], object] = _nothing
    """Adds what follows from what was read; `False`: too little, it is not a report of this collector."""

    def read(self, signals: Signals, taken: set[str]) -> Reading | None:
        """Return what the collector says in a report of any shape; `None` if it is not its report. Never raises.
        `taken` has the members that earlier adapters took, and gains those that no later one may read.
        """
        part = self.find(signals, taken)
        if part is None:
            return None
        reading = self.table.read(self.name, part.root)
        if self.complete(reading) is False:
            return None
        if part.unknown:
            reading.rest += leaves_of(chain(reading.parts.get(UNKNOWN, ()), part.unknown))
        return reading


MAX_VISITED = 1_024
"""Values looked at, whatever their number in the report."""
MAX_FOUND = 128
MAX_DEPTH = 6
MAX_KEY = 64
LONGEST_VALUE = 96
"""Longer values are hashed."""

_VOLATILE = re.compile(
    r"""
      time(?!zone) | date(?!timelocale) | duration | elapsed | latency | (?:^|_)now$
    | nonce | random | uuid | guid | session(?!storage) | token | cookie(?!s?enabled) | fingerprint$
    | battery | charging | online | visib | focus | connection | network | rtt$ | downlink | (?:^|_)ip(?:$|_)
    | heap | quota | usage | scroll | mouse | cursor | (?:inner|outer|client|page)(?:width|height)
    | orientation | referrer | url$ | href | location | version | useragent | history
    """,
    re.VERBOSE,
)
_IDENTIFIER = re.compile(r"(?:^|_)(?:id|ids|ID)$|[a-z]I[dD]$")


def leaves_of(pairs: Iterable[tuple[str, Any]]) -> list[str]:
    """Return the leaves under (name, JSON value) pairs as `path=value`, at most `MAX_FOUND`, in no promised order."""
    walk = _Walk()
    walk.visit_members("", pairs, 1)
    return walk.found


@lru_cache(maxsize=4096)
def _steady_name(key: str) -> str | None:
    """Return the key; `None` if it names what changes while the device stays the same: times, tokens, batteries."""
    if not is_unicode(key) or _VOLATILE.search(key.lower()) is not None or _IDENTIFIER.search(key) is not None:
        return None
    return key


class _Walk:
    __slots__ = ("found", "left")

    def __init__(self) -> None:
        self.found: list[str] = []
        self.left = MAX_VISITED

    def visit_members(self, prefix: str, pairs: Iterable[tuple[str, Any]], depth: int) -> None:
        for key, value in islice(pairs, MAX_VISITED):
            name = _steady_name(key if len(key) <= MAX_KEY else key[:MAX_KEY])
            if name is not None and not self._visit(prefix + name, value, depth):
                return

    def _visit(self, path: str, value: Any, depth: int) -> bool:
        """Add a value's leaves; return whether more may be added."""
        self.left -= 1
        found = self.found
        if self.left < 0 or len(found) >= MAX_FOUND:
            return False
        kind = value.__class__
        if kind is str and 0 < len(value) <= LONGEST_VALUE and value.isascii():
            found.append(f"{path}={value}")
        elif kind is dict or kind is list:
            if depth < MAX_DEPTH:
                self._visit_inside(path, value, depth + 1)
        elif value is not None:
            shown = scalar_text(value)
            if shown is not None:
                found.append(f"{path}={shown if kind is not str or len(shown) <= LONGEST_VALUE else digest(shown)}")
        return True

    def _visit_inside(self, path: str, value: Any, depth: int) -> None:
        if type(value) is dict:
            self.visit_members(path + ".", members(value).items(), depth)
            return
        # Without the position: a list that gained one entry stays near to what it was.
        for inner in entries_of(value):
            if not self._visit(path + "[]", inner, depth):
                return


IN_ANY_REPORT = FieldTable(
    fields(
        values.text_of(64, shortest=16),
        **{name: name for name in ("client_token", "client_token_before")},
    ),
    fields(values.text_of(128, shortest=8), nonce="nonce"),
    fields(
        values.text_of(128),
        **{name: name for name in ("client_key", "client_proof", "client_key_before", "client_proof_before")},
    ),
    fields(values.flag, **{name: name for name in ("client_token_is_new", "incognito", "developer_tools")}),
    fields(values.epoch_ms, collected_at_ms="collected_at"),
    fields(values.when("deferred", result=True), deferred="tier"),
)
"""Fields of `Report` that stand at the top level."""

NOT_OF_THE_DEVICE = IN_ANY_REPORT.names | {
    "attestation",
    "botd",
    "components",
    "thumbmark",
    "fpscanner",
    "probes",
    "visitorId",
    "requestId",
    "confidence",
    "tag",
}
"""Members of a report that are about the visit, or that another collector put there."""
