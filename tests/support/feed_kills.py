"""A consumer of the feed that is killed again and again beside writers, and goes on behind its last whole line.

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
from typing import NamedTuple

from tests.support import feed_consumer
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, USER_AGENT, report
from tests.support.process import ENVIRONMENT, run_json, start

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
        read = Counter(self._ids())
        faults = [f"{one} was read {count} times" for one, count in read.items() if count > 1]
        faults += [f"{one} was acknowledged and not read" for one in self._acknowledged if one not in read]
        return Outcome(kills, len(self._acknowledged), read.total(), while_reading, faults)

    def _write(self, number: int) -> None:
        """Identify until the end, at a server in turn; what was acknowledged is noted."""
        connection = HTTPConnection("127.0.0.1", self._ports[number % len(self._ports)], timeout=30)
        device = number
        while not self._ended.is_set():
            device += WRITERS
            try:
                self._acknowledged += filter(None, [self.identify(device, connection)])
            except (OSError, HTTPException):  # a machine that stood still: whether it was stored is not known
                connection.close()
                continue
            self._ended.wait(self._pause_s)
        connection.close()

    def identify(self, device: int, connection: HTTPConnection) -> str | None:
        """The request id of an identification, where it was acknowledged."""
        headers = {
            "x-api-key": self._public,
            "origin": ORIGIN,
            "user-agent": USER_AGENT,
            "x-forwarded-for": PUBLIC_ADDRESS,
            "content-type": "application/json",
        }
        body = json.dumps({"sdk": {"platform": "web"}, "signals": report(device % 200)})
        connection.request("POST", "/api/v1/identify", body, headers)
        response = connection.getresponse()
        answer = json.loads(response.read())
        return answer["request_id"] if response.status == 200 else None

    def _consumer(self, number: int) -> subprocess.Popen[str]:
        """Goes on behind the last whole line of the output; what was cut off is not of it."""
        whole = self._output.read_bytes().rpartition(b"\n")
        cursor = json.loads(whole[0].rpartition(b"\n")[2])["cursor"] if whole[0] else None
        with self._output.open("r+b") as output:
            output.truncate(len(whole[0]) + len(whole[1]))
        with self._output.open("a") as output:
            if number % 2:
                beginning = ("--from", cursor) if cursor else ("--no-follow", "--since", "1h")
                command = ("events", "tail", self._organization, *beginning, "--json", "--data", self._directory)
                environment = {**ENVIRONMENT, **self._settings}
                return start(*command, stdout=output, stderr=subprocess.DEVNULL, env=environment)
            port = str(self._ports[number // 2 % len(self._ports)])
            program = [sys.executable, feed_consumer.__file__, port, self.secret, *([cursor] if cursor else [])]
            return subprocess.Popen(program, stdout=output, text=True)

    def _read_all(self) -> None:
        consumer = self._consumer(0)
        give_up_at = time.monotonic() + ALL_READ_S
        while not set(self._acknowledged) <= set(self._ids()) and time.monotonic() < give_up_at:
            time.sleep(0.2)
        consumer.kill()
        consumer.wait()

    def _ids(self) -> list[str]:
        found: list[str] = []
        for line in self._output.read_bytes().rpartition(b"\n")[0].splitlines():
            row = json.loads(line)
            found += row.get("ids") or [row["request_id"]]
        return found
