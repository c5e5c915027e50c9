"""The ladder: real Chromium builds on simulated devices, each upgraded step by step, without a token.

    browsers/ladder.jsonl.gz   {"tag", "profile", "kind", "major", "ua", "components", "botComponents", ...} per capture

A profile is a device. Its steps of one kind are upgrades, some ten releases at a time; the last two steps start another
build of the browser on the same device (new headless mode with another screen, then with a window). The judge is given
which is which; matching is not. `bench.linkage.shared_address` climbs at other paces and in other orders.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.linkage.judge import Answer
from bench.linkage.streams import replay_line

START = datetime(2026, 1, 5, 10, tzinfo=UTC)
BETWEEN_STEPS = timedelta(days=7)
BETWEEN_DEVICES = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Step:
    profile: str
    name: str
    is_upgrade: bool
    """Of the build that this profile had at the step before."""
    place: int
    """0 for the first of its profile."""
    user_agent: str
    signals: dict[str, Any]


@dataclass(slots=True)
class Climbed:
    """How the devices were recognized on the way up."""

    upgrades: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Profile -> (upgrades recognized, upgrades)."""
    other_builds: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Profile -> (other builds that were recognized as the device of the step before, such steps)."""
    missed: list[str] = field(default_factory=list)
    """Upgrades that were not recognized, as profile/step."""
    merged: list[tuple[str, ...]] = field(default_factory=list)
    """Profiles that got an id in common."""

    @property
    def recognized(self) -> tuple[int, int]:
        return sum(got for got, _ in self.upgrades.values()), sum(of for _, of in self.upgrades.values())


def read_ladder(path: Path) -> list[Step]:
    """Step by step, at each one the devices in turn."""
    steps: list[Step] = []
    kinds: dict[str, str] = {}
    places: dict[str, int] = defaultdict(int)
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for capture in map(json.loads, lines):
            profile = capture["profile"]
            signals = {"components": capture["components"], "botd": capture["botComponents"]}
            same_build = kinds.get(profile) == capture["kind"]
            name = capture["tag"].partition("/")[2]
            steps.append(Step(profile, name, same_build, places[profile], capture["ua"], signals))
            kinds[profile] = capture["kind"]
            places[profile] += 1
    return sorted(steps, key=lambda step: step.place)


def ladder_lines(steps: list[Step], *, one_network: bool) -> Iterator[bytes]:
    """As `svc replay` reads them: a week between steps, every device at its own address or all at one."""
    profiles = sorted({step.profile for step in steps})
    for step in steps:
        device = profiles.index(step.profile)
        at = START + step.place * BETWEEN_STEPS + device * BETWEEN_DEVICES
        ip = "81.2.69.142" if one_network else f"81.{2 + device}.69.142"
        yield replay_line(at.isoformat(), ip, step.user_agent, step.signals, f"{step.profile}/{step.name}")


def climb(steps: list[Step], answers: list[Answer]) -> Climbed:
    climbed = Climbed()
    previous: dict[str, object] = {}
    owners: dict[object, set[str]] = defaultdict(set)
    for step, answer in zip(steps, answers, strict=True):
        profile = step.profile
        owners[answer.visitor].add(profile)
        if step.place:
            known = previous[profile] == answer.visitor
            table = climbed.upgrades if step.is_upgrade else climbed.other_builds
            got, of = table.get(profile, (0, 0))
            table[profile] = (got + known, of + 1)
            if step.is_upgrade and not known:
                climbed.missed.append(f"{profile}/{step.name}")
        previous[profile] = answer.visitor
    climbed.merged = sorted({tuple(sorted(profiles)) for profiles in owners.values() if len(profiles) > 1})
    return climbed
