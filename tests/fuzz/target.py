"""What is fuzzed: a reader of something that strangers send, and what has to hold of whatever it makes of it."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st


class Target(NamedTuple):
    """One reader. It may raise nothing but what it declares, which `read` turns into a value."""

    inputs: st.SearchStrategy[Any]
    read: Callable[[Any], Any]
    """What it makes of an input. Called twice: the same input has to give the same."""
    check: Callable[[Any, Any], None]
    """Asserts what has to hold of an input and what was made of it."""


def size_of(value: Any) -> int:
    """Roughly how much an input is, in bytes or characters."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, dict):
        return sum(size_of(name) + size_of(member) for name, member in value.items())
    if isinstance(value, list | tuple):
        return sum(map(size_of, value))
    return 1


@st.composite
def mutated(draw: st.DrawFn, seeds: Sequence[bytes], pieces: Sequence[bytes] = ()) -> bytes:
    """One of the seeds with some of it replaced, doubled, taken out or cut off; or anything at all."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=200))
    raw = draw(st.sampled_from(seeds))
    piece = st.binary(max_size=6) | st.sampled_from([b"\x00", b"\xff", b"\r\n", *pieces])
    for _ in range(draw(st.integers(0, 5))):
        at = draw(st.integers(0, len(raw)))
        end = at + draw(st.integers(0, 12))
        match draw(st.integers(0, 4)):
            case 0:
                raw = raw[:at] + draw(piece) + raw[end:]
            case 1:
                raw = raw[:at] + draw(piece) + raw[at:]
            case 2:
                raw = raw[:at] + raw[at:end] * 2 + raw[end:]
            case 3 if at < len(raw):
                raw = raw[:at] + bytes([raw[at] ^ 1 << draw(st.integers(0, 7))]) + raw[at + 1 :]
            case _:
                raw = raw[:at] + draw(st.sampled_from(seeds))[at:]
    return raw


def mutated_text(seeds: Sequence[str], pieces: Sequence[str] = ()) -> st.SearchStrategy[str]:
    """The same for text, in which any byte may stand for a character of its own, as in a header."""
    raw = mutated([seed.encode("latin-1") for seed in seeds], [piece.encode("latin-1") for piece in pieces])
    return raw.map(lambda raw: raw.decode("latin-1")) | st.text(max_size=60)


AWKWARD_TEXT = st.sampled_from(
    [
        "\x00",
        "a" * 5_000,
        "(" * 300,
        "İ",
        "\u202e",
        "9" * 400,
        "-1",
        "1e999",
        "null",
        "true",
        "٣",
        "Not;A=Brand",
    ]
) | st.text(string.printable, max_size=30)

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -(10**400), 2**63, 1e308, -0.0, 5e-324])
    | st.floats(allow_nan=False, allow_infinity=False)
    | AWKWARD_TEXT
)
json_values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(max_size=8) | st.sampled_from(["value", "duration", "state"]), inner, max_size=5)
    ),
    max_leaves=12,
)
