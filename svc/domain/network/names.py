"""What a network's name tells: hosting companies and VPN services among those who announce addresses.

What may live here: words, and the one question that they and the names in `svc/domain/data/networks.toml` answer. A
network that also serves homes must not be there: one wrong name flags a whole country's people, and one missing name
only a company's machines. Transit networks are left out for the same reason: whole offices go online through Cogent,
GTT, Lumen or Zayo.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

import msgspec

from svc.domain.data import read_tables

CACHED_NAMES = 8_192
"""Distinct names kept: the visitors of a site come from few thousand networks."""

LONGEST_NAME = 200
"""Characters looked at."""


@lru_cache(maxsize=CACHED_NAMES)
def kind_of_network(name: str) -> Literal["hosting", "vpn"] | None:
    """What the name of a network (AS) says of its addresses; `None` for every name that does not say it beyond
    doubt.
    """
    words = _words(name)
    if _VPN.search(words) is not None:
        return "vpn"
    if _HOSTING_COMPANY.search(words) is not None:
        return "hosting"
    return "hosting" if _HOSTING_WORD.search(words) is not None and _ACCESS_WORD.search(words) is None else None


@lru_cache(maxsize=CACHED_NAMES)
def connects_people(name: str) -> bool:
    """Whether the name of a network (AS) is that of an access network: of a telephone company, a school, a hotel."""
    return _ACCESS_WORD.search(_words(name)) is not None


def _words(name: str) -> str:
    return " ".join(_WORD.findall(name[:LONGEST_NAME].lower()))


class _Tables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`networks.toml`."""

    vpn_services: list[str]
    hosting_companies: list[str]


def _whole_words(names: list[str]) -> str:
    return rf"\b(?:{'|'.join(sorted(names, key=len, reverse=True))})\b"


_TABLES = read_tables("networks", _Tables)
_WORD = re.compile(r"[^\W_]+")
_VPN = re.compile(rf"{_whole_words(_TABLES.vpn_services)}|\bvpn\b")
_HOSTING_COMPANY = re.compile(_whole_words(_TABLES.hosting_companies))
_HOSTING_WORD = re.compile(
    r"(?<!ec)host(?!a?els?\b)|\bserver|servers\b|(?<!\bst )cloud|\bdata ?cent|\bidc\b"
    r"|\bvps|vps\b|\bvds\b|\bcolo\b|colocation|\bcdn|\bdedi(?:cated)?\b|\bhebergement\b|\bhospedagem\b|\bseedbox"
)
"""Words that hosting companies put into their names."""
_ACCESS_WORD = re.compile(
    r"tele[ck]om|\btel\b|telefon|communication|broad ?band|\bcable|wireless|wi ?fi|mobile|cellular|fib(?:er|re|ra)"
    r"|\bisps?\b|\bwisp|internet (?:service )?provider|internet services?\b|universit|school|college|hospital|hotel"
    r"|\bbank\b|ministry|government|\bnetcom\b|\bgpon\b|\bftth\b|\bdsl\b|\bonline\b|afrihost"
)
"""Words of those who connect people: beside one of these, a word of hosting is one service of many."""
