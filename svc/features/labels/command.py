"""`svc label import`: labels of events from a CSV file (decisions 14.1); `svc weights`: what labels suggest (14.3)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import IO, NamedTuple
from uuid import UUID

import click
import msgspec

from svc.command.changes import apply
from svc.command.help import examples
from svc.command.operation import Operation, OrganizationGroup
from svc.command.output import CommandError, ShownTable, kind_option
from svc.features.labels.jobs import LabelChange, label_request
from svc.features.labels.outcomes import OUTCOME_MS
from svc.features.labels.queries import find_outcome
from svc.identify.model import LABEL_REASONS, LABELS, Label, LabelReason
from svc.identify.queries.events import event as find_event
from svc.identify.queries.events import refuse_hidden
from svc.identify.queries.weights import weights_in_force
from svc.identify.velocity.counts import EnvironmentKind
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.steps import EVENT_ROWS, STEP_LOOKS, items_of_step
from svc.kernel.values.fields import PLATFORMS, Platform
from svc.kernel.values.refusals import Refusal
from svc.kernel.values.text_files import CsvError, Form, Row, read_table

COLUMNS = ("request_id", "label", "label_reason")
"""Of the CSV, whose first line they are; the last may be left out."""


class Line(NamedTuple):
    """One line of a file of labels: an event and its label."""

    number: int
    """Of the line, from 1."""
    request_id: bytes
    label: Label
    reason: LabelReason | None


@click.group(cls=OrganizationGroup)
def label() -> None:
    """Say what identifications turned out to be."""


@label.command("import", epilog=examples("svc label import ORG chargebacks.csv", "svc label import ORG -"))
@click.argument("file", type=click.File("rb"))
def import_(operation: Operation, file: IO[bytes]) -> None:
    """Label the events of a CSV file; - is standard input.

    The first line is request_id,label,label_reason, separated by commas, semicolons or tabs. A label is fraud or
    legitimate; the reason may be empty. Events may be of any environment and up to 400 days old. If a line is wrong,
    nothing is labeled.
    """
    number, now_ms = operation.number, operation.now_ms
    lines = read_csv(file.read())
    _check(operation, lines)
    most = items_of_step(EVENT_ROWS)
    for start in range(0, max(len(lines), 1), most):
        job = partial(_label, number=number, lines=lines[start : start + most], now_ms=now_ms)
        if start:
            apply(operation.found, job, is_pure=True)
        else:
            operation.change(job, {"labels": lines}, is_pure=True)
    counts = {name: sum(line.label == name for line in lines) for name in LABELS}
    operation.show({"organization_id": operation.organization_id, "labeled": len(lines), **counts})


def _label(transaction: Transaction, number: int, lines: list[Line], now_ms: int) -> None:
    for line in lines:
        labeled = label_request(transaction, number, line.request_id, LabelChange(line.label, line.reason), now_ms)
        if isinstance(labeled, Refusal):  # it was there when all lines were checked
            raise CommandError(f"line {line.number}: {labeled.message} Earlier lines were labeled.")


def _check(operation: Operation, lines: list[Line]) -> None:
    """Raise `CommandError` for the first line whose event does not exist or is too old."""
    number, now_ms = operation.number, operation.now_ms
    for start in range(0, len(lines), STEP_LOOKS):
        with operation.store.read() as snapshot:
            for line in lines[start : start + STEP_LOOKS]:
                event = find_event(snapshot, number, UUID(bytes=line.request_id))
                archived = find_outcome(snapshot, number, line.request_id) if event is None else None
                if event is None and archived is None:
                    refuse_hidden(snapshot, number, UUID(bytes=line.request_id), now_ms, OUTCOME_MS)
                at_ms = event.occurred_at_ms if event else archived.outcome.at_ms if archived else None
                if at_ms is None or at_ms < now_ms - OUTCOME_MS:
                    shown = UUID(bytes=line.request_id)
                    raise CommandError(
                        f"line {line.number}: the organization has no event {shown}, or it is over 400 days old; "
                        "nothing was labeled"
                    )


def read_csv(content: bytes) -> list[Line]:
    """Return the lines of a CSV file, of those that say the same the first. Raises `CommandError` with the number of
    the first line that is wrong, or that labels an event otherwise than one before.
    """
    try:
        table = read_table(content, Form(COLUMNS, COLUMNS[:2], needs_header=True))
    except CsvError as error:
        raise CommandError(f"{error}; nothing was labeled") from None
    found: dict[bytes, Line] = {}
    for line in map(_line, table.rows):
        first = found.setdefault(line.request_id, line)
        if first[1:] != line[1:]:
            raise CommandError(
                f"line {line.number}: line {first.number} labels the same event otherwise; nothing was labeled"
            )
    return list(found.values())


def _line(row: Row) -> Line:
    request_id, name, reason = (row.cells[column] for column in COLUMNS)
    fault = None
    if name not in LABELS:
        fault = f"{name!r} is not a label: {' or '.join(LABELS)}"
    elif reason and reason not in LABEL_REASONS:
        fault = f"{reason!r} is not a reason: {', '.join(LABEL_REASONS)}"
    else:
        try:
            raw_id = UUID(request_id).bytes
            return Line(row.line, raw_id, name, reason or None)
        except ValueError:
            fault = f"{request_id!r} is not a request id"
    raise CommandError(f"line {row.line}: {fault}; nothing was labeled")


_SUGGESTION = ("platform", "fraud", "legitimate", "suspect_threshold", "before", "after", "weights")
"""Of the response of the API."""


@click.group(cls=OrganizationGroup)
def weights() -> None:
    """Show which weights the labels of events suggest."""


@weights.command(
    "suggest",
    reads=True,
    epilog=examples(
        "svc weights suggest ORG",
        "svc weights suggest ORG --output weights.json",
        "svc weights suggest ORG --platform android --environment test --json",
    ),
)
@click.option("--platform", type=click.Choice(PLATFORMS), default="web", show_default=True, help="Of the weights.")
@kind_option
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the suggested weights here.")
def suggest_(operation: Operation, platform: Platform, kind: EnvironmentKind, output: Path | None) -> None:
    """Suggest weights from the labels of an organization, beside today's. Nothing is changed.

    At least 50 events of each label are needed. Precision and recall are by cross-validation. --output writes what
    `svc replay --weights` reads; the object under the platform is what PUT risk-weights takes.
    """
    route = "labels.routes.getWeightsSuggestion"
    found = operation.call(route, platform=platform, query={"environment": kind})
    if "before" not in found:
        raise CommandError(
            f"{operation.organization_id} has {found['fraud']} events labeled as fraud and {found['legitimate']} as "
            f"legitimate ({kind}, {platform}); weights are suggested from {found['needed']} of each on"
        )
    if output is not None:
        with operation.store.read() as snapshot:
            in_force = weights_in_force(snapshot, operation.number, None, platform).weights
        chosen = in_force | {one["signal"]: one["after"] for one in found["weights"]}
        body = {platform: {"suspect_threshold": found["suspect_threshold"], "weights": chosen}}
        output.write_bytes(msgspec.json.format(msgspec.json.encode(body), indent=2) + b"\n")
    if operation.as_json:
        operation.show({name: found[name] for name in _SUGGESTION})
        return
    operation.show(
        {
            "platform": platform,
            "labeled": f"{found['fraud']} fraud, {found['legitimate']} legitimate",
            "threshold": found["suspect_threshold"],
            "today": _said(found["before"]),
            "suggested": _said(found["after"]),
        },
        ShownTable("weights", found["weights"], ("signal", "before", "after", "events", "fraud")),
    )


def _said(quality: dict[str, float | None]) -> str:
    precision, recall = ("none" if value is None else f"{value:.1%}" for value in quality.values())
    return f"precision {precision}, recall {recall}"
