"""Different programs of one machine, and one program whose surroundings change.

A machine is one surrounding in which eleven browsers were captured (`tests/captures`): the same screen, language and
time zone. Beside them are four versions of one more, as in apps that bring their own: reports of `sdk-upgrades`. All
are opened within hours, then seven hours to a day apart, in any order, from one address: in a young organization that
knows nobody else, and in a warm one. Afterwards each program comes once more as it would after a change, a day later.
What was captured after a change is taken as it is; other changes are made in the captured report, in every field that
shows them.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from bench.browsers.measure import Capture
from bench.linkage.identity.world import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    START_MS,
    Aim,
    Counts,
    Reading,
    Recognizers,
    Sent,
    Visit,
    World,
    address,
    at_least,
    at_most,
    begun,
    captured,
    different,
    of_capture,
    token,
    upgrades,
    warmed,
)

PROGRAMS_OF_A_MACHINE = 8
"""At least: a surrounding in which fewer browsers were captured is no machine."""
EMBEDDED = (109, 118, 130, 140)
"""Major versions of the engine that four apps bring with them."""
ROUNDS = 6
TOKENS = {True: "with tokens", False: "without tokens"}

AIMS: dict[str, Aim] = {
    "programs of one machine, with tokens: visits with another program's id": at_most(0.02),
    "programs of one machine, without tokens: visits with another program's id": at_most(0.02),
    "the same profile after any change, with tokens": at_least(0.985),
    "the same profile after any change, without tokens": at_least(0.93),
}

OTHER_SCREENS = ((1920, 1080), (1366, 768), (2560, 1440), (1280, 1024))
OTHER_ZONES = ("Europe/Lisbon", "Asia/Seoul", "America/Denver")
OTHER_LANGUAGES = (("nl-NL", "nl"), ("sv-SE", "sv"), ("it-IT", "it"))
BASES = {"chromium": "background-tab", "firefox": "no-title-bar", "qutebrowser": "pdfjs", "minibrowser": "geometry"}
"""Browser -> a capture in the usual surrounding, as whose profile those of `SET_OTHERWISE` are taken."""
SET_OTHERWISE: Mapping[str, str] = {
    **dict.fromkeys(("window-1280x720", "window-1024x768", "window-1100x900", "window-800x600"), "window size"),
    **dict.fromkeys(("window-500x900", "window-900x700", "maximized", "full-screen", "zoomed"), "window size"),
    **dict.fromkeys(("scale-0.9", "scale-1.25", "scale-1.5", "scale-1.75", "scale-2", "scale-3"), "scale"),
    **dict.fromkeys(("zoom-1.0", "zoom"), "zoom"),
    **dict.fromkeys(("dark", "reduced-motion", "high-contrast"), "dark or high contrast"),
    **dict.fromkeys(("accept-languages", "accept-one-language", "languages", "english-only"), "language"),
    **dict.fromkeys(("cookies-blocked", "no-notifications", "do-not-track", "pdf-download"), "other settings"),
    **dict.fromkeys(("ublock", "privacy-badger", "extensions"), "extension"),
}
"""Captured setting -> what it changes."""


class Changed(NamedTuple):
    kind: str
    sent: Sent
    clears: bool = False
    """A new token comes with it."""
    private: bool = False


def measure(seed: int, data: Path, stream: str, make: Recognizers | None = None) -> Counts:
    del data, stream
    reading, make, counts, random = begun("programs", seed, make)
    found = captured()
    usual = different(reading, map(of_capture, found))
    for age in ("young", "warm"):
        for with_tokens in TOKENS:
            _set_otherwise(make, usual, found, random, counts, age, with_tokens=with_tokens)
    for place, programs in machines(found).items():
        strangers = warmed(make, [sent for sent in usual if sent.name.split("/")[1] != place], random)
        _machine(World(make()), strangers, reading, programs, found, random, counts)
    return counts


def machines(captures: list[Capture]) -> dict[str, dict[str, Capture]]:
    """Surrounding -> browser -> its first visit there."""
    found: dict[str, dict[str, Capture]] = defaultdict(dict)
    for capture in captures:
        if capture.visit == 0:
            found[capture.tag.partition("/")[2]][capture.browser] = capture
    return {place: programs for place, programs in found.items() if len(programs) >= PROGRAMS_OF_A_MACHINE}


def _machine(
    young: World,
    warm: World,
    reading: Reading,
    programs: Mapping[str, Capture],
    captures: list[Capture],
    random: Random,
    counts: Counts,
) -> None:
    sents = {browser: of_capture(capture) for browser, capture in programs.items()}
    embedded = random.choice(list(upgrades().values()))
    sents |= {f"app with {version}": embedded[version] for version in EMBEDDED}
    distinguishable = {sent.name for sent in different(reading, sents.values())}
    changes = {browser: list(_changes(capture, captures, random)) for browser, capture in programs.items()}
    for age, world in (("young", young), ("warm", warm)):
        for with_tokens, tokens in TOKENS.items():
            # Without tokens nobody can tell programs apart that send the very same.
            open_ones = {
                browser: sent for browser, sent in sents.items() if with_tokens or sent.name in distinguishable
            }
            here = world.copy()
            visits, ids, now_ms = _use(here, open_ones, random, counts, f"{tokens}", age, with_tokens=with_tokens)
            for browser, visit in visits.items():
                for changed in changes.get(browser, ()):
                    same = _ask_changed(here, visit, changed, now_ms, random) == ids[browser]
                    _count_changed(counts, changed.kind, age, tokens, same=same)
            counts.add_confidences(here)


def _set_otherwise(
    make: Recognizers,
    usual: list[Sent],
    found: list[Capture],
    random: Random,
    counts: Counts,
    age: str,
    *,
    with_tokens: bool,
) -> None:
    """The browsers of `BASES` alone on a machine each, and then with other settings, as captured."""
    for browser, base in BASES.items():
        of_browser = {capture.tag.partition("/")[2]: of_capture(capture) for capture in found
                      if capture.browser == browser and capture.visit == 0}  # fmt: skip
        world = World(make())
        if age == "warm":
            world = warmed(make, [sent for sent in usual if sent.name.split("/")[0] != browser], random)
        profile = {browser: of_browser[base]}
        visits, ids, now_ms = _use(world, profile, random, Counts(), "", age, with_tokens=with_tokens)
        for setting, kind in SET_OTHERWISE.items():
            if setting in of_browser and setting != base:
                changed = Changed(kind, of_browser[setting])
                same = _ask_changed(world, visits[browser], changed, now_ms, random) == ids[browser]
                _count_changed(counts, f"{kind}, as captured", age, TOKENS[with_tokens], same=same)
        counts.add_confidences(world)


def _count_changed(counts: Counts, kind: str, age: str, tokens: str, *, same: bool) -> None:
    counts.add(f"the same profile after any change, {tokens}", same)
    counts.add(f"the same profile after a change, {tokens}, {age}", same)
    counts.add(f"the same profile after a change, {tokens}: {kind}", same)


def _use(
    world: World, sents: Mapping[str, Sent], random: Random, counts: Counts, tokens: str, age: str, *, with_tokens: bool
) -> tuple[dict[str, Visit], dict[str, object], int]:
    """Every program some times. Returns a visit of each, its last id, and the time."""
    home, at_ms = address(random), START_MS
    visits = {
        browser: Visit(browser, sent, home, 0, token(random) if with_tokens else None)
        for browser, sent in sents.items()
    }
    owners: dict[object, str] = {}
    ids: dict[str, object] = {}
    for turn in range(ROUNDS):
        for browser in random.sample(sorted(visits), len(visits)):
            at_ms += random.randrange(2 * MINUTE_MS, 40 * MINUTE_MS)
            visit = visits[browser]._replace(at_ms=at_ms, token_is_new=with_tokens and turn == 0)
            answer = world.visit(visit)
            wrong = owners.setdefault(answer.visitor, browser) != browser
            counts.add(f"programs of one machine, {tokens}: visits with another program's id", wrong)
            counts.add(f"programs of one machine, {tokens}, {age}: visits with another program's id", wrong)
            ids[browser] = answer.visitor
        at_ms += random.randrange(7 * HOUR_MS, DAY_MS)
    return visits, ids, at_ms


def _ask_changed(world: World, visit: Visit, changed: Changed, at_ms: int, random: Random) -> object:
    after = visit._replace(sent=changed.sent, at_ms=at_ms + DAY_MS, private=changed.private)
    if changed.clears and visit.token is not None:
        after = after._replace(token=token(random), token_is_new=True)
    return world.ask(after).visitor


# ---- changes


def _changes(capture: Capture, captures: list[Capture], random: Random) -> Iterator[Changed]:
    """What this program sends after each change."""
    same = of_capture(capture)
    again = [other for other in captures if other.tag == capture.tag and other.visit]
    yield Changed("restart", of_capture(again[0]) if again else same)
    yield Changed("storage cleared", same, clears=True)
    yield Changed("private window", same, clears=True, private=True)
    yield Changed("window size", of_capture(capture, partial(resized, by=random.choice((-180, 90, 260)))))
    yield Changed("zoom", of_capture(capture, partial(zoomed, by=1.25)))
    yield Changed("scale", of_capture(capture, partial(scaled, by=1.5)))
    now = tuple(sorted(capture.report["components"]["screenResolution"]["value"], reverse=True))
    screen = random.choice([screen for screen in OTHER_SCREENS if screen != now])
    yield Changed("screen", of_capture(capture, partial(on_screen, screen=screen)))
    zone, languages = random.choice(OTHER_ZONES), random.choice(OTHER_LANGUAGES)
    moved, speaking = partial(in_zone, zone=zone), partial(in_language, languages=languages)
    yield Changed("time zone", of_capture(capture, moved))
    yield Changed("language", speaking_sent(of_capture(capture, speaking), languages))
    both = of_capture(capture, lambda report: moved(speaking(report)))
    yield Changed("language and time zone", speaking_sent(both, languages))
    if capture.report["components"].get("fonts", {}).get("value"):
        yield Changed("fonts", of_capture(capture, without_font))


def _edited(report: dict[str, Any], **values: Any) -> dict[str, Any]:
    """With these components; those that the browser has no value of stay so."""
    edited = copy.deepcopy(report)
    for name, value in values.items():
        if "value" in edited["components"].get(name, {}):
            edited["components"][name]["value"] = value
    return edited


def _in_contexts(report: dict[str, Any], **answers: Any) -> dict[str, Any]:
    for context in report["fpscanner"]["contexts"].values():
        context.update({name: answer for name, answer in answers.items() if name in context})
    return report


def resized(report: dict[str, Any], by: int) -> dict[str, Any]:
    edited = copy.deepcopy(report)
    window: dict[str, int] = edited["botd"]["windowSize"].get("value", {})
    window.update({name: max(size + by, 200) for name, size in window.items()})
    return edited


def zoomed(report: dict[str, Any], by: float) -> dict[str, Any]:
    """Only the inside of the window shows it, as in the captures of `zoom`."""
    edited = copy.deepcopy(report)
    window: dict[str, int] = edited["botd"]["windowSize"].get("value", {})
    window.update({name: round(size / by) for name, size in window.items() if name.startswith("inner")})
    return edited


def scaled(report: dict[str, Any], by: float) -> dict[str, Any]:
    """Sizes are in CSS pixels, and text is drawn otherwise, as in the captures of `scale`."""
    components = report["components"]
    sizes = [round(size / by) for size in components["screenResolution"]["value"]]
    edited = _edited(report, screenResolution=sizes)
    drawn: dict[str, Any] | int = edited["components"]["canvas"].get("value", {})
    if isinstance(drawn, dict) and "text" in drawn:
        drawn["text"] = drawn["text"][::-1]
    return edited


def on_screen(report: dict[str, Any], screen: tuple[int, int]) -> dict[str, Any]:
    return _edited(report, screenResolution=list(screen))


def in_zone(report: dict[str, Any], zone: str) -> dict[str, Any]:
    return _in_contexts(_edited(report, timezone=zone), timezone=zone)


def in_language(report: dict[str, Any], languages: tuple[str, ...]) -> dict[str, Any]:
    lists: list[list[str]] = report["components"]["languages"].get("value", [])
    given = [[languages[0]], list(languages)][: len(lists)]
    edited = _edited(report, languages=given, dateTimeLocale=languages[0])
    return _in_contexts(edited, language=languages[0], languages=list(languages))


def speaking_sent(sent: Sent, languages: tuple[str, ...]) -> Sent:
    """With the header that asks for these languages."""
    preferences = ",".join(
        language if not place else f"{language};q={1 - place / 10:.1f}" for place, language in enumerate(languages)
    )
    headers = {**sent.headers, "accept-language": preferences} if "accept-language" in sent.headers else sent.headers
    return Sent(sent.name, sent.signals, headers, sent.held_out, sent.peer)


def without_font(report: dict[str, Any]) -> dict[str, Any]:
    return _edited(report, fonts=report["components"]["fonts"]["value"][:-1])
