"""Decisions 2.7, 2.11 and 10: the first start of a service, with and without `--init`, and its settings."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from svc.cli.develop.dev import metrics_at
from svc.cli.store.initialize import initialize
from svc.features.schema import SCHEMA
from svc.features.upgrade.upgrade import upgrade
from svc.kernel.access.tables import KEYS
from svc.kernel.config import Config, ConfigError
from svc.kernel.config_loading import load
from svc.kernel.store.installation import derive_region, region_of
from svc.kernel.store.opening import open_store
from svc.kernel.store.reading import read_only
from svc.kernel.store.tables import META
from svc.world import World
from tests.spec.commands import Run
from tests.store.release import RELEASED, unpack
from tests.support.live import ORIGIN, opened, options_of, report
from tests.support.process import ENVIRONMENT, Started, finish
from tests.test_docs import block

SERVICE_LINKS = {
    "SVC_SERVICE_HOST": "10.0.0.7",
    "SVC_SERVICE_PORT": "80",
    "SVC_SERVICE_PORT_HTTP": "80",
    "SVC_SERVICE_PORT_HTTP_METRICS": "9464",
    "SVC_PORT": "tcp://10.0.0.7:80",
    "SVC_PORT_80_TCP": "tcp://10.0.0.7:80",
    "SVC_PORT_80_TCP_PROTO": "tcp",
    "SVC_PORT_80_TCP_PORT": "80",
    "SVC_PORT_80_TCP_ADDR": "10.0.0.7",
    "SVC_PORT_5353_UDP_ADDR": "10.0.0.7",
    "SVC_PORT_9_SCTP": "sctp://10.0.0.7:9",
}
"""What Kubernetes sets in every container beside a Service named `svc`."""


# Settings from the environment


def test_variables_that_an_orchestrator_sets_for_a_service_named_svc_are_ignored():
    """Decisions 10."""
    assert load(None, SERVICE_LINKS) == Config()
    assert load(None, {**SERVICE_LINKS, "SVC_REGION": "eu"}).region == "eu"


@pytest.mark.parametrize(
    "name",
    [
        "SVC_PORTS", "SVC_PORT_TCP", "SVC_PORT_80", "SVC_PORT_80_HTTP", "SVC_PORT_80_TCP_HOST", "SVC_SERVICE",
        "SVC_SERVICE_HOSTS", "SVC_SERVICE_HOST_X", "SVC_SERVICE_PORTS", "SVC_BIND_PORT", "SVC_METRICS_PORT", "SVC_INIT",
        "SVC_INIT_ORIGIN", "SVC_INIT_KEYS", "SVC_port",
    ],
)  # fmt: skip
def test_a_misspelled_setting_is_still_rejected(name: str):
    """Decisions 10: an unknown setting is refused at start."""
    with pytest.raises(ConfigError, match=f"unknown setting in the environment: {name.upper()};"):
        load(None, {name: "1"})


def test_no_setting_has_a_name_that_an_orchestrator_creates():
    assert not [name for name in Config.__struct_fields__ if name.startswith(("port", "service_", "init_"))]


def test_a_command_beside_a_service_named_svc_runs(run: Run, monkeypatch: pytest.MonkeyPatch):
    for name, text in SERVICE_LINKS.items():
        monkeypatch.setenv(name, text)
    assert run("org", "create", "Shop").status == 0
    assert run("serve", "--print-config").status == 0
    assert run("data", "status").status == 0


@pytest.mark.parametrize(
    ("variable", "text", "line"),
    [
        ("SVC_MAP_GIB", "many", "map_gib = 'many'"),
        ("SVC_TRUSTED_PROXIES", "10.0.0.0/99", "trusted_proxies = ['10.0.0.0/99']"),
        ("SVC_ATTESTATION_DIGESTS", "ab", "attestation_digests = ['ab']"),
        ("SVC_WEBHOOK_ALLOW_NETWORKS", "0.0.0.0/0", "webhook_allow_networks = ['0.0.0.0/0']"),
        ("SVC_WEBHOOK_CA_FILE", "/none.pem", "webhook_ca_file = '/none.pem'"),
    ],
)
def test_an_invalid_value_is_reported_with_its_source(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, text: str, line: str
):
    """Decisions 10: the variable of the environment, or the setting and its file; in every command."""
    setting = variable.removeprefix("SVC_").lower()
    file = tmp_path / "svc.toml"
    file.write_text(line + "\n")
    for command in (("serve", "--print-config"), ("org", "list")):
        monkeypatch.setenv("SVC_CONFIG", str(file))
        run(*command).assert_refused(f"svc: {setting} in {file}")
        monkeypatch.delenv("SVC_CONFIG")
        monkeypatch.setenv(variable, text)
        run(*command).assert_refused(f"svc: {variable}")
        monkeypatch.delenv(variable)


# An empty volume


def test_serving_an_empty_directory_fails_with_a_status_that_is_not_retried(run: Run, tmp_path: Path):
    """Decisions 10; the unit of `ops/` stops at status 2."""
    ran = run("serve", "--data", tmp_path / "data")
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "--init" in ran.err
    assert "svc org create" in ran.err
    assert not (tmp_path / "data").exists()


@pytest.mark.only_on("lmdb", "it looks at a data directory")
@pytest.mark.parametrize("command", [("serve",), ("org", "list"), ("check",), ("backup", "copy")])
def test_a_directory_that_lost_its_store_is_not_taken_for_a_new_one(run: Run, tmp_path: Path, command: tuple[str, ...]):
    assert run("org", "create", "Shop").status == 0
    shutil.rmtree(tmp_path / "data" / "store")
    pepper = (tmp_path / "data" / "pepper").read_bytes()
    ran = run(*command, "--data", tmp_path / "data")
    assert (ran.status, ran.out, ran.err.count("\n")) == (2 if command == ("serve",) else 1, "", 1)
    assert "restore a backup" in ran.err
    assert "svc org create" not in ran.err
    assert "--init" not in ran.err
    assert (tmp_path / "data" / "pepper").read_bytes() == pepper
    assert not (tmp_path / "data" / "store").exists()


@pytest.mark.slow
def test_init_creates_an_organization_with_working_keys_and_shows_them_once(run: Run, tmp_path: Path):
    """Decisions 2.7, 10: management, secret, and public for the origins that are given; the log has none of them."""
    variables = {
        "SVC_INIT_ORGANIZATION": "Shop",
        "SVC_INIT_ORIGINS": f"{ORIGIN}, https://*.shop.example",
        "SVC_INIT_CREDIT_USD": "2.5",
        **SERVICE_LINKS,
    }
    init = ("--init", "--json", *options_of(tmp_path / "data")[2:])
    with Started(tmp_path / "data", *init, **variables) as first:
        shown = json.loads(first.printed)
        keys = {key["kind"]: key for key in shown["keys"]}
        assert set(keys) == {"management", "secret", "public"}
        assert (keys["management"]["role"], keys["management"]["environment"]) == ("admin", None)
        assert keys["secret"]["environment"] == keys["public"]["environment"] == "production"
        assert keys["public"]["allowed_origins"] == [ORIGIN, "https://*.shop.example"]
        api = f"http://127.0.0.1:{first.port}/api/v1"
        answer = httpx.post(
            f"{api}/identify",
            json={"sdk": {"platform": "web"}, "signals": report()},
            headers={"x-api-key": keys["public"]["secret"], "origin": ORIGIN},
        )
        assert answer.status_code == 200, answer.text
        event = httpx.get(
            f"{api}/events/{answer.json()['request_id']}", headers={"x-api-key": keys["secret"]["secret"]}
        )
        assert event.status_code == 200
        managed = httpx.get(
            f"{api}/management/organizations/{shown['organization_id']}/sdk-keys",
            headers={"x-api-key": keys["management"]["secret"]},
        )
        assert {key["id"] for key in managed.json()["keys"]} == {keys["public"]["id"], keys["secret"]["id"]}
    log = "".join(first.log)
    assert "the first organization was created" in log
    assert not [key for key in shown["keys"] if key["secret"] in log]
    with Started(tmp_path / "data", *init, **variables) as again:
        pass
    assert again.printed == ""
    (organization,) = organizations(run, tmp_path / "data")
    assert (organization["name"], organization["organization_id"]) == ("Shop", shown["organization_id"])
    assert 0 < organization["balance_micros"] <= 2_500_000
    records = run("audit", "--data", tmp_path / "data", "--json").json["records"]
    assert sorted(record["subject"] for record in records) == sorted(
        [shown["organization_id"], *(key["id"] for key in shown["keys"])]
    )
    assert run("check", "--data", tmp_path / "data").status == 0


def organizations(run: Run, directory: Path) -> list[Any]:
    return run("org", "list", "--data", directory, "--json").json["organizations"]


def test_init_without_origins_issues_no_public_key_and_says_so(directory: Path, capsys: pytest.CaptureFixture[str]):
    """Decisions 2.7. A second call does nothing."""
    world = World.real()
    found = opened(directory / "data", world)
    try:
        initialize(found, world, "us", as_json=False)
        printed = capsys.readouterr().out
        initialize(found, world, "us", as_json=False)
    finally:
        found.store.close()
    assert "svc_mk_us_" in printed
    assert "svc_sk_us_production_" in printed
    assert "svc_pk_" not in printed
    assert "SVC_INIT_ORIGINS" in printed
    assert capsys.readouterr().out == ""


@pytest.mark.slow
def test_an_organization_whose_keys_cannot_be_shown_is_not_created(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The reader of the output has gone, or the file cannot be written: the next start creates another one."""
    data, keys_file = tmp_path / "data", tmp_path / "folder" / "keys.json"
    ours, theirs = os.pipe()
    os.close(ours)
    command = ("serve", *options_of(data), "--bind", "127.0.0.1:0", "--init")
    try:
        done = finish(*command, stdout=theirs, env=ENVIRONMENT)
    finally:
        os.close(theirs)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "standard output" in done.stderr
    assert organizations(run, data) == []
    monkeypatch.setenv("SVC_INIT_KEYS_FILE", str(keys_file))
    run("serve", "--data", data, "--init").assert_refused(str(keys_file), "nothing was created")
    assert organizations(run, data) == []
    keys_file.parent.mkdir()
    keys_file.write_text("of a start that was interrupted")
    with Started(data, "--init", *options_of(data)[2:], SVC_INIT_KEYS_FILE=str(keys_file)) as started:
        pass
    assert started.printed == ""
    shown = json.loads(keys_file.read_text())
    assert keys_file.stat().st_mode & 0o777 == 0o600
    assert [one["organization_id"] for one in organizations(run, data)] == [shown["organization_id"]]
    assert [path.name for path in keys_file.parent.iterdir()] == ["keys.json"]


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("SVC_INIT_ORIGINS", "shop.example"),
        ("SVC_INIT_CREDIT_USD", "much"),
        ("SVC_INIT_CREDIT_USD", "-1"),
        ("SVC_INIT_ORGANIZATION", "x" * 201),
    ],
)
def test_an_invalid_init_variable_creates_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, text: str
):
    monkeypatch.setenv(variable, text)
    run("serve", "--data", tmp_path / "data", "--init").assert_refused(variable)
    monkeypatch.delenv(variable)
    assert run("org", "list", "--data", tmp_path / "data", "--json").json == {"organizations": []}


def test_the_option_json_requires_init(run: Run):
    run("serve", "--json").assert_usage()


# Regions


@pytest.mark.slow(0.2)
def test_a_store_of_another_region_is_rejected_at_startup_and_before_a_key_is_issued(
    run: Run, monkeypatch: pytest.MonkeyPatch
):
    """Decisions 2.11: it would refuse every key. A store without an active key takes another region."""
    org = run("org", "create", "Shop", "--json").json["organization_id"]
    issue = ("key", "issue", org, "--kind", "secret", "--environment", "production")
    key = run(*issue, "--json").json["key"]
    monkeypatch.setenv("SVC_REGION", "eu")
    for command in (("serve",), ("serve", "--init"), issue):
        run(*command).assert_refused("'us'", "'eu'", "SVC_REGION=us")
    assert len(run("key", "list", org, "--json").json["keys"]) == 1
    run("key", "revoke", key["id"], "--yes")
    assert run(*issue, "--json").json["key"]["region"] == "eu"
    monkeypatch.setenv("SVC_REGION", "us")
    run("serve").assert_refused("'eu'", "'us'", "SVC_REGION=eu")


@pytest.mark.slow(0.4)
@pytest.mark.only_on("lmdb", "a database is backed up with its own tools")
def test_a_region_is_renamed_as_the_runbook_says(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    org = run("org", "create", "Shop", "--json").json["organization_id"]
    old = run("key", "issue", org, "--kind", "management", "--json").json["key"]["id"]
    names = {"ORG": org, "KEY_ID": old, "/mnt/move": str(tmp_path / "move")}
    for line in block("runbook.md", "sh", "svc backup /mnt/move").splitlines():
        words = [names.get(word, word) for word in shlex.split(line, comments=True)]
        if words[1] == "restore":
            monkeypatch.setenv("SVC_DATA", str(tmp_path / "new"))
            monkeypatch.setenv("SVC_REGION", "eu")
        done = run(*words[1:])
        assert done.status == 0, (line, done.err)
    keys = run("key", "list", org, "--json").json["keys"]
    assert [key["region"] for key in keys if key["status"] == "active"] == ["eu"]


@pytest.mark.parametrize(("second", "kept"), [("us", "us"), ("eu", None)])
def test_an_upgrade_takes_the_region_of_the_keys_if_all_have_one(tmp_path: Path, second: str, kept: str | None):
    directory, _ = unpack(RELEASED / "0.1.0.tar.xz", tmp_path)
    world = World.real()
    upgrade(directory, world.run_sync, map_bytes=64 << 20, program="9.9", now_ms=world.now_ms)
    if second == "eu":
        derive_again_with_one_key_of(second, directory / "store")
    with read_only(directory / "store", live=True) as store, store.read() as snapshot:
        assert snapshot.get(META, "version") == SCHEMA.version
        assert region_of(snapshot) == kept


def derive_again_with_one_key_of(region: str, path: Path) -> None:
    """What the upgrade does, in a store that never kept its region and has keys of two."""
    store = open_store(path, World.real().run_sync, map_bytes=64 << 20)
    try:

        def change(transaction: Any) -> None:
            kept = region_of(transaction)
            transaction.delete(META, f"region/{kept}")
            key, value = next(row for row in transaction.scan(KEYS) if row[1].status == "active")
            transaction.put(KEYS, key, msgspec.structs.replace(value, region=region))
            derive_region(transaction)

        (outcome,) = store.write_now([change])
        assert outcome is None
    finally:
        store.close()


# Keys that would admit nobody


@pytest.mark.parametrize("environment", ["production", "staging"])
def test_a_public_key_without_origins_or_platforms_is_refused(run: Run, environment: str):
    """Decisions 2.7: neither an origin nor a native platform."""
    org = run("org", "create", "Shop", "--json").json["organization_id"]
    issue = ("key", "issue", org, "--kind", "public", "--environment")
    for platforms in ((), ("--platform", "web")):
        run(*issue, environment, *platforms).assert_refused("--origin", "--platform")
    assert run("key", "list", org, "--json").json == {"keys": []}
    for options in (("--platform", "ios"), ("--platform", "web", "--origin", ORIGIN)):
        assert run(*issue, environment, *options).status == 0
    assert run(*issue, "development").status == 0


@pytest.mark.only_on("lmdb", "`svc dev` keeps its store in a data directory")
@pytest.mark.parametrize("bind", ["127.0.0.1:0", "localhost", "127.0.0.1:65536"])
def test_a_development_service_needs_a_port_that_its_links_can_name(run: Run, tmp_path: Path, bind: str):
    run("dev", "--data", tmp_path / "dev", "--bind", bind).assert_refused(f"--bind: {bind!r}")
    assert not (tmp_path / "dev").exists()


@pytest.mark.only_on("lmdb", "`svc dev` keeps its store in a data directory")
@pytest.mark.parametrize(
    ("setting", "value"),
    [("tls_certfile", "/none.pem"), ("tls_keyfile", "/none.pem"), ("hsts_max_age_s", "60")],
)
def test_a_development_service_refuses_settings_of_the_https_that_it_does_not_serve(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, value: str
):
    monkeypatch.setenv(f"SVC_{setting.upper()}", value)
    refused = run("dev", "--data", tmp_path / "dev", "--bind", "192.0.2.1:1")
    refused.assert_refused(f"`{setting}`", "`svc dev` serves plain HTTP", f"unset SVC_{setting.upper()}")
    assert not (tmp_path / "dev").exists()


@pytest.mark.parametrize(
    ("variables", "line", "where"),
    [
        ({}, "", "127.0.0.1:0"),
        ({}, 'metrics_bind = "127.0.0.1:9465"', "127.0.0.1:9465"),
        ({}, 'metrics_bind = ""', ""),
        ({"SVC_METRICS_BIND": "127.0.0.1:9464"}, 'metrics_bind = ""', "127.0.0.1:9464"),
    ],
)
def test_a_development_service_serves_its_metrics_where_settings_say(
    tmp_path: Path, variables: dict[str, str], line: str, where: str
):
    file = tmp_path / "svc.toml"
    file.write_text(line)
    assert metrics_at(load(file, variables), variables) == where
