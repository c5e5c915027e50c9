"""Decisions 2.2, 2.3: a pepper that is lost, or known to others, is replaced; nothing made with the old one holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from svc.kernel.store.tables import META
from svc.world import World
from tests.spec.commands import ROOT, Run
from tests.spec.responses import assert_error
from tests.support.live import live_service, opened

pytestmark = pytest.mark.only_on("lmdb", "nodes share a pepper: test_nodes.py")

REPLACE = ("pepper", "replace", "--revoke-all-keys")


def issued(run: Run, organization: str) -> str:
    return run("key", "issue", organization, "--kind", "secret", "--environment", "development", "--json").json[
        "secret"
    ]


def created(run: Run, name: str = "Shop") -> str:
    return run("org", "create", name, "--json").json["organization_id"]


def test_a_new_pepper_requires_confirmation_that_it_ends_every_key(run: Run, tmp_path: Path):
    organization = created(run)
    issued(run, organization)
    before = (tmp_path / "data" / "pepper").read_bytes()
    run("pepper", "replace").assert_usage()
    assert (tmp_path / "data" / "pepper").read_bytes() == before
    assert run("key", "list", organization, "--json").json["keys"][0]["status"] == "active"


@pytest.mark.slow
async def test_after_a_new_pepper_old_keys_are_refused_and_new_ones_accepted(run: Run, tmp_path: Path):
    organization = created(run)
    old = issued(run, organization)
    (tmp_path / "data" / "pepper").unlink()
    run("org", "list").assert_refused("pepper")
    assert run(*REPLACE, "--json").json["revoked_keys"] == 1
    new = issued(run, organization)
    assert (tmp_path / "data" / "pepper").stat().st_mode & 0o777 == 0o600
    async with live_service(tmp_path / "data") as live:
        assert_error(await live.identify(old, origin=None), 401, "unauthorized")
        assert (await live.identify(new, origin=None)).status_code == 200


def test_the_keys_of_every_organization_are_revoked_and_the_audit_log_records_it(run: Run):
    organizations = [created(run, name) for name in ("One", "Two", "Without keys")]
    for organization in organizations[:2]:
        issued(run, organization)
    assert run(*REPLACE, "--json").json["revoked_keys"] == 2
    for organization in organizations[:2]:
        assert [key["status"] for key in run("key", "list", organization, "--json").json["keys"]] == ["revoked"]
    records = run("audit", "--action", "svc pepper replace", "--json").json["records"]
    assert sorted(record["subject"] for record in records) == sorted(organizations[:2])
    assert run("check").status == 0


def test_the_old_pepper_no_longer_opens_the_store(run: Run, tmp_path: Path):
    created(run)
    path = tmp_path / "data" / "pepper"
    old = path.read_bytes()
    run(*REPLACE)
    assert path.read_bytes() != old
    path.write_bytes(old)
    run("org", "list").assert_refused("is not the pepper")


@pytest.mark.parametrize("where", ["printed", "help", "runbook"])
def test_an_operator_is_told_that_members_need_a_reset(run: Run, where: str):
    """No password and no code holds any more; a sign-in says nothing of the reason."""
    created(run)
    lost = (ROOT / "docs" / "runbook.md").read_text().partition("## Lost pepper")[2].partition("\n## ")[0]
    said = {"printed": run(*REPLACE).out, "help": run("pepper", "replace", "--help").out, "runbook": lost}
    assert re.search(r"reset\s+members|svc member reset", said[where])


def test_an_interrupted_replacement_is_repeated(run: Run, tmp_path: Path):
    """The store knows the new one already, and the old one is still in its place."""
    organization = created(run)
    world = World.real()
    found = opened(tmp_path / "data", world)
    found.store.write_now([lambda transaction: transaction.put(META, ("pepper_mark",), 1)])
    found.store.close()
    (tmp_path / "data" / "pepper.new").write_bytes(b"half a pep")
    run("org", "list").assert_refused("is not the pepper")
    assert run(*REPLACE).status == 0
    assert run("org", "show", organization).status == 0
    assert not (tmp_path / "data" / "pepper.new").exists()


def test_a_store_with_a_new_pepper_goes_on_in_its_folder_of_backups(run: Run, tmp_path: Path):
    """Nightly backups would stop: a store is told from others by its pepper. Also one that goes back to before."""
    created(run)
    for _ in range(2):
        assert run("backup", tmp_path / "backup", "--with-pepper").status == 0
        run(*REPLACE)
    newest = run("backup", tmp_path / "backup", "--with-pepper", "--json").json
    assert run("restore", tmp_path / "backup", "--data", tmp_path / "new", "--json").json["pepper"] == "restored"
    assert run("org", "list", "--data", tmp_path / "new").status == 0
    oldest = min((tmp_path / "backup").glob("snapshot-*"))
    assert oldest.name < Path(newest["snapshot"]).name
    assert run("restore", oldest, "--data", tmp_path / "old", "--json").json["pepper"] == "restored"
    assert run("backup", tmp_path / "backup", "--data", tmp_path / "old").status == 0


def test_a_directory_without_data_gets_no_pepper(run: Run, tmp_path: Path):
    run(*REPLACE).assert_refused("no data")
    assert not (tmp_path / "data").exists()


def test_the_pepper_is_replaced_at_its_configured_location(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SVC_PEPPER_FILE", str(tmp_path / "elsewhere"))
    organization = created(run)
    before = (tmp_path / "elsewhere").read_bytes()
    run(*REPLACE)
    assert (tmp_path / "elsewhere").read_bytes() != before
    assert not (tmp_path / "data" / "pepper").exists()
    assert run("org", "show", organization).status == 0
    issued(run, organization)
    monkeypatch.setenv("SVC_PEPPER_FILE", str(tmp_path / "nowhere" / "pepper"))
    run(*REPLACE).assert_refused("cannot write")
    monkeypatch.setenv("SVC_PEPPER_FILE", str(tmp_path / "elsewhere"))
    assert run("key", "list", organization, "--json").json["keys"][0]["status"] == "active"


def test_a_command_reads_the_settings_file_of_the_service(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Decisions 10, 2.11: else it would make keys for another region than the service has."""
    organization = created(run)
    (tmp_path / "svc.toml").write_text('region = "eu"\n')
    monkeypatch.setenv("SVC_CONFIG", str(tmp_path / "svc.toml"))
    assert issued(run, organization).startswith("svc_sk_eu_")
    monkeypatch.setenv("SVC_REGION", "us")
    run("key", "issue", organization, "--kind", "management").assert_refused("'eu'", "'us'")
    monkeypatch.setenv("SVC_CONFIG", str(tmp_path / "none.toml"))
    run("org", "list").assert_refused("none.toml")
