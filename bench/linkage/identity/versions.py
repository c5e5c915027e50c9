"""Browsers whose version goes back: two programs whose reports differ in the version and in what it brings.

From captures, the same device opened in two real versions of Chromium (`tests/captures/sdk-upgrades.jsonl.gz`); from a
stream, its reports with another version in the user agent and in the hints. One program comes on five days from home,
then the other for the first time: its version is lower by fourteen or more. Or both are used in turn, within hours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from bench.linkage.identity.world import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    START_MS,
    Aim,
    Counts,
    Part,
    Recognizers,
    Sent,
    Visit,
    World,
    address,
    at_most,
    begun,
    captured,
    different,
    of_capture,
    plain,
    stream_reports,
    token,
    upgrades,
    warmed,
)

FALL = 14
"""Major versions: more than a year of releases."""
STREAMS = ("", "small")
PAIRS = 60
"""In each run, of each kind."""
DAYS = 5
TURNS = 6
_VERSION = re.compile(r"(Chrome|Firefox|Edg|OPR|SamsungBrowser)/(\d+)\.")

FALLS, IN_TURN = "a version that falls by 14 or more: joined", "two versions in turn: visits with the other's id"
AIMS: dict[str, Aim] = {FALLS: at_most(0.02), IN_TURN: at_most(0.02)}


class Pair(NamedTuple):
    """Two programs of one device."""

    newer: Sent
    older: Sent
    part: Part = ""


def measure(seed: int, data: Path, stream: str, make: Recognizers | None = None) -> Counts:
    reading, make, counts, random = begun(f"versions {stream}", seed, make)
    if stream:
        sents = different(reading, stream_reports(data / "linkage" / stream))
        random.shuffle(sents)
        strangers, pairs = sents[:200], list(_renumbered(sents[200:], random))
        close = pairs
    else:
        strangers = different(reading, map(of_capture, captured()))
        pairs, close = list(_captured_pairs(random, FALL, 100)), list(_captured_pairs(random, 1, 100))
    for age, world in (("young", World(make())), ("warm", warmed(make, strangers, random))):
        for with_tokens in (True, False):
            shown = f"{'with' if with_tokens else 'without'} tokens, {age}"
            for course, those in ((_falls, pairs), (_in_turn, close)):
                for pair in those[:PAIRS]:
                    here = world.copy() if age == "young" else world
                    course(here, pair, random, counts, shown, with_tokens=with_tokens)
                    if age == "young":
                        counts.add_confidences(here)
        counts.add_confidences(world)
    return counts


def _captured_pairs(random: Random, least: int, most: int) -> Iterator[Pair]:
    devices = upgrades()
    pairs = [
        Pair(versions[newer], versions[older])
        for versions in devices.values()
        for newer in versions
        for older in versions
        if least <= newer - older <= most
    ]
    random.shuffle(pairs)
    yield from pairs


def _renumbered(sents: list[Sent], random: Random) -> Iterator[Pair]:
    for sent in sents:
        found = _VERSION.search(sent.signals.get("userAgent") or "")
        if found is not None and int(found[2]) > 60:
            version = int(found[2])
            older = random.randint(version - 40, version - FALL)
            signals = with_version(sent.signals, version, older)
            yield Pair(sent, plain(f"{sent.name}/{older}", signals, held_out=sent.held_out), sent.part)


def with_version(signals: dict[str, Any], version: int, other: int) -> dict[str, Any]:
    """The report with another major version wherever this one stands in the user agent and in the hints."""
    agent = re.sub(rf"(/|rv:){version}\.", rf"\g<1>{other}.", signals["userAgent"])
    changed: dict[str, Any] = {**signals, "userAgent": agent}
    if signals.get("uaData"):
        changed["uaData"] = _renamed(signals["uaData"], str(version), str(other))
    return changed


def _renamed(value: Any, version: str, other: str) -> Any:
    """JSON in which versions of this major release, whole or by its number alone, are of the other one."""
    if isinstance(value, dict):
        members: dict[str, Any] = value
        return {name: _renamed(member, version, other) for name, member in members.items()}
    if isinstance(value, list):
        entries: list[Any] = value
        return [_renamed(entry, version, other) for entry in entries]
    if isinstance(value, str) and (value == version or value.startswith(f"{version}.")):
        return other + value[len(version) :]
    return value


def _visits(pair: Pair, random: Random, *, with_tokens: bool) -> tuple[Visit, Visit]:
    home, name = address(random), f"{random.getrandbits(64):x}"
    newer, older = (
        Visit(f"{name} {sent.name}", sent, home, 0, token(random) if with_tokens else None) for sent in pair[:2]
    )
    return newer, older


def _falls(world: World, pair: Pair, random: Random, counts: Counts, shown: str, *, with_tokens: bool) -> None:
    newer, older = _visits(pair, random, with_tokens=with_tokens)
    number = world.daily(newer, DAYS)
    at_ms = START_MS + DAYS * DAY_MS
    answer = world.visit(older._replace(at_ms=at_ms, token_is_new=with_tokens))
    counts.add(FALLS, answer.visitor == number, part=pair.part)
    counts.add(f"{FALLS}, {shown}", answer.visitor == number)


def _in_turn(world: World, pair: Pair, random: Random, counts: Counts, shown: str, *, with_tokens: bool) -> None:
    """The first two visits of each cannot know."""
    visits = _visits(pair, random, with_tokens=with_tokens)
    owners: dict[object, str] = {}
    for turn in range(TURNS):
        for place, visit in enumerate(visits):
            at_ms = START_MS + turn * 3 * HOUR_MS + place * random.randrange(5 * MINUTE_MS, HOUR_MS)
            answer = world.visit(visit._replace(at_ms=at_ms, token_is_new=with_tokens and turn == 0))
            wrong = owners.setdefault(answer.visitor, visit.browser) != visit.browser
            if turn >= 2:
                counts.add(IN_TURN, wrong, part=pair.part)
                counts.add(f"{IN_TURN}, {shown}", wrong)
