"""The measurement of `one browser, one visitor` measures what it says: known answers, and the service's own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from bench.browsers.measure import Capture
from bench.linkage import service
from bench.linkage.identity import drift, private, programs, rows, takeover, twins, versions
from bench.linkage.identity.world import (
    MINUTE_MS,
    Counts,
    OurService,
    Reading,
    Recognizer,
    Sent,
    Visit,
    World,
    captured,
    different,
    of_capture,
    plain,
)
from bench.linkage.judge import Answer
from svc.identify.model import RequestFacts, RequestHeaders
from svc.identify.useragent.agent import read_hints
from tests.support.live import report

NOWHERE = Path("nowhere")


class Omniscient:
    """Answers with the browser itself."""

    def __init__(self, known: set[str] | None = None) -> None:
        self.known = set(known or ())

    def visit(self, visit: Visit) -> Answer:
        answer = self.ask(visit)
        self.known.add(visit.browser)
        return Answer(visit.browser, answer.confidence)

    def ask(self, visit: Visit) -> Answer:
        known = visit.browser in self.known
        return Answer(visit.browser if known else None, 100 if known else 0)

    def copy(self) -> Omniscient:
        return Omniscient(self.known)


class Blind:
    """Takes everybody for one visitor."""

    def visit(self, visit: Visit) -> Answer:
        del visit
        return Answer("somebody", 100)

    ask = visit

    def copy(self) -> Blind:
        return self


@cache
def people() -> list[Sent]:
    return different(Reading(), (of_capture(capture) for capture in captured() if capture.browser == "chromium"))


def reports_of_captures(folder: Path) -> list[Sent]:
    del folder
    return people()


def plain_reports(folder: Path) -> list[Sent]:
    del folder
    return [plain(f"device {device}", report(device), held_out=False) for device in range(1, 9)]


def plain_machine(found: list[Capture]) -> dict[str, dict[str, Capture]]:
    return {"plain": ALL_MACHINES(found)["plain"]}


ALL_MACHINES = programs.machines


@pytest.fixture
def small_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row with a few visits, and captures where streams would be read."""
    for name, value in {"SINGLES": 8, "TWO_SITES": 2, "HOUSEHOLDS": 2, "OFFICES": 1, "IN_OFFICE": 3, "CARRIERS": 1,
                        "OF_CARRIER": 3, "FURTHER": 2}.items():  # fmt: skip
        monkeypatch.setattr(twins, name, value)
    monkeypatch.setattr(twins, "stream_reports", reports_of_captures)
    monkeypatch.setattr(drift, "stream_reports", plain_reports)
    monkeypatch.setattr(drift, "PAIRS", 2)
    monkeypatch.setattr(private, "PEOPLE", 1)
    monkeypatch.setattr(takeover, "VICTIMS", 1)
    monkeypatch.setattr(versions, "PAIRS", 2)
    monkeypatch.setattr(programs, "machines", plain_machine)


ROWS: dict[str, tuple[Callable[..., Counts], str]] = {
    "twins": (twins.measure, "small"),
    "private": (private.measure, ""),
    "programs": (programs.measure, ""),
    "drift": (drift.measure, "small"),
    "versions": (versions.measure, ""),
    "takeover": (takeover.measure, ""),
}


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.usefixtures("small_rows")
def test_who_knows_the_truth_meets_every_aim(row: str):
    measure, stream = ROWS[row]
    counts = measure(0, NOWHERE, stream, Omniscient)
    for case, aim in rows.ROWS[row].aims.items():
        share = counts.whole(case).share
        assert share is not None, case
        assert aim.met(share), (case, share)
    assert {right for _, right in counts.confidences} == {True}


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.usefixtures("small_rows")
def test_who_takes_all_for_one_misses_every_aim_that_is_about_others(row: str):
    measure, stream = ROWS[row]
    counts = measure(0, NOWHERE, stream, Blind)
    about_others = [
        case
        for case, aim in rows.ROWS[row].aims.items()
        if (aim.sense == "<=" and "changes the victim" not in case) or "apart" in case or "is new" in case
    ]
    assert about_others or row == "programs"
    for case in about_others:
        share = counts.whole(case).share
        assert share is not None
        assert not rows.ROWS[row].aims[case].met(share), (case, share)
    assert any(not right for _, right in counts.confidences)


# ---- the months of twins


@pytest.mark.usefixtures("small_rows")
@pytest.mark.slow(0.2)
def test_the_month_is_the_same_for_a_seed_and_its_devices_are_as_described():
    planned = twins.plan(people(), 7)
    assert [visit.visit() for visit in planned] == [visit.visit() for visit in twins.plan(people(), 7)]
    assert [visit.day for visit in planned] != [visit.day for visit in twins.plan(people(), 8)]
    assert planned == sorted(planned, key=lambda visit: visit.day)
    tokens: dict[str, set[str]] = {}
    for visit in planned:
        assert visit.token_is_new == (visit.token not in tokens.setdefault(visit.device, set()))
        tokens[visit.device].add(visit.token)
    of_kind = {
        kind: [visit for visit in planned if visit.kind == kind] for kind in ("household", "carrier", "two sites")
    }
    assert {len(tokens[visit.device]) for visit in of_kind["household"] + of_kind["carrier"]} == {1}
    assert {visit.ip for visit in of_kind["carrier"]} == {
        f"{of_kind['carrier'][0].ip.rpartition('.')[0]}.{n}" for n in (1, 2, 3)
    }
    assert len({visit.ip for visit in of_kind["household"] if visit.group == "0"}) == 1
    assert len({id(visit.sent) for visit in planned if visit.kind != "single"}) == 2 + 2 + 1 + 1
    assert {len(tokens[visit.device]) for visit in of_kind["two sites"]} == {2}
    assert len({visit.device for visit in planned if visit.cleared}) == 2


# ---- worlds


def exported_line(visit: Visit) -> bytes:
    """The visit as `svc replay` reads it, with its headers."""
    signals: dict[str, Any] = {**visit.sent.signals}
    if visit.private:
        signals["incognito"] = True
    if visit.token is not None:
        signals |= {"client_token": visit.token, "client_token_is_new": visit.token_is_new}
    if visit.nonce is not None:
        signals["nonce"] = visit.nonce
    headers = visit.sent.headers
    facts = RequestFacts(
        ip=visit.ip,
        user_agent=headers.get("user-agent", ""),
        accept_language=headers.get("accept-language", ""),
        hints=read_hints(headers),
    )
    line = {
        "request_id": "00000000-0000-7000-8000-000000000000",
        "occurred_at": datetime.fromtimestamp(visit.at_ms / 1000, UTC).isoformat(),
        "ip_address": visit.ip,
        "origin": visit.origin,
        "document": {"signals": signals},
        "headers": {name: getattr(facts, name) for name in RequestHeaders.__struct_fields__},
    }
    return msgspec.json.encode(line) + b"\n"


class Recorder:
    """The service's matching, and what it was asked."""

    def __init__(self, recorded: list[tuple[Visit, Answer]]) -> None:
        self.recorded = recorded
        self._service = OurService(Reading())

    def visit(self, visit: Visit) -> Answer:
        answer = self._service.visit(visit)
        self.recorded.append((visit, answer))
        return answer

    def ask(self, visit: Visit) -> Answer:
        return self._service.ask(visit)

    def copy(self) -> Recognizer:
        return self


@pytest.mark.slow(2)
@pytest.mark.usefixtures("small_rows")
def test_the_answers_are_those_of_the_service():
    """A month of twins, private windows and a replayed report: ids and confidences are those of `svc replay`."""
    recorded: list[tuple[Visit, Answer]] = []
    world = World(Recorder(recorded))
    for planned in twins.plan(people()[10:], 7):
        world.visit(planned.visit())
    random, now_ms = Random(7), recorded[-1][0].at_ms
    home = Visit("person", people()[0], "82.10.20.30", 0, "c" * 32)
    hour_ms = 60 * MINUTE_MS
    later: list[Visit] = [home._replace(at_ms=now_ms + hour_ms, token_is_new=True, nonce="n" * 32)]
    later += [home._replace(at_ms=now_ms + hour * hour_ms) for hour in (26, 50, 74)]
    later += [
        home._replace(at_ms=now_ms + hour * hour_ms, token=f"{random.getrandbits(128):032x}", token_is_new=True,
                      private=hour % 2 == 0)
        for hour in (75, 76, 77, 78)
    ]  # fmt: skip
    later.append(later[0]._replace(ip="93.9.8.7", at_ms=now_ms + 80 * hour_ms))
    later += [home._replace(at_ms=now_ms + 100 * hour_ms), home._replace(ip="71.5.6.7", at_ms=now_ms + 130 * hour_ms)]
    for visit in later:
        world.visit(visit)
    replayed = service.replay(exported_line(visit) for visit, _ in recorded).answers
    assert numbered(replayed) == numbered([answer for _, answer in recorded])


def numbered(answers: list[Answer]) -> list[tuple[int, int]]:
    """Ids as the places of the visits that first got them."""
    first: dict[object, int] = {}
    return [(first.setdefault(answer.visitor, place), answer.confidence) for place, answer in enumerate(answers)]


# ---- programs and their changes


# ---- versions


# ---- tables


def measured(*shares: tuple[float, float]) -> list[rows.Measured]:
    """One case of twins, by seed: of fitted and of held-out reports."""
    case = next(iter(twins.AIMS))
    runs: list[Counts] = []
    for fitted, held_out in shares:
        counts = Counts()
        counts.add(case, 100 * fitted, 100, "fitted on")
        counts.add(case, 100 * held_out, 100, "held out")
        counts.add("a case without an aim", 1)
        counts.confidences.update({(90, True): 3, (90, False): 1})
        runs.append(counts)
    return [rows.Measured("twins", "small", runs, runs[0])]


def test_tables_have_the_mean_the_worst_seed_and_whether_the_aim_is_met():
    table, parts, confidence = rows.identity_tables(measured((0.0, 0.02), (0.02, 0.06)))
    case = next(iter(twins.AIMS))
    assert table.rows[0] == ("small", case, "≤ .02", "0.025", "0.040", "400", "no", "0.010")
    assert table.rows[1][3:] == ("-", "-", "0", "-", "-")
    assert parts.rows == [("small", case, "≤ .02", "0.010", "0.020", "200", "0.040", "0.060", "200")]
    assert confidence.rows[0][:3] == ("twins", "-", "0.750 of 8")
    details = rows.identity_tables(measured((0.0, 0.0)), details=True)[-1]
    assert details.rows == [("small", "a case without an aim", "1.000", "1.000", "1")]
    assert rows.identity_tables([]) == []


def test_every_row_runs_with_every_seed_and_once_by_hashes_alone():
    names = list(rows.identity_jobs(["twins", "private"], 2, NOWHERE))
    assert names == [
        "twins of small, 0", "twins of small, 1", "twins of small, hash",
        "twins of dev, 0", "twins of dev, 1", "twins of dev, hash",
        "private of captures, 0", "private of captures, 1", "private of captures, hash",
    ]  # fmt: skip
    found = {name: Counts() for name in names}
    whole = rows.gathered(["twins", "private"], 2, found)
    assert [(one.row, one.stream, len(one.runs)) for one in whole] == [
        ("twins", "small", 2), ("twins", "dev", 2), ("private", "", 2),
    ]  # fmt: skip
