"""Bodies and queries of labels and performance: what decisions 14.1 and 14.2 say as types."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from svc.features.labels.performance import Line
from svc.http.schema import InKind
from svc.identify.model import Label, LabelReason
from svc.kernel.values.fields import A_TIME, TIME_FORM, Timestamp, about, id_form


class LabelBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of `labelEvent`."""

    label: Annotated[Label | None, about("What the event turned out to be; `null` removes the label.", "fraud")]
    label_reason: Annotated[LabelReason | None, about("Why; none when left out.", "chargeback")] = None


class PerformanceQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query of `getPerformance`."""

    environment: InKind = "live"
    start: Annotated[
        str | UnsetType,
        about("Start of the window; 30 days before its end when left out.", "2026-01-01T00:00:00Z", form=TIME_FORM),
    ] = msgspec.field(default=UNSET, name="from")
    end: Annotated[
        str | UnsetType, about("End of the window, exclusive; now when left out.", A_TIME, form=TIME_FORM)
    ] = msgspec.field(default=UNSET, name="to")


class PerformanceLine(msgspec.Struct, frozen=True, kw_only=True):
    """How a signal, a group, a rule or a level did. Fractions are `null` where nothing is labeled."""

    name: Annotated[str, about("Of the signal, group, rule or level.", "automation")]
    rule_id: Annotated[str, about("Id of the rule.", "rul_0qppzPLvL54VURDkQrfS", form=id_form("rul_"))] | UnsetType = (
        UNSET
    )
    events: Annotated[int, about("Events in which it fired, matched, or that have this level.", 340)]
    labelled: Annotated[int, about("Of these, labeled ones.", 40)]
    fraud: Annotated[int, about("Of these, fraud.", 36)]
    legitimate: Annotated[int, about("Of the labeled ones, legitimate.", 4)]
    precision: Annotated[float | None, about("`fraud` of `labelled`.", 0.9)]
    precision_low: Annotated[float | None, about("Lower end of its 95 % interval (Wilson).", 0.769)]
    precision_high: Annotated[float | None, about("Upper end.", 0.96)]
    recall: Annotated[float | None, about("`fraud` of all fraud in the window.", 0.72)]


class PerformanceTotal(msgspec.Struct, frozen=True, kw_only=True):
    """What the window has in all."""

    events: Annotated[int, about("Events.", 12_000)]
    labelled: Annotated[int, about("Labeled events.", 110)]
    fraud: Annotated[int, about("Of these, fraud.", 50)]
    legitimate: Annotated[int, about("Of these, legitimate.", 60)]


class PerformanceScores(msgspec.Struct, frozen=True, kw_only=True):
    """The labeled events whose scores lie between two bounds."""

    start: Annotated[int, about("Lowest score.", 40)] = msgspec.field(name="from")
    end: Annotated[int | None, about("The score where the next line begins; `null` = there is none.", 50)] = (
        msgspec.field(name="to")
    )
    fraud: Annotated[int, about("Of the labeled ones, fraud.", 12)]
    legitimate: Annotated[int, about("Of the labeled ones, legitimate.", 3)]


class PerformanceBody(msgspec.Struct, frozen=True, kw_only=True):
    """How well signals, rules and levels tell fraud, by the labels of events (decisions 14.2)."""

    start: Annotated[Timestamp, about("Start of the first UTC day.")] = msgspec.field(name="from")
    end: Annotated[Timestamp, about("End of the last UTC day.")] = msgspec.field(name="to")
    total: Annotated[PerformanceTotal, about("Of the whole window.")]
    signals: Annotated[tuple[PerformanceLine, ...], about("Most events first.")]
    groups: Annotated[tuple[PerformanceLine, ...], about("Groups of signals, most events first.")]
    rules: Annotated[
        tuple[PerformanceLine, ...],
        about(
            "Those in force in their order, then former ones. An event counts for the rule that decided and shadows."
        ),
    ]
    levels: Annotated[tuple[PerformanceLine, ...], about("`low`, `medium` and `high`, each by itself.")]
    scores: Annotated[tuple[PerformanceScores, ...], about("Labeled events by score, lowest first.")]


def performance_line(line: Line, name: str | None = None, rule_id: str | UnsetType = UNSET) -> PerformanceLine:
    """Return a line under its name, or another one."""
    shown = line if name is None else line._replace(name=name)
    return PerformanceLine(**shown._asdict(), rule_id=rule_id, labelled=line.labeled)
