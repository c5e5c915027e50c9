"""Decisions 10: `svc events`, `svc visitor show|list|export` and `svc export`, on data that a service has left."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import signal
import subprocess
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trio

from svc.features.erasure.visitors import continue_erasure, erase_visitor
from svc.features.events import source as event_source
from svc.features.events.command import LATE_MS, follow_arrivals
from svc.features.events.source import Wanted
from svc.features.exports.lines import FILE_COLUMNS
from svc.features.inspection.inspection import show_key
from svc.features.rules.jobs import save_rules
from svc.features.rules.ruleset import Rule
from svc.features.tables import TABLES
from svc.features.webhooks.jobs.endpoints import NewEndpoint, create_endpoint
from svc.identify.events.listing import Filters
from svc.identify.queries.events import put_event
from svc.identify.scoring.signals import EVIDENCE
from svc.kernel.store.overlay import Overlay
from svc.kernel.store.postgresql.connection.wire import Wire
from svc.kernel.store.schema.table import NotPersonal
from svc.kernel.store.snapshot import Transaction
from svc.world import World
from tests.domain.test_preview import event
from tests.spec.commands import Ran, Run, run_beside
from tests.spec.responses import BROWSER, DRIVEN, PROGRAM, TOO_LITTLE, visit
from tests.spec.test_erasure import marked, tell_later
from tests.support.live import Live, live_service, opened, options_of, report, succeeded
from tests.support.process import PROGRAM as SVC
from tests.support.process import finish, start

pytestmark = pytest.mark.slow

FORMULA = '=HYPERLINK("https://evil.example")'
ROW_BREAK = "x\r=1+cmd|calc"
CURSOR_UP = "\x1b[A\x9bA\u202e"
OTHER_PLACE = {**BROWSER, "x-forwarded-for": "203.0.114.7"}
NOBODY = "A" * 20


class Shop(NamedTuple):
    """An organization whose service has ended."""

    directory: Path
    organization: str
    answers: list[dict[str, Any]]
    """Of identify, oldest first."""
    rows: list[dict[str, Any]]
    """Of GET /events, newest first."""
    detail: dict[str, Any]
    """Of GET /events/{request_id}, of the driven browser."""

    def rows_with(self, *places: int) -> list[str]:
        """Request ids of the identifications by their order, newest first."""
        return [self.answers[place]["request_id"] for place in sorted(places, reverse=True)]


async def populate(directory: Path) -> Shop:
    async with live_service(directory, now_ms=World.real().now_ms() - 3_600_000) as live:
        public, secret = live.issue(environment="production")[1], live.issue("secret", "production")[1]
        subscribe(live)
        save_rule(live)
        sent: list[tuple[dict[str, Any], dict[str, Any]]] = [
            (marked("a"), {"tag": "cart"}),
            (marked("a"), {"tag": "cart", "headers": OTHER_PLACE, "account_id": "user-7", "action": "log_in"}),
            (report(2, **DRIVEN), {"tag": FORMULA}),
            (report(3), {"tag": f"x{CURSOR_UP}", "headers": PROGRAM}),
            (TOO_LITTLE, {}),
            (report(4, languages=["fr"]), {"tag": ROW_BREAK, "headers": {"accept-language": "de"}}),
        ]
        answers: list[dict[str, Any]] = []
        for place, (signals, given) in enumerate(sent):
            live.clock.now_ms += 1000 * (place != 1)  # the first two arrive in one millisecond
            answers.append(succeeded(await visit(live, public, signals, **given)))
        await visit(live, live.issue(environment="staging")[1], marked("a"))
        await tell_later(live, public, answers[0], "a")
        key = {"x-api-key": secret}
        rows = (await live.client.get("/api/v1/events", params={"limit": 200}, headers=key)).json()["rows"]
        detail = (await live.client.get(f"/api/v1/events/{answers[2]['request_id']}", headers=key)).json()
        return Shop(directory, live.organization.id, answers, rows, detail)


def save_rule(live: Live) -> None:
    rule = Rule(id="rul_" + "0" * 20, name="=Known user", condition='present("account.id")', action="review")
    job = partial(
        save_rules, number=live.organization.number, kind="live", revision=0, rules=[rule], saved_by="", now_ms=0
    )
    assert not [outcome for outcome in live.found.store.write_now([job]) if isinstance(outcome, Exception)]


def subscribe(live: Live) -> None:
    new = NewEndpoint(
        id="whk_test",
        url="https://receiver.example/",
        description="",
        environment="live",
        events=("identification.completed", "visitor.suspect"),
    )
    job = partial(create_endpoint, number=live.organization.number, new=new, secrets_key=b"", now_ms=0)
    assert not [outcome for outcome in live.found.store.write_now([job]) if isinstance(outcome, Exception)]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, engine: str) -> Shop:
    return trio.run(populate, tmp_path_factory.mktemp("shop") / "data")


@pytest.fixture
def shop(kept: Shop, run: Run, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setenv("SVC_DATA", str(kept.directory))
    return kept


def ids(rows: list[dict[str, Any]]) -> list[str]:
    return [row["request_id"] for row in rows]


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


# svc events


def test_events_are_listed_newest_first_as_in_the_api(run: Run, shop: Shop):
    assert run("events", "list", shop.organization, "--json").json == {"events": shop.rows, "more": False}
    first = run("events", "list", shop.organization, "--limit", 2, "--json").json
    assert first == {"events": shop.rows[:2], "more": True}


def test_the_table_of_events_fits_100_columns_and_no_tag_can_move_the_cursor(run: Run, shop: Shop):
    ran = run("events", "list", shop.organization)
    assert ran.status == 0
    head, *rows = ran.out.splitlines()
    assert len(rows) == len(shop.rows)
    assert max(map(len, [head, *rows])) <= 100
    assert not {"\x1b", "\x9b", "\u202e"} & set(ran.out)
    assert "automati" in ran.out
    assert ["user-7", "log_in", "review"] in [row.split()[-4:-1] for row in rows]
    wide = run("events", "list", shop.organization, "--ids").out
    assert all(row["request_id"] in wide for row in shop.rows)
    assert "=Known user" in wide
    got = run("events", "get", shop.organization, shop.answers[1]["request_id"]).out
    assert "decision  review, by the rule =Known user (rul_" in got


def test_no_command_moves_the_cursor_of_a_terminal(run: Run, shop: Shop):
    """With `--json` neither, and that is the same text for a program."""
    answer = shop.answers[3]
    for command in (
        ("events", "list", shop.organization),
        ("events", "tail", shop.organization, "--since", "1d", "--no-follow"),
        ("events", "tail", shop.organization, "--since", "1d", "--no-follow", "--changes"),
        ("events", "get", shop.organization, answer["request_id"]),
        ("visitor", "show", shop.organization, answer["visitor_id"]),
        ("inspect", "request", answer["request_id"], "--payload"),
        ("inspect", "rows", "events", "--payload"),
    ):
        for form in ((), ("--json",)):
            shown = run(*command, *form).out
            assert not {"\x1b", "\x9b", "\u202e"} & set(shown), (command, form)
    got = run("events", "get", shop.organization, answer["request_id"], "--json").json
    assert got["tag"] == f"x{CURSOR_UP}"


def test_no_refusal_of_a_file_moves_the_cursor_of_a_terminal(run: Run, shop: Shop, tmp_path: Path):
    """Somebody else may have made the file, and the message names what is wrong in it."""
    file, bell = tmp_path / "made", json.dumps("\x1b]0;x\x07\x9b2J\u202e")
    file.write_text(f'{{"revision": 1, "rules": [], {bell}: 1}}')
    refused = run("rule", "set", shop.organization, file)
    file.write_text(f"{bell} = 1")
    checked = run("config", "check", file)
    for said in (refused.err, checked.out):
        assert r"\x1b]0;x\x07\x9b2J\u202e" in said
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(said)


@pytest.mark.parametrize(
    ("option", "value", "places"),
    [
        ("--level", "high", []),
        ("--kind", "automation", [2, 3]),
        ("--tag", "cart", [0, 1]),
        ("--tag", "CART", []),
        ("--ip", "203.0.114.7", [1]),
        ("--signal", "automation", [2]),
        ("--group", "bot", [2, 3]),
        ("--country", "zz", []),
        ("--environment", "development", []),
    ],
)
@pytest.mark.every_case
def test_each_filter_shows_its_matching_events(run: Run, shop: Shop, option: str, value: str, places: list[int]):
    found = run("events", "list", shop.organization, option, value, "--json").json["events"]
    assert ids(found) == shop.rows_with(*places)
    exported = run("export", "events", shop.organization, option, value).out
    assert ids(lines(exported)) == shop.rows_with(*places)[::-1]
    assert run("events", "count", shop.organization, option, value, "--json").json == {"count": len(places)}
    said = run("events", "count", shop.organization, option, value)
    assert said.out == f"{len(places)} event{'s' * (len(places) != 1)}\n"
    assert ("Nothing was found in" in said.err) == (not places)


def test_filters_and_the_window_are_combined(run: Run, shop: Shop):
    visitor = shop.answers[0]["visitor_id"]
    listed = partial(run, "events", "list", shop.organization, "--json", "--visitor", visitor, "--tag", "cart")
    assert ids(listed("--ip", "203.0.114.7").json["events"]) == shop.rows_with(1)
    assert listed("--since", "10m").json["events"] == []
    assert len(listed("--until", "1s").json["events"]) == 2
    assert listed("--until", "2h").json["events"] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("--since", "yesterday"),
        ("--since", "1h", "--until", "2h"),
        ("--since", "40d", "--until", "35d"),
        ("--visitor", "nobody"),
        ("--ip", "1.2.3"),
        ("--country", "Germany"),
        ("--signal", "color"),
        ("--group", "color"),
        ("--kind", "cat"),
        ("--level", "extreme"),
        ("--limit", "0"),
    ],
)
def test_an_invalid_query_is_a_usage_error(run: Run, shop: Shop, arguments: tuple[str, ...]):
    run("events", "list", shop.organization, *arguments).assert_usage()


def test_a_missing_organization_or_event_is_named(run: Run, shop: Shop, tmp_path: Path):
    unknown = "019b76da-a800-7432-8bf5-5edfa0c12b47"
    run("events", "get", shop.organization, unknown).assert_refused(unknown, "30 days")
    run("events", "get", shop.organization, "1").assert_usage()
    for command in (("events", "list"), ("events", "tail"), ("export", "events"), ("visitor", "list")):
        run(*command, "org_x").assert_refused("org_x", "svc org list")
        run(*command, "org_x", "--data", tmp_path / "none").assert_refused("svc org create")


def test_an_event_is_explained_as_a_sum_with_the_evidence_of_each_signal(run: Run, shop: Shop):
    request_id = shop.answers[2]["request_id"]
    text = run("events", "get", shop.organization, request_id).out
    assert "40 = 40 automation: medium (threshold 30, default weights)" in text
    assert "automation: 40 (bot, " in text
    assert EVIDENCE["webdriver"] in text
    assert FORMULA in text
    event = run("events", "get", shop.organization, request_id, "--json").json
    headers = event.pop("headers")
    assert event == shop.detail
    assert headers["user_agent"] == BROWSER["user-agent"]


def test_an_event_with_a_deferred_report_shows_it(run: Run, shop: Shop):
    request_id = shop.answers[0]["request_id"]
    assert "with a deferred report" in run("events", "get", shop.organization, request_id).out
    event = run("events", "get", shop.organization, request_id, "--json").json
    assert event["deferred_signals"]["note"] == "later-a"


# svc export events


def test_an_export_has_every_event_once_oldest_first(run: Run, shop: Shop, monkeypatch: pytest.MonkeyPatch):
    """Also where more of them arrived in one millisecond than are read at once."""
    monkeypatch.setattr(event_source, "EVENTS_A_READ", 1)
    assert lines(run("export", "events", shop.organization).out) == shop.rows[::-1]


def test_an_export_with_documents_has_what_the_api_shows_of_each_event(run: Run, shop: Shop):
    exported = lines(run("export", "events", shop.organization, "--documents", "--signal", "automation").out)
    (event,) = exported
    assert event.pop("headers")["accept_language"] == BROWSER["accept-language"]
    assert event == shop.detail


def test_an_export_file_is_readable_by_its_owner_only_and_may_be_compressed(run: Run, shop: Shop, tmp_path: Path):
    plain, packed = tmp_path / "events.jsonl", tmp_path / "events.jsonl.gz"
    plain.write_bytes(b"of an earlier export, for everyone\n" * 1000)
    plain.chmod(0o644)
    for file in (plain, packed):
        assert run("export", "events", shop.organization, "--output", file) == (0, "", "")
        assert file.stat().st_mode & 0o777 == 0o600
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert lines(plain.read_text()) == shop.rows[::-1]
    assert sorted(tmp_path.iterdir()) == [plain, packed]
    run("export", "events", shop.organization, "--output", tmp_path / "none" / "x").assert_refused("none")


def test_an_export_to_standard_output_or_a_pipe_is_written_directly(kept: Shop, tmp_path: Path):
    pipe, redirected = tmp_path / "pipe", tmp_path / "redirected"
    os.mkfifo(pipe)
    export = partial(finish, "export", "events", kept.organization, *options_of(kept.directory), "--output")
    piped = export("/dev/stdout")
    with redirected.open("w") as file:
        to_file = export("/dev/stdout", stdout=file)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
        to_pipe = export(pipe)
        read, _ = reader.communicate(timeout=60)
    for done, written in ((piped, piped.stdout), (to_file, redirected.read_text()), (to_pipe, read)):
        assert done.returncode == 0, done.stderr
        assert lines(written) == kept.rows[::-1]
    assert pipe.is_fifo()
    assert sorted(tmp_path.iterdir()) == [pipe, redirected]


def test_csv_has_its_columns_and_nothing_that_a_spreadsheet_would_evaluate(run: Run, shop: Shop):
    text = run("export", "events", shop.organization, "--format", "csv").out
    assert "\r" not in text
    rows = list(csv.reader(text.splitlines()))
    assert rows == list(csv.reader(io.StringIO(text, newline=None), strict=True))
    assert tuple(rows[0]) == FILE_COLUMNS
    by_id = {row[0]: dict(zip(FILE_COLUMNS, row, strict=True)) for row in rows[1:]}
    assert list(by_id) == ids(shop.rows)[::-1]
    driven = by_id[shop.answers[2]["request_id"]]
    assert driven["tag"] == "'" + FORMULA
    assert by_id[shop.answers[5]["request_id"]]["tag"] == r"x\r=1+cmd|calc"
    assert (driven["signals"], driven["triggers"], driven["suspect_score"]) == ("automation", "bot", "40")
    assert (driven["visitor_is_new"], by_id[shop.answers[1]["request_id"]]["visitor_is_new"]) == ("true", "false")
    known = by_id[shop.answers[1]["request_id"]]
    decided = ("account_id", "account_verified", "action", "decision", "rule")
    assert [known[name] for name in decided] == ["user-7", "false", "log_in", "review", "'=Known user"]
    assert [driven[name] for name in decided] == [""] * 5
    run("export", "events", shop.organization, "--format", "csv", "--documents").assert_usage()


# svc events tail


def test_events_are_followed_once_each_even_when_stored_late(directory: Path):
    """A request that arrived earlier may be stored after one that arrived later."""
    world = World.real()
    found = opened(directory, world)
    began_ms = 1_767_225_600_000
    arrivals_ms = {name: began_ms + 1000 * second for second, name in enumerate(("late", "first", "second", "third"))}
    names = {name: world.request_id(at_ms) for name, at_ms in arrivals_ms.items()}
    stored = iter([["first"], [], ["second", "late"], ["third"]])

    def wait(_: float) -> None:
        for name in next(stored, ()):
            job = partial(put_event, number=1, request_id=names[name], event=event(arrivals_ms[name]))
            assert found.store.write_now([job]) == [None]

    looks_ms = iter([began_ms, *(began_ms + 5000 + step for step in range(4)), began_ms + 2 * LATE_MS])
    wanted = Wanted("production", began_ms, began_ms + LATE_MS // 2, Filters())
    seen = [match.request_id for match in follow_arrivals(found.store, 1, wanted, lambda: next(looks_ms), wait)]
    found.store.close()
    assert seen == [names[name] for name in ("first", "late", "second", "third")]


async def test_tail_prints_new_events_and_ends_cleanly_with_ctrl_c(directory: Path):
    async with live_service(directory, now_ms=World.real().now_ms()) as live:
        _, public = live.issue(environment="production")
        command = [*SVC, "events", "tail", live.organization.id, "--since", "1h", "--json", *live.options]
        first = (await visit(live, public)).json()
        process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert (await one_line(process.stdout))["request_id"] == first["request_id"]
            second = (await visit(live, public)).json()
            assert (await one_line(process.stdout))["request_id"] == second["request_id"]
            process.send_signal(signal.SIGINT)
            assert await process.wait() == 0
            assert await process.stderr.receive_some() == b""
        finally:
            process.kill()


@pytest.mark.parametrize("feed", [(), ("--changes",), ("--cursor-file", "cursor")])
def test_tail_ends_when_its_reader_has_left_and_nothing_comes(kept: Shop, tmp_path: Path, feed: tuple[str, ...]):
    """`svc events tail ORG --json | head -1` waits for one event, and not for a second."""
    words = ["events", "tail", kept.organization, "--since", "0s", "--json", *options_of(kept.directory)]
    with start(*words, *feed, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) as process:
        assert process.stdout is not None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=1.5)
        process.stdout.close()
        assert process.wait(timeout=30) == 1
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


async def one_line(stream: trio.abc.ReceiveStream) -> dict[str, Any]:
    received = b""
    with trio.fail_after(30):
        while not received.endswith(b"\n"):
            received += await stream.receive_some()
    return json.loads(received)


@pytest.mark.parametrize(
    "command", [("events", "list"), ("export", "events"), ("export", "events", "--format", "csv"), ("visitor", "list")]
)
def test_a_command_that_finds_nothing_names_the_environment_that_it_searched(
    run: Run, shop: Shop, command: tuple[str, ...]
):
    """The default is production, where who tries a service has nothing yet."""
    tag = () if command[0] == "export" else ("--tag", "cart")
    hint = "Nothing was found in development; --environment names another."
    for environment in ("production", "development"):
        ran = run(*command, shop.organization, *tag, "--environment", environment)
        assert (hint in ran.err) == (environment == "development")
        assert hint not in ran.out


# Beside a service


async def test_an_export_during_writes_is_well_formed_and_has_every_earlier_event(directory: Path):
    async with live_service(directory, now_ms=World.real().now_ms() - 60_000) as live:
        _, public = live.issue(environment="production")
        before = [(await visit(live, public, report(device))).json()["request_id"] for device in range(1, 20)]
        exports: list[Ran] = []

        async def export() -> None:
            exports.append(await run_beside("export", "events", live.organization.id, "--documents", *live.options))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(export)
            while not exports:
                assert (await visit(live, public)).status_code == 200
    (ran,) = exports
    assert (ran.status, ran.err) == (0, "")
    assert set(before) <= set(ids(lines(ran.out)))


def test_a_closed_output_pipe_ends_an_export_quietly(kept: Shop):
    nobody_reads, output = os.pipe()
    os.close(nobody_reads)
    try:
        done = finish("export", "events", kept.organization, "--documents", *options_of(kept.directory), stdout=output)
    finally:
        os.close(output)
    assert (done.returncode, done.stderr) == (1, "")


# svc visitor


def test_visitors_are_listed_also_by_tag_or_address(run: Run, shop: Shop):
    every = run("visitor", "list", shop.organization, "--json").json["visitors"]
    identifiable = {answer["visitor_id"] for answer in shop.answers if answer["identifiable"]}
    assert {row["visitor_id"] for row in every} == identifiable
    for option in (("--tag", "cart"), ("--ip", "203.0.114.7")):
        (found,) = run("visitor", "list", shop.organization, *option, "--json").json["visitors"]
        assert found["visitor_id"] == shop.answers[0]["visitor_id"]
        assert found["matching_events"] == {"--tag": 2, "--ip": 1}[option[0]]
        assert {name: found[name] for name in every[-1]} == every[-1], "as without a filter"
        shown = run("visitor", "show", shop.organization, found["visitor_id"], "--json").json
        exported = run("visitor", "export", shop.organization, found["visitor_id"]).json
        assert found["events"] == shown["event_count"] == exported["event_count"] == len(exported["events"]) == 3
        for row in (found, shown, *shown["tags"], *shown["addresses"]):
            for name in ("first_seen", "last_seen"):
                assert row[name] == row[f"{name}_at"], "the API's name, and that of version 0.2.0"
        assert found["last_seen_at"] == shown["last_seen_at"]
    assert shop.answers[0]["visitor_id"] in run("visitor", "list", shop.organization).out
    assert run("visitor", "list", shop.organization, "--tag", "none").out == "no visitors\n"
    run("visitor", "list", shop.organization, "--tag", "a", "--ip", "192.0.2.1").assert_usage()


def test_a_visitor_is_shown_with_tags_addresses_and_events(run: Run, shop: Shop):
    visitor_id = shop.answers[0]["visitor_id"]
    found = run("visitor", "show", shop.organization, visitor_id, "--json").json
    assert (found["visitor_id"], found["identifiable"]) == (visitor_id, True)
    assert [(tag["tag"], tag["events"]) for tag in found["tags"]] == [("cart", 2)]
    assert {row["ip_address"] for row in found["addresses"]} == {"203.0.114.7", BROWSER["x-forwarded-for"]}
    assert ids(found["events"]) == shop.rows_with(0, 1)
    text = run("visitor", "show", shop.organization, visitor_id).out
    assert visitor_id in text
    assert "203.0.114.7" in text
    run("visitor", "show", shop.organization, NOBODY).assert_refused(NOBODY, "svc visitor list")


def test_an_unidentifiable_visitor_has_only_its_events(run: Run, shop: Shop):
    visitor_id = shop.answers[4]["visitor_id"]
    found = run("visitor", "show", shop.organization, visitor_id, "--json").json
    assert found["identifiable"] is False
    assert ids(found["events"]) == shop.rows_with(4)
    exported = run("visitor", "export", shop.organization, visitor_id).json
    assert ids(exported["events"]) == shop.rows_with(4)


@pytest.mark.only_on("postgresql", "no other store has round trips")
async def test_the_export_of_a_visitor_reads_many_events_in_a_round_trip(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    events, visitors = {1: 1, 2: 80}, dict[int, str]()
    async with live_service(tmp_path / "data", now_ms=World.real().now_ms() - 3_600_000) as live:
        public = live.issue(environment="production")[1]
        subscribe(live)
        for device in (device for device, count in events.items() for _ in range(count)):
            live.clock.now_ms += 1000
            answer = succeeded(await visit(live, public, report(device), account_id=f"user-{device}"))
            visitors[device] = answer["visitor_id"]
    trips = 0
    exchange_now = Wire.exchange_now

    def counted(wire: Wire, *what: Any, **how: Any) -> Any:
        nonlocal trips
        trips += 1
        return exchange_now(wire, *what, **how)

    monkeypatch.setattr(Wire, "exchange_now", counted)
    monkeypatch.setenv("SVC_DATA", str(tmp_path / "data"))
    for subject in ("visitor", "account"):
        taken: list[int] = []
        for device, count in events.items():
            trips = 0
            subject_id = visitors[device] if subject == "visitor" else f"user-{device}"
            exported = run(subject, "export", live.organization.id, subject_id).json
            assert exported["event_count"] == len(exported["events"]) == count
            taken.append(trips)
        one, many = taken
        assert 0 < one <= many < one + 20, "80 events are two parts: each takes the round trips of one event"


def test_the_export_of_a_visitor_has_every_row_that_its_erasure_changes(run: Run, shop: Shop):
    """Decisions 7.6: found by the declarations of the tables, so that a table that is added is in it."""
    visitor_id = shop.answers[0]["visitor_id"]
    exported = run("visitor", "export", shop.organization, visitor_id).json
    assert exported["visitor_id"] == visitor_id
    rows = [exported["visitor"], *(event["rows"] for event in exported["events"])]
    given = {(table, json.dumps(row["key"])) for tables in rows for table, found in tables.items() for row in found}
    erased = rows_that_erasure_changes(shop.directory, visitor_id)
    assert erased <= given
    assert {table for table, _ in given} == {table for table, _ in erased}
    (visitor,) = exported["visitor"]["visitors"]
    assert set(visitor["value"]["activity"]) == {"live", "history"}, "by names, and not as bytes"
    assert visitor["value"]["activity"]["live"]["events"] != []
    assert visitor["value"]["activity"]["history"]["addresses"] != []
    assert {"visitors", "events", "documents", "deferred_reports", "webhook_events", "webhook_due"} <= {
        table for table, _ in erased
    }


def rows_that_erasure_changes(directory: Path, visitor_id: str) -> set[tuple[str, str]]:
    """(table, key as it is shown) of what is personal, and was there before. The transaction is not committed."""
    changed: dict[str, set[bytes]] = {}

    def erase(transaction: Transaction) -> None:
        ended = erase_visitor(transaction, 1, visitor_id, 0)
        while ended is False:
            ended = continue_erasure(transaction, 1, visitor_id.encode(), 0)
        assert ended is True
        assert isinstance(transaction.writer, Overlay)
        before = transaction.writer.below
        for name, rows in transaction.writer.changes.items():
            changed[name] = {key for key in rows if before.get(name, key) is not None}
        raise NotCommittedError

    world = World.real()
    found = opened(directory, world)
    (outcome,) = found.store.write_now([erase])
    found.store.close()
    assert isinstance(outcome, NotCommittedError)
    personal = {table.name: table for table in TABLES if not isinstance(table.personal, NotPersonal)}
    return {
        (name, json.dumps(show_key(personal[name], key)))
        for name, rows in changed.items()
        if name in personal
        for key in rows
    }


class NotCommittedError(Exception):
    """Raised to roll a transaction back."""


def test_the_export_of_a_visitor_has_its_reports_and_nothing_of_others(run: Run, shop: Shop):
    visitor_id = shop.answers[0]["visitor_id"]
    exported = run("visitor", "export", shop.organization, visitor_id).out
    assert "note-a" in exported
    assert "later-a" in exported
    assert BROWSER["user-agent"] in exported
    others = {answer["visitor_id"] for answer in shop.answers} - {visitor_id}
    assert not [other for other in others if other in exported]
    environments = [event["rows"]["events"][0]["value"]["environment"] for event in json.loads(exported)["events"]]
    assert environments == ["production", "production", "staging"]


def test_the_events_of_a_visitor_are_exported_like_those_of_an_organization(run: Run, shop: Shop):
    visitor_id = shop.rows[0]["visitor_id"]
    for form in ("jsonl", "csv"):
        mine = run("export", "visitor", shop.organization, visitor_id, "--format", form).out
        assert mine == run("export", "events", shop.organization, "--visitor", visitor_id, "--format", form).out
        assert visitor_id in mine
        assert visitor_id not in run("export", "visitor", shop.organization, NOBODY, "--format", form).out
    staging = ("--environment", "staging", "--format", "jsonl")
    assert shop.rows[0]["request_id"] not in run("visitor", "export", shop.organization, visitor_id, *staging).out
    for option in (("--since", "1h"), ("--environment", "staging"), ("--until", "1h")):
        run("export", "visitor", shop.organization, visitor_id, *option).assert_usage()
    run("export", "visitor", shop.organization, "x", "--format", "csv").assert_refused("'x'")
    run("export", "visitor", shop.organization, visitor_id, "--format", "xml").assert_usage()
    run("export", "visitor", shop.organization, visitor_id, "--format", "csv", "--since", "soon").assert_usage()


def test_a_visitor_is_exported_under_both_names(run: Run, shop: Shop, tmp_path: Path):
    visitor_id = shop.answers[0]["visitor_id"]
    one = run("visitor", "export", shop.organization, visitor_id).json
    run("export", "visitor", shop.organization, visitor_id, "--output", tmp_path / "a.json")
    other = json.loads((tmp_path / "a.json").read_text())
    assert one | {"exported_at": ""} == other | {"exported_at": ""}
    for wrong in (NOBODY, "nobody"):
        run("visitor", "export", shop.organization, wrong).assert_refused(wrong)
