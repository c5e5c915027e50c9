"""What `svc replay` reads: lines of one's own making, and those that `svc export events --documents` writes.

What may live here: a line of the file in, what identify would have been sent out, or why it cannot be read.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Annotated, BinaryIO, NamedTuple

import click
import msgspec
from msgspec import UNSET, Meta, UnsetType

from svc.command.output import CommandError
from svc.http.body import decode
from svc.http.schema import AccountId, Action, IdentifyBody, Name64, Sdk, Tag
from svc.identify.events.event_row import UnreadableEventBody
from svc.identify.model import Decision, ProofVersion, RequestFacts, RuleAction
from svc.identify.network.request_headers import RequestHeaders, facts_of
from svc.identify.velocity.counts import ACCOUNT_ID_FORM, ACTION_FORM
from svc.kernel.net.addresses import parse_ip
from svc.kernel.values.refusals import Refusal, invalid
from svc.kernel.values.struct_fields import sent
from svc.kernel.values.text_files import MARK, NotTextError, refuse_other_encodings

LOCAL = "127.0.0.1"
"""The address of a report that came without one."""


class SetAfterwards(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a backend sets of the event once it was answered, as by `updateEvent`; `None` removes it."""

    account_id: Annotated[AccountId, Meta(pattern=ACCOUNT_ID_FORM)] | UnsetType | None = UNSET
    action: Annotated[Action, Meta(pattern=ACTION_FORM)] | UnsetType | None = UNSET

    @property
    def fields(self) -> dict[str, str | None]:
        """Return what is given, by name."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not UNSET}


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
    account_id: Annotated[AccountId, Meta(pattern=ACCOUNT_ID_FORM)] | UnsetType = UNSET
    account_verified: bool = True
    """Whether a secret key sent the account."""
    action: Annotated[Action, Meta(pattern=ACTION_FORM)] | UnsetType = UNSET
    afterwards: SetAfterwards = SetAfterwards()


class ExportedLinkage(msgspec.Struct, frozen=True):
    """What was found of the report's proof."""

    proof: str = ""


class ExportedAttestation(msgspec.Struct, frozen=True):
    """What was found of the report's attestation."""

    format: str
    verified: bool


class ExportedAsSent(msgspec.Struct, frozen=True):
    """What the request of an exported event said, where the event was changed later."""

    account_id: str | UnsetType = UNSET
    account_verified: bool | UnsetType = UNSET
    """Without `account_id`: of an account that was replaced or removed, whose id is not known any more."""
    action: str | UnsetType = UNSET


class ExportedDocument(msgspec.Struct, frozen=True):
    """What a replay needs of the `document` of an exported event."""

    signals: msgspec.Raw
    sdk: Sdk = Sdk()
    tag: str | UnsetType = UNSET
    """As it was sent; that of the event may have been set later."""
    linkage: ExportedLinkage = ExportedLinkage()
    attestation: ExportedAttestation | None = None
    evidence: dict[str, tuple[str, ...]] = {}
    """By signal, of those that fired."""
    as_sent: ExportedAsSent | UnsetType = UNSET


class ExportedDecision(msgspec.Struct, frozen=True):
    """What was decided of an exported event, or of one of an earlier replay."""

    action: RuleAction
    rule_id: str
    rule: str


class ExportedVelocity(msgspec.Struct, frozen=True):
    """What the counts of an exported event, which are those of its arrival, say of the request."""

    account: msgspec.Raw | UnsetType = UNSET
    """Left out: the request named no account."""


class ExportedEvent(msgspec.Struct, frozen=True):
    """What a replay needs of a line that `svc export events --documents` wrote."""

    request_id: str
    occurred_at: str
    ip_address: str
    document: ExportedDocument | UnsetType | None = UNSET
    """`null` or left out: the report was not archived, or the export is one without documents."""
    headers: RequestHeaders = RequestHeaders()
    origin: str | UnsetType = UNSET
    environment: str = "development"
    account_id: str | UnsetType = UNSET
    account_verified: bool = False
    action: str | UnsetType = UNSET
    decision: ExportedDecision | UnsetType = UNSET
    proof_covers: tuple[str, ...] = ()
    visitor_id: str | UnsetType = UNSET
    velocity: ExportedVelocity | UnsetType = UNSET
    """Left out of events that an early version stored."""


class Replayable(NamedTuple):
    """One line, checked."""

    at_ms: int | None
    """`None` = a moment after the line before."""
    facts: RequestFacts
    origin: str | None
    platform: str | None
    body: IdentifyBody
    request_id: str | None
    """Of the exported event; `None` for a report of one's own making."""
    account_verified: bool = True
    may_test: bool = True
    """Whether it was sent with a development key, so that it may ask for a test verdict."""
    decision: Decision | None = None
    """What was decided of the exported event."""
    afterwards: SetAfterwards = SetAfterwards()
    proof_version: ProofVersion | None = None
    """Of the exported event, where its proof was valid."""
    visitor_id: str | None = None
    """Of the exported event."""
    attested: tuple[str, ...] | None = None
    """The failures of the exported event's attestation; `None` = none was sent, or it is not known why it failed."""


class Unarchived(NamedTuple):
    """An exported event without its report, or one that could not be read: there is nothing to replay."""

    request_id: str


def read_line(line: bytes) -> Replayable | Unarchived | Refusal:
    """Return the replayable content of a line, which was written by hand or exported; `Unarchived` for an exported line
    without its report; a `Refusal` with the `422` of identify if it cannot be read.
    """
    if not _is_exported(line):
        with suppress(msgspec.DecodeError):
            return Unarchived(_unreadable(line).request_id)
        report = decode(line, ReplayedReport)
        return report if isinstance(report, Refusal) else _report(report)
    try:
        event = _exported(line)  # whose report may be as large as a body may be, with the rest of the line around it
    except msgspec.DecodeError:
        event = decode(line, ExportedEvent)
    return event if isinstance(event, Refusal) else _event(event)


def _is_exported(line: bytes) -> bool:
    """Return whether the line is of an export: reports have no `occurred_at`."""
    try:
        return "occurred_at" in _fields(line)
    except msgspec.DecodeError:
        return False


_exported = msgspec.json.Decoder(ExportedEvent).decode
_unreadable = msgspec.json.Decoder(UnreadableEventBody).decode
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def _report(report: ReplayedReport) -> Replayable | Refusal:
    at_ms = None if report.at is UNSET else _unix_ms(report.at)
    if at_ms is None and report.at is not UNSET:
        return invalid("at", "invalid_value")
    ip = LOCAL if report.ip is UNSET else parse_ip(report.ip)
    if ip is None:
        return invalid("ip", "invalid_value")
    return Replayable(
        at_ms=at_ms,
        facts=RequestFacts(ip=ip, user_agent=sent(report.user_agent)),
        origin=sent(report.origin),
        platform=sent(report.platform),
        body=IdentifyBody(
            sdk=Sdk(), signals=report.signals, tag=report.tag, account_id=report.account_id, action=report.action
        ),
        request_id=None,
        account_verified=report.account_verified,
        afterwards=report.afterwards,
    )


def _event(event: ExportedEvent) -> Replayable | Unarchived | Refusal:
    if not isinstance(event.document, ExportedDocument):
        return Unarchived(event.request_id)
    at_ms = _unix_ms(event.occurred_at)
    if at_ms is None:
        return invalid("occurred_at", "invalid_value")
    ip = parse_ip(event.ip_address)
    if ip is None:
        return invalid("ip_address", "invalid_value")
    sdk = event.document.sdk
    request = _as_sent(event, event.document.as_sent)
    return Replayable(
        at_ms=at_ms,
        facts=facts_of(ip, event.headers),
        origin=sent(event.origin),
        platform=sent(sdk.platform),
        body=IdentifyBody(
            sdk=sdk,
            signals=event.document.signals,
            tag=event.document.tag,
            account_id=request.account_id,
            action=request.action,
        ),
        request_id=event.request_id,
        account_verified=request.account_verified,
        may_test=event.environment == "development",
        decision=decision_of(event.decision),
        afterwards=_afterwards(request, event),
        proof_version=_proof_version(event.document, event.proof_covers),
        visitor_id=sent(event.visitor_id),
        attested=_attested(event.document),
    )


def _as_sent(event: ExportedEvent, said: ExportedAsSent | UnsetType) -> ExportedEvent:
    """Return an exported event with the account and action that its request had. The id of the event stands for an
    account that is not known any more: it counts in velocity as that one did, until it is replaced.
    """
    if said is not UNSET:
        is_verified = said.account_verified
        account_id = event.request_id if said.account_id is UNSET and is_verified is not UNSET else said.account_id
        return msgspec.structs.replace(
            event, account_id=account_id, account_verified=is_verified is True, action=said.action
        )
    if event.account_id is not UNSET and event.velocity is not UNSET and event.velocity.account is UNSET:
        event = msgspec.structs.replace(event, account_id=UNSET, account_verified=False)
    return event


def _afterwards(request: ExportedEvent, event: ExportedEvent) -> SetAfterwards:
    account = (event.account_id, event.account_verified)
    return SetAfterwards(
        account_id=UNSET if account == (request.account_id, request.account_verified) else sent(event.account_id),
        action=UNSET if event.action == request.action else sent(event.action),
    )


def _attested(document: ExportedDocument) -> tuple[str, ...] | None:
    failures, found = document.evidence.get("attestation_failed", ()), document.attestation
    if found is None or not (failures or found.verified or found.format == "none"):
        return None
    return failures


def _proof_version(document: ExportedDocument, covers: tuple[str, ...]) -> ProofVersion | None:
    if document.linkage.proof != "valid":
        return None
    return 2 if "account_id" in covers else 1


def decision_of(exported: ExportedDecision | UnsetType) -> Decision | None:
    """Return the decision that a line has; `None` if no rule made one."""
    return None if exported is UNSET else Decision(exported.action, exported.rule_id, exported.rule)


def _unix_ms(at: str | int) -> int | None:
    if isinstance(at, int):
        return at if 0 <= at < 1 << 47 else None
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


@contextmanager
def lines(name: str) -> Generator[Iterator[bytes]]:
    """Open a file (`-` is standard input) in a `with` block, and yield its lines, with a progress bar on a terminal by
    the share of bytes read.
    """
    if name == "-":
        yield _json_lines("standard input", sys.stdin.buffer)
        return
    path = Path(name)
    with (
        path.open("rb") as file,
        plain_lines(path, file) as source,
        click.progressbar(length=path.stat().st_size, label="replaying", file=sys.stderr) as bar,
    ):
        yield _with_progress(source, file, bar.update)


@contextmanager
def plain_lines(path: Path, file: BinaryIO) -> Generator[Iterable[bytes]]:
    """Yield, in a `with` block, the lines of an open file without a progress bar, decompressed if its name ends in
    `.gz`. Raises `CommandError` if it cannot be decompressed or does not have JSON lines.
    """
    try:
        yield _json_lines(str(path), gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CommandError(f"{path} is named .gz and cannot be read as such: {error}") from error


def _json_lines(name: str, source: Iterable[bytes]) -> Iterator[bytes]:
    """Return the lines without byte order marks, of which joined files have several. Raises `CommandError` if the first
    line shows another kind of file: else each line of it would be refused by itself.
    """
    lines = iter(source)
    first = next(lines, b"").removeprefix(MARK)
    try:
        refuse_other_encodings(first)
    except NotTextError as error:
        raise CommandError(f"{name} {error}") from error
    if first.lstrip()[:1] == b"[":
        raise CommandError(f"{name} holds a JSON array: write one object a line, as `jq -c '.[]'` does")
    if first.startswith(b"request_id,"):
        raise CommandError(f"{name} holds CSV: write JSON lines, as `svc export events --documents` does")
    if first.strip() == b"{":
        raise CommandError(f"{name} has JSON of several lines: write one object a line, as `jq -c .` does")
    return chain([first], (line.removeprefix(MARK) for line in lines))


def _with_progress(source: Iterable[bytes], file: BinaryIO, update: Callable[[int], None]) -> Iterator[bytes]:
    seen = 0
    for count, line in enumerate(source, start=1):
        yield line
        if count % 256 == 0:
            position = file.tell()
            update(position - seen)
            seen = position
    update(file.tell() - seen)
