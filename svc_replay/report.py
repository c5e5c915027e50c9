"""What `svc replay` says of a run as a whole: its summary, and how it differs from another run or other weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from sys import intern
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from svc.command.output import CommandError, readable
from svc.features.organizations.bodies import SaveWeightsBody
from svc.features.weights.preview import LevelCounts, LevelExample, LevelMove, Preview, WeightDifference, WeightsPreview
from svc.features.weights.routes import weights_change
from svc.identify.events.event_row import DecisionBody
from svc.identify.model import Decision
from svc.identify.scoring.score import StoredWeights, Weights, changed, default_profile, resolve
from svc.identify.scoring.signals import Mode
from svc.kernel.values.fields import PLATFORMS, Platform
from svc.kernel.values.refusals import Refusal
from svc.kernel.values.struct_fields import sent
from svc.kernel.values.text_files import NotTextError, decode_text
from svc_replay.decisions import NONE, DecisionComparison, RuleChange
from svc_replay.input import ExportedDecision, decision_of, plain_lines
from svc_replay.verdicts import ChangedVerdict, Comparison, RunComparison, RunVerdict

_SHAPE = (
    'write {"web": {"suspect_threshold": 40, "weights": {"tor": 50}}}, as for PUT .../risk-weights/{platform}, or give '
    "the response of GET .../risk-weights"
)


class _Listed(msgspec.Struct, frozen=True):
    """A platform in the response of the `GET`, which has more than is needed."""

    platform: Platform
    suspect_threshold: int
    weights: dict[str, int]
    vpn_weights_mode: Mode
    residential_proxy_weights_mode: Mode


class _Response(msgspec.Struct, frozen=True):
    platforms: tuple[_Listed, ...]


def read_weights(path: Path) -> dict[Platform, StoredWeights]:
    """Return the configuration of each platform that the file names. Raises `CommandError` with what is wrong and what
    to write instead.
    """
    try:
        named = _platforms(decode_text(path.read_bytes()))
    except NotTextError as error:
        raise CommandError(f"{path} {error}") from error
    except msgspec.DecodeError as error:
        raise CommandError(f"{path}: {error}; {_SHAPE}") from error
    return {platform: _stored(path, platform, given) for platform, given in named.items()}


def profiles(stored: dict[Platform, StoredWeights]) -> dict[Platform, Weights]:
    """Return the weights in force for each platform with these configurations; the defaults for a platform
    without one.
    """
    return {platform: resolve(None, stored.get(platform), platform) for platform in PLATFORMS}


def _platforms(content: str) -> Mapping[Platform, SaveWeightsBody]:
    if "platforms" not in msgspec.json.decode(content, type=dict[str, msgspec.Raw]):
        return msgspec.json.decode(content, type=dict[Platform, SaveWeightsBody])
    listed = msgspec.json.decode(content, type=_Response).platforms
    return {one.platform: msgspec.convert(one, SaveWeightsBody, from_attributes=True) for one in listed}


def _stored(path: Path, platform: Platform, given: SaveWeightsBody) -> StoredWeights:
    """Return the weights as they would be stored. Ignore the revision of `given`: nothing is saved."""
    stored = changed(None, default_profile(platform), weights_change(given), platform, 0)
    if isinstance(stored, Refusal):
        faults = ", ".join(f"{detail.field} ({detail.issue})" for detail in stored.details)
        raise CommandError(f"{path}: {platform}: {faults}; `svc signals` lists the signals of each platform")
    return stored


TOP_SIGNALS = 10
"""Signals that the summary names."""
_LEVELS = frozenset({"low", "medium", "high", "not_scored"})


class Summary:
    """Counts of a replay's responses: visitors, levels, signals, and lines that were refused."""

    def __init__(self) -> None:
        self.reports = 0
        self.refused: list[int] = []
        """Numbers of the lines, from 1."""
        self.unarchived = 0
        """Exported events without their report."""
        self.skipped = 0
        """Lines from outside the time that was asked for."""
        self._visitors: Counter[str] = Counter()
        self._levels: Counter[str] = Counter()
        self._signals: Counter[str] = Counter()

    def note(self, number: int, response: dict[str, Any]) -> None:
        """Count the response to one line of the file, `number` from 1. `response` is JSON, with `error` where the
        report was refused.
        """
        self.reports += 1
        if "error" in response:
            self.refused.append(number)
            return
        if not response["identifiable"]:
            self._visitors["not identifiable"] += 1
        else:
            self._visitors["new" if response["visitor_is_new"] else "returning"] += 1
        self._levels[response.get("suspect_level", "not scored")] += 1
        self._signals.update(trigger["signal"] for trigger in response.get("triggers", ()))

    def lines(self) -> list[str]:
        """Return lines to print: reports, visitors, levels and the signals that fired most often."""
        skipped = f", {self.unarchived} without an archived report skipped" if self.unarchived else ""
        skipped += f", {self.skipped} from another time skipped" if self.skipped else ""
        return [
            f"{self.reports} reports replayed, {len(self.refused)} refused{skipped}",
            f"visitors  {_counted(self._visitors)}",
            f"levels    {_counted(self._levels)}",
            f"signals   {_counted(self._signals)}",
        ]

    def as_json(self) -> dict[str, Any]:
        """Return the same counts as a JSON object, and the numbers of refused lines, from 1."""
        return {
            "reports": self.reports,
            "refused_lines": self.refused,
            "without_report": self.unarchived,
            "skipped": self.skipped,
            "visitors": {name.replace(" ", "_"): count for name, count in self._visitors.items()},
            "levels": {name.replace(" ", "_"): count for name, count in self._levels.items()},
            "signals": dict(self._signals.most_common()),
        }


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common(TOP_SIGNALS)) or "none"


class _Fired(msgspec.Struct, frozen=True):
    signal: str
    weight: int


class _StoredEvent(msgspec.Struct, frozen=True):
    occurred_at: str = ""


class _RunLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a replay's output, or of an export."""

    request_id: str = ""
    source_request_id: str | UnsetType = UNSET
    """In the replay of an export: the event that it is about."""
    occurred_at: str | UnsetType = UNSET
    """Of an export."""
    event: _StoredEvent = _StoredEvent()
    """Of a replay, where it stands in `event`."""
    visitor_id: str = ""
    visitor_is_new: bool = False
    suspect_score: int | None = None
    suspect_level: str = "not_scored"
    triggers: tuple[_Fired, ...] = ()
    """Signals in a replay's output, groups in an export."""
    signals: tuple[_Fired, ...] | UnsetType = UNSET
    """Of an export."""
    decision: ExportedDecision | UnsetType = UNSET


_read = msgspec.json.Decoder(_RunLine).decode


class Earlier(NamedTuple):
    """The result of the earlier run for one identification."""

    verdict: RunVerdict
    decision: Decision | None


class Backtest:
    """A run beside an earlier one: `earlier` is a file that `svc replay` or `svc export events` wrote."""

    def __init__(self, earlier: Path, most_examples: int) -> None:
        self._path = earlier
        self._earlier = _load(earlier)
        self._comparison = Comparison(most_examples)
        self._only_after = self._lines = 0

    def note(self, response: dict[str, Any]) -> Earlier | None:
        """Compare the response to the next line, with its event or its error, with that of the earlier run, which is
        returned; `None` if one of them has none.
        """
        self._lines += 1
        key = response.get("source_request_id") or _key_of_line(self._lines)
        before = self._earlier.pop(key, None)
        if "error" in response:
            if before is not None:
                self._earlier[key] = before
            return None
        if before is None:
            self._only_after += 1
            return None
        self._comparison.note(before.verdict, _verdict(msgspec.convert(response, _RunLine)))
        return before

    def summary(self) -> RunComparison:
        """Return what differs. Raises `CommandError` if the two runs have no identification in common."""
        found = self._comparison.summary(only_before=len(self._earlier), only_after=self._only_after)
        if not found.compared and self._only_after:
            raise CommandError(
                f"{self._path} is about none of these identifications: name what an earlier replay of the same file "
                "wrote, or the export that is replayed"
            )
        return found


def _load(path: Path) -> dict[str, Earlier]:
    found: dict[str, Earlier] = {}
    with path.open("rb") as file, plain_lines(path, file) as lines:
        for number, line in enumerate((line for line in lines if line.strip()), start=1):
            try:
                row = _read(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise CommandError(
                    f"{path} is neither the output of svc replay nor of svc export events (JSON lines): line {number}: "
                    f"{error}"
                ) from error
            if not row.visitor_id or row.suspect_level not in _LEVELS:  # refused then
                continue
            exported = row.request_id if row.occurred_at is not UNSET else None
            earlier = Earlier(_verdict(row), decision_of(row.decision))
            found[sent(row.source_request_id) or exported or _key_of_line(number)] = earlier
    return found


def _key_of_line(number: int) -> str:
    return f"line {number}"


def _verdict(row: _RunLine) -> RunVerdict:
    fired = row.triggers if row.signals is UNSET else row.signals
    return RunVerdict(
        request_id=row.request_id,
        occurred_at=row.event.occurred_at if row.occurred_at is UNSET else row.occurred_at,
        visitor_id=intern(row.visitor_id),
        visitor_is_new=row.visitor_is_new,
        score=row.suspect_score,
        level=intern(row.suspect_level),
        signals=_same(tuple((intern(one.signal), one.weight) for one in fired)),
    )


@lru_cache(maxsize=4096)
def _same(signals: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    """Return one object for equal sets of signals: there are few of them in millions of events."""
    return signals


class Previews:
    """What other weights make of a run, platform by platform, against the defaults."""

    def __init__(self, after: dict[Platform, Weights]) -> None:
        self.of: dict[Platform, Preview] = {
            platform: Preview(platform, default_profile(platform), after[platform]) for platform in PLATFORMS
        }

    def summaries(self) -> dict[Platform, WeightsPreview]:
        """Return the changes by the weights for each platform that had an identification."""
        found: dict[Platform, WeightsPreview] = {platform: one.summary() for platform, one in self.of.items()}
        return {platform: summary for platform, summary in found.items() if summary.events}


def comparison_lines(found: RunComparison) -> list[str]:
    """Return the comparison in lines for people: counts, moves between levels, signals, and examples of changed
    verdicts.
    """
    visitors = found.visitors
    return [
        (
            f"{found.compared} identifications compared, {found.changed} verdicts changed; "
            f"{found.only_before} in the earlier run alone, {found.only_after} in this one alone"
        ),
        (
            f"visitors  {visitors.before} before, {visitors.after} after; new -> known {visitors.new_to_known}, "
            f"known -> new {visitors.known_to_new}; joined {visitors.joined}, separated {visitors.separated}, "
            f"moved {visitors.moved}"
        ),
        f"levels    {_levels(found.before)} -> {_levels(found.after)}",
        f"scores    raised {found.score_raised}, lowered {found.score_lowered}",
        *_moves(found.moves),
        *(
            f"  {one.signal}: appeared {one.appeared}, disappeared {one.disappeared}, other weight {one.reweighted}; "
            f"level changed {one.level_changed}"
            for one in found.by_signal
        ),
        *(_changed(example) for example in found.examples),
    ]


def preview_lines(found: dict[Platform, WeightsPreview], most_examples: int) -> list[str]:
    """Return what the weights change in lines for people, platform by platform, with `most_examples` of each."""
    lines: list[str] = []
    for platform, summary in found.items():
        lines += [
            (
                f"{platform}: {summary.events} identifications with these weights, {summary.changed} levels changed "
                "against the defaults"
            ),
            f"levels    {_levels(summary.before)} -> {_levels(summary.after)}",
            *_moves(summary.moves),
            *(
                f"  {one.signal}: {one.before} -> {one.after} in {one.count}; level changed {one.changed}"
                for one in summary.by_signal
            ),
            *(_rescored(example) for example in summary.examples[:most_examples]),
        ]
    return lines


def _levels(counts: LevelCounts) -> str:
    named = {name.replace("_", " "): count for name, count in msgspec.structs.asdict(counts).items()}
    return ", ".join(f"{name} {count}" for name, count in named.items() if count) or "none"


def _moves(moves: Iterable[LevelMove]) -> list[str]:
    return [f"  {move.before} -> {move.after}: {move.count}" for move in moves]


def _changed(example: ChangedVerdict) -> str:
    before, after = example.before, example.after
    parts = [f"{before.level} {_score(before.score)} -> {after.level} {_score(after.score)}"]
    if before.visitor_is_new != after.visitor_is_new:
        parts.append("new -> known" if before.visitor_is_new else "known -> new")
    if example.link is not None:
        parts.append(f"visitor {example.link}")
    parts += _because(example.because)
    return f"  {before.occurred_at} {before.request_id}  {'; '.join(map(readable, parts))}"


def _rescored(example: LevelExample) -> str:
    before, after = example.before, example.after
    parts = [f"{before.level} {before.score} -> {after.level} {after.score}", *_because(example.because)]
    return f"  {example.occurred_at} {example.request_id}  {'; '.join(parts)}"


def _because(differences: Iterable[WeightDifference]) -> list[str]:
    return [f"{one.signal} {one.before} -> {one.after}" for one in differences]


def _score(score: int | None) -> str:
    return "-" if score is None else str(score)


def decision_lines(found: DecisionComparison) -> list[str]:
    """Return the comparison in lines for people: counts by action and by rule, moves, and examples of changed
    decisions.
    """
    return [
        f"{found.compared} identifications compared, {found.changed} decisions changed",
        f"decisions  {_actions(found.before)} -> {_actions(found.after)}",
        *(f"  {move.before} -> {move.after}: {move.count}" for move in found.moves),
        *(_rule(one) for one in found.by_rule),
        *(
            f"  {one.occurred_at} {one.request_id}  {_decision(one.before)} -> {_decision(one.after)}"
            for one in found.examples
        ),
        *(f"Warning: {warning}." for warning in found.warnings),
    ]


def _actions(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or NONE


def _rule(one: RuleChange) -> str:
    mode = "" if one.mode == "active" else f" ({one.mode})"
    errors = f", {one.errors} errors" if one.errors else ""
    return f"  rule {readable(one.rule)}{mode}: {one.before} -> {one.after}{errors}"


def _decision(decision: DecisionBody | None) -> str:
    return NONE if decision is None else f"{decision.action} by {readable(decision.rule)}"
