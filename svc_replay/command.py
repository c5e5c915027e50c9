"""`svc replay`: a file of reports through the real pipeline, in virtual time.

For back-testing on one's own traffic: the responses are those that the service would have given, one after another, had
the reports arrived when the file says. The same file on a fresh store gives the same responses, byte for byte.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from math import inf
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast
from uuid import UUID

import click
import msgspec
import trio

from svc.command.changes import apply
from svc.command.data_directory import known_organization
from svc.command.help import examples
from svc.command.output import (
    CommandError,
    TimestampType,
    directory_option,
    json_option,
    settings,
    show_json,
)
from svc.features.events.change_jobs import change_event
from svc.features.exports.event_files import output_file
from svc.features.identification.routes import IDENTIFY, read_submission, submit
from svc.features.organizations.command import create_organization
from svc.http.callers.caller import Caller
from svc.http.route import Call, Outcome, Services
from svc.http.schema import IdentifyAnswer, error_body
from svc.identify.events.event_row import event_row
from svc.identify.identification import NONE as NO_TEST
from svc.identify.model import Decision
from svc.identify.queries import events as records_queries
from svc.identify.queries.visitors import find_visitor
from svc.identify.records import Document, Event
from svc.identify.scoring.score import StoredWeights
from svc.kernel.access.credentials import ApiKey
from svc.kernel.config import Config
from svc.kernel.tenants.organization import Organization
from svc.kernel.values.fields import Platform
from svc.kernel.values.ids import is_visitor_id
from svc.kernel.values.refusals import Refusal
from svc.serve.service import Service
from svc.world import World
from svc_replay.decisions import Decisions
from svc_replay.input import Replayable, Unarchived, lines, read_line
from svc_replay.report import (
    Backtest,
    Previews,
    Summary,
    comparison_lines,
    decision_lines,
    preview_lines,
    profiles,
    read_weights,
)
from svc_replay.store import (
    STEP_MS,
    TimesInAnyOrder,
    Tried,
    VirtualClock,
    opened_for_replay,
    put_in_force,
    put_weights,
    rules_options,
)
from svc_replay.verdicts import DEFAULT_EXAMPLES

T = TypeVar("T")

FOREVER_MS = 1 << 47
"""After the latest time that a line may have."""
NUMBERS_SHOWN = 10
"""Refused lines that the message names."""
_encoder = msgspec.json.Encoder()


@click.command(
    epilog=examples(
        "svc replay traffic.jsonl.gz --output responses.jsonl",
        "svc replay traffic.jsonl.gz --weights weights.json --since 7d",
        "svc replay traffic.jsonl.gz --rules rules.json --list blocked.json",
    )
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Where to write the lines, readable by you alone."
)
@click.option(
    "--weights",
    "weights_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help='Score with these: {"web": {"suspect_threshold": 40, "weights": {...}}}, or the response of GET risk-weights.',
)
@rules_options
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
    tag, account_id, account_verified, action, afterwards; only signals is required. For each line one JSON line is
    written: its response, with the stored event under "event"; for a refused line the error, with its number under
    "line". The summary is on standard error. No webhook is sent. --since and --until choose lines by their time; a line
    without one is replayed in any case.

    With --weights, --rules, --compare or --json, standard output contains a report of the changes instead, and the
    lines go to --output only. Without --compare, --weights is compared with the default weights, and --rules with the
    decisions that FILE has.
    """
    window = range(since_ms or 0, FOREVER_MS if until_ms is None else until_ms)
    if not window:
        raise click.UsageError("--until is not after --since")
    tried: Tried | None = how.pop("tried")
    into = Into(**how)
    _refuse_data(into, weights=weights_file is not None, rules=tried is not None)
    decisions = None if tried is None else Decisions(tried, most_examples, has_databases=into.has_databases())
    chosen = {} if weights_file is None else read_weights(weights_file)
    backtest = None if earlier is None else Backtest(earlier, most_examples)
    previews = None if weights_file is None or backtest is not None else Previews(profiles(chosen))
    reports = as_json or backtest is not None or previews is not None or decisions is not None
    summary = Summary()
    with _writer(output, quiet=reports) as write, lines(file) as source:
        run = _Run(summary, backtest, previews, decisions, write, window)
        replay_into(into, run, source, chosen, tried)
    if as_json:
        show_json(_as_json(run))
    else:
        click.echo("\n".join(summary.lines()), err=True)
        for line in _lines(run, most_examples):
            click.echo(line)
    if summary.unarchived and not summary.reports:
        raise CommandError("no event of the file has its report: export with --documents")
    if summary.refused:
        raise CommandError(_refusal(summary.refused))


def _refuse_data(into: Into, *, weights: bool, rules: bool) -> None:
    if into.organization_id is not None and into.directory is None:
        raise click.UsageError("--organization goes with --data")
    for is_given, name in ((weights, "weights"), (rules, "rules")):
        if is_given and into.directory is not None:
            raise click.UsageError(f"--{name} goes without --data: there the organization's own {name} are in force")


class Into(NamedTuple):
    """Where a replay goes; without a directory, to a store of its own."""

    directory: Path | None
    organization_id: str | None
    network: Path | None

    def has_databases(self) -> bool:
        """Return whether a folder of network data is named."""
        return (self.network or settings().network_directory) is not None


class _Run(NamedTuple):
    """The summary and comparisons that a run makes of the responses, and where it writes them."""

    summary: Summary
    backtest: Backtest | None
    previews: Previews | None
    decisions: Decisions | None
    write: Callable[[bytes], Any]
    window: range
    """Times to replay, in Unix milliseconds."""

    def note(self, number: int, done: Replayed) -> None:
        self.summary.note(number, done.response)
        earlier = None if self.backtest is None else self.backtest.note(done.response)
        if self.decisions is not None and done.event is not None and (self.backtest is None or earlier is not None):
            before = done.decided if earlier is None else earlier.decision
            self.decisions.note(done.source_id or done.request_id, before, done.event)
        if self.previews is not None and done.event is not None:
            self.previews.of[done.event.platform].note(done.request_id, done.event, done.document)
        response = {"line": number, **done.response} if "error" in done.response else done.response
        self.write(_encoder.encode(response) + b"\n")


def _lines(run: _Run, most_examples: int) -> Iterator[str]:
    if run.backtest is not None:
        yield from comparison_lines(run.backtest.summary())
    if run.previews is not None:
        yield from preview_lines(run.previews.summaries(), most_examples)
    if run.decisions is not None:
        yield from decision_lines(run.decisions.summary())


def _as_json(run: _Run) -> dict[str, Any]:
    said: dict[str, Any] = {"summary": run.summary.as_json()}
    if run.backtest is not None:
        said["comparison"] = run.backtest.summary()
    if run.previews is not None:
        said["preview"] = run.previews.summaries()
    if run.decisions is not None:
        said["decisions"] = run.decisions.summary()
    return said


def replay_into(
    into: Into, run: _Run, source: Iterator[bytes], weights: dict[Platform, StoredWeights], tried: Tried | None
) -> None:
    """Run every line of `source` through the pipeline of a store; give `run` each result. Raises `CommandError`."""
    directory = into.directory
    config = _without_quotas(settings(), own_store=directory is None)
    if into.network is not None:
        config = msgspec.structs.replace(config, network_directory=str(into.network))
    with opened_for_replay(directory, config) as (found, world, clock):
        organization = (
            create_organization(found, world if directory is None else World.real(), "replay", credit=0, rate_limit=0)
            if into.organization_id is None
            else known_organization(found.store, into.organization_id)
        )
        if weights:
            apply(found, partial(put_weights, number=organization.number, weights=weights))
        if tried is not None:
            put_in_force(found, organization.number, tried)
        service = Service(config, world, found, directory, clock_memory=TimesInAnyOrder())
        try:
            trio.run(partial(_replay, service, config.region, clock, organization, source, run))
        except BaseExceptionGroup as errors:
            raise _single_error(errors) from None


def _single_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the error within groups of one, as nurseries make them: a file that cannot be read on, a closed pipe."""
    if len(errors.exceptions) != 1:
        return errors
    error = errors.exceptions[0]
    return (
        _single_error(cast("BaseExceptionGroup[BaseException]", error))
        if isinstance(error, BaseExceptionGroup)
        else error
    )


def _refusal(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:NUMBERS_SHOWN])) + (", ..." if len(numbers) > NUMBERS_SHOWN else "")
    lines = "1 line was" if len(numbers) == 1 else f"{len(numbers)} lines were"
    return f"{lines} refused, and the output says why: line {shown}"


def _without_quotas(config: Config, *, own_store: bool) -> Config:
    """Lift daily quotas, which a replay may exceed, and the store share if its store is nobody else's."""
    return msgspec.structs.replace(
        config,
        nonproduction_per_day=sys.maxsize,
        archive_gib_per_day=inf,
        nonproduction_archive_gib_per_day=inf,
        store_share=1.0 if own_store else config.store_share,
    )


class Replayed(NamedTuple):
    """The response to one line, and its stored event and document; neither if it was refused."""

    response: dict[str, Any]
    request_id: UUID
    event: Event | None = None
    document: Document | None = None
    source_id: str | None = None
    """Of the exported event, with what was decided of it."""
    decided: Decision | None = None


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
            done = await _identify(service, clock, key, organization, read)
            if done.response.get("error", {}).get("status") == HTTPStatus.SERVICE_UNAVAILABLE:
                raise CommandError(f"line {number}: the store is full; without --data, TMPDIR says where it is made")
            run.note(number, done)
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
    outcome = await _submit(services, call, read)
    if not isinstance(outcome.body, IdentifyAnswer):
        assert isinstance(outcome.body, Refusal)
        return Replayed(source | msgspec.to_builtins(error_body(outcome.body, str(call.request_id))), call.request_id)
    with services.store.read() as snapshot:
        event = records_queries.event(snapshot, organization.number, call.request_id)
        document = records_queries.document(snapshot, organization.number, call.request_id)
    assert event is not None
    if read.afterwards.fields:
        job = partial(
            change_event,
            number=organization.number,
            environment=event.environment,
            request_id=call.request_id,
            fields=read.afterwards.fields,
            now_ms=call.at_ms,
            retention_ms=services.event_retention_ms,
        )
        await services.store.write_one(job, organization.number)
    row = msgspec.to_builtins(event_row(event, call.request_id))
    response = source | msgspec.to_builtins(outcome.body) | {"event": row}
    return Replayed(response, call.request_id, event, document, read.request_id, read.decision)


async def _submit(services: Services, call: Call, read: Replayable) -> Outcome:
    """Submit a report as the endpoint does, but queue no webhook, and apply what the key of that time said."""
    assert call.caller is not None
    submission = read_submission(services, call, call.caller, call.body)
    if isinstance(submission, Refusal):
        return Outcome(submission)
    replayed = msgspec.structs.replace(
        submission,
        notify=False,
        new_visitor_id=_free(services, call.caller, read.visitor_id) or submission.new_visitor_id,
        proof_version=read.proof_version,
        attested=read.attested,
        account_verified=submission.account_verified and read.account_verified,
        test=submission.test if read.may_test else NO_TEST,
    )
    return await submit(services, call, call.caller, replayed)


def _free(services: Services, caller: Caller, visitor_id: str | None) -> str | None:
    """Return the id of an exported event's visitor for a new one, so that lists name it; `None` if a visitor has it."""
    if visitor_id is None or not is_visitor_id(visitor_id):
        return None
    with services.store.read() as snapshot:
        return visitor_id if find_visitor(snapshot, caller.organization.number, visitor_id) is None else None


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
        route=IDENTIFY,
        at_ms=clock.now_ms,
        headers={},
        caller=caller,
        platform=read.platform,
        body=read.body,
    )


@contextmanager
def _writer(output: Path | None, *, quiet: bool) -> Generator[Callable[[bytes], Any]]:
    """Yield what writes the lines: as an export if an output is named, nowhere with `quiet`, else to the screen."""
    if output is None and quiet:
        yield lambda _: None
        return
    with output_file(output) as write:
        yield write
