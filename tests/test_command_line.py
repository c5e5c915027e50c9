"""The program as a person runs it: dev, replay, serve and its end. The administrative commands stand in tests/spec."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.live import report
from tests.support.process import ENVIRONMENT, PROGRAM, Served, read_until, run, run_json

pytestmark = pytest.mark.slow


def test_dev_goes_from_nothing_to_answers_and_a_curl_line_that_works(tmp_path: Path):
    port = "18437"
    arguments = ["dev", "--data", str(tmp_path / "data"), "--bind", f"127.0.0.1:{port}"]
    process = subprocess.Popen(
        [*PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=ENVIRONMENT
    )
    try:
        shown = read_until(process, "Ctrl-C")
        assert '"visitor_is_new": true' in shown
        assert '"visitor_is_new": false' in shown
        assert "the same visitor" in shown
        curl = next(line for line in shown.splitlines() if line.startswith("curl "))
        first, again = (json.loads(subprocess.check_output(shlex.split(curl), timeout=20)) for _ in range(2))
        assert again["visitor_id"] == first["visitor_id"]
        assert again["visitor_confidence"] == 100
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert process.returncode == 0


def test_dev_on_its_own_data_again_knows_the_sample_and_replaces_its_keys(tmp_path: Path):
    for start in range(2):
        process = subprocess.Popen(
            [*PROGRAM, "dev", "--data", str(tmp_path), "--bind", f"127.0.0.1:{18438 + start}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=ENVIRONMENT,
        )
        shown = read_until(process, "Ctrl-C")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        assert ("seen before exactly" in shown) == (start == 1)
    (organization,) = run_json("org", "list", "--data", str(tmp_path))["organizations"]
    keys = run_json("key", "list", organization["organization_id"], "--data", str(tmp_path))["keys"]
    assert [key["status"] for key in keys] == ["revoked"] * 3 + ["active"] * 3
    assert organization["name"] == "development"
    run("check", "--data", str(tmp_path))


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
    assert answers[-1]["visitor_is_new"]


def test_replay_into_a_data_directory_leaves_the_events_there(tmp_path: Path):
    organization = run_json("org", "create", "shop", "--data", str(tmp_path / "data"))["organization_id"]
    arguments = ["--data", str(tmp_path / "data"), "--organization", organization]
    first = replayed(tmp_path, lines({"signals": report(1)}), *arguments)
    again = replayed(tmp_path, lines({"signals": report(1)}), *arguments)
    assert first[0]["visitor_id"] == again[0]["visitor_id"]
    run("check", "--data", str(tmp_path / "data"))


def test_serve_drains_on_sigterm_and_ends_with_0(tmp_path: Path):
    run_json("org", "create", "shop", "--data", str(tmp_path))
    served = Served(tmp_path)
    assert served.terminate() == 0
    assert any('"stopped"' in line for line in served.log)


def test_serve_refuses_in_one_line_what_it_cannot_use(tmp_path: Path):
    assert "svc org create" in run("serve", "--data", str(tmp_path / "none"), status=1).stderr
    run_json("org", "create", "shop", "--data", str(tmp_path))
    unknown = run("serve", "--data", str(tmp_path), status=1, SVC_COLOUR="red").stderr
    assert unknown.count("\n") == 1
    assert "SVC_COLOUR" in unknown
    served = Served(tmp_path)
    try:
        taken = run("serve", "--data", str(tmp_path), "--bind", f"127.0.0.1:{served.port}", status=1).stderr
        assert taken.count("\n") == 1
        assert str(served.port) in taken
    finally:
        served.terminate()
    (tmp_path / "pepper").rename(tmp_path / "hidden")
    assert "SVC_PEPPER_FILE" in run("serve", "--data", str(tmp_path), status=1).stderr
    (tmp_path / "pepper").write_bytes(os.urandom(32))
    assert "is not the pepper" in run("serve", "--data", str(tmp_path), status=1).stderr


def test_the_pepper_is_for_its_owner_only_and_no_secret_is_in_the_store(tmp_path: Path):
    organization = run_json("org", "create", "shop", "--data", str(tmp_path))["organization_id"]
    secret = run_json(
        "key", "issue", organization, "--kind", "secret", "--environment", "production", "--data", str(tmp_path)
    )["secret"]
    assert (tmp_path / "pepper").stat().st_mode & 0o077 == 0
    stored = (tmp_path / "store" / "data.mdb").read_bytes()
    assert secret.encode() not in stored
    assert secret.rsplit("_", 1)[1][:43].encode() not in stored
    assert (tmp_path / "pepper").read_bytes() not in stored


def test_serve_refuses_a_damaged_store_and_says_what_to_do(tmp_path: Path):
    """The number of the first page after those of the commits is another by one bit."""
    data = tmp_path / "data"
    run("org", "create", "shop", "--data", str(data))
    with (data / "store" / "data.mdb").open("r+b") as file:
        pages = file.read()
        place = next(
            at for at in range(2 * 4096, len(pages), 4096) if pages[at : at + 8] == (at // 4096).to_bytes(8, "little")
        )
        file.seek(place)
        file.write(bytes([pages[place] ^ 64]))
    for command in (("serve", "--bind", "127.0.0.1:0"), ("backup", str(tmp_path / "backup"))):
        refused = subprocess.run(
            [*PROGRAM, *command, "--data", str(data)],
            capture_output=True,
            text=True,
            env=ENVIRONMENT,
            timeout=60,
            check=False,
        )
        assert refused.returncode == 1
        assert refused.stderr.startswith("svc: damaged: page ")
        assert "svc restore" in refused.stderr
