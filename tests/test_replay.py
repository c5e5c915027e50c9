"""`svc replay` as a person runs it: a file of reports through the real pipeline, in virtual time."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from svc.cli.data_directory import opened_directory
from svc.config import Config
from svc.store.tables import WEBHOOK_EVENTS
from svc.store.transactions.webhook_endpoints import Issued, NewEndpoint, create_endpoint
from svc.store.views import accounts
from svc.world import World
from tests.spec.answers import DRIVEN, TOO_LITTLE
from tests.support.live import report
from tests.support.process import run, run_json

pytestmark = pytest.mark.slow

ADDRESS = "203.0.114.7"
"""Public, and in no built-in range."""


def lines(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def replayed(tmp_path: Path, text: str, *arguments: str, status: int = 0) -> list[dict]:
    file = tmp_path / "reports.jsonl"
    file.write_text(text)
    return [json.loads(line) for line in run("replay", str(file), *arguments, status=status).stdout.splitlines()]


def test_replay_answers_each_report_in_virtual_time_with_its_event(tmp_path: Path):
    answers = replayed(
        tmp_path,
        lines(
            {"at": "2026-03-01T10:00:00Z", "ip": "81.2.69.160", "signals": report(1), "tag": "first"},
            {"at": "2026-03-08T10:00:00+02:00", "ip": "81.2.69.160", "signals": report(1), "platform": "web"},
            {"signals": report(2), "origin": "https://shop.example", "user_agent": "curl/8"},
        ),
    )
    assert [answer["event"]["occurred_at"] for answer in answers] == [
        "2026-03-01T10:00:00.000Z",
        "2026-03-08T08:00:00.000Z",
        "2026-03-08T08:00:01.000Z",
    ]
    assert answers[0]["visitor_id"] == answers[1]["visitor_id"] != answers[2]["visitor_id"]
    assert answers[1]["visitor_confidence"] == 100
    assert answers[0]["event"]["tag"] == "first"
    assert answers[0]["event"]["request_id"] == answers[0]["request_id"]
    assert (answers[2]["event"]["origin"], answers[2]["event"]["agent"]) != (None, None)
    assert answers[2]["reason"] == "private_address"


def test_two_replays_of_a_file_are_the_same_byte_for_byte(tmp_path: Path):
    file = tmp_path / "reports.jsonl"
    file.write_text(lines(*({"at": 1_772_000_000_000 + n * 60_000, "signals": report(n % 7)} for n in range(60))))
    assert run("replay", str(file)).stdout == run("replay", str(file)).stdout


def test_replay_says_which_lines_it_could_not_take_and_goes_on(tmp_path: Path):
    text = (
        lines({"signals": []})
        + "nonsense\n\n"
        + lines(
            {"signals": {}, "at": "yesterday"},
            {"signals": {}, "ip": "x"},
            {"signals": {}, "colour": 1},
            {"signals": report()},
        )
    )
    answers = replayed(tmp_path, text, status=1)
    fields = [answer["error"]["details"][0]["field"] for answer in answers[:-1]]
    assert fields == ["signals", "", "at", "ip", "colour"]
    assert [answer.get("line") for answer in answers] == [1, 2, 4, 5, 6, None], "line 3 is empty, and counts"
    assert answers[-1]["visitor_is_new"]


def test_replay_takes_the_lines_of_the_time_that_was_asked_for(tmp_path: Path):
    days = [f"2026-01-0{day}T00:00:00Z" for day in (1, 2, 3)]
    text = lines(*({"at": day, "signals": report(number)} for number, day in enumerate(days)), {"signals": report(9)})
    chosen = replayed(tmp_path, text, "--since", days[1], "--until", days[2])
    assert [answer["event"]["occurred_at"][:10] for answer in chosen] == ["2026-01-02", "2026-01-02"]
    assert len(replayed(tmp_path, text, "--since", days[0])) == 4
    run("replay", str(tmp_path / "reports.jsonl"), "--since", days[1], "--until", days[1], status=2)


def test_replay_names_the_refused_lines_in_its_last_word(tmp_path: Path):
    file = tmp_path / "reports.jsonl"
    file.write_text(lines({"signals": report()}, *({"signals": []} for _ in range(12))))
    said = run("replay", str(file), status=1).stderr.splitlines()[-1]
    assert said.startswith("svc: 12 lines were refused")
    assert said.endswith("line 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ...")


def test_replay_into_a_data_directory_leaves_the_database_of_the_service_alone(tmp_path: Path):
    organization = run_json("org", "create", "shop", "--data", str(tmp_path / "data"))["organization_id"]
    file = tmp_path / "reports.jsonl"
    file.write_text(lines({"signals": report(1)}))
    arguments = ["--data", str(tmp_path / "data"), "--organization", organization]
    done = run("replay", str(file), *arguments, SVC_STORE="postgresql://svc@127.0.0.1:1/svc")
    assert len(done.stdout.splitlines()) == 1


def test_replay_into_a_data_directory_leaves_the_events_there(tmp_path: Path):
    organization = run_json("org", "create", "shop", "--data", str(tmp_path / "data"))["organization_id"]
    arguments = ["--data", str(tmp_path / "data"), "--organization", organization]
    first = replayed(tmp_path, lines({"signals": report(1)}), *arguments)
    again = replayed(tmp_path, lines({"signals": report(1)}), *arguments)
    assert first[0]["visitor_id"] == again[0]["visitor_id"]
    run("check", "--data", str(tmp_path / "data"))


def vpn_list(folder: Path) -> Path:
    """A folder of network data that calls `ADDRESS` a VPN."""
    folder.mkdir(parents=True)
    (folder / "vpn.txt").write_text(f"{ADDRESS}\n")
    return folder


def test_replay_uses_the_network_data_that_the_service_would_use(tmp_path: Path):
    """Those of the data directory; of a folder that is named; of none."""
    data = tmp_path / "data"
    run("org", "create", "shop", "--data", str(data))
    vpn_list(data / "network")
    text = lines({"ip": ADDRESS, "signals": report(1)})
    (elsewhere,) = replayed(tmp_path, text)
    assert "anonymity_network" not in elsewhere["event"]
    for arguments in (("--data", str(data)), ("--network", str(vpn_list(tmp_path / "lists")))):
        (answer,) = replayed(tmp_path, text, *arguments)
        assert answer["event"]["anonymity_network"] == "vpn"
        assert "vpn" in {trigger["group"] for trigger in answer["triggers"]}


def test_replay_writes_json_lines_alone_to_standard_output_and_the_log_to_standard_error(tmp_path: Path):
    """Without network data, with a file that cannot be read, and with one that can: each is a line of the log."""
    folder = vpn_list(tmp_path / "lists")
    (folder / "tor.txt").write_text("this is no address\n" * 10)
    file = tmp_path / "reports.jsonl"
    file.write_text(lines({"ip": ADDRESS, "signals": report(1)}))
    done = run("replay", str(file), "--network", str(folder))
    assert [json.loads(line)["event"]["ip_address"] for line in done.stdout.splitlines()] == [ADDRESS]
    assert "tor.txt" in done.stderr
    assert "vpn.txt" in done.stderr


def test_replay_into_a_data_directory_queues_no_webhook(tmp_path: Path):
    data = tmp_path / "data"
    organization = run_json("org", "create", "shop", "--data", str(data))["organization_id"]
    world = World.real()
    with opened_directory(data, Config(), world, create=False) as found:
        with found.store.read() as snapshot:
            (number,) = [account.organization.number for account in accounts(snapshot)]
        new = NewEndpoint(
            id="whk_test",
            url="https://receiver.example/",
            description="",
            environment="test",
            events=("identification.completed", "visitor.suspect"),
        )
        job = partial(create_endpoint, number=number, new=new, secrets_key=b"", now_ms=0)
        (issued,) = found.store.write_now([job])
        assert isinstance(issued, Issued)
    (answer,) = replayed(
        tmp_path, lines({"signals": report(1, **DRIVEN)}), "--data", str(data), "--organization", organization
    )
    assert answer["suspect_level"] == "medium"
    with opened_directory(data, Config(), world, create=False) as found, found.store.read() as snapshot:
        assert snapshot.count(WEBHOOK_EVENTS) == 0
    run("check", "--data", str(data))


def test_replay_sums_up_what_it_came_to(tmp_path: Path):
    file = tmp_path / "reports.jsonl"
    file.write_text(
        lines(
            {"signals": report(1)},
            {"signals": report(1)},
            {"signals": TOO_LITTLE},
            {"signals": report(2, **DRIVEN)},
            {"signals": []},
        )
    )
    said = run("replay", str(file), status=1).stderr.splitlines()
    assert "5 reports replayed, 1 refused" in said
    assert "visitors  new 2, returning 1, not identifiable 1" in said
    assert "levels    low 2, not scored 1, medium 1" in said
    assert "signals   automation 1" in said
    assert said[-1] == "svc: 1 line was refused, and the output says why: line 5"
