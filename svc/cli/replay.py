"""`svc replay`: a file of reports through the real pipeline, in virtual time.

For back-testing on one's own traffic: the answers are those that the service would have given, one after another, had
the reports arrived when the file says. The same file on a fresh store gives the same answers, byte for byte.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from math import inf
from pathlib import Path
from threading import Event
from typing import Any, BinaryIO, TypeVar

import blake3
import click
import msgspec
import trio
from msgspec import UNSET, UnsetType

from svc.cli.data_directory import opened_directory
from svc.cli.organizations import create_organization
from svc.cli.output import CommandError, account, directory_option, settings
from svc.config import Config
from svc.domain.addresses import parse_ip
from svc.domain.credentials import ApiKey
from svc.domain.event_row import event_row
from svc.domain.model import RequestFacts
from svc.domain.records import Organization
from svc.domain.refusals import Refusal, invalid
from svc.http.authentication import Caller
from svc.http.body import decode
from svc.http.client_api import read_submission, submit
from svc.http.endpoint import Call, Outcome, Services
from svc.http.schema import IdentifyAnswer, IdentifyBody, Name64, Sdk, Tag, error_body
from svc.service import Service
from svc.store import views
from svc.store.backup import files
from svc.store.directory import Opened, open_directory
from svc.store.serve_lock import sole_process
from svc.world import World

T = TypeVar("T")

FIRST_MOMENT_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z: when a file without times begins."""
STEP_MS = 1000
"""A report without a time arrives this long after the one before it."""
ALONE = "a replay and a service would overwrite what the other has learned about devices"
"""Why a replay into a data directory runs alone."""
TOP_SIGNALS = 10
"""Signals that the summary names."""
NUMBERS_SHOWN = 10
"""Refused lines that the message names."""


class ReplayedReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of the replayed file: a report, and what came with it."""

    signals: msgspec.Raw
    at: str | int | UnsetType = UNSET
    """RFC 3339, or Unix milliseconds."""
    ip: str | UnsetType = UNSET
    user_agent: str | UnsetType = UNSET
    origin: str | UnsetType = UNSET
    platform: Name64 | UnsetType = UNSET
    tag: Tag | UnsetType = UNSET


class Summary:
    """Counts of a replay's responses: visitors, levels, signals, and lines that were refused."""

    def __init__(self) -> None:
        self.reports = 0
        self.refused: list[int] = []
        """Numbers of the lines, from 1."""
        self._visitors: Counter[str] = Counter()
        self._levels: Counter[str] = Counter()
        self._signals: Counter[str] = Counter()

    def note(self, number: int, answer: dict[str, Any]) -> None:
        """Count the response to one line of the file, `number` from 1. `answer` is the response as JSON, with `error`
        where the report was refused.
        """
        self.reports += 1
        if "error" in answer:
            self.refused.append(number)
            return
        if not answer["identifiable"]:
            self._visitors["not identifiable"] += 1
        else:
            self._visitors["new" if answer["visitor_is_new"] else "returning"] += 1
        self._levels[answer.get("suspect_level", "not scored")] += 1
        self._signals.update(trigger["signal"] for trigger in answer.get("triggers", ()))

    def lines(self) -> list[str]:
        """Lines to print: reports, visitors, levels and the signals that fired most often."""
        return [
            f"{self.reports} reports replayed, {len(self.refused)} refused",
            f"visitors  {_counted(self._visitors)}",
            f"levels    {_counted(self._levels)}",
            f"signals   {_counted(self._signals)}",
        ]


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common(TOP_SIGNALS)) or "none"


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Where to write; standard output else.")
@directory_option("Replay into this data directory instead of a store of its own that is thrown away.", envvar=None)
@click.option("--organization", "organization_id", metavar="ORG", help="With --data: into this organization.")
@click.option(
    "--network",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of network databases and lists; with --data, its own `network` folder when not given.",
)
def replay(
    file: str, output: Path | None, directory: Path | None, organization_id: str | None, network: Path | None
) -> None:
    """Run a FILE of reports through the pipeline in virtual time; - is standard input, .gz is read as such.

    FILE holds JSON lines: at, ip, user_agent, origin, platform, signals, tag; only signals is required. For each line
    one JSON line is written: the answer of identify, with the stored event under "event"; for a refused line the error,
    with its number under "line". A summary follows on standard error. No webhook is sent.
    """
    if organization_id is not None and directory is None:
        raise click.UsageError("--organization goes with --data")
    config = _without_quotas(settings(), own_store=directory is None)
    if network is not None:
        config = msgspec.structs.replace(config, network_directory=str(network))
    with _opened(directory, config) as (found, world, clock), _writer(output) as write, _lines(file) as lines:
        organization = (
            create_organization(found, world if directory is None else World.real(), "replay", credit=0, rate_limit=0)
            if organization_id is None
            else account(found, organization_id).organization
        )
        service = Service(config, world, found, directory)
        summary = trio.run(partial(_replay, service, config.region, clock, organization, lines, write))
    click.echo("\n".join(summary.lines()), err=True)
    if summary.refused:
        raise CommandError(_refusal(summary.refused))


def _refusal(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:NUMBERS_SHOWN])) + (", ..." if len(numbers) > NUMBERS_SHOWN else "")
    lines = "1 line was" if len(numbers) == 1 else f"{len(numbers)} lines were"
    return f"{lines} refused, and the output says why: line {shown}"


def _without_quotas(config: Config, *, own_store: bool) -> Config:
    """A replay may hold more than a day's traffic, and its own store is nobody else's."""
    return msgspec.structs.replace(
        config,
        nonproduction_per_day=sys.maxsize,
        archive_gib_per_day=inf,
        nonproduction_archive_gib_per_day=inf,
        store_share=1.0 if own_store else config.store_share,
    )


class VirtualClock:
    """The clock of a replay: it shows the time of the present line."""

    def __init__(self) -> None:
        self.now_ms = FIRST_MOMENT_MS - STEP_MS


async def _replay(
    service: Service,
    region: str,
    clock: VirtualClock,
    organization: Organization,
    lines: Iterator[bytes],
    write: Callable[[bytes], Any],
) -> Summary:
    key = ApiKey(
        id="key_replay",
        organization=organization.number,
        kind="secret",
        name="replay",
        environment="development",
        region=region,
        role=None,
        platforms=(),
        allowed_origins=(),
        prefix="",
        last4="",
        created_at_ms=0,
        last_used_at_ms=sys.maxsize,
    )
    encoder = msgspec.json.Encoder()
    summary = Summary()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(service.pipeline.run)
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            answer = await _identify(service, clock, key, organization, line)
            summary.note(number, answer)
            if "error" in answer:
                answer = {"line": number, **answer}
            write(encoder.encode(answer) + b"\n")
        service.pipeline.admission.close()
    return summary


async def _identify(
    service: Service, clock: VirtualClock, key: ApiKey, organization: Organization, line: bytes
) -> dict[str, Any]:
    services = service.services
    call = _read_line(service, clock, key, organization, line)
    if isinstance(call, Refusal):
        return msgspec.to_builtins(error_body(call, str(services.world.request_id(clock.now_ms))))
    outcome = await _submit(services, call)
    if not isinstance(outcome.body, IdentifyAnswer):
        assert isinstance(outcome.body, Refusal)
        return msgspec.to_builtins(error_body(outcome.body, str(call.request_id)))
    with services.store.read() as snapshot:
        event = views.event(snapshot, organization.number, call.request_id)
    assert event is not None
    return msgspec.to_builtins(outcome.body) | {"event": msgspec.to_builtins(event_row(event, call.request_id))}


async def _submit(services: Services, call: Call) -> Outcome:
    """As the endpoint does it, but that no webhook is queued."""
    assert call.caller is not None
    submission = read_submission(services, call, call.caller, call.body)
    if isinstance(submission, Refusal):
        return Outcome(submission)
    return await submit(services, call, call.caller, msgspec.structs.replace(submission, notify=False))


def _read_line(
    service: Service, clock: VirtualClock, key: ApiKey, organization: Organization, line: bytes
) -> Call | Refusal:
    report = decode(line, ReplayedReport)
    if isinstance(report, Refusal):
        return report
    at_ms = clock.now_ms + STEP_MS if report.at is UNSET else _moment(report.at)
    if at_ms is None:
        return invalid("at", "invalid_value")
    ip = "127.0.0.1" if report.ip is UNSET else parse_ip(report.ip)
    if ip is None:
        return invalid("ip", "invalid_value")
    clock.now_ms = at_ms
    platform = None if report.platform is UNSET else report.platform
    user_agent = None if report.user_agent is UNSET else report.user_agent
    caller = Caller(
        key=key,
        digest=b"",
        applied=key,
        organization=organization,
        origin=None if report.origin is UNSET else report.origin,
        facts=RequestFacts(ip=ip, user_agent=user_agent),
        must_be_native=False,
    )
    return Call(
        request_id=service.services.world.request_id(at_ms),
        operation_id="identify",
        at_ms=at_ms,
        headers={},
        caller=caller,
        platform=platform,
        body=IdentifyBody(sdk=Sdk(), signals=report.signals, tag=report.tag),
    )


def _moment(at: str | int) -> int | None:
    if isinstance(at, int):
        return at if 0 <= at < 1 << 47 else None
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


@contextmanager
def _opened(directory: Path | None, config: Config) -> Generator[tuple[Opened, World, VirtualClock]]:
    """A throw-away store with reproducible ids, or the named directory with real ones."""
    clock = VirtualClock()
    if directory is not None:
        real = World.real()
        world = World(lambda: clock.now_ms, real.entropy, _inline)
        files.make_folder(directory)
        with (
            sole_process(directory, "svc replay", real.now_ms, reason=ALONE),
            opened_directory(directory, config, world) as found,
        ):
            yield found, world, clock
        return
    world = World(lambda: clock.now_ms, _reproducible(), _inline)
    with tempfile.TemporaryDirectory(prefix="svc-replay-") as temporary:
        found = open_directory(Path(temporary), world.run_sync, world.entropy, durable=False)
        try:
            yield found, world, clock
        finally:
            found.store.close()


def _reproducible() -> Callable[[int], bytes]:
    """Bytes that are the same in every run: the store they go to is thrown away."""
    stream = blake3.blake3(b"svc replay")
    position = 0

    def entropy(count: int) -> bytes:
        nonlocal position
        position += count
        return stream.digest(count, seek=position - count)

    return entropy


async def _inline(function: Callable[[], T], /, *, until: Event | None = None) -> T:  # noqa: ARG001  runs at once
    """No thread: nothing else runs meanwhile, and the order is the file's."""
    return function()


@contextmanager
def _writer(output: Path | None) -> Generator[Callable[[bytes], Any]]:
    if output is None:
        yield sys.stdout.buffer.write
        sys.stdout.buffer.flush()
        return
    with output.open("wb") as file:
        yield file.write


@contextmanager
def _lines(name: str) -> Generator[Iterator[bytes]]:
    """The lines of the file, with a progress bar on a terminal by the share of bytes read."""
    if name == "-":
        yield iter(sys.stdin.buffer)
        return
    path = Path(name)
    with ExitStack() as stack:
        file = stack.enter_context(path.open("rb"))
        source = stack.enter_context(gzip.open(file)) if path.suffix == ".gz" else file
        bar = stack.enter_context(click.progressbar(length=path.stat().st_size, label="replaying", file=sys.stderr))
        yield _watched(source, file, bar.update)


def _watched(source: Iterable[bytes], file: BinaryIO, update: Callable[[int], None]) -> Iterator[bytes]:
    seen = 0
    for count, line in enumerate(source, start=1):
        yield line
        if count % 256 == 0:
            position = file.tell()
            update(position - seen)
            seen = position
    update(file.tell() - seen)
