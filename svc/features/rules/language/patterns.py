"""Regular expressions of conditions: compiled once, with a bound on what one may cost.

What may live here: RE2 (github.com/google/re2), whose time is linear in the text. How steep it is depends on the
pattern: where the states of its automaton do not fit into memory, each byte costs the whole program. So the
price of a match is the bytes of the text times the size of the program (docs/adr/0171).
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import re2  # pyright: ignore[reportMissingTypeStubs]

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
        """Return what a search in a text costs at most (`cost.BUDGET`), of this number of characters, with so many
        bytes each.
        """
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
