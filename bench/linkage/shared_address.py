"""Upgrades of several devices behind one address, without a token, at any pace and in any order.

    python -m bench.linkage.shared_address [--data ../shared/data] [--captures tests/captures/sdk-upgrades.jsonl.gz]

Prints how many steps are kept on the ladder of `bench.linkage.ladder`, on that of the web SDK (31 versions on six
devices) and parts of it, and on one that is made of both: thirteen versions on the devices of the first and on a twin
of one in another time zone, each with its own canvas, which changes where it does in the SDK's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from bench.browsers.pack import read_rows
from bench.linkage.inprocess import Extraction, answers
from bench.linkage.ladder import BETWEEN_DEVICES, START, read_ladder
from bench.linkage.streams import Request, Stream, Visit
from bench.linkage.tables import Table
from bench.usage import read_options
from svc.identify.matching import Features, extract
from svc.identify.matching.features import hash32, hash64
from svc.identify.model import Attribute, RequestFacts
from svc.identify.report import read_report
from svc.identify.useragent import read_agent
from svc.identify.useragent.agent import read_hints

SHARED_ADDRESS = "81.2.69.142"
PACES = {
    "1 minute": timedelta(minutes=1),
    "1 hour": timedelta(hours=1),
    "1 day": timedelta(days=1),
    "2 days": timedelta(days=2),
    "7 days": timedelta(days=7),
    "28 days": timedelta(days=28),
    "112 days": timedelta(days=112),
}
ORDERS = {
    "in turn": (1, False),
    "in reverse": (1, True),
    "in turn, three visits a step": (3, False),
    "in reverse, three visits a step": (3, True),
    "device after device": (1, None),
}
"""Visits of a device at each step; whether the last device is first, `None` = a device begins when the one before is
through."""

Ladder = dict[str, list[Features]]
"""Device -> its report at each version, all from one address."""


class _Captured(Extraction):
    """Features that were read before: a request has the place of its report in place of a report."""

    def __init__(self, ladder: Ladder) -> None:
        super().__init__()
        self._ladder = ladder

    def features(self, request: Request) -> Features:
        return self._ladder[request.signals["device"]][request.signals["version"]]


def features_of(signals: dict[str, Any], user_agent: str, headers: dict[str, str] | None = None) -> Features:
    language = (headers or {}).get("accept-language", "")
    hints = read_hints(headers or {})
    facts = RequestFacts(ip=SHARED_ADDRESS, user_agent=user_agent, accept_language=language, hints=hints)
    report = read_report(signals, facts)
    return extract(report, read_agent(facts, report), facts)


def fingerprintjs_ladder(path: Path) -> Ladder:
    ladder: Ladder = defaultdict(list)
    for step in read_ladder(path):
        ladder[step.profile].append(features_of(step.signals, step.user_agent))
    return dict(ladder)


def sdk_ladder(path: Path) -> Ladder:
    ladder: Ladder = defaultdict(list)
    for row in read_rows(path):
        headers = row["headers"]
        ladder[row["device"]].append(features_of(row["signals"], headers["user-agent"], headers))
    return dict(ladder)


def part(ladder: Ladder, versions: Sequence[int]) -> Ladder:
    return {device: [reports[version] for version in versions] for device, reports in ladder.items()}


def imitated(fingerprintjs: Ladder, sdk: Ladder) -> Ladder:
    """Devices of the one ladder at the versions of the other, and `p4`, which is `p0` in another time zone."""
    versions = sdk["office"]
    ladder: Ladder = {}
    for device in sorted({*fingerprintjs, "p4"}):
        like = fingerprintjs["p0" if device == "p4" else device][1]
        ladder[device] = []
        for version in spread(len(versions), 13):
            values = list(like.values)
            there = versions[version]
            values[Attribute.CANVAS] = _both(there.values[Attribute.CANVAS], like.values[Attribute.CANVAS])
            for attribute in (Attribute.MISCELLANEOUS, Attribute.REST):
                values[attribute] = there.values[attribute]
            if device == "p4":
                values[Attribute.TIMEZONE] = _both(values[Attribute.TIMEZONE], 1)
            whole = hash64(b"%d %r" % (there.browser_version, values))
            locale = _both(values[Attribute.LANGUAGES], values[Attribute.TIMEZONE])
            ladder[device].append(
                msgspec.structs.replace(
                    like, values=tuple(values), browser_version=there.browser_version, locale=locale, exact=whole
                )
            )
    return ladder


def _both(one: int, other: int) -> int:
    return hash32(b"%d %d" % (one, other))


def spread(versions: int, kept: int) -> list[int]:
    """Places of so many of the versions, the first and the last among them, at even distances."""
    return [round(place * (versions - 1) / (kept - 1)) for place in range(kept)]


def timetable(devices: Sequence[str], versions: int, pace: timedelta, order: str) -> list[tuple[float, str, int]]:
    """(seconds since 1970, device, version) of each visit, in time order."""
    visits, backwards = ORDERS[order]
    start_s, pace_s = START.timestamp(), pace.total_seconds()
    if backwards is None:
        return [
            (start_s + (place * versions + version) * pace_s, device, version)
            for place, device in enumerate(devices)
            for version in range(versions)
        ]
    in_order = [*reversed(devices)] if backwards else devices
    apart_s = min(BETWEEN_DEVICES.total_seconds(), pace_s / (len(devices) * visits + 1))
    return [
        (start_s + (version + visit / visits) * pace_s + place * apart_s, device, version)
        for version in range(versions)
        for visit in range(visits)
        for place, device in enumerate(in_order)
    ]


@dataclass(slots=True)
class Kept:
    steps: int = 0
    kept: int = 0
    merged: list[tuple[str, ...]] = field(default_factory=list)

    def __str__(self) -> str:
        return "; ".join((f"{self.kept} of {self.steps}", *(" = ".join(group) for group in self.merged)))


def climb_together(ladder: Ladder, pace: timedelta, order: str) -> Kept:
    """Behind one address, without tokens. A step is kept when its first visit gets the id of the visit before."""
    found = Kept()
    stream = Stream("ladder", [], [])
    table = timetable([*ladder], len(next(iter(ladder.values()))), pace, order)
    for number, (at_s, device, version) in enumerate(table):
        stream.requests.append(Request(number, "", SHARED_ADDRESS, {"device": device, "version": version}, ""))
        stream.visits.append(Visit(device, "", at_s, (), held_out=False))
    before: dict[str, tuple[int, object]] = {}
    owners: dict[object, set[str]] = defaultdict(set)
    given = answers(stream, with_tokens=False, extraction=_Captured(ladder))
    for (_, device, version), answer in zip(table, given, strict=True):
        owners[answer.visitor].add(device)
        if device in before and before[device][0] != version:
            found.steps += 1
            found.kept += before[device][1] == answer.visitor
        before[device] = version, answer.visitor
    found.merged = sorted({tuple(sorted(devices)) for devices in owners.values() if len(devices) > 1})
    return found


def table_of(ladders: dict[str, Ladder]) -> Table:
    rows = [
        (name, order, *(str(climb_together(ladder, pace, order)) for pace in PACES.values()))
        for name, ladder in ladders.items()
        for order in ORDERS
    ]
    return Table("Steps kept behind one address", ("ladder", "order", *PACES), rows, left=2)


def main(arguments: Sequence[str] | None = None) -> None:
    options = read_options(__doc__, arguments)
    here, sdk = fingerprintjs_ladder(options.data / "browsers" / "ladder.jsonl.gz"), sdk_ladder(options.captures)
    versions = len(sdk["office"])
    ladders = {
        "FingerprintJS": here,
        "made of both": imitated(here, sdk),
        "SDK": sdk,
        "SDK, every second": part(sdk, range(0, versions, 2)),
        "SDK, every third": part(sdk, range(0, versions, 3)),
        "SDK, 13 of 31": part(sdk, spread(versions, 13)),
    }
    print(table_of(ladders).markdown())


if __name__ == "__main__":
    main()
