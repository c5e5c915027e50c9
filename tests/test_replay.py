"""`svc replay` as a person runs it: a file of reports through the real pipeline, in virtual time."""

from __future__ import annotations

import base64
import gzip
import json
import os
import random
import re
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from svc.command.data_directory import opened_directory
from svc.features.exports.lines import COLUMNS
from svc.features.webhooks.jobs.endpoints import Issued, NewEndpoint, create_endpoint
from svc.features.webhooks.tables import WEBHOOK_EVENTS
from svc.kernel.config import Config
from svc.kernel.tenants.queries import all_organizations
from svc.world import World
from tests.spec.commands import Ran, Run, runner
from tests.spec.responses import DRIVEN, TOO_LITTLE
from tests.support.live import USER_AGENT, report
from tests.support.process import run
from tests.support.proofs import BrowserKey

pytestmark = pytest.mark.slow(3)

ADDRESS = "203.0.114.7"
"""Public, and in no built-in range."""


def lines(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


class Program:
    """`svc` inside this process, and what it printed."""

    def __init__(self, run: Run, folder: Path) -> None:
        self._run = run
        self.file = folder / "reports.jsonl"

    def __call__(self, *arguments: str, status: int = 0) -> Ran:
        done = self._run(*arguments)
        assert done.status == status, done
        return done

    def json(self, *arguments: str) -> dict:
        return json.loads(self(*arguments, "--json").out)

    def replay(self, text: str, *arguments: str, status: int = 0) -> list[dict[str, Any]]:
        """Its answers to a file with this text."""
        self.file.write_text(text)
        return [json.loads(line) for line in self("replay", str(self.file), *arguments, status=status).out.splitlines()]


def program(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path) -> Program:
    for name in [name for name in os.environ if name.startswith("SVC_")]:
        monkeypatch.delenv(name)
    return Program(runner(capsys, monkeypatch), folder)


@pytest.fixture
def svc(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    return program(capsys, monkeypatch, tmp_path)


def test_replay_identifies_each_report_in_virtual_time_and_prints_its_event(svc: Program):
    answers = svc.replay(
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


def test_a_replay_of_an_export_judges_headers_as_far_as_they_were_archived(svc: Program):
    """Of an event of 0.2.0 not all headers were archived, so that one which is missing shows nothing."""
    headers: dict[str, object] = {"user_agent": USER_AGENT, "hints": {"platform": "Windows"}}
    sent = {"accept_language": "en-GB", "fetch": "cross-site cors empty"}
    event = {
        "request_id": "019b76da-a800-72ec-9ecc-1abc10a5263a", "occurred_at": "2026-03-01T10:00:00Z",
        "ip_address": "81.2.69.160", "origin": "https://shop.example",
        "document": {"signals": report(), "sdk": {"platform": "ios", "version": "1"}},
    }  # fmt: skip
    contexts = ({}, {"context": "secure"}, {"context": "secure", **sent}, {"context": "plain"})
    answers = svc.replay(lines(*(event | {"headers": headers | context} for context in contexts)))
    fired = [{signal["signal"] for signal in answer["event"]["signals"]} for answer in answers]
    assert ["forged_report" in signals for signals in fired] == [False, True, False, True]
    assert {answer["event"]["platform"] for answer in answers} == {"web"}, "what a page claims is no profile"


def test_two_replays_of_a_file_are_identical_byte_for_byte(tmp_path: Path):
    file = tmp_path / "reports.jsonl"
    file.write_text(lines(*({"at": 1_772_000_000_000 + n * 60_000, "signals": report(n % 7)} for n in range(60))))
    assert run("replay", str(file)).stdout == run("replay", str(file)).stdout


def test_replay_reports_the_refused_lines_and_continues(svc: Program):
    text = (
        lines({"signals": []})
        + "nonsense\n\n"
        + lines(
            {"signals": {}, "at": "yesterday"},
            {"signals": {}, "ip": "x"},
            {"signals": {}, "color": 1},
            {"signals": report()},
        )
    )
    answers = svc.replay(text, status=1)
    fields = [answer["error"]["details"][0]["field"] for answer in answers[:-1]]
    assert fields == ["signals", "", "at", "ip", "color"]
    assert [answer.get("line") for answer in answers] == [1, 2, 4, 5, 6, None], "line 3 is empty, and counts"
    assert answers[-1]["visitor_is_new"]


def test_replay_reads_a_file_with_a_byte_order_mark(svc: Program):
    """Joined files have several of them."""
    line = lines({"signals": report()})
    assert [row["request_id"] for row in svc.replay("\ufeff" + line + "\ufeff" + line)] != []
    assert svc.replay("\ufeff" + line + "\ufeff" + line) == svc.replay(line * 2)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (lines({"signals": {}}).encode("utf-16"), "is UTF-16 or UTF-32 text, as `>` of Windows PowerShell writes it"),
        (lines({"signals": {}}).encode("utf-16-le"), "is UTF-16 or UTF-32 text"),
        (lines({"signals": {}}).encode("utf-32-be"), "is UTF-16 or UTF-32 text"),
        (gzip.compress(lines({"signals": {}}).encode(), mtime=0), "is compressed by gzip: decompress it first"),
        (
            b'[{"signals": {}},\n{"signals": {}}]\n',
            "holds a JSON array: write one object a line, as `jq -c '.[]'` does",
        ),
        (b'\xef\xbb\xbf [\n{"signals": {}}]\n', "holds a JSON array"),
        (b'{\n  "signals": {}\n}\n', "has JSON of several lines: write one object a line, as `jq -c .` does"),
        ((",".join(COLUMNS) + "\n").encode(), "holds CSV: write JSON lines, as `svc export events --documents` does"),
    ],
    ids=["UTF-16", "UTF-16 little-endian", "UTF-32 big-endian", "gzip", "array", "array after a mark", "lines", "CSV"],
)
def test_replay_says_in_one_line_that_a_file_is_of_another_kind(svc: Program, content: bytes, said: str):
    svc.file.write_bytes(content)
    for arguments in ((str(svc.file),), (str(svc.file), "--compare", str(svc.file))):
        refused = svc("replay", *arguments, status=1)
        assert (refused.out, refused.err.count("\n")) == ("", 1)
        assert refused.err.startswith(f"svc: {svc.file} {said}")


def test_replay_reads_weights_with_a_byte_order_mark(svc: Program, tmp_path: Path):
    weights = tmp_path / "weights.json"
    weights.write_bytes(b'\xef\xbb\xbf{"web": {"weights": {"incognito": 40}}}')
    svc.file.write_text(lines({"signals": report()}))
    svc("replay", str(svc.file), "--weights", str(weights))
    weights.write_text("{}", encoding="utf-16")
    refused = svc("replay", str(svc.file), "--weights", str(weights), status=1).err
    assert refused.startswith(f"svc: {weights} is UTF-16 or UTF-32 text")


def test_replay_selects_the_lines_of_the_requested_period(svc: Program):
    days = [f"2026-01-0{day}T00:00:00Z" for day in (1, 2, 3)]
    text = lines(*({"at": day, "signals": report(number)} for number, day in enumerate(days)), {"signals": report(9)})
    chosen = svc.replay(text, "--since", days[1], "--until", days[2])
    assert [answer["event"]["occurred_at"][:10] for answer in chosen] == ["2026-01-02", "2026-01-02"]
    assert len(svc.replay(text, "--since", days[0])) == 4
    svc("replay", str(svc.file), "--since", days[1], "--until", days[1], status=2)


@pytest.mark.parametrize("named", [(), ("--data", "{data}", "--organization", "{organization}")])
def test_lines_of_any_year_are_replayed_in_the_order_of_the_file(svc: Program, tmp_path: Path, named: tuple[str, ...]):
    data = tmp_path / "data"
    organization = svc.json("org", "create", "Shop", "--data", str(data))["organization_id"]
    years = ("2026-03-01", "2019-01-01", "2025-06-30")
    text = lines(*({"at": f"{year}T00:00:00Z", "signals": report(n)} for n, year in enumerate(years)))
    answers = svc.replay(text, *(part.format(data=data, organization=organization) for part in named))
    assert [answer["event"]["occurred_at"][:10] for answer in answers] == list(years)


def test_the_rate_limit_of_an_organization_goes_by_the_time_of_the_lines(svc: Program, tmp_path: Path):
    """200 reports of 200 seconds are within any limit, however fast they are read, and months after the first id."""
    data = tmp_path / "data"
    organization = svc.json("org", "create", "Shop", "--data", str(data))["organization_id"]
    began = datetime(2026, 11, 10, tzinfo=UTC)
    rows = ({"at": (began + timedelta(seconds=n)).isoformat(), "signals": report(n % 9)} for n in range(200))
    answers = svc.replay(lines(*rows), "--data", str(data), "--organization", organization)
    assert [answer for answer in answers if "error" in answer] == []
    assert answers[-1]["event"]["occurred_at"] == "2026-11-10T00:03:19.000Z"


def test_replay_names_the_refused_lines_in_its_last_line(svc: Program, tmp_path: Path):
    file = tmp_path / "reports.jsonl"
    file.write_text(lines({"signals": report()}, *({"signals": []} for _ in range(12))))
    said = svc("replay", str(file), status=1).err.splitlines()[-1]
    assert said.startswith("svc: 12 lines were refused")
    assert said.endswith("line 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ...")


def test_replay_into_a_data_directory_does_not_use_the_database_of_the_service(
    svc: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    organization = svc.json("org", "create", "shop", "--data", str(tmp_path / "data"))["organization_id"]
    monkeypatch.setenv("SVC_STORE", "postgresql://svc@127.0.0.1:1/svc")
    arguments = ["--data", str(tmp_path / "data"), "--organization", organization]
    assert len(svc.replay(lines({"signals": report(1)}), *arguments)) == 1


def test_a_replay_ends_at_once_where_its_store_is_full(svc: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Lines after it would be refused one by one, and the counts be those of a part. Noise cannot be compressed."""
    monkeypatch.setenv("SVC_MAP_GIB", "0.001")
    monkeypatch.setenv("SVC_STORE_SHARE", "0.01")
    noise = random.Random(7)
    sent = [{"signals": report(number) | {"noise": noise.randbytes(100_000).hex()}} for number in range(20)]
    svc.file.write_text(lines(*sent))
    ran = svc("replay", str(svc.file), "--data", str(tmp_path / "data"), status=1)
    assert re.fullmatch(r"svc: line \d+: the store is full; .* TMPDIR .*", ran.err.splitlines()[-1])
    assert 0 < len(ran.out.splitlines()) < 20


def test_replay_into_a_data_directory_stores_the_events_there(svc: Program, tmp_path: Path):
    organization = svc.json("org", "create", "shop", "--data", str(tmp_path / "data"))["organization_id"]
    arguments = ["--data", str(tmp_path / "data"), "--organization", organization]
    first = svc.replay(lines({"signals": report(1)}), *arguments)
    again = svc.replay(lines({"signals": report(1)}), *arguments)
    assert first[0]["visitor_id"] == again[0]["visitor_id"]
    svc("check", "--data", str(tmp_path / "data"))


def vpn_list(folder: Path) -> Path:
    """A folder of network data that calls `ADDRESS` a VPN."""
    folder.mkdir(parents=True)
    (folder / "vpn.txt").write_text(f"{ADDRESS}\n")
    return folder


def test_replay_uses_the_network_data_of_the_service(svc: Program, tmp_path: Path):
    """Those of the data directory; of a folder that is named; of none."""
    data = tmp_path / "data"
    svc("org", "create", "shop", "--data", str(data))
    vpn_list(data / "network")
    text = lines({"ip": ADDRESS, "signals": report(1)})
    (elsewhere,) = svc.replay(text)
    assert "anonymity_network" not in elsewhere["event"]
    for arguments in (("--data", str(data)), ("--network", str(vpn_list(tmp_path / "lists")))):
        (answer,) = svc.replay(text, *arguments)
        assert answer["event"]["anonymity_network"] == "vpn"
        assert "vpn" in {trigger["group"] for trigger in answer["triggers"]}


def test_replay_writes_only_json_lines_to_stdout_and_the_log_to_stderr(tmp_path: Path):
    """Without network data, with a file that cannot be read, and with one that can: each is a line of the log."""
    folder = vpn_list(tmp_path / "lists")
    (folder / "tor.txt").write_text("this is no address\n" * 10)
    file = tmp_path / "reports.jsonl"
    file.write_text(lines({"ip": ADDRESS, "signals": report(1)}))
    done = run("replay", str(file), "--network", str(folder))
    assert [json.loads(line)["event"]["ip_address"] for line in done.stdout.splitlines()] == [ADDRESS]
    assert "tor.txt" in done.stderr
    assert "vpn.txt" in done.stderr


def test_replay_into_a_data_directory_queues_no_webhook(svc: Program, tmp_path: Path):
    data = tmp_path / "data"
    organization = svc.json("org", "create", "shop", "--data", str(data))["organization_id"]
    world = World.real()
    with opened_directory(data, Config(), world, create=False) as found:
        with found.store.read() as snapshot:
            (number,) = [organization.number for organization in all_organizations(snapshot)]
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
    (answer,) = svc.replay(lines({"signals": report(1, **DRIVEN)}), "--data", str(data), "--organization", organization)
    assert answer["suspect_level"] == "medium"
    with opened_directory(data, Config(), world, create=False) as found, found.store.read() as snapshot:
        assert snapshot.count(WEBHOOK_EVENTS) == 0
    svc("check", "--data", str(data))


def test_replay_prints_a_summary(svc: Program, tmp_path: Path):
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
    said = svc("replay", str(file), status=1).err.splitlines()
    assert "5 reports replayed, 1 refused" in said
    assert "visitors  new 2, returning 1, not identifiable 1" in said
    assert "levels    low 2, not scored 1, medium 1" in said
    assert "signals   automation 1" in said
    assert said[-1] == "svc: 1 line was refused, and the output says why: line 5"


SHOP, FORUM = "https://shop.example", "https://forum.example"


def exported_by_0_2_0(*visits: tuple[str, str]) -> str:
    """Lines of `svc export events --documents` of 0.2.0: of each (token, origin) a visit a day, all alike and from one
    address. What a request says of its browser besides was not archived yet, nor was anything of splits.
    """
    seen: set[str] = set()
    rows: list[dict[str, object]] = []
    for day, (token, origin) in enumerate(visits):
        signals = report(1, client_token=token * 32, client_token_is_new=token not in seen)
        seen.add(token)
        rows.append(
            {
                "request_id": f"01a00000-0000-7000-8000-{day:012d}",
                "occurred_at": f"2026-01-{day + 1:02d}T10:00:00.000Z",
                "visitor_id": "V" * 20,
                "origin": origin,
                "ip_address": ADDRESS,
                "document": {
                    "signals": signals,
                    "sdk": {"platform": "web"},
                    "weights": {},
                    "linkage": {"outcome": "token", "confidence": 100, "token_conflict": False},
                },
            }
        )
    return lines(*rows)


def test_replay_of_an_older_export_splits_no_browser(svc: Program):
    """It has a token on each of two sites, clears the storage of one on the seventh day, and comes for weeks."""
    before = [("a", SHOP), ("b", FORUM)] * 3
    answers = svc.replay(exported_by_0_2_0(*before, *[("c", SHOP), ("b", FORUM)] * 5))
    assert len(answers) == 16
    assert len({answer["visitor_id"] for answer in answers}) == 1
    # The token that came after the clearing is certain once it came back on another day.
    assert [answer["visitor_confidence"] for answer in answers[2:]] == [100] * 4 + [89] + [100] * 9


def test_replay_of_an_older_export_parts_two_equal_browsers_of_one_site(svc: Program):
    answers = svc.replay(exported_by_0_2_0(*[("a", SHOP), ("b", SHOP)] * 5))
    assert len({answer["visitor_id"] for answer in answers[4:]}) == 2
    assert [answer["visitor_id"] for answer in answers[4:8:2]] == [answers[0]["visitor_id"]] * 2


def test_an_exported_event_keeps_its_account_and_asks_for_a_test_verdict_as_it_could_then(svc: Program):
    """Decisions 13.5: only a development key may ask for one."""
    event = {
        "request_id": "019b76da-a800-7000-8000-000000000000",
        "occurred_at": "2026-01-05T10:00:00Z",
        "ip_address": ADDRESS,
        "account_id": "user-7",
        "action": "log_in",
        "document": {"signals": report(1) | {"test": {"signals": ["tor"]}}},
    }
    sent = [event | {"environment": "production"}, event | {"environment": "development", "account_verified": True}]
    found = [row["event"] for row in svc.replay(lines(*sent))]
    assert [[one["signal"] for one in row["signals"] if one["signal"] == "tor"] for row in found] == [[], ["tor"]]
    assert [(row["account_id"], row["account_verified"], row["action"]) for row in found] == [
        ("user-7", False, "log_in"),
        ("user-7", True, "log_in"),
    ]


def test_a_line_says_what_the_backend_sets_afterwards(svc: Program):
    """Decisions 11.2: a sign-up counts as one account, of which the account takes the place."""
    first = {"signals": report(1), "ip": ADDRESS, "action": "sign_up"}
    found = svc.replay(
        lines(
            first | {"afterwards": {"account_id": "user-1"}},
            first | {"afterwards": {"action": "sign_up_failed"}},
            {"signals": report(1), "ip": ADDRESS, "account_id": "user-2", "account_verified": False},
        )
    )
    events = [answer["event"] for answer in found]
    assert [event.get("account_id") for event in events] == [None, None, "user-2"]
    assert [event["velocity"]["visitor"]["accounts"]["1h"] for event in events] == [1, 2, 2]
    assert events[2]["account_verified"] is False
    (refused,) = svc.replay(lines(first | {"afterwards": {"label": "fraud"}}), status=1)
    assert refused["error"]["details"] == [{"field": "afterwards.label", "issue": "unknown_field", "location": "body"}]


@pytest.mark.parametrize(
    ("found", "evidence", "fires"),
    [
        ({"format": "android-key", "verified": True}, {}, []),
        ({"format": "apple-app-attest", "verified": True}, {}, []),
        ({"format": "none", "verified": False}, {}, []),
        ({"format": "android-key", "verified": False}, {"attestation_failed": ["boot_unverified"]}, ["medium"]),
        ({"format": "android-key", "verified": False}, {}, ["high"]),
    ],
)
def test_what_was_found_of_an_exported_attestation_is_believed(
    svc: Program, found: dict[str, Any], evidence: dict[str, Any], fires: list[str]
):
    """Decisions 7.5: its challenge was used up when the event arrived. What is not known is verified, and fails."""
    kind, challenge = found["format"], base64.b64encode(bytes(32)).decode()
    claim = {"format": kind, "challenge": challenge, "certificate_chain": ["AAAA"], "key_id": "A" * 43 + "="}
    document = {
        "signals": report(1) | {"attestation": claim},
        "sdk": {"platform": "ios" if kind.startswith("apple") else "android"},
        "attestation": found,
        "evidence": evidence,
    }
    event = {"request_id": "019ca8c1-0000-7000-8000-000000000000", "occurred_at": "2026-03-01T10:00:00Z"}
    (answer,) = svc.replay(lines({**event, "ip_address": ADDRESS, "document": document}))
    fired = [one["confidence"] for one in answer["event"]["signals"] if one["signal"] == "attestation_failed"]
    assert fired == fires


@pytest.mark.parametrize("linkage", [{"proof": "valid"}, {"proof": "signature"}, {}])
def test_an_exported_proof_is_believed_after_a_backend_set_another_account(svc: Program, linkage: dict[str, str]):
    """Decisions 18.3: what the browser signed is not on the event any more, and matching needs its key all the same."""
    sent: list[dict[str, object]] = []
    for number in range(2):
        once = {"nonce": f"nonce-{number:08d}", "collected_at": 1_772_359_200_000}
        signed = BrowserKey().signed(report(1) | {"client_token": "0123456789abcdef0123456789abcdef", **once}, SHOP)
        event = {"request_id": f"019ca8c1-0000-7000-8000-00000000000{number}", "occurred_at": "2026-03-01T10:00:00Z"}
        document = {"signals": json.loads(signed), "linkage": linkage}
        where = {"ip_address": ADDRESS, "origin": SHOP}
        sent.append({**event, **where, "account_id": "set-afterwards", "document": document})
    answers = svc.replay(lines(*sent))
    assert [answer["proven"] for answer in answers] == [False, linkage.get("proof") == "valid"]
