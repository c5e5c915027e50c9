"""`svc serve --store postgresql://…`: a process that is one of several nodes, and how it starts, goes on and ends."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from svc.features.schema import SCHEMA
from svc.kernel.store.postgresql.connection.url import store_url
from svc.kernel.store.postgresql.connection.wire import Statement, Wire
from tests.spec.commands import Run
from tests.support.acknowledged import shop
from tests.support.decided_elsewhere import ACCOUNT, assert_changes_are_in_force_on_the_other
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, USER_AGENT, report
from tests.support.postgresql import Cluster
from tests.support.process import PROGRAM, Served
from tests.support.process import run as run_program

pytestmark = pytest.mark.only_on("postgresql", "nodes share a database")


@pytest.fixture
def url(cluster: Cluster, database: str) -> str:
    return str(cluster.url(database))


@contextmanager
def serving(data: Path, url: str, program: Sequence[str] = PROGRAM) -> Generator[Served]:
    server = Served(data, program=program, SVC_STORE=url)
    try:
        yield server
    finally:
        server.kill()


def identify(
    server: Served, key: str, idempotency_key: str, replay: str | None = None
) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Status, body and headers."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.port}/api/v1/identify",
        data=json.dumps({"sdk": {"platform": "web", "version": "1"}, "signals": report(1)}).encode(),
        headers={
            "x-api-key": key,
            "origin": ORIGIN,
            "user-agent": USER_AGENT,
            "x-forwarded-for": PUBLIC_ADDRESS,
            "idempotency-key": idempotency_key,
            "content-type": "application/json",
            **({"x-svc-replay": replay} if replay else {}),
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer), {name.lower(): value for name, value in answer.headers.items()}
    except urllib.error.HTTPError as error:
        return error.code, json.load(error), {name.lower(): value for name, value in error.headers.items()}


def metrics(server: Served) -> dict[str, float]:
    (line,) = server.said("serving")
    with urllib.request.urlopen(f"http://{line['metrics'][0]}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    return {name: float(value) for name, value in re.findall(r"^(svc_[^ ]+) ([^ ]+)$", text, re.MULTILINE)}


def ready(server: Served) -> tuple[int, str]:
    """Status, and what it says of the store."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/readyz", timeout=30) as answer:
            return answer.status, json.load(answer)["checks"]["store"]
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)["checks"]["store"]


@pytest.mark.slow
def test_a_database_without_a_store_is_rejected_with_how_to_create_one(url: str, tmp_path: Path):
    done = run_program("serve", "--data", str(tmp_path), "--store", url, status=2)
    assert "svc serve --init" in done.stderr
    assert "svc store move" in done.stderr


def test_several_workers_are_rejected_with_the_alternative(run: Run, url: str, tmp_path: Path):
    refused = run("serve", "--data", tmp_path, "--store", url, "--workers", "2")
    refused.assert_refused("workers = 2", "one process", "load balancer")


@pytest.mark.parametrize(
    ("location", "says"),
    [
        ("postgresql://svc:hunter2@db.example/svc", "SVC_STORE_PASSWORD_FILE"),
        ("mysql://db.example/svc", "postgresql://USER@HOST"),
    ],
)
def test_an_unusable_database_is_reported_in_one_line(run: Run, location: str, says: str, tmp_path: Path):
    refused = run("serve", "--data", tmp_path, "--store", location)
    refused.assert_refused(says)
    assert "hunter2" not in refused.err


def test_a_command_reports_a_database_that_is_away_in_one_line(run: Run, tmp_path: Path):
    """A node waits for it: `tests/test_clock_at_start.py`."""
    away = "postgresql://svc@127.0.0.1:1/none"
    run("org", "list", "--data", tmp_path, "--store", away).assert_refused("Connection refused")


@pytest.mark.slow
def test_a_read_only_standby_is_rejected_with_what_to_name_instead(run: Run, url: str, tmp_path: Path):
    shop(tmp_path, SVC_STORE=url)
    read_only = f"{url}&options=-c%20default_transaction_read_only%3Don"
    run("serve", "--data", tmp_path, "--store", read_only).assert_refused("read-only", "target_session_attrs")


def test_a_user_without_rights_is_rejected(run: Run, cluster: Cluster, database: str, url: str, tmp_path: Path):
    cluster.execute(f"create role visitor_of_{database} login")
    nobody = url.replace("svc@", f"visitor_of_{database}@")
    run("serve", "--data", tmp_path, "--store", nobody, "--init").assert_refused("permission denied", "right")


@pytest.mark.slow
def test_a_node_with_another_pepper_is_rejected(run: Run, url: str, tmp_path: Path):
    shop(tmp_path / "one", SVC_STORE=url)
    (tmp_path / "other").mkdir(mode=0o700)
    (tmp_path / "other" / "pepper").write_bytes(bytes(32))
    run("serve", "--data", tmp_path / "other", "--store", url).assert_refused("not the pepper")


@pytest.mark.slow
def test_two_nodes_respond_as_one_and_the_second_becomes_leader_after_the_first(url: str, tmp_path: Path):
    key = shop(tmp_path, SVC_STORE=url)
    with serving(tmp_path, url) as one, serving(tmp_path, url) as two:
        status, first, _ = identify(one, key, "a")
        assert status == 200
        assert identify(two, key, "a")[1] == {"request_id": first["request_id"], "duplicate": True}
        assert identify(two, key, "a", replay="full")[1] == {**first, "duplicate": True}
        _, second, _ = identify(two, key, "b")
        assert second["visitor_id"] == first["visitor_id"]
        assert (metrics(one)["svc_leases_held"], metrics(two)["svc_leases_held"]) == (1, 0)
        assert metrics(two)["svc_nodes"] == 2
        assert 'svc_store_rows{table="events"}' in metrics(one)
        assert 'svc_store_rows{table="events"}' not in metrics(two)
        assert ready(one) == ready(two) == (200, "ok")
        assert one.terminate() == 0
        two.wait_until_said("leader from now on")
        assert metrics(two)["svc_leases_held"] == 1
        assert two.terminate() == 0


@pytest.mark.slow(2)
def test_a_block_and_a_rule_are_in_force_on_the_other_node_at_the_next_request(url: str, tmp_path: Path):
    key = shop(tmp_path, SVC_STORE=url)
    (organization,) = json.loads(run_program("org", "list", "--data", str(tmp_path), "--json", SVC_STORE=url).stdout)[
        "organizations"
    ]
    issue = ("key", "issue", organization["organization_id"], "--kind", "management", "--role", "admin", "--json")
    management = json.loads(run_program(*issue, "--data", str(tmp_path), SVC_STORE=url).stdout)["secret"]
    sent = {"origin": ORIGIN, "user-agent": USER_AGENT, "x-forwarded-for": PUBLIC_ADDRESS}
    with serving(tmp_path, url) as one, serving(tmp_path, url) as two:

        def ask(which: int, method: str, path: str, body: Any, **headers: str) -> Any:
            request = urllib.request.Request(
                f"http://127.0.0.1:{(one, two)[which].port}/api/v1{path}",
                method=method,
                data=None if body is None else json.dumps(body).encode(),
                headers={"content-type": "application/json", **headers},
            )
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.loads(answer.read() or b"null")

        def manage(which: int, method: str, path: str, body: Any) -> Any:
            path = f"/management/organizations/{organization['organization_id']}{path}"
            return ask(which, method, path, body, **{"x-api-key": management})

        def decided(which: int) -> str | None:
            body = {"sdk": {"platform": "web"}, "signals": report(1), "account_id": ACCOUNT}
            found = ask(which, "POST", "/identify", body, **{"x-api-key": key}, **sent)
            return found.get("decision", {}).get("action")

        assert_changes_are_in_force_on_the_other(manage, decided)
        assert one.terminate() == two.terminate() == 0


@pytest.mark.slow
def test_nodes_divide_the_rate_limit(url: str, tmp_path: Path):
    made = json.loads(
        run_program(
            "org",
            "create",
            "s",
            "--rate-limit",
            "2",
            "--credit-usd",
            "5",
            "--data",
            str(tmp_path),
            "--json",
            SVC_STORE=url,
        ).stdout
    )
    issued = json.loads(
        run_program(
            "key",
            "issue",
            made["organization_id"],
            "--kind",
            "public",
            "--environment",
            "production",
            "--origin",
            ORIGIN,
            "--data",
            str(tmp_path),
            "--json",
            SVC_STORE=url,
        ).stdout
    )
    with serving(tmp_path, url) as one, serving(tmp_path, url) as two:
        one_alone = [line for line in one.said("node") if line["nodes"] == 1]
        assert one_alone
        (beginning,) = two.said("node")
        assert beginning["nodes"] == 2
        status, _, headers = identify(two, issued["secret"], "a")
        assert (status, headers["ratelimit-limit"], headers["ratelimit-remaining"]) == (200, "2", "0")


@pytest.mark.slow
def test_a_database_outage_gives_503_and_the_service_recovers_afterwards(tmp_path: Path):
    cluster = Cluster(durable=True)
    try:
        with cluster.database() as database:
            url = str(cluster.url(database))
            key = shop(tmp_path, SVC_STORE=url)
            with serving(tmp_path, url) as server:
                assert identify(server, key, "before")[0] == 200
                cluster.kill()
                status, body, headers = identify(server, key, "during")
                assert (status, body["error"]["code"]) == (503, "service_unavailable")
                assert int(headers["retry-after"]) >= 1
                cluster.start()
                for _ in range(100):
                    if identify(server, key, "after")[0] == 200:
                        break
                assert identify(server, key, "after")[0] == 200
                assert server.terminate() == 0
            run_program("check", "--data", str(tmp_path), "--store", url)
    finally:
        cluster.close()


@pytest.mark.slow(40)
def test_a_leader_stopped_for_longer_than_its_lease_loses_its_role(url: str, tmp_path: Path):
    key = shop(tmp_path, SVC_STORE=url)
    with serving(tmp_path, url) as stopped, serving(tmp_path, url) as other:
        assert metrics(stopped)["svc_leases_held"] == 1
        os.kill(stopped.pid, signal.SIGSTOP)
        try:
            other.wait_until_said("leader from now on")
        finally:
            os.kill(stopped.pid, signal.SIGCONT)
        stopped.wait_until_said("no longer the leader")
        assert (metrics(stopped)["svc_leases_held"], metrics(other)["svc_leases_held"]) == (0, 1)
        first = identify(stopped, key, "a")[1]
        assert identify(other, key, "a")[1]["request_id"] == first["request_id"]
        assert stopped.terminate() == other.terminate() == 0


@pytest.mark.slow
def test_the_pepper_is_replaced_only_without_nodes_and_a_node_stopped_meanwhile_ends(url: str, tmp_path: Path):
    key = shop(tmp_path / "one", SVC_STORE=url)
    (tmp_path / "two").mkdir(mode=0o700)
    (tmp_path / "two" / "pepper").write_bytes((tmp_path / "one" / "pepper").read_bytes())
    replace = ("pepper", "replace", "--revoke-all-keys", "--data", str(tmp_path / "one"), "--store", url)
    with serving(tmp_path / "two", url) as node:
        refused = run_program(*replace, status=1)
        assert f"/{node.pid}/" in refused.stderr
        assert "stop" in refused.stderr
        assert identify(node, key, "a")[0] == 200
        os.kill(node.pid, signal.SIGSTOP)
        try:
            assert "nodes serve" in run_program(*replace, status=1).stderr
            forget_nodes(url)  # as after ten seconds
            assert "copy it to every node" in run_program(*replace).stdout
        finally:
            os.kill(node.pid, signal.SIGCONT)
        assert node.wait() == 1
        said = "".join(node.log)  # lines of the log may come after it: another thread writes them
        assert "the pepper of the database was replaced" in said, said
    assert (
        "not the pepper" in run_program("org", "list", "--data", str(tmp_path / "two"), "--store", url, status=1).stderr
    )
    with serving(tmp_path / "one", url) as node:
        assert identify(node, key, "b")[0] == 401
        assert node.terminate() == 0
    run_program("check", "--data", str(tmp_path / "one"), "--store", url)


@pytest.mark.slow(2)
def test_what_has_to_be_alone_on_a_store_is_refused_while_a_node_serves_it(url: str, tmp_path: Path):
    """As on a data directory; each says why."""
    key = shop(tmp_path, SVC_STORE=url)
    data, target = ("--data", str(tmp_path)), tmp_path / "moved"
    commands = {
        ("store", "rebuild-indexes", *data, "--store", url): "would wait until the end",
        ("store", "move", "--from", url, "--to", str(target)): "would not be moved",
        ("pepper", "replace", "--revoke-all-keys", *data, "--store", url): "with the new one",
    }
    with serving(tmp_path, url) as node:
        for command, reason in commands.items():
            refused = run_program(*command, status=1)
            assert all(says in refused.stderr for says in ("nodes serve", f"/{node.pid}/", reason)), refused.stderr
        assert identify(node, key, "a")[0] == 200
        assert node.terminate() == 0
    for command in commands:
        run_program(*command)
    assert (target / "store").is_dir()


def forget_nodes(url: str) -> None:
    with closing(Wire.connect_now(store_url(url))) as wire:
        wire.exchange_now([Statement(b"delete from svc.nodes")])


NEWER = (
    "import svc.features.upgrade.migrations as known; "
    f"known.MIGRATIONS[{SCHEMA.version + 1}] = lambda transaction: None; "
    "import svc.cli; svc.cli.main()"
)


@pytest.mark.slow(2)
def test_an_older_node_ends_when_a_newer_one_has_upgraded_the_store(url: str, tmp_path: Path):
    """It says so, writes nothing more, and starts no more."""
    key = shop(tmp_path, SVC_STORE=url)
    with serving(tmp_path, url) as older:
        assert identify(older, key, "a")[0] == 200
        with serving(tmp_path, url, program=[sys.executable, "-c", NEWER]) as newer:
            with suppress(urllib.error.URLError, ConnectionError):  # where it has ended already: the leader looks too
                status, body, headers = identify(older, key, "b")
                assert (status, body["error"]["code"]) == (503, "service_unavailable")
                assert int(headers["retry-after"]) >= 1
            assert older.wait() == 1
            assert any('"the store has another version, draining"' in line for line in older.log)
            known = SCHEMA.version
            says = f"svc: the store has version {known + 1} and this program knows {known}: run the newer"
            assert any(line.startswith(says) for line in older.log), "".join(older.log)
            assert identify(newer, key, "b")[1]["visitor_is_new"] is False
            assert newer.terminate() == 0
    run_program("serve", "--data", str(tmp_path), "--store", url, status=1)


FIVE_MINUTES_AHEAD = (
    "import svc.world; now_ms = svc.world.wall_clock_ms; svc.world.wall_clock_ms = lambda: now_ms() + 300_000; "
    "import svc.cli; svc.cli.main()"
)


@pytest.mark.slow(2)
def test_a_node_with_a_clock_five_minutes_off_works_like_the_others(url: str, tmp_path: Path):
    key = shop(tmp_path, SVC_STORE=url)
    with (
        serving(tmp_path, url, program=[sys.executable, "-c", FIVE_MINUTES_AHEAD]) as ahead,
        serving(tmp_path, url) as one,
    ):
        assert identify(ahead, key, "a")[0] == 200
        assert identify(one, key, "a")[1]["request_id"] == identify(ahead, key, "a")[1]["request_id"]
        assert identify(one, key, "b")[1]["visitor_is_new"] is False
        assert (metrics(ahead)["svc_leases_held"], metrics(one)["svc_leases_held"]) == (1, 0)
        assert metrics(one)["svc_nodes"] == 2
        assert ahead.terminate() == 0
        one.wait_until_said("leader from now on")
        assert one.terminate() == 0
    run_program("check", "--data", str(tmp_path), "--store", url)
