"""One event for people: a line of a table that fits 100 columns, and the whole with its explanation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from svc.command.output import cut, padded, readable
from svc.features.changes.jobs import Change
from svc.identify.model import Verdict
from svc.identify.queries.events import EventMatch, UnreadableEvent
from svc.identify.records import Document, Event
from svc.identify.scoring.signals import EVIDENCE, PHRASES, meaning
from svc.kernel.values.timestamps import timestamp

COLUMNS = {
    "time (UTC)": 14, "visitor": 20, "score": 10, "seen": 5, "in": 2, "account": 8, "action": 7, "decision": 9,
    "signals": 9,
}  # fmt: skip
"""Name -> width; two spaces between two. What is longer is cut."""
WITH_ID = {**COLUMNS, "account": 20, "action": 16, "rule": 20, "agent": 15, "tag": 20, "signals": 60, "request": 36}


def head(*, ids: bool) -> str:
    """Return the line of column names above those of `line`; `ids` as there."""
    columns = WITH_ID if ids else COLUMNS
    return _line(columns, {name: name for name in columns})


def line(event: Event, request_id: UUID, *, ids: bool) -> str:
    """Return an event in one line; with `ids` a wider one that ends with its request id."""
    verdict = event.verdict
    score = "-" if verdict.suspect_score is None else f"{verdict.suspect_score} {verdict.suspect_level}"
    signals = _signals(event)
    cells = {
        "time (UTC)": timestamp(event.occurred_at_ms)[5:19].replace("T", " "),
        "visitor": verdict.visitor_id,
        "score": score,
        "seen": "new" if verdict.visitor_is_new else f"{verdict.visitor_confidence} %",
        "in": readable(event.country_code),
        "account": readable(event.account_id),
        "action": readable(event.action),
        "decision": readable(verdict.decision and verdict.decision.action),
        "rule": readable(verdict.decision and verdict.decision.rule),
        "agent": "/".join(filter(None, (event.agent, event.os))) or event.visitor_kind,
        "tag": readable(event.tag),
        "signals": readable(signals),
        "request": str(request_id),
    }
    return _line(WITH_ID if ids else COLUMNS, cells)


def found_line(found: EventMatch | UnreadableEvent, *, ids: bool) -> str:
    """Return an event in one line, as `line` does; of one that cannot be read, its id."""
    if isinstance(found, UnreadableEvent):
        return f"unreadable      request {found.request_id}"
    return line(found.event, found.request_id, ids=ids)


def change_head(*, ids: bool) -> str:
    """Return the line of column names above those of `change_line`; `ids` as there."""
    return f"{'change':<9}{head(ids=ids)}"


def change_line(change: Change, *, ids: bool) -> str:
    """Return a change in one line: what happened, and the event as `line` shows it, or its id where there is none."""
    event = f"request {change.request_id}" if change.event is None else found_line(change.event, ids=ids)
    return f"{change.type.removeprefix('event.'):<9}{event}"


def _signals(event: Event) -> list[str]:
    verdict = event.verdict
    return [fired.signal for fired in (verdict.triggers if verdict.signals is None else verdict.signals)]


def _line(columns: dict[str, int], cells: dict[str, str]) -> str:
    return "  ".join(padded(cut(readable(cells[name]), width), width) for name, width in columns.items()).rstrip()


def _proven(verdict: Verdict) -> str | None:
    if not verdict.proven:
        return None
    about = ", with account, action and tag of the request" if verdict.proof_version == 2 else ""
    return f"yes: signed by the key that its token had before{about}"


def explained(
    event: Event, request_id: UUID, document: Document | None, *, deferred: bool, split_from: str | None
) -> Iterator[str]:
    """Yield the event in lines for a person: what was decided, and why. Without its document the evidence is left out.
    `split_from` is the id of the visitor that the document names.
    """
    verdict, decision = event.verdict, event.verdict.decision
    facts: list[tuple[str, Any]] = [
        ("request", request_id),
        ("arrived", f"{timestamp(event.occurred_at_ms)}, {event.environment}, key {event.key_id}"),
        ("visitor", f"{verdict.visitor_id}, {_known(event)}"),
        ("linkage", _linkage(event, document)),
        ("proven", _proven(verdict)),
        ("split", split_from and f"{split_from}: {meaning(PHRASES.linkage, 'split_from')}"),
        ("score", _score(event, document)),
        ("network", _network(event)),
        ("device", _device(event)),
        ("sent by", f"{event.sdk_platform} SDK {event.sdk_version}, scored as {event.platform}"),
        ("origin", event.origin),
        ("tag", event.tag),
        ("account", event.account_id and f"{event.account_id}{', verified' if event.account_verified else ''}"),
        ("action", event.action),
        ("decision", decision and f"{decision.action}, by the rule {decision.rule} ({decision.rule_id})"),
        ("shadow", ", ".join(f"{one.action} by {one.rule}" for one in event.shadow) or None),
        ("label", event.label and f"{event.label}{f' ({event.label_reason})' if event.label_reason else ''}"),
        ("report", _report(event, document, deferred=deferred)),
    ]
    for name, value in facts:
        if value is not None:
            yield f"{name:<8}  {readable(value)}"
    yield from _evidence(event, document)
    if document is not None and document.changes:
        yield "\nchanged since the visitor's last report"
        yield from (f"  {name}: {meaning(PHRASES.changes, name)}" for name in document.changes)


def _known(event: Event) -> str:
    verdict = event.verdict
    if not verdict.identifiable:
        return "not identifiable: the report carried too little"
    return "new" if verdict.visitor_is_new else f"known, {verdict.visitor_confidence} % sure"


def _linkage(event: Event, document: Document | None) -> str:
    text = meaning(PHRASES.linkage, event.verdict.linkage)
    probability = None if document is None else document.link_probability
    return text if probability is None else f"{text} (likeness {probability:.2%})"


def _score(event: Event, document: Document | None) -> str:
    verdict = event.verdict
    if verdict.suspect_score is None:
        return "not scored: the report could not be read as one"
    parts = [f"{fired.weight} {fired.signal}" for fired in verdict.signals or verdict.triggers]
    said = f"{verdict.suspect_score} = {' + '.join(parts)}" if parts else f"{verdict.suspect_score}: no signal counts"
    threshold = (
        "" if document is None else f" (threshold {document.suspect_threshold}, {document.weights_scope} weights)"
    )
    return f"{said}: {verdict.suspect_level}{threshold}"


def _network(event: Event) -> str:
    parts = [event.ip_address, event.country_name or event.country_code]
    if event.asn is not None:
        parts.append(f"AS{event.asn} {event.asn_name or ''}".rstrip())
    parts.append(event.anonymity_network)
    if event.verdict.reason is not None:
        parts.append(meaning(PHRASES.reasons, event.verdict.reason))
    return ", ".join(filter(None, parts))


def _device(event: Event) -> str:
    agent = " ".join(filter(None, (event.agent, event.agent_version)))
    return ", ".join(filter(None, (agent, event.os, event.device_kind, event.visitor_kind)))


def _report(event: Event, document: Document | None, *, deferred: bool) -> str:
    later = ", with a deferred report" if deferred else ""
    if document is not None:
        return f"archived{later}"
    return f"{'cannot be read' if event.has_document else 'not archived'}{later}"


def _evidence(event: Event, document: Document | None) -> Iterator[str]:
    """Yield each signal with its evidence; those without a weight come last."""
    verdict = event.verdict
    evidence = {} if document is None else document.evidence
    fired = {each.signal: each for each in verdict.signals or ()}
    if fired:
        yield "\nsignals"
    for name, each in fired.items():
        yield f"  {name}: {each.weight} ({each.group}, {each.confidence} confidence)"
        yield from (f"      {meaning(EVIDENCE, seen)}" for seen in evidence.get(name, ()))
    others = {name: checks for name, checks in evidence.items() if name not in fired}
    if others:
        yield "\nnoticed, and not counted with these weights"
    for name, checks in others.items():
        yield f"  {name}"
        yield from (f"      {meaning(EVIDENCE, seen)}" for seen in checks)
