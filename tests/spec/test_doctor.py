"""`svc doctor`: each check on what it is about, and the command as an operator runs it."""

from __future__ import annotations

import datetime as dt
import errno
import os
import shutil
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from structlog.testing import capture_logs

from svc.cli.serve import health_checks
from svc.cli.serve.doctor import idle_lists_of, recounts_of, rules_of, shares_of, spellings_of, weights_of
from svc.cli.serve.health_checks import Examined, Finding
from svc.features.accounts.jobs import begin, step
from svc.features.lists.lists import first_list_id
from svc.features.organizations.command import create_organization
from svc.features.rules.jobs import save_rules
from svc.features.rules.ruleset import Rule
from svc.identify.scoring.score import StoredWeights
from svc.identify.scoring.signals import default_weights
from svc.identify.velocity.counts import folded
from svc.kernel.config import Config
from svc.kernel.limits.quotas import EVENT_BYTES, Holding
from svc.kernel.store.directory import open_directory
from svc.kernel.store.installation import ServedLimits, record_limits
from svc.kernel.tenants.jobs import keep
from svc.world import World
from svc_replay.store import put_weights
from tests.spec.automation import Automation
from tests.spec.commands import Run
from tests.store.release import RELEASED, unpack
from tests.support.certificates import Files
from tests.support.live import Live
from tests.support.ports import free_port
from tests.support.process import Started, run_json

pytestmark = pytest.mark.only_on("lmdb", "it looks at a data directory; at a database: test_store_in_a_database.py")

NOW_MS = 1_767_225_600_000
NOBODY = 65534


def examined(directory: Path, now_ms: int | None = None, url: str | None = None, **settings: Any) -> Examined:
    world = World.real()
    if now_ms is not None:
        world.now_ms = lambda: now_ms
    settings.setdefault("bind", f"127.0.0.1:{free_port()}")
    settings.setdefault("metrics_bind", "")
    return Examined(directory, None, Config(**settings), url, world)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    world = World.real()
    found = open_directory(tmp_path / "data", world.run_sync, world.entropy)
    create_organization(found, world, "Shop", credit=None)
    found.store.close()
    return tmp_path / "data"


@pytest.mark.slow
def test_permissions_of_existing_and_missing_directories_are_checked(data: Path, tmp_path: Path):
    assert health_checks.permissions(examined(data)).status == "ok"
    missing = health_checks.permissions(examined(tmp_path / "none"))
    assert (missing.status, "svc dev" in missing.do) == ("warning", True)
    (data / "pepper").chmod(0o644)
    finding = health_checks.permissions(examined(data))
    assert (finding.status, finding.do) == ("warning", f"chmod 600 {data / 'pepper'}")


@pytest.mark.slow
def test_a_directory_that_somebody_named_has_to_be_there(
    run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A misspelled name passed as sound; where nothing is named there may be nothing yet."""
    monkeypatch.setenv("SVC_BIND", f"127.0.0.1:{free_port()}")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert run("doctor", "--data", tmp_path / "none").status == 1
    assert f"{tmp_path / 'none'} is not there" in run("doctor", "--data", tmp_path / "none").out
    monkeypatch.setenv("SVC_DATA", str(tmp_path / "none"))
    assert run("doctor").status == 1
    monkeypatch.setenv("SVC_DATA", str(data))
    assert run("doctor").status == 0
    monkeypatch.delenv("SVC_DATA")
    assert run("doctor").status == 0


@pytest.mark.slow
def test_what_a_service_would_refuse_is_a_problem(data: Path):
    for path, mode in ((data / "pepper", 0o602), (data / "store", 0o702), (data, 0o777)):
        path.chmod(mode)
        finding = health_checks.permissions(examined(data))
        assert (finding.status, finding.do) == ("problem", f"chmod o-w {path}")
        path.chmod(mode & ~0o77)
    pepper = data / "pepper"
    pepper.unlink()
    pepper.mkdir()
    assert health_checks.store(examined(data)).status == "problem"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        finding = health_checks.lock_and_service(examined(data, metrics_bind=f"127.0.0.1:{taken.getsockname()[1]}"))
    assert (finding.status, "--metrics-bind" in finding.do) == ("problem", True)


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes files of others")
@pytest.mark.parametrize("name", ["pepper", "store/lock.mdb", "serve.lock"])
@pytest.mark.slow(0.5)
def test_a_file_of_another_user_is_a_problem(data: Path, name: str):
    """As after a command by root in the directory of the service."""
    shutil.chown(data, NOBODY)
    for path in data.rglob("*"):
        shutil.chown(path, NOBODY)
    (data / name).touch()
    shutil.chown(data / name, 0)
    (data / name).chmod(0o600)
    finding = _as_nobody(data.parent, lambda: health_checks.permissions(examined(Path(data.name))))
    assert f"data/{name} cannot be read" in finding
    assert "chown -R" in finding


def _as_nobody(folder: Path, check: Callable[[], Finding]) -> str:
    """What the check finds, in a folder, as a user who may not do everything."""
    folder.chmod(0o711)
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.chdir(folder)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            os.write(writer, repr(check()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(process, 0)
    with os.fdopen(reader) as found:
        return found.read()


@pytest.mark.parametrize("name", ["", "store"])
def test_a_folder_in_which_no_file_can_be_written_is_a_problem(data: Path, name: str, monkeypatch: pytest.MonkeyPatch):
    """A kernel may refuse all writes after an error of the disk and still call the file system writable."""

    def refuse(dir: Path) -> NoReturn:  # noqa: A002  as of `TemporaryFile`
        raise OSError(errno.EROFS, os.strerror(errno.EROFS)) if dir == data / name else OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("svc.kernel.store.files.durable_files.TemporaryFile", refuse)
    finding = health_checks.permissions(examined(data))
    assert (finding.status, "dmesg" in finding.do) == ("problem", True)
    assert finding.says == f"no file can be written in {data / name}: Read-only file system"


@pytest.mark.parametrize("name", ["", "store", "store/data.mdb"])
def test_what_is_mounted_read_only_is_a_problem(data: Path, name: str, monkeypatch: pytest.MonkeyPatch):
    asked = os.statvfs

    def mounted(path: Path) -> SimpleNamespace:
        return SimpleNamespace(f_flag=os.ST_RDONLY if path == data / name else asked(path).f_flag)

    monkeypatch.setattr("os.statvfs", mounted)
    finding = health_checks.permissions(examined(data))
    assert (finding.status, "remount" in finding.do) == ("problem", True)
    assert finding.says == f"{data / name} is on a file system that is mounted read-only"


@pytest.mark.skipif(os.getuid() == 0, reason="root may do everything")
def test_a_directory_that_is_not_writable_is_a_problem(data: Path):
    data.chmod(0o500)
    finding = health_checks.permissions(examined(data))
    data.chmod(0o700)
    assert (finding.status, "chown" in finding.do) == ("problem", True)


def test_the_store_its_pepper_and_its_free_space_are_checked(data: Path, tmp_path: Path):
    assert health_checks.store(examined(data)).status == "ok"
    assert health_checks.store(examined(data, map_gib=0.00001)).status == "warning"
    assert health_checks.store(examined(tmp_path / "none")).status == "warning"
    pepper = data / "pepper"
    kept = pepper.read_bytes()
    pepper.write_bytes(kept[::-1])
    assert "another store" in health_checks.store(examined(data)).says
    pepper.unlink()
    assert health_checks.store(examined(data)).status == "problem"
    pepper.write_bytes(kept)
    (data / "store" / "data.mdb").write_bytes(b"no store")
    assert health_checks.store(examined(data)).status == "problem"
    (data / "store" / "data.mdb").write_bytes(b"")
    assert "restore a backup" in health_checks.store(examined(data)).says


def test_a_pepper_without_its_store_is_a_problem(data: Path, tmp_path: Path):
    shutil.rmtree(data / "store")
    finding = health_checks.store(examined(data))
    assert (finding.status, "the store is gone" in finding.says, "restore a backup" in finding.do) == (
        "problem",
        True,
        True,
    )
    (data / "pepper").rename(tmp_path / "mounted")
    named = health_checks.store(examined(data, pepper_file=str(tmp_path / "mounted")))
    assert named.status == "warning", "a pepper that a setting names may be there before any store"


def test_an_older_store_is_a_warning_since_the_next_start_upgrades_it(tmp_path: Path):
    old = unpack(RELEASED / "0.1.0.tar.xz", tmp_path)
    finding = health_checks.store(examined(old.directory))
    assert (finding.status, "older program" in finding.says) == ("warning", True)


@pytest.mark.slow
def test_a_running_service_is_found_and_queried(data: Path):
    assert "no service runs" in health_checks.lock_and_service(examined(data)).says
    with Started(data) as service:
        ready = health_checks.lock_and_service(examined(data, url=f"http://127.0.0.1:{service.port}"))
        assert (ready.status, "`svc serve`" in ready.says) == ("ok", True)
        elsewhere = health_checks.lock_and_service(examined(data))
        assert (elsewhere.status, "--url" in elsewhere.do) == ("warning", True)
        node = health_checks.lock_and_service(examined(data.parent / "other", url=f"http://127.0.0.1:{service.port}"))
        assert (node.status, "is ready at" in node.says) == ("ok", True), (
            "one that holds no directory, as of a database"
        )
        taken = health_checks.lock_and_service(examined(data.parent / "other", bind=f"127.0.0.1:{service.port}"))
        assert (taken.status, "Address already in use" in taken.says) == ("problem", True)


def test_missing_old_or_broken_network_data_is_reported(data: Path):
    assert "built-in ranges only" in health_checks.network_data(examined(data)).says
    assert health_checks.network_data(examined(data, network_builtin=False)).status == "problem"
    late = NOW_MS + 20 * 365 * 86_400_000
    assert "svc data update" in health_checks.network_data(examined(data, now_ms=late)).do
    (data / "network").mkdir()
    (data / "network" / "broken.mmdb").write_bytes(b"nothing")
    finding = health_checks.network_data(examined(data))
    assert (finding.status, "broken.mmdb" in finding.says) == ("problem", True)


def test_a_clock_before_the_last_write_is_a_problem_and_an_unsynchronized_one_a_warning(data: Path):
    assert health_checks.clock(examined(data), lambda: True).status == "ok"
    assert health_checks.clock(examined(data), lambda: False).status == "warning"
    behind = health_checks.clock(examined(data, now_ms=NOW_MS - 10 * 365 * 86_400_000), lambda: True)
    assert (behind.status, "before the last write" in behind.says) == ("problem", True)
    assert health_checks.kernel_clock_is_synchronized() in (True, False)


def test_low_free_space_on_the_disk_is_reported(data: Path, monkeypatch: pytest.MonkeyPatch):
    for free, status in ((1 << 40, "ok"), (1 << 29, "warning"), (1 << 20, "problem")):
        monkeypatch.setattr(
            "shutil.disk_usage", lambda _, free=free: type("Usage", (), {"free": free, "total": 1 << 41})
        )
        assert health_checks.disk(examined(data)).status == status


def test_missing_wrong_or_expiring_tls_certificates_are_reported(tmp_path: Path):
    assert health_checks.tls(examined(tmp_path)).status == "ok"
    assert health_checks.tls(examined(tmp_path, bind="0.0.0.0:8080")).status == "warning"
    assert health_checks.tls(examined(tmp_path, tls_certfile="/none")).status == "problem"
    files, now = Files(tmp_path), dt.datetime.now(dt.UTC)
    settings = {"tls_certfile": str(files.certfile), "tls_keyfile": str(files.keyfile)}
    for days, status in ((90, "ok"), (9, "warning"), (-1, "problem")):
        files.issue(not_before=now - dt.timedelta(days=30), not_after=now + dt.timedelta(days=days))
        assert health_checks.tls(examined(tmp_path, **settings)).status == status


@pytest.mark.slow
def test_a_sample_is_identified_with_these_settings_and_leaves_nothing(data: Path):
    before = (data / "store" / "data.mdb").read_bytes()
    with capture_logs() as logged:
        finding = health_checks.identification(examined(data))
    assert (finding.status, "score 0" in finding.says) == ("ok", True)
    assert [line["event"] for line in logged if line["log_level"] == "warning"] == [], (
        "it is about nobody's organization"
    )
    assert (data / "store" / "data.mdb").read_bytes() == before


@pytest.mark.slow(0.2)
def test_the_organization_and_the_secret_of_the_provider_are_looked_for(data: Path, tmp_path: Path):
    """With settings by which members sign in the sample is identified, too."""
    secret = tmp_path / "secret"
    secret.write_text("a-secret\n")
    (known,) = run_json("org", "list", "--data", str(data))["organizations"]
    provider = {
        "console_oidc_issuer": "https://provider.example",
        "console_oidc_client_id": "svc",
        "console_oidc_client_secret_file": str(secret),
        "console_oidc_role_claim": "groups",
        "console_oidc_roles": ("staff=analyst",),
        "public_url": "https://svc.example",
    }
    named = examined(data, **provider, console_oidc_organization=known["organization_id"])
    assert health_checks.sign_in(examined(data)).status == "ok"
    assert health_checks.sign_in(named).status == "ok"
    assert health_checks.identification(named).status == "ok"
    unknown = health_checks.sign_in(examined(data, **provider, console_oidc_organization=f"org_{'0' * 20}"))
    assert (unknown.status, "has no organization" in unknown.says) == ("problem", True)
    secret.unlink()
    assert "cannot read" in health_checks.sign_in(named).says
    other = run_json("org", "create", "Another", "--data", str(data))["organization_id"]
    run_json("org", "remove", other, "--yes", "--data", str(data))
    removed = examined(data, **provider, console_oidc_organization=other)
    assert (health_checks.sign_in(removed).status, health_checks.identification(removed).status) == ("warning", "ok")
    none = health_checks.sign_in(
        examined(tmp_path / "none", **provider, console_oidc_organization=known["organization_id"])
    )
    assert (none.status, "no store yet" in none.says) == ("warning", True)


@pytest.mark.slow
def test_the_command_prints_one_line_for_each_check_and_has_an_exit_status(
    run: Run, data: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SVC_BIND", f"127.0.0.1:{free_port()}")
    ran = run("doctor", "--data", data)
    assert ran.status == 0
    lines = [line for line in ran.out.splitlines() if line.startswith(("ok", "warning", "problem"))]
    assert [line[9:23].strip() for line in lines] == [
        "settings", "permissions", "service", "store", "network data", "clock", "disk", "tls", "sign-in",
        "identification", "backup", "credit", "shares", "counts", "accounts", "rules", "lists", "weights", "chat links",
    ]  # fmt: skip
    assert "\x1b" not in ran.out
    told = run("doctor", "--data", data, "--json").json
    assert [check["check"] for check in told["checks"]][-1] == "chat links"
    assert told["status"] == "warning"
    monkeypatch.setenv("SVC_MAX_CONNECTIONS", "none")
    ran = run("doctor", "--data", data)
    assert (ran.status, ran.err) == (1, "svc: 2 problems\n"), "the settings, and identifying with them"
    assert "svc config check" in ran.out
    assert [line[9:23].strip() for line in ran.out.splitlines() if line.startswith(("ok", "warning", "problem"))] == [
        line[9:23].strip() for line in lines
    ], "whatever the settings are, everything else is looked at"


@pytest.mark.slow(0.5)
async def test_accounts_that_only_look_alike_are_pointed_out(live: Live):
    key = live.issue(environment="production")[1]
    for account in ("shop-1", "shop-2"):
        await live.identify(key, account_id=account)
    assert spellings_of(live.found.store).status == "ok"
    for account in ("Shop-1", "shop -1", "shop\u00ad-2", "shop-3"):
        await live.identify(key, account_id=account)
    finding = spellings_of(live.found.store)
    assert finding.status == "warning"
    assert finding.says == (
        f"accounts that look alike: 'Shop-1' and 'shop -1' and 'shop-1' of {live.organization.id}; "
        f"'shop-2' and 'shop\\xad-2' of {live.organization.id}"
    )


async def test_rules_and_filters_that_could_not_be_saved_again_are_named(live: Live):
    """Decisions 13.4: they stay in force."""
    assert rules_of(live.found.store).status == "ok"
    number = live.organization.number
    rules = [
        Rule(id=f"rul_{position:020}", name=name, condition=condition, action="block")
        for position, (name, condition) in enumerate(
            [("Fine", "score > 1"), ("Dear", 'tag.matches("((a{0,30}){0,30})b")'), ("Old", "tag.matches(tag)")]
        )
    ]
    save = partial(save_rules, number=number, kind="live", revision=0, rules=rules, saved_by="", now_ms=0)
    live.found.store.write_now([save])
    finding = rules_of(live.found.store)
    assert finding.status == "warning"
    organization = live.organization.id
    assert finding.says.endswith(f"rule 'Dear' (live) of {organization}; rule 'Old' (live) of {organization}")


async def test_weights_that_were_saved_before_a_signal_came_are_named(live: Live):
    """Decisions 18.6: a signal counts 0 in them, and nothing else says so."""
    assert weights_of(live.found.store).status == "ok"
    number, organization = live.organization.number, live.organization.id
    weights = default_weights("web")
    known = {name: weight for name, weight in weights.items() if name not in ("key_shared", "proof_failed")}

    def saved(weights: dict[str, int]) -> StoredWeights:
        return StoredWeights(
            revision=1,
            threshold=30,
            weights=weights,
            vpn_mode="method",
            residential_proxy_mode="method",
            updated_at_ms=0,
        )

    live.found.store.write_now([partial(put_weights, number=number, weights={"web": saved(weights)})])
    assert weights_of(live.found.store).status == "ok"
    live.found.store.write_now([partial(put_weights, number=number, weights={"web": saved(known)})])
    finding = weights_of(live.found.store)
    assert finding.status == "warning"
    assert (
        finding.says == f"count 0, since weights were saved before: proof_failed, key_shared in those of {organization}"
    )
    assert "console" in finding.do


def test_ids_are_folded_to_what_people_see_of_them():
    alike = (
        "shop-1",
        "Shop-1",
        "shop-1 ",
        " s h op-1",
        "shop-1\u200b",
        "shop\u00ad-1",
        "\uff53hop-1",
        "s\u3164hop\ufe0f-1",
    )
    assert {folded(account) for account in alike} == {"shop-1"}
    assert len({folded(account) for account in ("shop-1", "shop-2", "shop1", "sh\u00f6p-1")}) == 4


async def test_counts_that_are_being_rebuilt_are_named(live: Live):
    store, number = live.found.store, live.organization.number
    assert recounts_of(store).status == "ok"
    newest = live.world.request_id(NOW_MS).bytes
    store.write_now([partial(begin, newest={number: newest})])
    finding = recounts_of(store)
    assert finding.status == "warning"
    assert f"{live.organization.id} since 2026-01-01T00:00:00.000Z" in finding.says
    store.write_now([partial(step, number=number, now_ms=NOW_MS + 1)])
    assert recounts_of(store).status == "ok"


async def test_lists_that_no_active_rule_asks_are_named(live: Live):
    """Decisions 13.3: an entry of such a list decides nothing."""
    automation, number = Automation(live), live.organization.number
    listed = first_list_id(number, "blocked_addresses")
    added = await automation("POST", f"/lists/{listed}/entries", {"entries": [{"value": "203.0.113.7"}]})
    assert added.status_code == 200, added.text
    assert idle_lists_of(live.found.store).status == "ok", "the rules of the start ask it"
    rule = Rule(id=f"rul_{0:020}", name="a", condition='in_list("blocked_addresses")', action="block", mode="shadow")
    save = partial(save_rules, number=number, kind="live", revision=0, rules=[rule], saved_by="", now_ms=0)
    live.found.store.write_now([save])
    finding = idle_lists_of(live.found.store)
    assert (finding.status, finding.says) == (
        "warning",
        f"no active rule of production asks: blocked_addresses of {live.organization.id}",
    )


async def test_organizations_near_their_share_of_the_store_are_named(live: Live):
    """Decisions 4: one that is alone may hold all of it."""
    store = live.found.store
    capacity_bytes = 10 * EVENT_BYTES
    store.write_now([partial(record_limits, limits=ServedLimits(capacity_bytes, 0.5))])
    store.write_now([partial(keep, number=live.organization.number, changed=Holding(events=7))])
    finding = shares_of(store)
    assert finding.status == "ok", "7 of 10, alone"
    assert finding.says == f"no organization holds 80% of the {10 * EVENT_BYTES >> 10} KiB that it may"
    live.new_organization()
    finding = shares_of(store)
    assert finding.status == "problem"
    assert f"{live.organization.id} holds 140%" in finding.says
    store.write_now([partial(keep, number=live.organization.number, changed=Holding(events=4))])
    assert shares_of(store).status == "warning"
    store.write_now([partial(keep, number=live.organization.number, changed=Holding(events=0))])
