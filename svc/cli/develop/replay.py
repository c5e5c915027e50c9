"""`svc replay`: a file of reports through the real pipeline, in virtual time.

For back-testing on one's own traffic: the answers are those that the service would have given, one after another, had
the reports arrived when the file says. The same file on a fresh store gives the same answers, byte for byte.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast
from uuid import UUID

import blake3
import click
import msgspec
import trio

from svc.cli.data_directory import account, opened_directory
from svc.cli.develop.replay_input import Replayable, Unarchived, lines, read_line
from svc.cli.develop.replay_report import (
    Backtest,
    Previews,
    Summary,
    comparison_lines,
    preview_lines,
    profiles,
    read_weights,
)
from svc.cli.help import examples
from svc.cli.output import (
    CommandError,
    TimestampType,
    directory_option,
    json_option,
    settings,
    show_json,
    standard_output,
)
from svc.cli.records.changes import apply
from svc.cli.records.organizations import create_organization
from svc.config import Config
from svc.domain.access.credentials import ApiKey
from svc.domain.events.event_row import event_row
from svc.domain.model import Platform
from svc.domain.records import Document, Event, Organization
from svc.domain.refusals import Refusal
from svc.domain.scoring.comparison import DEFAULT_EXAMPLES
from svc.domain.scoring.weights import StoredWeights
from svc.http.api.identify import read_submission, submit
from svc.http.authentication import Caller
from svc.http.route import Call, Outcome, Services
from svc.http.schema import IdentifyAnswer, error_body
from svc.service import Service
from svc.store.backup import files
from svc.store.directory import Opened, open_directory
from svc.store.schema.tables import WEIGHTS
from svc.store.serve_lock import sole_process
from svc.store.snapshot import Transaction
from svc.store.views import lookups
from svc.world import World

T = TypeVar("T")

FIRST_TIME_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z: when a file without times begins."""
STEP_MS = 1000
"""A report without a time arrives this long after the one before it."""
FOREVER_MS = 1 << 47
"""After the latest time that a line may have."""
ALONE = "a replay and a service would overwrite what the other has learned about devices"
"""Why a replay into a data directory runs alone."""
NUMBERS_SHOWN = 10
"""Refused lines that the message names."""
_encoder = msgspec.json.Encoder()


@click.command(
    epilog=examples(
        "svc replay traffic.jsonl.gz --output responses.jsonl",
        "svc replay traffic.jsonl.gz --weights weights.json --since 7d",
    )
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Where to write the lines.")
@click.option(
    "--weights",
    "weights_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help='Score with these: {"web": {"suspect_threshold": 40, "weights": {...}}}, or the response of GET risk-weights.',
)
@click.option(
    "--compare",
    "earlier",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="RUN",
    help="Compare with this run: the lines of an earlier replay, or the export that is replayed.",
)
@click.option(
    "--examples",
    "most_examples",
    type=click.IntRange(0, 1000),
    default=DEFAULT_EXAMPLES,
    show_default=True,
    metavar="N",
    help="Changed verdicts to show.",
)
@click.option("--since", "since_ms", type=TimestampType(), metavar="T", help="Skip earlier lines: 7d, or RFC 3339.")
@click.option("--until", "until_ms", type=TimestampType(), metavar="T", help="Skip lines from this time on.")
@directory_option("Replay into this data directory instead of a temporary store.", envvar=None)
@click.option("--organization", "organization_id", metavar="ORG", help="With --data: into this organization.")
@click.option(
    "--network",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of network databases and lists; with --data, its own `network` folder when not given.",
)
@json_option
def replay(
    file: str,
    output: Path | None,
    weights_file: Path | None,
    earlier: Path | None,
    most_examples: int,
    since_ms: int | None,
    until_ms: int | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Run a FILE of reports through the pipeline in virtual time; - is standard input, .gz is read as such.

    FILE is what `svc export events` writes, or JSON lines of your own: at, ip, user_agent, origin, platform, signals,
    tag; only signals is required. For each line one JSON line is written: its response, with the stored event
    under "event"; for a refused line the error, with its number under "line". The summary is on standard error. No
    webhook is sent. --since and --until choose lines by their time; a line without one is replayed in any case.

    With --weights, --compare or --json, standard output contains a report of the changes instead, and the lines go
    to --output only. Without --compare, --weights is compared with the default weights.
    """
    window = range(since_ms or 0, FOREVER_MS if until_ms is None else until_ms)
    if not window:
        raise click.UsageError("--until is not after --since")
    into = Into(**how)
    if into.organization_id is not None and into.directory is None:
        raise click.UsageError("--organization goes with --data")
    if weights_file is not None and into.directory is not None:
        raise click.UsageError("--weights goes without --data: there the organization's own weights are in force")
    chosen = {} if weights_file is None else read_weights(weights_file)
    backtest = None if earlier is None else Backtest(earlier, most_examples)
    previews = None if weights_file is None or backtest is not None else Previews(profiles(chosen))
    reports = as_json or backtest is not None or previews is not None
    summary = Summary()
    with _writer(output, quiet=reports) as write, lines(file) as source:
        run = _Run(summary, backtest, previews, write, window)
        _replay_into(into, run, source, chosen)
    if as_json:
        show_json(_as_json(run))
    else:
        click.echo("\n".join(summary.lines()), err=True)
        if backtest is not None:
            click.echo("\n".join(comparison_lines(backtest.summary())))
        if previews is not None:
            click.echo("\n".join(preview_lines(previews.summaries(), most_examples)))
    if summary.unarchived and not summary.reports:
        raise CommandError("no event of the file has its report: export with --documents")
    if summary.refused:
        raise CommandError(_refusal(summary.refused))


class Into(NamedTuple):
    """Where a replay goes: a store of its own without a directory."""

    directory: Path | None
    organization_id: str | None
    network: Path | None


class _Run(NamedTuple):
    """What is made of the responses."""

    summary: Summary
    backtest: Backtest | None
    previews: Previews | None
    write: Callable[[bytes], Any]
    window: range
    """Times to replay, in Unix milliseconds."""

    def note(self, number: int, done: Replayed) -> None:
        self.summary.note(number, done.response)
        if self.backtest is not None:
            self.backtest.note(done.response)
        if self.previews is not None and done.event is not None:
            self.previews.of[done.event.platform].note(done.request_id, done.event, done.document)
        response = {"line": number, **done.response} if "error" in done.response else done.response
        self.write(_encoder.encode(response) + b"\n")


def _as_json(run: _Run) -> dict[str, Any]:
    said: dict[str, Any] = {"summary": run.summary.as_json()}
    if run.backtest is not None:
        said["comparison"] = run.backtest.summary()
    if run.previews is not None:
        said["preview"] = run.previews.summaries()
    return said


def _replay_into(into: Into, run: _Run, source: Iterator[bytes], weights: dict[Platform, StoredWeights]) -> None:
    directory = into.directory
    config = _without_quotas(settings(), own_store=directory is None)
    if into.network is not None:
        config = msgspec.structs.replace(config, network_directory=str(into.network))
    with _opened(directory, config) as (found, world, clock):
        organization = (
            create_organization(found, world if directory is None else World.real(), "replay", credit=0, rate_limit=0)
            if into.organization_id is None
            else account(found.store, into.organization_id).organization
        )
        if weights:
            apply(found, partial(_put_weights, number=organization.number, weights=weights))
        service = Service(config, world, found, directory)
        try:
            trio.run(partial(_replay, service, config.region, clock, organization, source, run))
        except BaseExceptionGroup as errors:
            raise _single_error(errors) from None


def _single_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error within groups of one, as nurseries make them: a file that cannot be read on, a closed pipe."""
    if len(errors.exceptions) != 1:
        return errors
    error = errors.exceptions[0]
    return (
        _single_error(cast("BaseExceptionGroup[BaseException]", error))
        if isinstance(error, BaseExceptionGroup)
        else error
    )


def _put_weights(transaction: Transaction, number: int, weights: dict[Platform, StoredWeights]) -> None:
    for platform, stored in weights.items():
        transaction.put(WEIGHTS, lookups.weights_key(number, None, platform), stored)


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
        self.now_ms = FIRST_TIME_MS - STEP_MS


class Replayed(NamedTuple):
    """The response to one line, and what the store has of it; neither event nor document where it was refused."""

    response: dict[str, Any]
    request_id: UUID
    event: Event | None = None
    document: Document | None = None


async def _replay(
    service: Service,
    region: str,
    clock: VirtualClock,
    organization: Organization,
    source: Iterator[bytes],
    run: _Run,
) -> None:
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
    async with trio.open_nursery() as nursery:
        nursery.start_soon(service.pipeline.run)
        for number, line in enumerate(source, start=1):
            if not line.strip():
                continue
            read = read_line(line)
            if isinstance(read, Unarchived):
                run.summary.unarchived += 1
                continue
            if isinstance(read, Replayable) and read.at_ms is not None and read.at_ms not in run.window:
                run.summary.skipped += 1
                continue
            run.note(number, await _identify(service, clock, key, organization, read))
        service.pipeline.admission.close()


async def _identify(
    service: Service, clock: VirtualClock, key: ApiKey, organization: Organization, read: Replayable | Refusal
) -> Replayed:
    services = service.services
    if isinstance(read, Refusal):
        request_id = services.world.request_id(clock.now_ms)
        return Replayed(msgspec.to_builtins(error_body(read, str(request_id))), request_id)
    call = _call(service, clock, key, organization, read)
    source = {} if read.request_id is None else {"source_request_id": read.request_id}
    outcome = await _submit(services, call)
    if not isinstance(outcome.body, IdentifyAnswer):
        assert isinstance(outcome.body, Refusal)
        return Replayed(source | msgspec.to_builtins(error_body(outcome.body, str(call.request_id))), call.request_id)
    with services.store.read() as snapshot:
        event = lookups.event(snapshot, organization.number, call.request_id)
        document = lookups.document(snapshot, organization.number, call.request_id)
    assert event is not None
    row = msgspec.to_builtins(event_row(event, call.request_id))
    return Replayed(source | msgspec.to_builtins(outcome.body) | {"event": row}, call.request_id, event, document)


async def _submit(services: Services, call: Call) -> Outcome:
    """As the endpoint does it, but that no webhook is queued."""
    assert call.caller is not None
    submission = read_submission(services, call, call.caller, call.body)
    if isinstance(submission, Refusal):
        return Outcome(submission)
    return await submit(services, call, call.caller, msgspec.structs.replace(submission, notify=False))


def _call(service: Service, clock: VirtualClock, key: ApiKey, organization: Organization, read: Replayable) -> Call:
    clock.now_ms = clock.now_ms + STEP_MS if read.at_ms is None else read.at_ms
    caller = Caller(
        key=key,
        digest=b"",
        applied=key,
        applied_digest=b"",
        organization=organization,
        origin=read.origin,
        facts=read.facts,
    )
    return Call(
        request_id=service.services.world.request_id(clock.now_ms),
        operation_id="identify",
        at_ms=clock.now_ms,
        headers={},
        caller=caller,
        platform=read.platform,
        body=read.body,
    )


@contextmanager
def _opened(directory: Path | None, config: Config) -> Generator[tuple[Opened, World, VirtualClock]]:
    """A throw-away store with reproducible ids, or the named directory with real ones: never the service's database."""
    clock = VirtualClock()
    config = msgspec.structs.replace(config, store=None)
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


async def _inline(function: Callable[[], T], /, **_: object) -> T:
    """No thread: nothing else runs meanwhile, and the order is the file's."""
    return function()


@contextmanager
def _writer(output: Path | None, *, quiet: bool) -> Generator[Callable[[bytes], Any]]:
    """Where the lines go; with `quiet` nowhere, unless an output is named."""
    if output is not None:
        with output.open("wb") as file:
            yield file.write
    elif quiet:
        yield lambda _: None
    else:
        yield standard_output()
        sys.stdout.buffer.flush()
