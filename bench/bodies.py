"""How long the worst bodies hold up the event loop, each on its whole way from the edge to matching.

The service runs in this process. An instrument takes the CPU time of each step of each of its tasks, and the longest
step of a body's way is what everybody else has waited for it. Each body is sent several times, of which the quickest
counts: what the machine does meanwhile is not the body's doing. `all` is the CPU of the whole process, the thread that
writes included, with what the client took; `answers` are the statuses.

The last section fills the scorer's mailbox with large reports. `gap` is the longest time in which a task that is always
ready to run got no turn.

    python -m bench.bodies [--only gzip] [--data ../shared/data/json]
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import socket
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import trio

from bench.detection.hostile import USER_AGENT, reports
from bench.reports import submitted
from svc.actors.mailbox import Reply
from svc.actors.messages import Identify, PipelineResult
from svc.cli.data_directory import opened_directory
from svc.cli.logs import set_up_logging
from svc.cli.records.keys import issue_key
from svc.cli.records.organizations import create_organization
from svc.config import Config
from svc.domain.access.credentials import ApiKey
from svc.domain.identification import Submission
from svc.domain.model import RequestFacts
from svc.domain.report import fingerprintjs
from svc.http.body import MAX_BODY_BYTES
from svc.http.server.server import open_listeners
from svc.service import Service
from svc.serving import listen
from svc.world import World

BOUND_MS = 20.0
TIMES = 3
WORST = 20
"""Rows shown of the reports and of the texts."""
ROOM = MAX_BODY_BYTES - 1_000
"""Bytes for the signals of a body that is just small enough."""


class Steps(trio.abc.Instrument):
    """The longest step of any task since the last look, in milliseconds of this thread's CPU."""

    def __init__(self) -> None:
        self.longest_ms = 0.0
        self._began = 0.0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        del task
        self._began = time.thread_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        del task
        self.longest_ms = max(self.longest_ms, 1e3 * (time.thread_time() - self._began))


class Body(NamedTuple):
    name: str
    content: bytes
    encoding: str = "identity"
    chunk: int | None = None
    """Sent in chunks of so many bytes."""


class Row(NamedTuple):
    name: str
    longest_ms: float
    all_ms: float
    answers: str


# The bodies


def _report(signals: bytes) -> bytes:
    return b'{"sdk":{"platform":"web"},"signals":' + signals + b"}"


def _filled(part: bytes, start: bytes = b'{"a":[', end: bytes = b"]}", join: bytes = b",", most: int = 10**9) -> bytes:
    """A report with so much of `part` in it as fits."""
    count = min(most, ROOM // (len(part) + len(join)))
    return _report(start + join.join([part] * count) + end)


def _object(count: int, value: bytes = b"1", name: bytes = b"key%d") -> bytes:
    return b"{" + b",".join(b'"%b":%b' % (name % number, value) for number in range(count)) + b"}"


def texts() -> Iterator[Body]:
    """Bodies that are wrong, or right and as large as they may be, by what is in them."""
    yield Body("a long text", _report(b'{"a":"' + b"x" * ROOM + b'"}'))
    yield Body("a long text of escapes", _filled(b"\\u00e9", b'{"a":"', b'"}', b""))
    yield Body("a long text of pairs", _filled(b"\\ud83d\\ude00", b'{"a":"', b'"}', b""))
    yield Body("a lone surrogate at the end", _report(b'{"a":"' + b"x" * ROOM + b'\\ud800"}'))
    yield Body("a byte that is not UTF-8 at the end", _report(b'{"a":"' + b"x" * ROOM + b'\xff"}'))
    yield Body("NaN at the end", _filled(b"1", end=b",NaN]}"))
    yield Body("20,000 numbers", _filled(b"1.5", most=19_990))
    yield Body("20,000 lists", _filled(b"[]", most=19_990))
    yield Body("20,000 keys", _report(_object(19_990)))
    yield Body("100,000 keys", _report(_object(60_000)))
    yield Body("one key 100,000 times", _filled(b'"k":1', b"{", b"}", most=100_000))
    yield Body("as many keys as fit", _report(_object(75_000, name=b"%d")))
    yield Body("as many numbers as fit", _filled(b"1"))
    yield Body("as many texts as fit", _filled(b'""'))
    yield Body("as many lists as fit", _filled(b"[]"))
    yield Body("as many objects as fit", _filled(b"{}"))
    yield Body("as many lists as fit, and an escape", _filled(b"[]", b'{"\\u0061":['))
    yield Body("as many texts as fit, and a name twice", _filled(b'""', b'{"sdk":['))
    yield Body("as many names as fit", _filled(b'"":{}', b'{"\\u0061":[{', b"}]}"))
    yield Body(
        "an open quote behind an escape", b'{"sdk":{"platform":"\\u0061"},"signals":{"a":"' + b"\\\\" * (ROOM // 2)
    )
    yield Body("32 levels, often", _filled(b"[" * 29 + b"]" * 29, most=680))
    yield Body("33 levels", _report(b"[" * 33 + b"]" * 33))
    yield Body("33 levels in an object", _report(b'{"a":' + b"[" * 31 + b"]" * 31 + b"}"))
    yield Body("500 levels, often", _filled(b"[" * 500 + b"]" * 500))
    yield Body("a level for each byte", _report(b'{"a":' + b"[" * (ROOM // 2) + b"]" * (ROOM // 2) + b"}"))
    yield Body("a level for each byte, open", _report(b'{"a":' + b"[" * ROOM))
    yield Body("a number of a million digits", _report(b'{"a":' + b"1" * ROOM + b"}"))
    yield Body("a fraction of a million digits", _report(b'{"a":0.' + b"1" * ROOM + b"}"))
    yield Body("numbers of 4,000 digits", _filled(b"1" * 4_000))
    yield Body("numbers with 700 digits each", _filled(b"1." + b"3" * 700))
    yield Body("an unknown field, and lists", b'{"sdk":{},"a":[' + b"[]," * (ROOM // 3) + b'[]],"signals":{}}')
    yield Body("an unknown field, and objects", b'{"sdk":{},"a":[' + b'{"a":1},' * (ROOM // 8) + b'{}],"signals":{}}')
    yield Body("an unknown field, and keys", b'{"sdk":{},"signals":{},"a":' + _object(75_000, name=b"%d") + b"}")
    yield Body("an unknown field, and texts", b'{"sdk":{},"a":["' + b'a","' * (ROOM // 4) + b'a"],"signals":{}}')
    yield Body("an unknown field of a million letters", b'{"sdk":{},"' + b"a" * ROOM + b'":1,"signals":{}}')
    yield Body("a tag of a million letters", b'{"sdk":{},"tag":"' + b"a" * ROOM + b'","signals":{}}')
    yield Body("spaces", _report(b'{"a":' + b" " * ROOM + b"1}"))
    yield Body("nothing but spaces", b" " * ROOM)
    yield Body("too large", _report(b'{"a":"' + b"x" * MAX_BODY_BYTES + b'"}'))
    yield Body("in chunks of one byte", _report(b'{"a":"' + b"x" * 3_000 + b'"}'), chunk=1)
    yield Body("too many chunks", _report(b'{"a":"' + b"x" * 100_000 + b'"}'), chunk=1)
    yield from packed()


def packed() -> Iterator[Body]:
    yield Body("gzip: a bomb of 1 GB", _bomb(1 << 30), "gzip")
    yield Body("gzip: a bomb in a bomb", gzip.compress(_bomb(1 << 26)), "gzip")
    yield Body("gzip: 1 MiB of spaces", gzip.compress(b" " * (ROOM)), "gzip")
    yield Body("gzip: just too large", gzip.compress(_report(b'{"a":"' + b"x" * MAX_BODY_BYTES + b'"}')), "gzip")
    yield Body("gzip: 20,000 keys", gzip.compress(_report(_object(19_990))), "gzip")
    yield Body("gzip: as many lists as fit", gzip.compress(_filled(b"[]")), "gzip")
    yield Body("gzip: 1 MiB that does not shrink", gzip.compress(bytes(range(256)) * 4_000, 0), "gzip")
    yield Body("gzip: two members", gzip.compress(_report(b"{}")) * 2, "gzip")
    yield Body("gzip: 40,000 empty members", gzip.compress(b"") * 40_000, "gzip")
    yield Body("gzip: 300,000 empty blocks", _empty_blocks(200_000), "gzip")
    yield Body("gzip: cut off", gzip.compress(_report(_object(19_990)))[:-9], "gzip")
    yield Body("gzip: a name of 1 MiB", b"\x1f\x8b\x08\x08" + bytes(6) + b"n" * ROOM, "gzip")
    yield Body("gzip: deflate instead", zlib.compress(_report(b"{}")), "gzip")


def _bomb(size: int) -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    block = bytes(1 << 20)
    return b"".join(packer.compress(block) for _ in range(size >> 20)) + packer.flush()


def _empty_blocks(count: int) -> bytes:
    """Stored blocks of no bytes: much to read, and nothing comes out."""
    return gzip.compress(b"")[:10] + b"\x00\x00\x00\xff\xff" * count + b"\x01\x00\x00\xff\xff" + bytes(8)


def suite(folder: Path) -> Iterator[Body]:
    """The texts of a suite for JSON parsers and of a list of awkward strings."""
    with gzip.open(folder / "parsing.jsonl.gz", "rt") as lines:
        for line in lines:
            case = json.loads(line)
            yield Body(case["name"], _report(b'{"a":' + base64.b64decode(case["base64"]) + b"}"))
    for number, text in enumerate(json.loads((folder / "naughty-strings.json").read_text())):
        yield Body(f"awkward string {number}", _report(json.dumps({"userAgent": text, text: text}).encode()))


def hostile_reports() -> Iterator[Body]:
    for name, signals in reports():
        content = _report(json.dumps(signals).encode())
        if len(content) <= MAX_BODY_BYTES:
            yield Body(name, content)


# Many at once

CROWD = 64
"""Reports at once: the scorer's mailbox by default."""
REPORT_BYTES = 580_000
"""Such a report compresses to about 63 kB, so that anybody can send many of them at once."""


def crowds() -> Iterator[tuple[str, dict[str, Any]]]:
    """Large reports inside every limit: for one adapter, and for all of them together."""
    texts = ["Android Windows Mozilla/5.0"] * 19_000
    keys = {f"key{number:05}": "Android Windows"[: REPORT_BYTES // 19_000 - 12] for number in range(19_000)}
    part = {f"key{number:04}": "Android Windows Mozilla/5.0" for number in range(1_000)}
    components = {name: {"value": part, "duration": 1} for name in sorted(fingerprintjs.KNOWN)[:5]}
    thumbmark = {"hardware": {"videocard": part}, "math": part, "fonts": part, "plugins": part}
    device = {"navigator": part, "webGL": part, "canvas": part}
    yield "plain: a list of texts", {"userAgent": USER_AGENT, "fonts": texts}
    yield "plain: an object", {"userAgent": USER_AGENT, "forcedColors": keys}
    yield "native: an object", {"platform": "android", "device": {"model": "x"}, "simulator": keys}
    yield (
        "all collectors",
        {
            "userAgent": USER_AGENT,
            "components": components,
            "botd": {"windowExternal": {"value": part, "state": 0}, "process": {"value": part, "state": 0}},
            "thumbmark": thumbmark,
            "fpscanner": device,
            "webgl": part,
            "math": part,
        },
    )


# The measuring


class Heart:
    """A task that is always ready to run: how long it had to wait for its turn, in milliseconds."""

    def __init__(self) -> None:
        self.longest_ms = 0.0

    async def beat(self) -> None:
        """Until cancelled."""
        before = time.perf_counter()
        while True:
            await trio.lowlevel.checkpoint()
            now = time.perf_counter()
            self.longest_ms = max(self.longest_ms, 1e3 * (now - before))
            before = now


class CrowdRow(NamedTuple):
    name: str
    size: int
    step_ms: float
    gap_ms: float
    all_ms: float


class Bench:
    """One service, one client."""

    def __init__(self, service: Service, port: int, key: ApiKey, api_key: str, steps: Steps) -> None:
        self._service = service
        self._port = port
        self._organization, self._key_id = key.organization, key.id
        self._key = api_key
        self._steps = steps

    async def row(self, body: Body) -> Row:
        longest: list[float] = []
        whole: list[float] = []
        answers: list[str] = []
        for _ in range(TIMES):
            self._steps.longest_ms = 0.0
            before = time.process_time()
            answers.append(await trio.to_thread.run_sync(self._send, body))
            whole.append(1e3 * (time.process_time() - before))
            longest.append(self._steps.longest_ms)
        return Row(body.name, min(longest), min(whole), " ".join(sorted(set(answers))))

    async def crowd(self, name: str, signals: dict[str, Any]) -> CrowdRow:
        """The row of so many of these reports, handed to the pipeline at once."""
        text = msgspec.json.encode(signals)
        rows = [await self._crowd(signals, text) for _ in range(TIMES)]
        step, gap, in_all = (min(figures) for figures in zip(*rows, strict=True))
        return CrowdRow(name, len(text), step, gap, in_all)

    async def _crowd(self, signals: dict[str, Any], text: bytes) -> tuple[float, float, float]:
        replies: list[Reply[PipelineResult]] = []
        heart = Heart()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(heart.beat)
            await trio.sleep(0.05)
            self._steps.longest_ms = heart.longest_ms = 0.0
            began = time.perf_counter()
            for _ in range(CROWD):
                replies.append(Reply())
                self._service.pipeline.admission.offer(Identify(self._submission(signals, text), 0, None, replies[-1]))
            for reply in replies:
                await reply.wait()
            in_all = 1e3 * (time.perf_counter() - began)
            nursery.cancel_scope.cancel()
        return self._steps.longest_ms, heart.longest_ms, in_all

    def _submission(self, signals: dict[str, Any], text: bytes) -> Submission:
        return submitted(
            self._service.services.world,
            signals,
            RequestFacts(ip="81.2.69.160", user_agent=USER_AGENT),
            signals_json=text,
            organization=self._organization,
            key_id=self._key_id,
            environment="development",
            origin="https://shop.example",
        )

    def _send(self, body: Body) -> str:
        head = (
            "POST /api/v1/identify HTTP/1.1\r\nHost: a\r\nOrigin: https://shop.example\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Encoding: {body.encoding}\r\nX-Api-Key: {self._key}\r\n"
        )
        if body.chunk is None:
            sent = f"{head}Content-Length: {len(body.content)}\r\n\r\n".encode() + body.content
        else:
            parts = (body.content[at : at + body.chunk] for at in range(0, len(body.content), body.chunk))
            sent = f"{head}Transfer-Encoding: chunked\r\n\r\n".encode()
            sent += b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
        with socket.create_connection(("127.0.0.1", self._port)) as client:
            with suppress(OSError):  # answered early
                client.sendall(sent)
            answer = b""
            while b"\r\n\r\n" not in answer and (data := client.recv(65_536)):
                answer += data
        return answer[9:12].decode()


async def measure(sections: dict[str, list[Body]], at_once: list[tuple[str, dict[str, Any]]]) -> None:
    steps = Steps()
    trio.lowlevel.add_instrument(steps)
    config = Config(log_requests="none", metrics_bind="")
    set_up_logging(config.log_format)
    world = World.real()
    shutdown = trio.Event()
    with (
        tempfile.TemporaryDirectory(prefix="svc-bench-") as directory,
        opened_directory(Path(directory), config, world) as found,
    ):
        organization = create_organization(found, world, "bench", credit=10**12, rate_limit=0)
        key, api_key = issue_key(
            found, world, kind="public", environment="development", organization=organization.number, name="bench",
            region="us", platforms=("web",), allowed_origins=("https://shop.example",),
        )  # fmt: skip
        async with trio.open_nursery() as nursery:
            service = Service(config, world, found)
            edge = await nursery.start(partial(service.run, open_listeners(listen("127.0.0.1:0")), shutdown))
            bench = Bench(service, edge.addresses[0][1], key, api_key, steps)
            await bench.row(Body("warm", _report(b'{"userAgent":"Mozilla/5.0"}')))
            for name, bodies in sections.items():
                _show(name, [await bench.row(body) for body in bodies])
            _show_crowds([await bench.crowd(name, signals) for name, signals in at_once])
            shutdown.set()


def _show(name: str, rows: list[Row]) -> None:
    rows.sort(key=lambda row: -row.longest_ms)
    over = sum(row.longest_ms > BOUND_MS for row in rows)
    failed = [row for row in rows if not set(row.answers.split()) <= {"200", "400", "413", "422"}]
    print(f"\n{name}: {len(rows)} bodies; over {BOUND_MS:.0f} ms: {over}; answered otherwise: {len(failed)}")
    print(f"{'':45}{'step ms':>8}{'all ms':>8}  answers")
    for row in [*rows[: WORST if name != "texts" else None], *failed]:
        print(f"{row.name:45.45}{row.longest_ms:8.1f}{row.all_ms:8.1f}  {row.answers}", flush=True)


def _show_crowds(rows: list[CrowdRow]) -> None:
    over = sum(row.gap_ms > BOUND_MS for row in rows)
    print(f"\n{CROWD} reports at once: {len(rows)}; without a turn for over {BOUND_MS:.0f} ms: {over}")
    print(f"{'':35}{'bytes':>10}{'step ms':>9}{'gap ms':>9}{'all ms':>9}")
    for row in rows:
        print(f"{row.name:35.35}{row.size:10}{row.step_ms:9.1f}{row.gap_ms:9.1f}{row.all_ms:9.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="bodies whose name has this in it")
    parser.add_argument("--data", type=Path, default=Path("../shared/data/json"))
    options = parser.parse_args()
    sections = {"texts": list(texts()), "reports": list(hostile_reports())}
    if options.data.is_dir():
        sections["suite"] = list(suite(options.data))
    else:
        print(f"{options.data} is not here: the suite of JSON texts is left out", file=sys.stderr)
    trio.run(
        measure,
        {name: [body for body in bodies if options.only in body.name] for name, bodies in sections.items()},
        [crowd for crowd in crowds() if options.only in crowd[0]],
    )


if __name__ == "__main__":
    main()
