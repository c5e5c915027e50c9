"""Poisoned statistics: reports that an attacker sends to wear recognition down, and what they come to.

    python -m bench.linkage.poison [--stream small] [--visits 16000] [--after 5000] [--only NAME]

Puts the first visits of a stream to the service's matching, with the attacker's reports after one of them, and judges
the answers to the honest visits that follow. An attack sends 20 reports a second from ten addresses. `--weeks 8`
spreads it over so many weeks instead, so that the limits on what an address may teach in a day matter less.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.linkage.inprocess import answers as matched
from bench.linkage.judge import Answer, Ends
from bench.linkage.streams import Request, Stream, Visit, read_stream

ADDRESSES = [f"81.{2 + number}.69.{160 + number}" for number in range(10)]
"""Of ten networks."""
A_SECOND = 20
TAG = "attack"


@dataclass(frozen=True, slots=True)
class Sent:
    """One report of the attacker."""

    signals: dict[str, Any]
    ip: str


Attack = Callable[[list[Request], random.Random], Iterator[Sent]]


def one_token_for_ten_devices(seen: list[Request], _: random.Random) -> Iterator[Sent]:
    """Ten devices of the commonest class send the same token by turns: everything seems to change all the time."""
    devices = _of_one_class(seen, 10)
    while True:
        for request in devices:
            yield Sent({**request.signals, **_token("0" * 32, new=False)}, ADDRESSES[0])


def copies_with_fresh_tokens(seen: list[Request], chance: random.Random) -> Iterator[Sent]:
    """Reports that others sent, each with a token of its own: every report seems to have many devices."""
    while True:
        yield Sent({**chance.choice(seen).signals, **_token(_noise(chance), new=True)}, chance.choice(ADDRESSES))


def devices_that_never_return(seen: list[Request], chance: random.Random) -> Iterator[Sent]:
    """Made-up canvases and fonts upon reports of others."""
    while True:
        signals = json.loads(json.dumps(chance.choice(seen).signals))
        for name in ("canvas", "audio", "fonts"):
            if name in signals:
                signals[name] = _noise(chance)
        yield Sent({**signals, **_token(_noise(chance), new=True)}, chance.choice(ADDRESSES))


def one_report_ten_networks(seen: list[Request], _: random.Random) -> Iterator[Sent]:
    """One report with one token from everywhere."""
    request = _of_one_class(seen, 1)[0]
    while True:
        for address in ADDRESSES:
            yield Sent({**request.signals, **_token("1" * 32, new=False)}, address)


CASES: dict[str, tuple[Attack | None, int, bool]] = {
    "none": (None, 0, False),
    "one token for ten devices, 2000": (one_token_for_ten_devices, 2000, False),
    "one token for ten devices, 20000": (one_token_for_ten_devices, 20000, False),
    "copies with fresh tokens, 2000": (copies_with_fresh_tokens, 2000, False),
    "copies with fresh tokens, 20000": (copies_with_fresh_tokens, 20000, False),
    "devices that never return, 2000": (devices_that_never_return, 2000, False),
    "devices that never return, 20000": (devices_that_never_return, 20000, False),
    "one report, ten networks, 2000": (one_report_ten_networks, 2000, False),
    "none, tokens": (None, 0, True),
    "one token for ten devices, 20000, tokens": (one_token_for_ten_devices, 20000, True),
}
"""Name -> attack, reports, whether honest browsers send tokens."""


def run(
    stream: Stream, after: int, attack: Attack | None, count: int, *, with_tokens: bool, weeks: float = 0.0
) -> tuple[Ends, int]:
    """How the returns after the attack ended, and how many visits those were. `weeks` as of the command line."""
    honest = stream.requests if with_tokens else [replace(request, storage_id="") for request in stream.requests]
    visits = list(zip(honest, stream.visits, strict=True))
    sent: list[tuple[Request, Visit]] = []
    if attack is not None:
        start_s = stream.visits[after - 1].at_s
        between_s = weeks * 7 * 86_400 / count or 1 / A_SECOND
        source = attack(stream.requests[:after], random.Random(1))
        for number in range(count):
            report = next(source)
            at_s = start_s + number * between_s
            token = str(report.signals.get("client_token", ""))
            sent.append((Request(-1, "", report.ip, report.signals, token), Visit(TAG, "", at_s)))
    both = visits[:after] + (sorted(visits[after:] + sent, key=_time) if weeks else sent + visits[after:])
    mixed = Stream(stream.name, [request for request, _ in both], [visit for _, visit in both])
    answers = [
        answer
        for visit, answer in zip(mixed.visits, matched(mixed, with_tokens=True), strict=True)
        if visit.browser != TAG
    ]
    return _judge(stream.visits, answers, after)


def _time(pair: tuple[Request, Visit]) -> float:
    return pair[1].at_s


def _judge(visits: list[Visit], answers: list[Answer], after: int) -> tuple[Ends, int]:
    ends, merged_first, first = Ends(), 0, 0
    known: set[object] = set()
    held: dict[str, set[object]] = {}
    last: dict[str, object] = {}
    for number, (visit, answer) in enumerate(zip(visits, answers, strict=True)):
        own = held.setdefault(visit.browser, set())
        if number >= after:
            new = answer.visitor not in known
            if visit.browser in last:
                relinked = answer.visitor == last[visit.browser]
                ends.add(relinked=relinked, older=answer.visitor in own, new=new)
            else:
                first += 1
                merged_first += not new
        known.add(answer.visitor)
        own.add(answer.visitor)
        last[visit.browser] = answer.visitor
    return ends, merged_first


def _of_one_class(seen: list[Request], count: int) -> list[Request]:
    """Different reports of the commonest user agent."""
    agents: dict[str, list[Request]] = {}
    for request in seen:
        agents.setdefault(str(request.signals.get("userAgent")), []).append(request)
    found: dict[str, Request] = {}
    for request in max(agents.values(), key=len):
        found.setdefault(json.dumps(request.signals, sort_keys=True), request)
    return list(found.values())[:count]


def _token(token: str, *, new: bool) -> dict[str, Any]:
    return {"client_token": token, "client_token_is_new": new}


def _noise(chance: random.Random) -> str:
    return chance.randbytes(16).hex()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--stream", default="small")
    parser.add_argument("--visits", type=int, default=16_000)
    parser.add_argument("--after", type=int, default=5_000)
    parser.add_argument("--weeks", type=float, default=0.0, help="spread an attack over so many weeks")
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    options = parser.parse_args()
    whole = read_stream(options.data / "linkage" / options.stream)
    stream = Stream(whole.name, whole.requests[: options.visits], whole.visits[: options.visits])
    for name in options.only:
        attack, count, with_tokens = CASES[name]
        ends, merged_first = run(stream, options.after, attack, count, with_tokens=with_tokens, weeks=options.weeks)
        share = 100 * ends.false_new / ends.returns
        print(
            f"{name:42} returns {ends.returns}, false new {ends.false_new} ({share:.2f} %), "
            f"false merge {ends.false_merge} of returns, {merged_first} of first visits",
            flush=True,
        )


if __name__ == "__main__":
    main()
