"""What fresh visitors cost a program, and whom the signals of decisions 18.6 bother.

People: the stream `small` with tokens; crowds (carriers, offices that begin in one morning, schools, a campus, of equal
and of different devices), and the captures of real browsers that nobody drives. Scripts: 200 visitors made from one
report, from one address or from 200, with more or less of it changed, in a young store and in one that knows the
release; phones that are made up; windows that tools drive, with emptied storage each time; one key that signs for all.
Everything runs through `svc replay`, in this process. What headers say is left out, as if a program sent those of the
browser. Of several seeds, scripts have the least and the greatest figure, people the sum.

    python -m bench.newcomers [--seeds 1...] [--data ../shared/data]
                              [--captures tests/captures/sdk-browsers.jsonl.gz]
                              [--driven tests/captures/automation-156.jsonl.gz]
"""

from __future__ import annotations

import copy
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from bench.browsers.pack import read_rows
from bench.farm import DAY_S, HOUR_S, MINUTE_S, START_S, Addresses, stream_reports
from bench.linkage.streams import ORIGIN, client_token, read_stream
from bench.usage import read_options
from svc_replay.command import Into, Replayed, replay_into
from svc_replay.report import Summary
from tests.support.proofs import BrowserKey, compact

SIGNALS = ("storage_renewed", "key_shared", "proof_failed", "new_visitor_burst", "unseen_rendering")
THRESHOLD, SCRIPTED = 30, 200
NAMED = 4
"""Signals that a row names, the most frequent."""
MADE_UP = {
    "platform": "android", "manufacturer": "Google", "model": "Pixel 8", "os_version": "15", "cores": 9,
    "architecture": "arm64-v8a", "memory_mb": 7_480, "disk_gb": 110,
    "screen": {"width": 1080, "height": 2400, "scale": 2.625},
    "languages": ["en-GB"], "timezone": "Europe/London", "font_scale": 1.0,
}  # fmt: skip


class Visit(NamedTuple):
    at_s: float
    group: str
    """Whom it counts for; empty = nobody: it only fills the store."""
    ip: str
    signals: dict[str, Any]
    token: str | None = None
    key: int | None = None
    """Of whose key it is signed."""
    agent: str = ""
    """The user agent, where the report does not name it."""
    is_excepted: bool = False
    """The first morning of an office of equal laptops, which `storage_renewed` may see."""


class Judged:
    """Stands for the run of `svc replay`: it hears what came of each visit."""

    window = range(1 << 47)

    def __init__(self, visits: Sequence[Visit]) -> None:
        self.summary = Summary()
        self.visits: Counter[str] = Counter()
        self.fired: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._sent = visits

    def note(self, number: int, done: Replayed) -> None:
        visit = self._sent[number - 1]
        if done.event is None:
            raise SystemExit(f"visit {number} was refused: {done.response}")
        if not visit.group:
            return
        verdict = done.event.verdict
        names = {signal.signal for signal in verdict.signals or ()}
        self.visits[visit.group] += 1
        self.fired[visit.group].update(names - {"storage_renewed"} if visit.is_excepted else names)
        self.fired[visit.group]["(any)"] += bool(names)
        self.fired[visit.group]["(medium)"] += (verdict.suspect_score or 0) >= THRESHOLD
        self.fired[visit.group]["(new)"] += verdict.visitor_is_new


def lines_of(visits: Iterable[Visit]) -> Iterator[bytes]:
    seen: set[str] = set()
    for number, visit in enumerate(visits):
        at_ms = round(visit.at_s * 1000)
        said = visit.signals | {"nonce": f"nonce-{number:026}", "collected_at": at_ms}
        if visit.token is not None:
            said |= {"client_token": visit.token, "client_token_is_new": visit.token not in seen}
            seen.add(visit.token)
        is_app = "model" in said
        line = {"at": at_ms, "ip": visit.ip, "user_agent": said.get("userAgent") or visit.agent}
        line |= {"platform": "android"} if is_app else {"platform": "web", "origin": ORIGIN}
        signals = compact(said) if visit.key is None else BrowserKey(visit.key).signed(said)
        yield json.dumps(line)[:-1].encode() + b',"signals":' + signals + b"}\n"


def judged(visits: Sequence[Visit]) -> Judged:
    run = Judged(visits)
    replay_into(Into(None, None, None), run, lines_of(visits), {}, None)  # pyright: ignore[reportArgumentType]
    return run


# ---- people


def of_stream(folder: Path) -> list[Visit]:
    stream = read_stream(folder)
    pairs = zip(stream.requests, stream.visits, strict=True)
    return [
        Visit(seen.at_s, f"stream {folder.name}", sent.ip, sent.signals, _token_of(sent.storage_id))
        for sent, seen in pairs
    ]


def _token_of(storage_id: str) -> str | None:
    return client_token(storage_id) if storage_id else None


class Crowds:
    """People behind addresses that many share, for a month; everybody comes again on some of the days after."""

    def __init__(self, chance: Random, reports: Sequence[dict[str, Any]]) -> None:
        self.visits: list[Visit] = []
        self._chance, self._addresses = chance, Addresses(chance)
        phones = [one for one in reports if "Mobile" in str(one.get("userAgent"))]
        desktops = [one for one in reports if "Mobile" not in str(one.get("userAgent"))]
        for _ in range(3):
            self._carrier(chance.sample(phones, 40))
        for _ in range(12):
            self._office(chance.choice(desktops))
        for _ in range(6):
            self._school(chance.choice(desktops))
        self._campus(desktops)
        self.visits.sort(key=lambda visit: visit.at_s)

    def _comes(self, group: str, ip: str, signals: dict[str, Any], first_s: float, often: float, **first: Any) -> None:
        chance, token = self._chance, f"{self._chance.getrandbits(128):032x}"
        self.visits.append(Visit(first_s, group, ip, signals, token, **first))
        at_s = first_s
        while (at_s := at_s + chance.expovariate(often / DAY_S)) < START_S + 30 * DAY_S:
            self.visits.append(Visit(at_s, group, ip, signals, token))

    def _carrier(self, models: Sequence[dict[str, Any]]) -> None:
        """400 phones of 40 models behind two addresses."""
        ips = [self._addresses.home("GB") for _ in range(2)]
        for number in range(400):
            first_s = START_S + self._chance.random() * 30 * DAY_S
            self._comes("carriers", self._chance.choice(ips), models[number % 40], first_s, 0.3)

    def _office(self, laptop: dict[str, Any]) -> None:
        """Fifteen equal laptops that begin in one morning."""
        ip = self._addresses.home("GB")
        morning_s = START_S + self._chance.randrange(10) * DAY_S + 8 * HOUR_S
        for _ in range(15):
            first_s = morning_s + self._chance.random() * 2 * HOUR_S
            self._comes("offices", ip, laptop, first_s, 0.7, is_excepted=True)

    def _school(self, laptop: dict[str, Any]) -> None:
        """A class of thirty that first opens the site in one lesson; the next classes follow a week apart."""
        ip = self._addresses.home("GB")
        for lesson in range(3):
            lesson_s = START_S + (1 + 7 * lesson) * DAY_S + 10 * HOUR_S
            for _ in range(30):
                first_s = lesson_s + self._chance.random() * 10 * MINUTE_S
                self._comes("schools", ip, laptop, first_s, 0.1, is_excepted=True)

    def _campus(self, reports: Sequence[dict[str, Any]]) -> None:
        ip = self._addresses.home("GB")
        for signals in self._chance.choices(reports, k=600):
            self._comes("a campus", ip, signals, START_S + self._chance.random() * 30 * DAY_S, 0.2)


def of_captures(rows: Sequence[dict[str, Any]], group: str = "captures") -> list[Visit]:
    return [
        Visit(
            START_S + number * MINUTE_S,
            group,
            f"81.{number >> 8}.{number & 255}.7",
            row["signals"],
            f"{number:032x}",
            agent=row["headers"]["user-agent"],
        )
        for number, row in enumerate(rows)
    ]


# ---- scripts


def varied(signals: dict[str, Any], chance: Random, how: str) -> dict[str, Any]:
    """As `red` varied a captured report."""
    made = copy.deepcopy(signals)
    said = made["components"]
    if how != "nothing":
        said["canvas"]["value"]["geometry"] = said["canvas"]["value"]["text"] = f"{chance.getrandbits(128):032x}"
        said["audio"]["value"] = 124.043 + chance.random() / 1000
    if how == "a device":
        said["screenResolution"]["value"] = chance.choice(([1920, 1080], [2560, 1440], [1680, 1050], [1440, 900]))
        cores = chance.choice((4, 6, 8, 12, 16))
        said["hardwareConcurrency"]["value"] = cores
        for context in made["probes"]["contexts"].values():
            context["cores"] = cores
    return made


def same_release(signals: dict[str, Any], number: int) -> dict[str, Any]:
    """Another device of the same release: what it computes is the same, what its owner has is not."""
    made = copy.deepcopy(signals)
    made["components"]["screenResolution"]["value"] = [1200 + 8 * number, 900]
    made["components"]["languages"]["value"] = [["en-GB"], ["de-DE"], ["fr-FR"]][number % 3]
    return made


def scripts(
    rows: Sequence[dict[str, Any]], driven: Sequence[dict[str, Any]], seed: int
) -> Iterator[tuple[str, Judged]]:
    captured = next(row for row in rows if row["tag"] == "chromium/plain")
    template, agent = captured["signals"], captured["headers"]["user-agent"]
    for store in ("young store", "release known"):
        for how in ("nothing", "canvas, audio", "a device"):
            for where in ("one address", f"{SCRIPTED} addresses"):
                chance = Random(f"{seed} {store} {how} {where}")
                visits, home = of_captures(rows, ""), Addresses(chance).home
                if store == "release known":
                    devices = [captured | {"signals": same_release(template, number)} for number in range(120)]
                    visits += [visit._replace(ip=f"82.{at}.1.7", at_s=visit.at_s + DAY_S, token=f"{at + 5000:032x}")
                               for at, visit in enumerate(of_captures(devices, ""))]  # fmt: skip
                name = f"{store}; changed: {how}; {where}"
                for number in range(SCRIPTED):
                    ip = "81.250.2.3" if where == "one address" else home("GB")
                    own = f"{chance.getrandbits(128):032x}"
                    at_s = START_S + 3 * DAY_S + number / 10
                    visits.append(Visit(at_s, name, ip, varied(template, chance, how), own, 10 + number, agent))
                yield name, judged(visits)
    chance = Random(f"{seed} others")

    def token() -> str:
        return f"{chance.getrandbits(128):032x}"

    for name, ips in (("made-up phones, one address", 1), (f"made-up phones, {SCRIPTED} addresses", SCRIPTED)):
        phones = [
            MADE_UP | {"android_id": f"{chance.getrandbits(64):016x}"} for _ in range(SCRIPTED)
        ]  # fmt: skip
        yield name, judged([
            Visit(START_S + at / 10, name, f"81.{at % ips}.2.3", phone, token(), agent="okhttp/4.12.0")
            for at, phone in enumerate(phones)
        ])  # fmt: skip
    for name, ips in (("driven windows, one address", 1), (f"driven windows, {SCRIPTED} addresses", SCRIPTED)):
        yield name, judged([
            Visit(
                START_S + at * 20, name, f"81.{at % ips}.2.3", row["signals"], token(),
                agent=row["headers"]["user-agent"],
            )
            for at, row in zip(range(SCRIPTED), cycle(driven), strict=False)
        ])  # fmt: skip
    name = f"one key signs, {SCRIPTED} addresses"
    signed = [
        Visit(START_S + at, name, f"81.{at}.2.3", varied(template, chance, "a device"), token(), 1, agent)
        for at in range(SCRIPTED)
    ]
    yield name, judged(signed)


def span(figures: Sequence[float], form: str = "") -> str:
    """Return the least and the greatest of the figures of all seeds; one figure where they are equal."""
    shown = [format(figure, form) for figure in (min(figures), max(figures))]
    return shown[0] if shown[0] == shown[1] else " to ".join(shown)


def row_of_scripts(name: str, runs: Sequence[Judged]) -> str:
    counted = [(run.fired[name], run.visits[name]) for run in runs]
    names = Counter[str]()
    for fired, _ in counted:
        names.update(fired)
    most = [name for name, _ in names.most_common() if name[0] != "("][:NAMED]
    which = ", ".join(f"`{signal}` {span([fired[signal] for fired, _ in counted])}" for signal in most)
    shares = (span([fired[what] / visits for fired, visits in counted], ".2f") for what in ("(medium)", "(any)"))
    return f"| {name} | {span([fired['(new)'] for fired, _ in counted])} | {' | '.join(shares)} | {which} |"


def row_of_people(group: str, runs: Sequence[Judged]) -> str:
    visits = [run.visits[group] for run in runs]
    fired = ([run.fired[group][signal] for run in runs] for signal in SIGNALS)
    shares = (f"{sum(counts)} ({sum(counts) / sum(visits):.4f})" for counts in fired)
    return f"| {group} | {sum(visits):,} | {' | '.join(shares)} |"


def main() -> None:
    arguments = read_options(__doc__)
    seeds: list[int] = arguments.seeds
    rows = [row for row in read_rows(arguments.captures) if row["kind"] == "normal"]
    print("| scripts | ids | at medium or more | with a signal | which |\n| --- | ---: | ---: | ---: | --- |")
    driven = [row for row in read_rows(arguments.driven) if row["tag"].endswith("/window")]
    for each in zip(*(scripts(rows, driven, seed) for seed in seeds), strict=True):
        print(row_of_scripts(each[0][0], [run for _, run in each]), flush=True)
    small = arguments.data / "linkage" / "small"
    print(f"\n| people | visits | {' | '.join(SIGNALS)} |\n| --- | ---: |{' ---: |' * len(SIGNALS)}")
    for same in (of_captures(rows), of_stream(small)):
        run = judged(same)
        for group in run.visits:
            print(row_of_people(group, [run]), flush=True)
    crowds = [judged(Crowds(Random(f"crowds {seed}"), stream_reports(small)).visits) for seed in seeds]
    for group in sorted(crowds[0].visits):
        print(row_of_people(group, crowds), flush=True)


if __name__ == "__main__":
    main()
