"""Conditions that nobody would write: drawn from the grammar of what can be saved, of any type and size.

Used by `bench.rules`, which searches for conditions that cost more than the model says, and by the test that compares
evaluations with those of the language's own runtime.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random

from svc.features.rules.language.language import VARIABLES
from svc.identify.velocity.counts import OTHERS, WINDOWS

STRINGS = [name for name, of in VARIABLES.items() if of == "string"]
NUMBERS = [name for name, of in VARIABLES.items() if of == "int"]
TRUTHS = [name for name, of in VARIABLES.items() if of == "bool"]
LISTS = [name for name, of in VARIABLES.items() if of == "list(string)"]
WORDS = (
    "", "tor", "vpn", "low", "a", "aaaaaaaa", "Ä é", "10.1.2.3", "sign_up", "7", "-3", "2026-01-01T00:00:00Z", "1h",
)  # fmt: skip
PATTERNS = (
    "a", "^(low|medium)$", "[0-9]+", "(a|b)*a(a|b){6}", "\\w+\\d\\w{5}z", "(a?){9}a{9}c", "(?i)TOR", "é|ä", "^$", ".*x",
    "[ab]*a[ab]{9}c", "(a{1,5}){1,5}b", "(.*a){4}z", "x{3,20}y",
)  # fmt: skip
NETWORKS = ("10.0.0.0/8", "10.1.2.3", "2001:db8::/32", "::ffff:10.0.0.0/104", "0.0.0.0/0")
TIMES = ("2026-01-01T00:00:00Z", "1999-12-31T23:59:59.5+01:00", "2026-07-01T12:00:00Z")
DURATIONS = ("1h", "90m", "-24h", "1.5s", "250ms", "0s")
ZONES = ("UTC", "Europe/Paris", "+05:30", "America/New_York")
FIELDS = (
    *("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear"),
    *("getHours", "getMinutes", "getSeconds", "getMilliseconds"),
)


class Grammar:
    """Draws expressions. `depth`: how far they may be within each other."""

    def __init__(self, random: Random, depth: int = 4) -> None:
        self._random = random
        self._depth = depth
        self._elements: list[str] = []

    def condition(self) -> str:
        """Return an expression that is true or false."""
        return self.truth(self._depth)

    def truth(self, depth: int) -> str:
        """Return one of the type `bool`."""
        if depth <= 0:
            return self._one("true", "false", *TRUTHS, f"present({_quoted(self._one(*VARIABLES))})")
        return self._drawn(
            lambda: f"({self.truth(depth - 1)} && {self.truth(depth - 1)})",
            lambda: f"({self.truth(depth - 1)} || {self.truth(depth - 1)})",
            lambda: f"!({self.truth(depth - 1)})",
            lambda: f"({self.truth(depth - 1)} ? {self.truth(depth - 1)} : {self.truth(depth - 1)})",
            lambda: f"{self.number(depth - 1)} {self._relation()} {self.number(depth - 1)}",
            lambda: f"{self.string(depth - 1)} {self._relation()} {self.string(depth - 1)}",
            lambda: f"{self.decimal(depth - 1)} {self._relation()} {self.decimal(depth - 1)}",
            lambda: f"{self.time(depth - 1)} {self._relation()} {self.time(depth - 1)}",
            lambda: f"{self.duration(depth - 1)} {self._relation()} {self.duration(depth - 1)}",
            lambda: f"{self.strings(depth - 1)} == {self.strings(depth - 1)}",
            lambda: f"{self.string(depth - 1)} in {self.strings(depth - 1)}",
            lambda: f"{self.number(depth - 1)} in {self.numbers(depth - 1)}",
            lambda: (
                f"{self.string(depth - 1)}.{self._one('contains', 'startsWith', 'endsWith')}({self.string(depth - 1)})"
            ),
            lambda: f"{self.string(depth - 1)}.matches({_quoted(self._one(*PATTERNS))})",
            lambda: f"cidr({self._one('address.ip', self.string(depth - 1))}, {_quoted(self._one(*NETWORKS))})",
            lambda: f'in_list("{self._one("blocked_visitors", "trusted_visitors")}")',
            lambda: self._macro(self._one("exists", "all", "exists_one"), depth),
            lambda: f"{_quoted(self._one('24h', '7d'))} in {self.windows()}",
        )

    def number(self, depth: int) -> str:
        """Return one of the type `int`."""
        if depth <= 0:
            return self._one("0", "1", "-7", "40", "9223372036854775807", *NUMBERS, f"{self.windows()}{self._window()}")
        return self._drawn(
            lambda: f"({self.number(depth - 1)} {self._one('+', '-', '*', '/', '%')} {self.number(depth - 1)})",
            lambda: f"-({self.number(depth - 1)})",
            lambda: f"size({self._one(self.string(depth - 1), self.strings(depth - 1))})",
            lambda: f"int({self._one(self.string(depth - 1), self.decimal(depth - 1), self.time(depth - 1))})",
            lambda: f"{self.windows()}{self._window()}",
            lambda: f"{self.numbers(depth - 1)}[{self._one('0', '1', '5')}]",
            lambda: f'{{"a": {self.number(depth - 1)}, "tor": 1}}[{self.string(depth - 1)}]',
            lambda: f"{self.time(depth - 1)}.{self._one(*FIELDS)}({self._one('', _quoted(self._one(*ZONES)))})",
            lambda: f"{self.duration(depth - 1)}.{self._one(*FIELDS[-4:])}()",
            lambda: f"({self.truth(depth - 1)} ? {self.number(depth - 1)} : {self.number(depth - 1)})",
        )

    def decimal(self, depth: int) -> str:
        """Return one of the type `double`."""
        if depth <= 0:
            return self._one("0.0", "1.5", "-2.25", "1e300")
        return self._drawn(
            lambda: f"({self.decimal(depth - 1)} {self._one('+', '-', '*', '/')} {self.decimal(depth - 1)})",
            lambda: f"double({self.number(depth - 1)})",
            lambda: f"-({self.decimal(depth - 1)})",
        )

    def string(self, depth: int) -> str:
        """Return one of the type `string`."""
        if depth <= 0:
            return self._one(*STRINGS, *self._elements, *map(_quoted, WORDS))
        return self._drawn(
            lambda: f"({self.string(depth - 1)} + {self.string(depth - 1)})",
            lambda: f"string({self._one(self.number(depth - 1), self.truth(depth - 1), self.duration(depth - 1))})",
            lambda: f"{self.strings(depth - 1)}[{self._one('0', '1', '3')}]",
            lambda: f"({self.truth(depth - 1)} ? {self.string(depth - 1)} : {self.string(depth - 1)})",
            lambda: self.string(0),
        )

    def strings(self, depth: int) -> str:
        """Return one of the type `list(string)`."""
        if depth <= 0:
            return self._one(*LISTS, '["tor", "a"]')
        return self._drawn(
            lambda: f"[{', '.join(self.string(depth - 1) for _ in range(self._random.randint(1, 4)))}]",
            lambda: f"({self.strings(depth - 1)} + {self.strings(depth - 1)})",
            lambda: self._macro("filter", depth),
            lambda: self._mapped(depth),
            lambda: self.strings(0),
        )

    def numbers(self, depth: int) -> str:
        """Return one of the type `list(int)`."""
        return f"[{', '.join(self.number(depth - 1) for _ in range(self._random.randint(1, 4)))}]"

    def time(self, depth: int) -> str:
        """Return one of the type `timestamp`."""
        if depth <= 0:
            return self._one("now", *(f"timestamp({_quoted(text)})" for text in TIMES))
        return self._drawn(
            lambda: f"({self.time(depth - 1)} {self._one('+', '-')} {self.duration(depth - 1)})",
            lambda: f"timestamp({self.number(depth - 1)})",
            lambda: self.time(0),
        )

    def duration(self, depth: int) -> str:
        """Return one of the type `duration`."""
        if depth <= 0:
            return f"duration({_quoted(self._one(*DURATIONS))})"
        return self._drawn(
            lambda: f"({self.time(depth - 1)} - {self.time(depth - 1)})",
            lambda: f"({self.duration(depth - 1)} {self._one('+', '-')} {self.duration(depth - 1)})",
            lambda: self.duration(0),
        )

    def windows(self) -> str:
        """Return one of the type `map(string, int)`."""
        subject = self._one(*OTHERS)
        kind = self._one("events", *OTHERS[subject])  # type: ignore[index]
        return self._one(f"velocity.{subject}.{kind}", f'velocity["{subject}"].{kind}')

    def _window(self) -> str:
        return f'["{self._one(*WINDOWS)}"]'

    def _relation(self) -> str:
        return self._one("==", "!=", "<", "<=", ">", ">=")

    def _macro(self, name: str, depth: int) -> str:
        sequence, element = self.strings(depth - 1), f"e{len(self._elements)}"
        self._elements.append(element)
        found = f"{sequence}.{name}({element}, {self.truth(depth - 1)})"
        self._elements.pop()
        return found

    def _mapped(self, depth: int) -> str:
        sequence, element = self.strings(depth - 1), f"e{len(self._elements)}"
        self._elements.append(element)
        condition = self._one("", f"{self.truth(depth - 2)}, ")
        found = f"{sequence}.map({element}, {condition}{self.string(depth - 2)})"
        self._elements.pop()
        return found

    def _one(self, *choices: str) -> str:
        return self._random.choice(choices)

    def _drawn(self, *choices: Callable[[], str]) -> str:
        return self._random.choice(choices)()


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def conditions(seed: int, count: int, depths: Sequence[int] = (1, 2, 3, 4), longest: int = 2_000) -> list[str]:
    """Return different conditions of at most `longest` characters; the same for the same seed."""
    random = Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        text = Grammar(random, random.choice(depths)).condition()
        if len(text) <= longest:
            found[text] = None
    return list(found)
