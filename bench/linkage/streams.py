"""Streams of simulated visits: what a request shows, and the truth, kept apart from the start.

    folder/events.csv.gz   event,t,instance,device,fp,ip,storage_id,private,causes  in time order
    folder/fps.jsonl.gz    {"fp", "signals"}

`instance` (a browser), `device` and `causes` are the truth. They stay in `Visit`; `replay_line` cannot see them.

A quarter of the devices of each stream is held out (`is_held_out`): nothing is fitted on their visits, so that their
figures say what to expect of visitors that nobody has seen.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

ORIGIN = "https://shop.example"
"""The site that the visits of a stream were on."""
SHORTEST_TOKEN = 16
"""Characters: a shorter client token is not taken for one."""
COLLECTED_EVERY_DAYS = {"every-7-days": 7.0}
"""Streams whose browsers are looked at in a fixed rhythm, as in the FP-Stalker study."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the service sees of a visit."""

    number: int
    at: str
    """RFC 3339."""
    ip: str
    signals: dict[str, Any]
    """As collected, without a client token. Shared between visits of equal reports: never change it."""
    storage_id: str
    """What the browser has in its storage; empty in private mode."""


@dataclass(frozen=True, slots=True)
class Visit:
    """What the judge knows of a visit."""

    browser: str
    report: str
    """Two visits with the same one sent equal reports."""
    at_s: float
    """Seconds since 1970."""
    causes: tuple[str, ...] = ()
    """What happened to this browser since its last visit."""
    held_out: bool = False
    """Its device is one of those that nothing is fitted on."""


@dataclass(frozen=True, slots=True)
class Stream:
    name: str
    requests: list[Request]
    visits: list[Visit]
    """The truth about each request, in the same order."""
    every_days: float | None = None
    """Days between two visits of any browser, when that is fixed."""


def is_held_out(stream: str, device: str) -> bool:
    """Whether this device of a stream is in the quarter that nothing is fitted on: by a hash of its id, so that it
    stays there for good.
    """
    return blake2b(f"{stream}/{device}".encode(), digest_size=4).digest()[-1] % 4 == 3


def read_stream(folder: Path) -> Stream:
    with gzip.open(folder / "fps.jsonl.gz", "rt", encoding="utf-8") as lines:
        signals = {str(line["fp"]): line["signals"] for line in map(json.loads, lines)}
    stream = Stream(folder.name, [], [], COLLECTED_EVERY_DAYS.get(folder.name))
    with gzip.open(folder / "events.csv.gz", "rt", encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows):
            stream.requests.append(
                Request(int(row["event"]), row["t"], row["ip"], signals[row["fp"]], row["storage_id"])
            )
            at_s = datetime.fromisoformat(row["t"]).timestamp()
            causes = tuple(cause for cause in row["causes"].split("+") if cause)
            held_out = is_held_out(folder.name, row["device"])
            stream.visits.append(Visit(row["instance"], row["fp"], at_s, causes, held_out))
    return stream


def replay_lines(requests: list[Request], *, with_tokens: bool) -> Iterator[bytes]:
    """The requests as `svc replay` reads them. A token that appears for the first time was made on that visit."""
    seen: set[str] = set()
    for request in requests:
        signals = request.signals
        if with_tokens and request.storage_id:
            token = client_token(request.storage_id)
            signals = {**signals, "client_token": token, "client_token_is_new": token not in seen}
            seen.add(token)
        yield replay_line(request.at, request.ip, signals.get("userAgent"), signals, str(request.number))


def replay_line(at: str, ip: str, user_agent: str | None, signals: dict[str, Any], tag: str) -> bytes:
    line = {
        "at": at,
        "ip": ip,
        "user_agent": user_agent or "",
        "origin": ORIGIN,
        "platform": "web",
        "signals": signals,
        "tag": tag,
    }
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def client_token(storage_id: str) -> str:
    """The storage id, filled up to the length of a token; different ids stay different, whatever fills them."""
    return storage_id if len(storage_id) >= SHORTEST_TOKEN else f"{storage_id}-{'0' * (SHORTEST_TOKEN - 1)}"
