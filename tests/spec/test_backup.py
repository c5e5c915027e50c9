"""Decisions 10 and 2.2: `svc backup`, `svc restore`, and `svc check` of what they made."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from svc.command.output import progress
from svc.kernel.store.files import durable_files as files
from svc.kernel.tenants.tables import BALANCES
from svc.kernel.values.errors import DirectoryError
from svc.world import World
from tests.spec.commands import Run, run_beside
from tests.spec.console_browser import SESSION, Browser, link, links, sessions, signed_in
from tests.spec.responses import TIMESTAMP
from tests.support.backup import put
from tests.support.live import live_service, opened

DOCS = Path(__file__).parents[2] / "docs"
pytestmark = pytest.mark.only_on("lmdb", "a database is backed up with its own tools: test_store_in_a_database.py")


@pytest.fixture
def shop(run: Run) -> str:
    return run("org", "create", "Shop", "--credit-usd", 5, "--json").json["organization_id"]


def break_balance(data: Path) -> None:
    world = World.real()
    found = opened(data, world)
    found.store.write_now([put(BALANCES, 1, value=5)])
    found.store.close()


def test_a_backup_is_restored_to_another_directory(run: Run, tmp_path: Path, shop: str):
    """Decisions 10: a snapshot, a restore, and the same organization in it."""
    made = run("backup", tmp_path / "backup", "--json").json
    assert set(made) == {"snapshot", "taken_at", "bytes", "rows", "pepper", "followed", "verified", "removed"}
    assert TIMESTAMP.fullmatch(made["taken_at"])
    assert (made["pepper"], made["followed"], made["verified"], made["removed"]) == ("left out", False, "checksums", [])
    restored = run("restore", tmp_path / "backup", "--data", tmp_path / "new", "--json")
    assert "no key would verify" in restored.err
    assert restored.json["restored_to"] == made["taken_at"]
    assert restored.json["pepper"] == "missing"
    run("org", "list", "--data", tmp_path / "new").assert_refused("pepper", "is missing")
    (tmp_path / "new" / "pepper").write_bytes((tmp_path / "data" / "pepper").read_bytes())
    (listed,) = run("org", "list", "--data", tmp_path / "new", "--json").json["organizations"]
    assert (listed["organization_id"], listed["balance_usd"]) == (shop, "5")


def test_the_runbook_lists_what_a_restore_undid(run: Run, tmp_path: Path, shop: str, monkeypatch: pytest.MonkeyPatch):
    """Erasures of visitors and of accounts, and whatever else was changed: a revoked key works again."""
    for blocked, value in (("blocked_visitors", "V" * 20), ("blocked_accounts", "user-7")):
        (tmp_path / blocked).write_text(f"value,note,expires_at\n{value},,\n")
        assert run("list", "import", shop, blocked, tmp_path / blocked).status == 0
    key = run("key", "issue", shop, "--kind", "secret", "--environment", "production", "--json").json["key"]["id"]
    run("member", "invite", shop, "ada@shop.example")
    made = run("backup", tmp_path / "backup", "--with-pepper", "--json").json
    changes = (
        ("account", "erase", shop, "user-7", "--yes"),
        ("visitor", "erase", shop, "V" * 20, "--yes"),
        ("key", "revoke", key, "--yes"),
        ("member", "remove", shop, "ada@shop.example", "--yes"),
        ("org", "credit", shop, "--usd", 5),
    )
    for change in changes:
        assert run(*change).status == 0, change
    data = tmp_path / "data"
    data.rename(tmp_path / "data.broken")
    assert run("restore", tmp_path / "backup", "--data", data).status == 0
    found = run("key", "list", shop, "--json").json["keys"]
    assert [one["status"] for one in found if one["id"] == key] == ["active"]
    assert "user-7" in run("list", "export", shop, "blocked_accounts").out

    commands = re.findall(r"`(svc audit --data \$SVC_DATA\.broken[^`]*)`", (DOCS / "runbook.md").read_text())
    monkeypatch.setenv("SVC_DATA", str(data))
    shown = ""
    for command in commands:
        words = command.replace("$SVC_DATA", str(data)).replace(" T", f" {made['taken_at']}")
        shown += run(*shlex.split(words)[1:]).out
    for group, action, *_ in changes:
        assert f"svc {group} {action}" in shown
    assert "svc key issue" not in shown, "from before the backup"


def test_the_pepper_is_in_a_backup_only_on_request(run: Run, tmp_path: Path, shop: str):
    """Decisions 2.2."""
    pepper = (tmp_path / "data" / "pepper").read_bytes()
    run("backup", tmp_path / "without")
    assert not [path for path in (tmp_path / "without").rglob("*") if path.is_file() and pepper in path.read_bytes()]
    ran = run("backup", tmp_path / "with", "--with-pepper", "--json").json
    kept = Path(ran["snapshot"]) / "pepper"
    assert (kept.read_bytes(), kept.stat().st_mode & 0o777) == (pepper, 0o600)
    restored = run("restore", tmp_path / "with", "--data", tmp_path / "new", "--json")
    assert (restored.json["pepper"], restored.err) == ("restored", "")
    assert (tmp_path / "new" / "pepper").stat().st_mode & 0o777 == 0o600
    assert run("org", "show", shop, "--data", tmp_path / "new").status == 0


@pytest.mark.slow
async def test_console_sessions_and_links_end_with_a_restore(directory: Path):
    """A backup of a live session and an unused link: neither lets anybody in, and the store passes its check."""
    async with live_service(directory / "data") as live:
        browser, unused = await signed_in(live), link(live)
        _, secret = live.issue("management")
        with_key = Browser(live)
        assert (await with_key.sign_in(key=secret)).status_code == 200
        now_ms = live.clock.now_ms
        made = await run_beside("backup", directory / "backup", "--with-pepper", "--data", directory / "data", "--json")
        assert (made.status, sessions(live), links(live)) == (0, 2, 1)
    new = directory / "new"
    assert (await run_beside("restore", directory / "backup", "--data", new)).status == 0
    checked = await run_beside("check", "--data", new, "--json")
    assert checked.json["ok"]
    async with live_service(new, now_ms=now_ms) as restored:
        assert (sessions(restored), links(restored)) == (0, 0)
        for each in (browser, with_key):
            each.live, each.origin = restored, restored.url
            assert each.cookie is not None
            assert (await each("GET", SESSION)).status_code == 401
        late = Browser(restored)
        assert (await late.sign_in(token=unused)).status_code == 401
        assert (await late.sign_in(key=secret)).status_code == 200


def test_a_pepper_in_another_place_is_found(run: Run, tmp_path: Path, shop: str, monkeypatch: pytest.MonkeyPatch):
    """Decisions 2.2: `SVC_PEPPER_FILE` moves it; one that is not this store's is not taken for it."""
    run("backup", tmp_path / "backup")
    monkeypatch.setenv("SVC_PEPPER_FILE", str(tmp_path / "data" / "pepper"))
    assert run("restore", tmp_path / "backup", "--data", tmp_path / "new", "--json").json["pepper"] == "present"
    (tmp_path / "other").write_bytes(bytes(32))
    monkeypatch.setenv("SVC_PEPPER_FILE", str(tmp_path / "other"))
    assert run("restore", tmp_path / "backup", "--data", tmp_path / "new2", "--json").json["pepper"] == "missing"
    run("check").assert_refused("is not the pepper")


def test_old_snapshots_are_removed(run: Run, tmp_path: Path, shop: str):
    """Decisions 10: `--keep`."""
    made = [run("backup", tmp_path / "backup", "--keep", 2, "--json").json for _ in range(3)]
    names = [Path(one["snapshot"]).name for one in made]
    assert [one["removed"] for one in made] == [[], [], names[:1]]
    assert sorted(path.name for path in (tmp_path / "backup").glob("snap*")) == names[1:]


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone gives a folder to somebody else")
def test_a_snapshot_that_the_user_of_the_folder_cannot_read_says_so(run: Run, tmp_path: Path, shop: str):
    """As root makes one into the folder of the nightly backups, which would fail from then on."""
    folder = tmp_path / "backup"
    assert run("backup", folder).err == ""
    os.chown(folder, 12345, 12345)
    made = run("backup", folder, "--json")
    assert f"chown -R --reference={folder} {made.json['snapshot']}" in made.err


def test_a_file_of_another_user_says_what_to_do():
    denied = PermissionError(errno.EACCES, "Permission denied", "/backups/manifest.json")
    with (
        pytest.raises(DirectoryError, match=r"manifest\.json: Permission denied; run the command as the user to whom"),
        files.reporting("cannot read", Path("/backups")),
    ):
        raise denied


def test_check_reads_a_snapshot_and_compares_it_with_its_manifest(run: Run, tmp_path: Path, shop: str):
    """Decisions 10: invariants, on a data directory or on a snapshot; nothing is written."""
    snapshot = Path(run("backup", tmp_path / "backup", "--json").json["snapshot"])
    whole = {"ok": True, "violations": 0, "first": []}
    before = sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))
    for arguments in ((snapshot,), (snapshot / "data.mdb",), ("--data", tmp_path / "data")):
        assert run("check", *arguments, "--json").json == whole
    after = sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))
    assert [one for one in after if one[0].name != "lock.mdb"] == [one for one in before if one[0].name != "lock.mdb"]
    content = (snapshot / "data.mdb").read_bytes()
    (snapshot / "data.mdb").write_bytes(content[:-4096] + bytes(4096))
    run("check", snapshot).assert_refused("is not what its manifest says")
    (snapshot / "data.mdb").write_bytes(content[:8192])
    run("check", snapshot / "data.mdb").assert_refused("cut short")
    (snapshot / "data.mdb").write_bytes(b"x" * 9000)
    run("check", snapshot / "data.mdb").assert_refused("not an LMDB file; keep it to find the cause")
    run("check", tmp_path / "backup").assert_refused("is not a snapshot")
    run("check", tmp_path / "none").assert_refused("is not there")
    run("check", snapshot, "--data", tmp_path / "data").assert_usage()


def test_check_requires_something_to_check(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Decisions 10: usage; a directory without data is refused."""
    run("check").assert_refused("holds no data of this service")
    monkeypatch.delenv("SVC_DATA")
    run("check").assert_usage()


def test_a_corrupt_store_makes_no_snapshot(run: Run, tmp_path: Path, shop: str):
    """R15: what is kept can be restored."""
    break_balance(tmp_path / "data")
    run("backup", tmp_path / "backup", "--verify", "full").assert_refused("does not pass its verification", "balance")
    assert not list((tmp_path / "backup").glob("snap*"))


def test_an_impossible_operation_is_reported_in_one_line_and_changes_nothing(run: Run, tmp_path: Path, shop: str):
    """Decisions 10: exit status 1 refused, 2 usage."""
    run("backup").assert_usage()
    run("backup", tmp_path / "backup", "--follow", "--keep", 3).assert_usage()
    run("backup", tmp_path / "backup", "--unfollow").assert_usage()
    run("backup", tmp_path / "backup", "--keep", 0).assert_usage()
    run("backup", tmp_path / "backup", "--verify", "some").assert_usage()
    run("backup", "--unfollow").assert_refused("nobody follows")
    run("backup", tmp_path / "data" / "inside").assert_refused("inside the data directory")
    run("backup", tmp_path / "backup", "--data", tmp_path / "none").assert_refused("name another --data")
    assert not (tmp_path / "backup").exists()
    run("backup", tmp_path / "backup", "--follow", "--data", tmp_path / "none").assert_refused("holds no data")
    assert not list((tmp_path / "backup").glob("snap*"))
    run("restore", tmp_path / "none", "--data", tmp_path / "new").assert_refused("not a folder of backups")
    run("restore", tmp_path / "data", "--data", tmp_path / "new").assert_refused("holds no snapshot")
    run("backup", tmp_path / "backup")
    run("restore", tmp_path / "backup", "--data", tmp_path / "data").assert_refused("there and not empty")
    to = ("--data", tmp_path / "new", "--to")
    run("restore", tmp_path / "backup", *to, "yesterday").assert_usage()
    run("restore", tmp_path / "backup", *to, "2020-01-01T00:00:00Z").assert_refused("the oldest snapshot")
    assert not (tmp_path / "new").exists()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_to_people_and_not_to_programs(
    run: Run, tmp_path: Path, shop: str, monkeypatch: pytest.MonkeyPatch
):
    """Decisions 10: output for people; one JSON object with `--json`, and nothing on standard error."""
    assert run("backup", tmp_path / "backup", "--json").err == ""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    json.loads(run("restore", tmp_path / "backup", "--data", tmp_path / "new", "--json").out)
    for stage in ("copying the snapshot", "checking the pages", "checking every row"):
        assert stage in terminal.getvalue()
    assert terminal.getvalue().count("100%") == 3


def test_progress_that_is_interrupted_leaves_the_cursor_visible(monkeypatch: pytest.MonkeyPatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")

    def read():
        with progress() as steps:
            steps.stage("reading", 100)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read()
    assert terminal.getvalue().endswith("\x1b[?25h\n")
    monkeypatch.setenv("TERM", "dumb")
    with progress() as steps:
        steps.stage("reading", 100)
    assert terminal.getvalue().count("reading") == 1
