"""Identifiers that the system gives a device, and texts that stand in their place on many devices.

What may live here: which text is usable as the identifier of one device. What many devices have would make one visitor
of all of them.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from svc.domain.report.values import text

SHORTEST: Final = 16
"""Characters: an `android_id` has so many, a UUID more. What is shorter can be guessed, or is a name."""
LONGEST: Final = 64
SHARED_IDS: Final = frozenset(
    {
        # Given to every device of some makers (Android issue 10603).
        "9774d56d682e549c",
        # Examples of UUIDs in documentation and standards, copied into programs.
        "e621e1f8c36c495a93fc0c247a3e6e5f",
        "123e4567e89b12d3a456426614174000",
        "123e4567e89b12d3a456426655440000",
        "550e8400e29b41d4a716446655440000",
        "6ba7b8109dad11d180b400c04fd430c8",
        "f81d4fae7dec11d0a76500a0c91e6bf6",
    }
)
"""Identifiers that many devices have, in lower case and without hyphens."""

_FEWEST_CHARACTERS: Final = 5
"""Different ones. Of 16 random hexadecimal digits fewer than so many differ once in two million."""
_STEPS_IN_A_ROW: Final = 2 / 3
"""Of the steps from a character to the next that are equal, as in `123456781234...`: at random, once in ten million."""
_WORDS: Final = re.compile(
    r"unknown|undefined|unavailable|available|placeholder|example|default|null|none|object|android|iphone|emulator"
    r"|simulator"
)
_BUILD: Final = re.compile(r"[a-z0-9_ -]*\b[a-z0-9]{3,5}\.\d{6}\.\d{3}(?:[._-].*)?|.*[/:\s].*", re.DOTALL)
"""Names of a release of the system, such as `AP4A.250105.002.A1`, which some libraries call the id of the device; and
what holds a slash, a colon or a space, as the fingerprint of a build does.
"""


def usable_device_id(*ids: object) -> str | None:
    """The first text of 16 to 64 characters that may be the identifier of one device alone, as it was sent; `None`
    where there is none.
    """
    for one in ids:
        found = text(one, LONGEST, shortest=SHORTEST)
        if found is not None and not _is_of_many_devices(found.lower()):
            return found
    return None


def _is_of_many_devices(device_id: str) -> bool:
    """Whether the text, in lower case, is known to be shared, made by a person, or the name of something else."""
    bare = device_id.replace("-", "")
    return (
        len(bare) < SHORTEST
        or bare in SHARED_IDS
        or len(set(bare)) < _FEWEST_CHARACTERS
        or _is_repetition(bare)
        or _is_counting(bare)
        or _WORDS.search(device_id) is not None
        or _BUILD.fullmatch(device_id) is not None
    )


def _is_repetition(bare: str) -> bool:
    """Whether it is a shorter text, written twice or more often."""
    return bare in (bare + bare)[1:-1]


def _is_counting(bare: str) -> bool:
    """Whether most of its characters follow the one before by the same step, as on a keyboard or in the alphabet."""
    steps = [ord(after) - ord(before) for before, after in pairwise(bare)]
    return max(map(steps.count, set(steps))) >= _STEPS_IN_A_ROW * len(steps)
