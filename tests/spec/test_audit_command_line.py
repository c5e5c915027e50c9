"""Decisions 10: what commands change is in the audit log, and `svc audit` shows it (docs/audit.md)."""

from __future__ import annotations

import json
import os
import pwd
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
import trio

from svc.cli import program
from svc.kernel.access.audit import WITHHELD
from svc.kernel.values.timestamps import timestamp
from svc.world import World
from tests.spec.automation import Automation
from tests.spec.commands import ROOT, Run, place_of, run_beside
from tests.spec.console_browser import SESSION, Browser
from tests.spec.people import INVITATIONS, PASSWORD, came_in
from tests.spec.responses import TIMESTAMP
from tests.spec.test_webhook_recovery import ENDPOINT, LONG_AGO, failed_at
from tests.support.live import Live, live_service, report
from tests.support.ports import free_port
from tests.support.process import start

__all__ = ["failed_at"]

NOBODY = "org_AAAAAAAAAAAAAAAAAAAA"
ME = pwd.getpwuid(os.getuid()).pw_name
READING = {
    "serve", "upgrade", "org list", "org show", "org statement", "key list", "audit", "data status", "data check",
    "check", "signals", "openapi", "collection", "webhook listen", "webhook verify", "backup",
    "restore", "inspect tables", "inspect readers", "inspect rows", "inspect request", "inspect visitor",
    "store compact", "store move", "store rebuild-indexes", "docs", "data sources", "data update",
    "events list", "events count", "events get", "events tail", "rule proposals",
    "export events", "export visitor", "export account", "visitor show", "visitor list", "visitor export",
    "account show", "account list", "account export", "completion", "config check",
    "doctor", "retention confirm", "list list", "list export", "rule show", "rule export", "rule history",
    "weights suggest", "member list", "webhook list",
    "sql install", "sql show", "sql remove",
}  # fmt: skip
"""Commands that change nothing of an organization: they read, or are about files, the clock or the database. `serve`
itself changes nothing; what it is asked to change is tested apart."""


class Scene(NamedTuple):
    run: Run
    org: str
    directory: Path

    def key(self) -> str:
        """The id of a new key."""
        arguments = ("key", "issue", self.org, "--kind", "secret", "--environment", "staging", "--json")
        return self.run(*arguments).json["key"]["id"]

    def revoked(self) -> str:
        key = self.key()
        assert self.run("key", "revoke", key, "--yes").status == 0
        return key

    def file(self) -> Path:
        """A report to replay."""
        file = self.directory / "reports.jsonl"
        file.write_text(json.dumps({"signals": report()}) + "\n")
        return file

    def account(self) -> str:
        """The id of an account that the organization knows."""
        self.visitor(account_id="user-8271")
        return "user-8271"

    def visitor(self, visits: int = 1, **body: Any) -> str:
        """The id of a visitor whom the organization knows."""
        secret = self.run("key", "issue", self.org, "--kind", "secret", *ISSUE[2:], "--json").json["secret"]

        async def visit() -> str:
            async with live_service(self.directory / "data", now_ms=World.real().now_ms()) as live:
                answers = [await live.identify(secret, origin=None, **body) for _ in range(visits)]
            return answers[0].json()["visitor_id"]

        return trio.run(visit)

    def list(self) -> str:
        """The name of a new list."""
        assert self.run("list", "create", self.org, "vip", "--kind", "tag").status == 0
        return "vip"

    def entries(self) -> Path:
        file = self.directory / "entries.csv"
        file.write_text("user-8271\n")
        return file

    def labels(self, header: str = "request_id,label,label_reason") -> Path:
        file = self.directory / "labels.csv"
        file.write_text(f"{header}\n")
        return file

    def member(self, *then: str, came_in: bool = False) -> str:
        """The id of a new member, to whom these commands were done."""
        invited = self.run("member", "invite", self.org, "ada@shop.example", "--json").json
        if came_in:
            trio.run(self._sign_in, invited["invitation_url"].partition("#")[2])
        for command in then:
            assert self.run("member", command, self.org, invited["id"]).status == 0
        return invited["id"]

    async def _sign_in(self, token: str) -> None:
        async with live_service(self.directory / "data", now_ms=World.real().now_ms()) as live:
            response = await Browser(live)("POST", INVITATIONS, {"token": token, "password": PASSWORD})
        assert response.status_code == 200, response.text

    def rules(self, *, later: int = 0) -> Path:
        """A file of no rules, for the revision that is in force or one that is not."""
        revision = self.run("rule", "export", self.org).json["revision"]
        file = self.directory / f"rules-{later}.json"
        file.write_text(json.dumps({"revision": revision + later, "rules": []}))
        return file

    def records(self) -> list[dict[str, Any]]:
        return self.run("audit", "--json").json["records"]


class Case(NamedTuple):
    """Arguments of a command that changes something, and of one that it refuses."""

    done: Callable[[Scene], tuple[object, ...]]
    refused: Callable[[Scene], tuple[object, ...]]


ISSUE = ("--kind", "public", "--environment", "development")
NO_MEMBER = "mem_" + "0" * 20
CASES: dict[str, Case] = {
    "org create": Case(lambda _: ("Shop", "--credit-usd", 2), lambda _: (" ",)),
    "org credit": Case(lambda s: (s.org, "--usd", "0.5", "--note", "sorry"), lambda _: (NOBODY, "--usd", 1)),
    "org credit-limit": Case(lambda s: (s.org, "--usd", 3), lambda _: (NOBODY, "--usd", 3)),
    "org rate-limit": Case(lambda s: (s.org, 5), lambda _: (NOBODY, 5)),
    "org rotate-verdict-key": Case(lambda s: (s.org, "--previous-valid-hours", 2), lambda _: (NOBODY,)),
    "org billing-status": Case(lambda s: (s.org, "past_due"), lambda _: (NOBODY, "free")),
    "org drop-documents": Case(lambda s: (s.org, "--yes"), lambda _: (NOBODY, "--yes")),
    "org remove": Case(lambda s: (s.org, "--yes"), lambda _: (NOBODY, "--yes")),
    "key issue": Case(lambda s: (s.org, *ISSUE), lambda s: (s.org, *ISSUE, "--origin", "*")),
    "key revoke": Case(lambda s: (s.key(), "--yes"), lambda s: (s.revoked(), "--yes")),
    "console link": Case(lambda s: (s.org,), lambda _: (NOBODY,)),
    "pepper replace": Case(
        lambda s: (s.key(), "--revoke-all-keys")[1:],
        lambda s: ("--revoke-all-keys", "--data", s.directory / "none"),
    ),
    "member invite": Case(lambda s: (s.org, "ada@shop.example"), lambda _: (NOBODY, "ada@shop.example")),
    "member reset": Case(lambda s: (s.org, s.member()), lambda s: (s.org, NO_MEMBER)),
    "member role": Case(lambda s: (s.org, s.member(), "analyst"), lambda s: (s.org, NO_MEMBER, "analyst")),
    "member suspend": Case(lambda s: (s.org, s.member(came_in=True)), lambda s: (s.org, NO_MEMBER)),
    "member activate": Case(lambda s: (s.org, s.member("suspend", came_in=True)), lambda s: (s.org, NO_MEMBER)),
    "member remove": Case(lambda s: (s.org, s.member(), "--yes"), lambda s: (s.org, NO_MEMBER, "--yes")),
    "account erase": Case(lambda s: (s.org, s.account(), "--yes"), lambda s: (s.org, "nobody", "--yes")),
    "visitor erase": Case(lambda s: (s.org, s.visitor(), "--yes"), lambda s: (s.org, "A" * 20, "--yes")),
    "visitor revoke-keys": Case(
        lambda s: (s.org, "--since", "1d", "--yes"), lambda _: (NOBODY, "--since", "1d", "--yes")
    ),
    "rule set": Case(lambda s: (s.org, s.rules()), lambda s: (s.org, s.rules(later=7))),
    "list create": Case(
        lambda s: (s.org, "vip", "--kind", "tag"), lambda s: (s.org, "blocked_visitors", "--kind", "tag")
    ),
    "list delete": Case(lambda s: (s.org, s.list(), "--yes"), lambda s: (s.org, "blocked_visitors", "--yes")),
    "list import": Case(
        lambda s: (s.org, "blocked_accounts", s.entries()), lambda s: (s.org, "blocked_visitors", s.entries())
    ),
    "label import": Case(lambda s: (s.org, s.labels()), lambda s: (NOBODY, s.labels())),
    "webhook recover": Case(lambda _: (ENDPOINT, "--since", LONG_AGO), lambda _: ("whk_none", "--since", LONG_AGO)),
    "replay": Case(
        lambda s: (s.file(), "--data", s.directory / "data"),
        lambda s: (s.file(), "--data", s.directory / "data", "--organization", NOBODY),
    ),
}
"""One line for each command that changes something in a store. `svc dev`, `svc webhook trigger` and `svc store
quarantine` have tests of their own."""
ON_A_DIRECTORY = ("pepper replace", "replay")


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Every command by its words."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name))


def test_every_command_is_read_only_or_has_a_case():
    """A new command stands in `READING` or in `CASES`, or this fails."""
    assert set(commands(program)) == READING | set(CASES) | {"dev", "webhook trigger", "store quarantine"}


@pytest.fixture
def scene(run: Run, tmp_path: Path) -> Scene:
    return Scene(run, run("org", "create", "First", "--json").json["organization_id"], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("command", [command for command in CASES if command not in ON_A_DIRECTORY])
def test_a_command_leaves_exactly_one_record_and_a_refused_one_none(scene: Scene, failed_at: int, command: str):
    """Who, when, from where; what was changed, and what was asked for."""
    leave_one_record(scene, command)


@pytest.mark.slow
@pytest.mark.only_on("lmdb", "they work on a data directory, and never on the service's database")
@pytest.mark.parametrize("command", ON_A_DIRECTORY)
def test_commands_on_a_directory_leave_a_record_too(scene: Scene, command: str):
    leave_one_record(scene, command)


def leave_one_record(scene: Scene, command: str) -> None:
    words, case = command.split(), CASES[command]
    done, refused = case.done(scene), case.refused(scene)
    before = scene.records()
    assert scene.run(*words, *refused).status == 1
    assert scene.records() == before
    ran = scene.run(*words, *done)
    assert ran.status == 0, ran.err
    record, *others = scene.records()
    assert others == before
    assert record["action"] == f"svc {command}"
    assert record["actor"] == {"kind": "command_line", "id": ME, "sudo_user": os.environ.get("SUDO_USER")}
    assert record["from"].startswith(f"{socket.gethostname()} ")
    assert TIMESTAMP.fullmatch(record["at"])
    assert record["at"] >= others[0]["at"]
    assert record["request_id"] is None
    assert record["subject"] in f"{done} {ran.out} {record['organization_id']}"
    assert WITHHELD not in record["change"].values()
    assert scene.run("check").status == 0


def test_a_record_contains_the_requested_values_and_the_target(scene: Scene):
    """Exact amounts as they were typed; the id of what was changed."""
    run, org = scene.run, scene.org
    run("org", "credit", org, "--usd", "-0.000001", "--note", "taken back")
    run("org", "billing-status", org, "blocked", "--note", "fraud")
    origin = ("--origin", "https://Shop.example:443")
    key = run("key", "issue", org, *ISSUE, *origin, "--name", "Web", "--json").json["key"]["id"]
    run("key", "revoke", key, "--yes")
    revoked, issued, blocked, credited, created = scene.records()
    assert {record["organization_id"] for record in scene.records()} == {org}
    assert (created["subject"], created["change"]) == (
        org,
        {"name": "First", "credit_limit_usd": "none", "rate_limit_per_s": 100},
    )
    assert (credited["subject"], credited["change"]) == (org, {"credit_usd": "-0.000001", "note": "taken back"})
    assert (blocked["subject"], blocked["change"]) == (org, {"billing_status": "blocked", "note": "fraud"})
    assert (issued["subject"], revoked["subject"]) == (key, key)
    assert issued["change"] == {
        "kind": "public",
        "name": "Web",
        "environment": "development",
        "platforms": ["web"],
        "allowed_origins": ["https://shop.example"],
    }
    assert revoked["change"] == {}


def test_no_secret_printed_by_a_command_is_in_the_log(scene: Scene):
    """Interface 5, rule 4."""
    secrets = [scene.run("key", "issue", scene.org, *ISSUE, "--json").json["secret"] for _ in range(2)]
    written = scene.run("audit", "--json").out
    assert [secret for secret in secrets if secret.rpartition("_")[2] in written] == []


def test_the_user_who_ran_sudo_is_recorded_beside_the_effective_user(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    """The user is the system's word for it, whatever the environment says."""
    monkeypatch.setenv("SUDO_USER", "alice")
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "mallory")
    scene.run("org", "rate-limit", scene.org, 7)
    assert scene.records()[0]["actor"] == {"kind": "command_line", "id": ME, "sudo_user": "alice"}
    assert "mallory" not in scene.run("audit", "--json").out
    (found,) = scene.run("audit", "--actor", "alice", "--json").json["records"]
    assert found["change"] == {"rate_limit_per_s": 7}


def test_the_log_is_shown_newest_first_and_filtered(scene: Scene):
    """Filters say exactly what they show; whether there is more is told."""
    run = scene.run
    other = run("org", "create", "Second", "--json").json["organization_id"]
    for limit in (1, 2, 3):
        run("org", "rate-limit", scene.org, limit)
    everything = scene.records()
    assert [record["change"].get("rate_limit_per_s") for record in everything] == [3, 2, 1, 100, 100]
    assert [record["at"] for record in everything] == sorted((record["at"] for record in everything), reverse=True)

    def shown(*arguments: object) -> list[Any]:
        answer = run("audit", *arguments, "--json").json
        assert set(answer) == {"records", "more"}
        return [[record["id"] for record in answer["records"]], answer["more"]]

    ids = [record["id"] for record in everything]
    assert shown() == [ids, False]
    assert shown("--limit", 2) == [ids[:2], True]
    assert shown("--limit", 5) == [ids, False]
    assert shown("--org", other) == [[ids[3]], False]
    assert shown("--action", "svc org rate-limit", "--limit", 2) == [ids[:2], True]
    assert shown("--actor", ME, "--org", scene.org) == [ids[:3] + ids[4:], False]
    assert shown("--actor", "nobody-of-this-name") == [[], False]
    assert shown("--since", everything[1]["at"]) == [ids[:2], False]
    assert shown("--since", everything[3]["at"], "--until", everything[0]["at"]) == [ids[1:4], False]
    assert shown("--until", "2026-01-05T10:00:00+02:00", "--since", "2026-01-05T07:00:00Z") == [[], False]


def test_the_table_for_people_ends_with_how_to_continue(scene: Scene):
    """Decisions 10."""
    run = scene.run
    assert run("audit", "--action", "issueSdkKey").out == "no records\n"
    run("org", "rate-limit", scene.org, 9)
    ran = run("audit", "--limit", 1)
    head, line, _, more = ran.out.splitlines()
    assert head.split() == ["at", "organization", "actor", "from", "action", "subject", "change"]
    assert line.startswith(scene.records()[0]["at"])
    for word in (scene.org, ME, "svc org rate-limit", '{"rate_limit_per_s":9}'):
        assert word in line
    until = re.search(r"--until (\S+),", more)
    assert until is not None
    (again,) = run("audit", "--until", until[1], "--limit", 1, "--json").json["records"]
    assert again == scene.records()[0]
    assert "There are older" not in run("audit").out


def test_a_name_in_the_log_cannot_move_the_cursor_of_a_terminal(scene: Scene):
    """A customer's automation names its keys; a terminal shows what it was told, and does nothing of it."""
    hostile = "\x1b[2Jname\r\n\u202egnp"
    issued = scene.run("key", "issue", scene.org, *ISSUE, "--name", hostile, "--json").json
    assert issued["key"]["name"] == hostile
    assert scene.records()[0]["change"]["name"] == hostile
    for shown in (scene.run("audit").out, scene.run("key", "list", scene.org).out):
        assert not set(shown) & {"\x1b", "\r", "\u202e"}
        assert "name" in shown


@pytest.mark.parametrize(
    "arguments",
    [
        ("--since", "yesterday"),
        ("--until", "2026-01-05"),
        ("--since", "2026-02-01T00:00:00Z", "--until", "2026-01-01T00:00:00Z"),
        ("--since", "2026-02-01T00:00:00Z", "--until", "2026-02-01T00:00:00Z"),
        ("--limit", "0"),
        ("--limit", "many"),
        ("more",),
    ],
    ids=" ".join,
)
def test_an_invalid_log_query_is_a_usage_error(scene: Scene, arguments: tuple[str, ...]):
    """Decisions 10: exit status 2."""
    scene.run("audit", *arguments).assert_usage()


def test_an_unknown_organization_has_no_log(scene: Scene, tmp_path: Path):
    """Decisions 10: exit status 1, one line; nothing is made."""
    scene.run("audit", "--org", NOBODY).assert_refused(NOBODY)
    scene.run("audit", "--org", "").assert_refused()
    scene.run("audit", "--data", tmp_path / "none").assert_refused(place_of(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_every_write_of_the_command_line_goes_through_a_recorded_change():
    """A command that commits by itself would leave no record."""
    folders = ("svc/cli", "svc/command", "svc/features")
    files = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    writing = [path.name for path in files if re.search(r"\bwrite_(one_)?now", path.read_text())]
    assert writing == ["changes.py", "restore.py"], "and a store that is being restored is nobody's yet"


@pytest.mark.slow(2)
async def test_the_log_is_read_while_the_service_runs(live: Live, admin: Automation):
    """Decisions 10: changes over HTTP and of commands, side by side."""
    issued = await admin("POST", "/sdk-keys", {"name": "shop", "environment": "staging"}, x_forwarded_for="::1")
    beside = (*live.options, "--json")
    key_id = issued.json()["key"]["id"]
    assert (await run_beside("key", "revoke", key_id, "--yes", *beside)).status == 0
    records = (await run_beside("audit", "--org", live.organization.id, *beside)).json["records"]
    assert [record["action"] for record in records if record["subject"] == key_id] == ["svc key revoke", "issueSdkKey"]
    over_http = next(record for record in records if record["action"] == "issueSdkKey")
    assert over_http == {
        "id": issued.headers["x-request-id"],
        "at": timestamp(live.clock.now_ms),
        "organization_id": live.organization.id,
        "actor": {"kind": "management_key", "id": admin.key.id, "name": "test", "role": "admin"},
        "from": "::1",
        "action": "issueSdkKey",
        "subject": key_id,
        "change": {"name": "shop", "environment": "staging", "kind": "public", "allowed_origins": []},
        "request_id": issued.headers["x-request-id"],
    }
    (found,) = (await run_beside("audit", "--actor", admin.key.id, *beside)).json["records"]
    assert found == over_http
    browser = await came_in(live, "analyst", name="Ada")
    member = (await browser("GET", SESSION)).json()["member"]
    left = await browser("DELETE", SESSION)
    found, _ = (await run_beside("audit", "--actor", member["id"], *beside)).json["records"]
    assert found["actor"] == {"kind": "member", "id": member["id"], "name": "Ada", "role": "analyst"}
    assert found["request_id"] == left.headers["x-request-id"]


@pytest.mark.slow
@pytest.mark.only_on("lmdb", "a development service has a directory of its own: test_store_in_a_database.py")
def test_a_development_service_records_what_it_creates(run: Run, tmp_path: Path):
    """`svc dev`: its organization and its keys, once for all starts."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}
    for _ in range(2):
        bind = f"127.0.0.1:{free_port()}"
        command = ("dev", "--data", tmp_path / "data", "--bind", bind)
        process = start(*command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, cwd=ROOT)
        assert process.stdout is not None
        try:
            assert any("Ctrl-C" in line for line in process.stdout)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)
    records = run("audit", "--json").json["records"][::-1]
    assert {record["action"] for record in records} == {"svc dev"}
    assert [record["change"].get("kind") for record in records] == [None, "public", "secret", "management"]
    assert records[3]["change"]["role"] == "admin"
