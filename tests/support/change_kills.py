"""Consumers of changes that are killed beside writers who identify, update and erase, and what a copy that they keep
must have in the end.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from tests.support.feed_kills import WRITERS, FeedKills, Row, ask
from tests.support.process import run_json


class _Writer:
    """What one writer did. Nobody else changes its events."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.tags: dict[str, str | None] = {}
        """Of each event that is there."""
        self.events_of: defaultdict[str, list[str]] = defaultdict(list)
        self.updates: Counter[str] = Counter()
        self.erased: set[str] = set()


class ChangeKills(FeedKills):
    """As `FeedKills`, whose writers also update their events and erase their visitors, each its own devices'."""

    what = "changes"

    def __init__(self, directory: Path, ports: Sequence[int], seed: int, pause_s: float, **settings: str) -> None:
        super().__init__(directory, ports, seed, pause_s, **settings)
        self._writers = [_Writer(seed * WRITERS + number) for number in range(WRITERS)]
        options = ("--kind", "management", "--data", str(directory))
        self._admin = run_json("key", "issue", self._organization, *options, **settings)["secret"]

    def _act(self, number: int, device: int, connection: HTTPConnection) -> None:
        writer = self._writers[number]
        answer = self.identify(device, connection)
        if answer is None:
            return
        writer.tags[answer["request_id"]] = None
        writer.events_of[answer["visitor_id"]].append(answer["request_id"])
        for _ in range(writer.chance.choice((0, 1, 2))):
            self._update(writer, connection)
        if writer.chance.random() < 0.1:
            self._erase(writer, connection)

    def _update(self, writer: _Writer, connection: HTTPConnection) -> None:
        if not writer.tags:
            return
        request_id, tag = writer.chance.choice(sorted(writer.tags)), f"{writer.chance.random()}"
        status, answer = ask(connection, "PATCH", f"/events/{request_id}", self.secret, {"tag": tag})
        assert (status, answer.get("tag")) == (200, tag), answer
        writer.tags[request_id] = tag
        writer.updates[request_id] += 1

    def _erase(self, writer: _Writer, connection: HTTPConnection) -> None:
        visitor_id = writer.chance.choice(sorted(writer.events_of))
        path = f"/management/organizations/{self._organization}/visitors/{visitor_id}"
        status, answer = ask(connection, "DELETE", path, self._admin)
        assert status == 204, answer
        for request_id in writer.events_of.pop(visitor_id):
            del writer.tags[request_id]
            writer.erased.add(request_id)

    def _expected(self, of: str) -> dict[str, Any]:
        """What all writers have under this name, by request id."""
        return {one: value for writer in self._writers for one, value in getattr(writer, of).items()}

    def _erased(self) -> set[str]:
        return set[str]().union(*(writer.erased for writer in self._writers))

    def _is_all(self, rows: list[Row]) -> bool:
        said = Counter((row["type"], row["request_id"]) for row in rows)
        return (
            all(said["event.created", one] for one in self._expected("tags"))
            and all(said["event.updated", one] >= count for one, count in self._expected("updates").items())
            and all(said["event.erased", one] for one in self._erased())
        )

    def _faults(self, rows: list[Row]) -> list[str]:
        said = Counter((row["type"], row["request_id"]) for row in rows)
        updates, erased, copy = self._expected("updates"), self._erased(), dict[str, str | None]()
        faults = [f"{one} was {kind} {count} times" for (kind, one), count in said.items()
                  if count != (updates.get(one) if kind == "event.updated" else 1)]  # fmt: skip
        faults += [f"{one} has no update" for one in updates if ("event.updated", one) not in said]
        faults += [f"{one} was not erased" for one in erased if ("event.erased", one) not in said]
        for row in rows:
            if row["type"] == "event.erased":
                copy.pop(row["request_id"], None)
            elif "event" in row:
                copy[row["request_id"]] = row["event"].get("tag")
        expected = self._expected("tags")
        faults += [f"{one} is {copy.get(one, 'not there')} and not {expected.get(one, 'gone')}"
                   for one in copy.keys() | expected.keys()
                   if copy.get(one, "") != expected.get(one, "")]  # fmt: skip
        return faults
