"""Decisions 2.3, 9.1 and 10: `svc serve`, `svc check`, and commands that change what a running service does."""

from __future__ import annotations

import os
import signal
import subprocess
import tomllib
from functools import partial
from pathlib import Path

import httpx
import pytest
import trio

from svc.kernel.config import Config
from svc.kernel.config_loading import load
from svc.kernel.tenants.tables import BALANCES
from svc.world import World
from tests.spec.commands import ROOT, Run, run_beside
from tests.spec.responses import assert_error, visit
from tests.support.live import ORIGIN, Live, opened
from tests.support.ports import free_port
from tests.support.process import PROGRAM


@pytest.mark.only_on("lmdb", "it opens no store")
def test_print_config_shows_every_effective_setting(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Decisions 10: a TOML file, then `SVC_*` variables; what is printed can be read back."""
    file = tmp_path / "svc.toml"
    file.write_text('region = "eu"\nmax_connections = 7\n')
    monkeypatch.setenv("SVC_MAX_CONNECTIONS", "9")
    ran = run("serve", "--config", file, "--bind", "127.0.0.1:9999", "--print-config")
    assert (ran.status, ran.err) == (0, "")
    printed = tomllib.loads(ran.out)
    assert (printed["region"], printed["max_connections"], printed["bind"]) == ("eu", 9, "127.0.0.1:9999")
    for name in Config.__struct_fields__:
        assert name in ran.out
    again = tmp_path / "again.toml"
    again.write_text(ran.out)
    monkeypatch.delenv("SVC_MAX_CONNECTIONS")
    assert load(again, {}) == Config(region="eu", max_connections=9, bind="127.0.0.1:9999")


def test_print_config_shows_the_defaults_where_nothing_is_set(run: Run):
    """Decisions 2.10, 10: region `us`, no trusted proxies."""
    printed = tomllib.loads(run("serve", "--print-config").out)
    assert (printed["region"], printed["trusted_proxies"]) == ("us", [])


def test_an_unknown_setting_is_rejected_at_startup(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Decisions 10."""
    file = tmp_path / "svc.toml"
    file.write_text('regoin = "eu"\n')
    run("serve", "--config", file).assert_refused("regoin")
    file.write_text('region = "EU!"\n')
    run("serve", "--config", file).assert_refused("region")
    file.write_text("region = \n")
    run("serve", "--config", file).assert_refused(str(file))
    run("serve", "--config", tmp_path / "none.toml").assert_refused("none.toml")
    monkeypatch.setenv("SVC_REGOIN", "eu")
    run("serve", "--print-config").assert_refused("SVC_REGOIN")


def test_serving_requires_a_data_directory(run: Run, monkeypatch: pytest.MonkeyPatch):
    """Decisions 10: usage."""
    monkeypatch.delenv("SVC_DATA")
    run("serve").assert_usage()


def test_check_passes_a_valid_store_and_fails_a_corrupt_one(run: Run, tmp_path: Path):
    """Decisions 5.1, 10: invariants; here a balance is no longer the sum of its ledger."""
    run("org", "create", "Shop", "--credit-usd", 1)
    assert run("check", "--json").json == {"ok": True, "violations": 0, "first": []}
    assert run("check").status == 0
    world = World.real()
    found = opened(tmp_path / "data", world)
    found.store.write_now([lambda transaction: transaction.put(BALANCES, (1,), 5)])
    found.store.close()
    ran = run("check")
    assert ran.status == 1
    assert "balance" in ran.out
    assert "1 violation" in ran.err
    assert run("check", "--json").status == 1


@pytest.mark.slow
async def test_key_changes_from_the_command_line_apply_at_the_next_request(live: Live):
    """Decisions 2.3, 10: issued and revoked while the service runs."""
    org = live.organization.id
    options = ("--kind", "public", "--environment", "staging", "--origin", ORIGIN, *live.options, "--json")
    issued = (await run_beside("key", "issue", org, *options)).json
    assert (await visit(live, issued["secret"])).status_code == 200
    listed = (await run_beside("key", "list", org, *live.options, "--json")).json["keys"]
    assert [key["id"] for key in listed] == [issued["key"]["id"]]
    assert listed[0]["last_used_at"] == "2026-01-01T00:00:00.000Z"
    await run_beside("key", "revoke", issued["key"]["id"], "--yes", *live.options)
    assert_error(await visit(live, issued["secret"]), 401, "unauthorized")


@pytest.mark.slow
async def test_billing_and_limit_changes_from_the_command_line_apply_at_the_next_request(live: Live):
    """Decisions 4, 5, 10: credit, billing status and rate limit while the service runs; the store stays whole."""
    organization = live.new_organization(credit_usd=0)
    _, secret = live.issue(environment="production", organization=organization.number)
    beside = (*live.options, "--json")
    assert_error(await visit(live, secret), 402, "no_credit")
    await run_beside("org", "credit", organization.id, "--usd", "0.01", *beside)
    assert (await visit(live, secret)).headers["svc-balance-micros"] == "7000"
    shown = (await run_beside("org", "show", organization.id, *beside)).json
    assert shown["balance_micros"] == 7000
    await run_beside("org", "billing-status", organization.id, "blocked", *beside)
    assert_error(await visit(live, secret), 402, "billing_blocked")
    await run_beside("org", "billing-status", organization.id, "free", *beside)
    assert (await visit(live, secret)).status_code == 200
    await run_beside("org", "rate-limit", organization.id, 1, *beside)
    assert (await visit(live, secret)).headers["ratelimit-limit"] == "1"
    assert (await run_beside("check", *beside)).json["ok"] is True


@pytest.mark.slow(6)
async def test_serve_handles_requests_until_sigterm_drains_it(tmp_path: Path):
    """Decisions 9.1, 10: exit status 0."""
    created = (await run_beside("org", "create", "Shop", "--data", tmp_path, "--json")).json
    options = ("--kind", "secret", "--environment", "development", "--data", tmp_path, "--json")
    secret = (await run_beside("key", "issue", created["organization_id"], *options)).json["secret"]
    bind = f"127.0.0.1:{free_port()}"
    command = [*PROGRAM, "serve", "--data", str(tmp_path), "--bind", bind, "--metrics-bind", "127.0.0.1:0"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}
    served = partial(trio.run_process, command, stderr=subprocess.PIPE, check=False, cwd=ROOT, env=environment)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            process = await nursery.start(served)
            said = b""
            while b'"serving"' not in said:
                received = await process.stderr.receive_some()
                assert received, said
                said += received
            async with httpx.AsyncClient(base_url=f"http://{bind}", verify=False) as client:
                assert (await client.get("/readyz")).json()["status"] == "ready"
                body = {"sdk": {}, "signals": {}}
                response = await client.post("/api/v1/identify", json=body, headers={"x-api-key": secret})
                assert response.status_code == 200
                process.send_signal(signal.SIGTERM)
                assert await process.wait() == 0
    assert (await run_beside("check", "--data", tmp_path, "--json")).json["ok"] is True
