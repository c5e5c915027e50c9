"""What others do, on the same events: exact hashes, tokens, and the published rules of FP-Stalker.

Each method answers one request after the other with an id and learns from nothing but its own answers. They read the
same canonical report as the service does, so that what is compared is the matching and not the reading.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import count

from blake3 import blake3

from bench.linkage.judge import DAY_S, Answer
from bench.linkage.streams import Request
from svc.identify.model import Attribute, RequestFacts
from svc.identify.report import read_report
from svc.identify.useragent import read_agent


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """A request as the baselines see it."""

    at_s: float
    storage_id: str
    whole: bytes
    """Hash of everything that the report says, versions included."""
    constant: tuple[Hashable, ...]
    """What must not differ between two reports of a browser by FP-Stalker's rules 1 and 3."""
    version: int
    fonts: frozenset[str]
    similar: tuple[str, ...]
    """What may change a little: user agent, GPU vendor and renderer, plugins, languages."""
    free: tuple[str, ...]
    """What may change to anything: screen and time zone."""


def look(request: Request, at_s: float) -> Seen:
    facts = RequestFacts(ip=request.ip, user_agent=request.signals.get("userAgent"))
    report = read_report(request.signals, facts)
    agent = read_agent(facts, report)
    claims, attributes = report.claims, report.attributes
    whole = blake3(repr((facts.user_agent, sorted(attributes.items()), report.rest)).encode("utf-8", "replace"))
    do_not_track = next((leaf for leaf in report.rest if leaf.startswith("doNotTrack=")), "")
    return Seen(
        at_s=at_s,
        storage_id=request.storage_id,
        whole=whole.digest(),
        constant=(
            agent.os_family,
            agent.browser_family,
            claims.platform,
            attributes.get(Attribute.CANVAS),
            do_not_track,
        ),
        version=agent.browser_version,
        fonts=frozenset(report.fonts),
        similar=(
            facts.user_agent or "",
            claims.gpu_vendor or "",
            claims.gpu_renderer or "",
            attributes.get(Attribute.PLUGINS, ""),
            ",".join(claims.languages or ()),
        ),
        free=(attributes.get(Attribute.SCREEN, ""), attributes.get(Attribute.TIMEZONE, "")),
    )


Method = Callable[[Seen], Answer]


class ExactHash:
    """The id is the hash of the report (the "fingerprint" of Eckersley, "How Unique Is Your Web Browser?", 2010)."""

    def __call__(self, seen: Seen) -> Answer:
        return Answer(seen.whole)


class ExactHashAndToken:
    """A known token decides; else a known hash; else it is a new visitor. Both are remembered for the answered id."""

    def __init__(self) -> None:
        self._by_token: dict[str, int] = {}
        self._by_hash: dict[bytes, int] = {}
        self._numbers = count()

    def __call__(self, seen: Seen) -> Answer:
        visitor = self._by_token.get(seen.storage_id) if seen.storage_id else None
        if visitor is None:
            visitor = self._by_hash.get(seen.whole)
        if visitor is None:
            visitor = next(self._numbers)
        if seen.storage_id:
            self._by_token[seen.storage_id] = visitor
        self._by_hash[seen.whole] = visitor
        return Answer(visitor)


KEPT_REPORTS = 2
"""Of each visitor, the newest."""
FORGOTTEN_AFTER_S = 30 * DAY_S
SWEPT_EVERY = 2000
"""Visits between two rounds of forgetting."""
MAX_SIMILAR_CHANGES = 2
MAX_FREE_CHANGES = 1
LEAST_SIMILARITY = 0.75


class FPStalkerRules:
    """The rule-based variant of Vastel et al., "FP-STALKER", IEEE S&P 2018, section IV-A, rules 1 to 6.

    1  operating system, platform and browser are the same
    2  the browser's version did not go down
    3  canvas and Do Not Track are the same (cookies and local storage are not in these reports)
    4  when both list fonts, one list contains the other
    5  of user agent, GPU vendor, GPU renderer, plugins and languages at most two changed, each to a text that is
       more than 0.75 similar (Ratcliff and Obershelp, as Python's difflib has it)
    6  of screen and time zone at most one changed

    An equal report goes before one that differs in nothing that the rules look at, and that before one that changed.
    If the best ones belong to more than one visitor, it is a new one. As in the program that the authors published, the
    two newest reports of a visitor are kept, and visitors that stayed away for 30 days are forgotten. Tokens and
    addresses are not used.
    """

    def __init__(self) -> None:
        self._numbers = count()
        self._of_visitor: dict[int, list[Seen]] = {}
        self._groups: dict[tuple[Hashable, ...], dict[int, list[Seen]]] = {}
        self._visits = 0

    def __call__(self, seen: Seen) -> Answer:
        visitor = self._find(seen)
        if visitor is None:
            visitor = next(self._numbers)
        self._remember(visitor, seen)
        return Answer(visitor)

    def _find(self, seen: Seen) -> int | None:
        """Rules 1 and 3 ask for equality, so only visitors that agree in `constant` can match."""
        best: dict[int, set[int]] = {}
        for visitor, known in self._groups.get(seen.constant, {}).items():
            for earlier in known:
                if earlier.whole == seen.whole:
                    best.setdefault(0, set()).add(visitor)
                elif 0 not in best:
                    changes = allowed_changes(earlier, seen)
                    if changes is not None:
                        best.setdefault(1 if changes == 0 else 2, set()).add(visitor)
        if not best:
            return None
        fitting = best[min(best)]
        return next(iter(fitting)) if len(fitting) == 1 else None

    def _remember(self, visitor: int, seen: Seen) -> None:
        kept = self._of_visitor.setdefault(visitor, [])
        kept.append(seen)
        self._groups.setdefault(seen.constant, {}).setdefault(visitor, []).append(seen)
        if len(kept) > KEPT_REPORTS:
            self._drop(visitor, kept.pop(0))
        self._visits += 1
        if self._visits % SWEPT_EVERY == 0:
            for other in [
                other for other, reports in self._of_visitor.items() if seen.at_s - reports[-1].at_s > FORGOTTEN_AFTER_S
            ]:
                for report in self._of_visitor.pop(other):
                    self._drop(other, report)

    def _drop(self, visitor: int, seen: Seen) -> None:
        group = self._groups[seen.constant]
        group[visitor].remove(seen)
        if not group[visitor]:
            del group[visitor]
        if not group:
            del self._groups[seen.constant]


def allowed_changes(earlier: Seen, later: Seen) -> int | None:
    """How many attributes changed, of those that may (rules 5 and 6); `None` when a rule forbids the pair."""
    if earlier.constant != later.constant or later.version < earlier.version:
        return None
    if earlier.fonts and later.fonts and not (earlier.fonts <= later.fonts or later.fonts <= earlier.fonts):
        return None
    free = sum(old != new for old, new in zip(earlier.free, later.free, strict=True))
    changed = [(old, new) for old, new in zip(earlier.similar, later.similar, strict=True) if old != new]
    if free > MAX_FREE_CHANGES or len(changed) > MAX_SIMILAR_CHANGES:
        return None
    if any(similarity(old, new) <= LEAST_SIMILARITY for old, new in changed):
        return None
    return free + len(changed)


@lru_cache(maxsize=1 << 18)
def similarity(one: str, other: str) -> float:
    """0 to 1. The same pairs recur in every comparison of two groups of visitors."""
    return SequenceMatcher(None, one, other).ratio()


BASELINES: dict[str, Callable[[], Method]] = {
    "exact hash": ExactHash,
    "exact hash + token": ExactHashAndToken,
    "FP-Stalker's rules": FPStalkerRules,
}


def answers(method: Method, seen: list[Seen]) -> Iterator[Answer]:
    return map(method, seen)
