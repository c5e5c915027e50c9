"""Programs by their user agents: crawlers, AI agents, monitors, scanners and libraries.

What may live here: how a text is known not to be a person's browser, by the names and marks in
`svc/identify/data/crawlers.toml`, and who runs the crawlers. Nothing here looks at hints, systems or browsers.

Which kind a crawler is: whatever trains a model, retrieves for one, or acts for an AI product is an `ai_bot`, also when
the same company runs a search engine beside it. Classic search, which shows a page's address in a list of results, is a
`search_crawler`. Previews, feeds, monitors, advertising, archives and SEO crawlers are programs and neither of the two.

An operator is named only where the published ranges are complete enough that a genuine crawler is found in them. That
is not so for Google's special fetchers. It counts only where the network data have that operator's addresses: those of
some come with the program, of others with `svc data update`.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import msgspec
import ua_parser
from ua_parser.core import Matcher
from ua_parser.lazy import UserAgentMatcher
from ua_parser.regex import Resolver

from svc.identify.data import read_tables

CrawlerKind = Literal["search_crawler", "ai_bot"]

NAME_LENGTH = 80
"""Longer names are cut."""

_ATTEMPTS = 4
"""Words of one text that are tried: one that seems to name a program may turn out to name a phone."""


class Program(msgspec.Struct, frozen=True):
    """A program that names itself in a user agent: a crawler, a library, a tool."""

    name: str
    crawler: CrawlerKind | None = None
    operator: str | None = None
    is_bare_name: bool = False
    """Known by nothing but its form: the user agent is a name, perhaps with a version."""


class _Agent(msgspec.Struct, frozen=True, array_like=True):
    name: str
    operator: str | None = None


class _Pattern(msgspec.Struct, frozen=True, array_like=True):
    pattern: str
    name: str
    operator: str | None = None


class _Tables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `crawlers.toml`."""

    ai_agents: tuple[_Agent, ...]
    ai_words: tuple[str, ...]
    search_engines: tuple[_Pattern, ...]
    neither: tuple[_Pattern, ...]
    peoples_patterns: frozenset[str]
    peoples_names: tuple[str, ...]
    words: tuple[str, ...]


_AI_NAME = (
    r"\b(?:[A-Za-z0-9-]*[a-z0-9-])?(?:AI|GPT|LLM)-?"
    r"(?:[Bb]ot|User|Index|Search|Crawler|Spider|Agent|Assistant|Fetch|Scraper|Data|Train)[A-Za-z]*|\b[A-Za-z]+-AI\b"
)
"""How other AI products name their agents."""

_SEARCH_TAG, _AI_TAG = "search-engine", "ai-crawler"

_INNOCENT = re.compile(
    r"cubot|botech|caboto|abbott?|talbot|_botdugls|turbotab|tweetbot|mozacfetch|camscanner|downloadmanager|libwww-fm",
    re.IGNORECASE,
)
"""Phones, televisions, companies and apps whose names look like a program's."""

_BROWSER_STARTS = ("Mozilla/", "Opera/", "Dalvik/", "mozilla/")
_MODEL = re.compile(r"(?>[^()]*?Android)[^;()]*+(;(?:[^()]|\([^()]*+\))*+)\)", re.IGNORECASE)
_NO_MODEL = re.compile(r"compatible|http|google|catchpoint", re.IGNORECASE)
_COMPATIBLE = re.compile(
    r"compatible(?:[;,] *| +)(?!MSIE|Konqueror|NetFront|IBrowse|U;|Windows|ABrowse|Opera|Linux|iCab|Series"
    r"|America Online|MS|ms-office|OffByOne|Polaris|ANTGalio|NetPositive|Amiga|Tablet)\+?([\w.!-]+)|\(compatible\)"
)
_ADDRESS = re.compile(r"https?://|\bwww\.|[\w.-]@[\w-]+\.[a-z]", re.IGNORECASE)
_ALONE = re.compile(r"Mozilla/\d\.\d,? +\(?([\w.!-]+(?:/[\d.]+)?)\)?")
_BARE = re.compile(r"[A-Za-z0-9_.!-]+(?: [A-Za-z0-9_.!-]+){0,3}(?:/v?[\d.]+[a-z]?)?")
_APP = re.compile(
    r"\bapp\b|\bios\b|android|iphone|ipad|ipod|watch ?os|smarttv|smart-tv|podc|pod[a-z]{3}|casts?\b|player|music|radio"
    r"|fm\b|(?:\b|_)u?hd\b|\bwap ?\d\.\d|tuner|spotify|xbmc|kodi|mosaic|midp|cldc|ucweb|browser|nokia|samsung"
    r"|blackberry|sonyericsson|motorola"
    r"|^(?:lg|mot|sec|zte|sie)-|apple|tv\b|obigo|maui|brew|profile|lynx|links|w3m|elinks|dillo|sonos|outlook|office|itunes|darwin|windows",
    re.IGNORECASE,
)
"""Words of apps, televisions and old phones, which send bare names and addresses as programs do."""

_BARE_DEVICE = re.compile(r"[A-Z][A-Za-z]+[ -]?[A-Z]\d{3,4}")
"""The whole user agent of some old phones."""

_ON_LIBRARY = re.compile(r"((?!Mozilla|Dalvik)[^/()]+/[\d.]+ \([^()]*\bandroid[^()]*\)) okhttp/[\d.]+", re.IGNORECASE)
"""An app that names itself and its phone before the library that it sends with."""

_OF_NO_BROWSER = re.compile(
    r"\(Unknown; Linux (?:x86_64|i\d86)\)|<\?|\?>|<script|\$\{|\(\) ?\{ ?:|\.\./\.\./", re.IGNORECASE
)
"""What no person's browser writes: the platform of Qt's WebKit on a computer without screen, and code that is to be run
by the reader: PHP, script, Log4Shell (CVE-2021-44228), Shellshock (CVE-2014-6271), paths upwards.
"""

_COMPATIBLE_WORD = "compatible; "

_FIRST = re.compile(r"[\w.!-]+(?: [A-Z][\w.!-]*)*")


_VERSION = re.compile(r"[/ ]v?\d[\d.]*$")


def find_program(text: str) -> Program | None:
    """Return the program that a user agent (valid Unicode) names; `None` for browsers and apps."""
    on_library = _ON_LIBRARY.fullmatch(text)
    text = _without_model(on_library[1] if on_library is not None else text)
    for _ in range(_ATTEMPTS):
        found = _resolver()(text, ua_parser.Domain.USER_AGENT).user_agent
        if found is None:
            break
        if found.family.isdecimal():
            return _listed(int(found.family), text)
        innocent = _INNOCENT.search(found.family)
        if innocent is None:
            return Program(_spoken_name(found.family, text))
        start = text.find(found.family)
        text = text[:start] + text[start + len(found.family) :]
    return _by_form(text)


def _spoken_name(word: str, text: str) -> str:
    """Return the word that revealed a program, or the program's name if the word is in an address after it."""
    if f"/{word}" in text:
        named = _COMPATIBLE.search(text)
        if named is not None and named[1]:
            return named[1][:NAME_LENGTH]
        if not text.startswith(_BROWSER_STARTS):
            return _first_words(text)
    return _VERSION.sub("", word.strip(" -._)"))[:NAME_LENGTH] or "unknown"


def _without_model(text: str) -> str:
    """Remove the model and build of an Android phone: some phones have names like those of robots."""
    opening = text.find("(")
    found = _MODEL.match(text, opening + 1) if opening >= 0 else None
    if found is None or _NO_MODEL.search(found[1]) is not None:
        return text
    return text[: found.start(1)] + text[found.end(1) :]


def _by_form(text: str) -> Program | None:
    """Recognize a program by what only programs send: an address, a bare name, or what it is compatible with."""
    if "ompatible" in text:
        found = _COMPATIBLE.search(text)
        if found is not None:
            return Program((found[1] or "unknown")[:NAME_LENGTH])
    if _OF_NO_BROWSER.search(text) is not None:
        return Program("unknown")
    if text.startswith(_BROWSER_STARTS):
        return _beside_browser(text)
    peoples = _BARE_DEVICE.fullmatch(text) or _peoples_names().match(text)
    is_bare = _BARE.fullmatch(text) is not None
    if ((is_bare and not peoples) or _ADDRESS.search(text)) and _APP.search(text) is None:
        return Program(_first_words(text), is_bare_name=is_bare)
    return None


def _beside_browser(text: str) -> Program | None:
    """Recognize a program by what follows the name of a browser: nothing but a name, or an address."""
    if len(text) <= NAME_LENGTH:
        found = _ALONE.fullmatch(text)
        if found is not None and _APP.search(text) is None:
            return Program(found[1])
    if ("://" in text or "www." in text or "@" in text) and _ADDRESS.search(text) is not None:
        return Program("unknown")
    return None


def _first_words(text: str) -> str:
    found = _FIRST.search(text)
    return found[0][:NAME_LENGTH] if found else "unknown"


def _listed(index: int, text: str) -> Program:
    known, patterns = _known()
    program = known[index]
    if program.name:
        return program
    found = re.search(patterns[index], text)
    name = _VERSION.sub("", found[0].partition(" (")[0].removeprefix(_COMPATIBLE_WORD).strip(" /();^")) if found else ""
    return msgspec.structs.replace(program, name=name[:NAME_LENGTH] or "unknown")


@cache
def _tables() -> _Tables:
    return read_tables("crawlers", _Tables)


@cache
def _peoples_names() -> re.Pattern[str]:
    return re.compile(rf"(?i:{'|'.join(map(re.escape, _tables().peoples_names))})(?![a-z])")


@cache
def _known() -> tuple[list[Program], list[str]]:
    """Return known programs and their patterns; the first match counts. An empty name stands for the matched text."""
    tables = _tables()
    known = [
        (Program(row.name, "ai_bot", row.operator), rf"(?i:\b{re.escape(row.name)}\b)") for row in tables.ai_agents
    ]
    known += [(Program(row.name), row.pattern) for row in tables.neither]
    known += [(Program(row.name, "search_crawler", row.operator), row.pattern) for row in tables.search_engines]
    known.append((Program("", "ai_bot"), rf"(?:^|{_COMPATIBLE_WORD})(?:{'|'.join(tables.ai_words)})/\d"))
    known.append((Program("", "ai_bot"), _AI_NAME))
    for entry in _published():
        pattern, tags = str(entry["pattern"]), entry.get("tags", ())
        if pattern not in tables.peoples_patterns:
            kind = "ai_bot" if _AI_TAG in tags else "search_crawler" if _SEARCH_TAG in tags else None
            known.append((Program("", kind), pattern))
    return [program for program, _ in known], [pattern for _, pattern in known]


def _published() -> list[dict[str, Any]]:
    """Return the entries of the library crawleruseragents. It is not imported: it reads its file in the encoding of the
    locale, and fails in some.
    """
    library = find_spec("crawleruseragents")
    assert library is not None, "a dependency"
    assert library.origin is not None, "a module, not a folder alone"
    return msgspec.json.decode(Path(library.origin).with_name("crawler-user-agents.json").read_bytes())


@cache
def _resolver() -> Resolver:
    _, patterns = _known()
    matchers: list[Matcher[ua_parser.UserAgent]] = [
        UserAgentMatcher(pattern, str(index)) for index, pattern in enumerate(patterns)
    ]
    matchers.append(UserAgentMatcher(rf"(?i)([a-z0-9_.!-]*(?:{'|'.join(_tables().words)})[a-z0-9_.!-]*)"))
    return Resolver((matchers, [], []))
