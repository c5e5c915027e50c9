"""A consumer of the feed, or of changes, that is killed again and again beside writers, and goes on behind its last
whole line.

Every second one reads by HTTP, from each server in turn, and the others are `svc events tail`: their cursors are the
same. The servers go on.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, NamedTuple

from tests.support import feed_consumer
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, USER_AGENT, report
from tests.support.postgresql import Cluster
from tests.support.process import ENVIRONMENT, Served, run_json, start

Row = dict[str, Any]

WRITERS = 4
LONGEST_S = 2.0
"""A consumer lives at most so long, which is about as long as events are held back."""
ALL_READ_S = 60


class Outcome(NamedTuple):
    kills: int
    acknowledged: int
    read: int
    while_reading: int
    """Kills after which a line was cut, or events had been read."""
    faults: list[str]


class FeedKills:
    """The load and the consumers of one organization. `settings` are those of commands."""

    what = "events"
    """What consumers read: `events` or `changes`."""

    def __init__(self, directory: Path, ports: Sequence[int], seed: int, pause_s: float, **settings: str) -> None:
        self._directory, self._ports, self._pause_s, self._settings = directory, ports, pause_s, settings
        self._chance = random.Random(seed)
        options = ("--rate-limit", "0", "--data", str(directory))
        self._organization = run_json("org", "create", "fed", *options, **settings)["organization_id"]
        self._public, self.secret = self._key("public", "--origin", ORIGIN), self._key("secret")
        self._output = directory.parent / "output.jsonl"
        self._output.touch()
        self._acknowledged: list[str] = []
        self._ended = threading.Event()

    def _key(self, kind: str, *options: str) -> str:
        options = ("--kind", kind, "--environment", "production", *options, "--data", str(self._directory))
        return run_json("key", "issue", self._organization, *options, **self._settings)["secret"]

    def run(self, kills: int) -> Outcome:
        """Kill so many consumers, and then let one read to the end."""
        writers = [threading.Thread(target=self._write, args=(number,)) for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        while_reading = 0
        try:
            for number in range(kills):
                before = self._output.stat().st_size
                consumer = self._consumer(number)
                time.sleep(self._chance.uniform(0, LONGEST_S))
                consumer.send_signal(signal.SIGKILL)
                consumer.wait()
                while_reading += self._output.stat().st_size > before
        finally:
            self._ended.set()
            for writer in writers:
                writer.join()
        self._read_all()
        rows = self._rows()
        return Outcome(kills, len(self._acknowledged), len(rows), while_reading, self._faults(rows))

    def _faults(self, rows: list[Row]) -> list[str]:
        """What is wrong with the rows that were read in all."""
        read = Counter(row["request_id"] for row in rows)
        faults = [f"{one} was read {count} times" for one, count in read.items() if count > 1]
        return faults + [f"{one} was acknowledged and not read" for one in self._acknowledged if one not in read]

    def _write(self, number: int) -> None:
        """Identify until the end, at a server in turn; what was acknowledged is noted."""
        connection = HTTPConnection("127.0.0.1", self._ports[number % len(self._ports)], timeout=30)
        device = number
        while not self._ended.is_set():
            device += WRITERS
            try:
                self._act(number, device, connection)
            except (OSError, HTTPException):  # a machine that stood still: whether it was stored is not known
                connection.close()
                continue
            self._ended.wait(self._pause_s)
        connection.close()

    def _act(self, number: int, device: int, connection: HTTPConnection) -> None:
        """What writer `number` does once."""
        del number
        self.identify(device, connection)

    def identify(self, device: int, connection: HTTPConnection) -> Row | None:
        """The response to an identification, where it was acknowledged."""
        headers = {"origin": ORIGIN, "user-agent": USER_AGENT, "x-forwarded-for": PUBLIC_ADDRESS}
        body = {"sdk": {"platform": "web"}, "signals": report(device % 200)}
        status, answer = ask(connection, "POST", "/identify", self._public, body, headers)
        if status != 200:
            return None
        self._acknowledged.append(answer["request_id"])
        return answer

    def _consumer(self, number: int) -> subprocess.Popen[str]:
        """Goes on behind the last whole line of the output; what was cut off is not of it."""
        whole = self._output.read_bytes().rpartition(b"\n")
        cursor = json.loads(whole[0].rpartition(b"\n")[2])["cursor"] if whole[0] else None
        with self._output.open("r+b") as output:
            output.truncate(len(whole[0]) + len(whole[1]))
        with self._output.open("a") as output:
            if number % 2:
                beginning = ("--from", cursor) if cursor else ("--no-follow", "--since", "1h")
                beginning += ("--changes",) if self.what == "changes" else ()
                command = ("events", "tail", self._organization, *beginning, "--json", "--data", self._directory)
                environment = {**ENVIRONMENT, **self._settings}
                return start(*command, stdout=output, stderr=subprocess.DEVNULL, env=environment)
            port = str(self._ports[number // 2 % len(self._ports)])
            program = [sys.executable, feed_consumer.__file__, port, self.secret, self.what]
            program += [cursor] if cursor else []
            return subprocess.Popen(program, stdout=output, text=True)

    def _read_all(self) -> None:
        consumer = self._consumer(0)
        give_up_at = time.monotonic() + ALL_READ_S
        while not self._is_all(self._rows()) and time.monotonic() < give_up_at:
            time.sleep(0.2)
        consumer.kill()
        consumer.wait()

    def _is_all(self, rows: list[Row]) -> bool:
        """Whether everything that was acknowledged was read."""
        return set(self._acknowledged) <= {row["request_id"] for row in rows}

    def _rows(self) -> list[Row]:
        found: list[Row] = []
        for line in self._output.read_bytes().rpartition(b"\n")[0].splitlines():
            row = json.loads(line)
            found += row.get("rows") or [row]
        return found


def killed_on_workers(kind: type[FeedKills], data: Path, kills: int, seed: int, pause_s: float) -> Outcome:
    """A run on two workers."""
    run_json("org", "create", "first", "--data", str(data))
    server = Served(data, SVC_WORKERS="2")
    workers = server.workers()
    try:
        server.wait_until_said("serving", 2)
        return kind(data, [server.port], seed, pause_s).run(kills)
    finally:
        server.kill_all(workers)


def killed_on_nodes(kind: type[FeedKills], data: Path, kills: int, seed: int, pause_s: float) -> Outcome:
    """A run on two nodes with a database of their own."""
    cluster = Cluster()
    try:
        with cluster.database() as database:
            url = str(cluster.url(database))
            run_json("org", "create", "first", "--data", str(data), SVC_STORE=url)
            nodes = [Served(data, SVC_STORE=url) for _ in range(2)]
            try:
                return kind(data, [node.port for node in nodes], seed, pause_s, SVC_STORE=url).run(kills)
            finally:
                for node in nodes:
                    node.kill()
    finally:
        cluster.close()


def ask(
    connection: HTTPConnection, method: str, path: str, key: str, body: Row | None = None, headers: Row | None = None
) -> tuple[int, Row]:
    """Status and body of a response of the API, `{}` without a body; what is over a rate limit is sent again."""
    sent = {"x-api-key": key, "content-type": "application/json", **(headers or {})}
    while True:
        connection.request(method, f"/api/v1{path}", None if body is None else json.dumps(body), sent)
        response = connection.getresponse()
        content = response.read()
        if response.status != 429:
            return response.status, json.loads(content) if content else {}
        time.sleep(0.1)
