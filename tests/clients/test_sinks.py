"""The programs of `examples/sinks`, each with the real engine: every change of an event is there once, in their order,
although the program is killed again and again.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
import trio

from tests.spec.automation import Automation
from tests.support.live import Live, live_service, report, settings_of
from tests.support.ports import free_port

Found = TypeVar("Found")
SINKS = Path(__file__).parents[2] / "examples" / "sinks"
BROKER = Path(__file__).parent / "programs" / "kafka" / "pom.xml"
TOPIC = "svc-events"
PATIENCE_S = 60
ROUNDS, EVENTS = 4, 30
"""How often a program is killed, and how many events come meanwhile."""


def need(*programs: str) -> None:
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not run without {', '.join(missing)}: examples/README.md says where they are")


@contextmanager
def engine(command: list[str], folder: Path) -> Generator[None]:
    with (folder / "engine.log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE_S)


def until(read: Callable[[], Found | None]) -> Found:
    """What is there at last."""
    waiting = threading.Event()
    for _ in range(PATIENCE_S * 20):
        found = read()
        if found is not None:
            return found
        waiting.wait(0.05)
    raise AssertionError("it is not there")


@asynccontextmanager
async def shop(tmp_path: Path) -> AsyncGenerator[tuple[Live, dict[str, str]]]:
    """A service, and the environment of a program beside it."""
    async with live_service(tmp_path / "data", now_ms=round(time.time() * 1000) - 600_000) as live:
        assert live.found.directory is not None
        found = {"SVC_DATA": str(live.found.directory), "ENVIRONMENT": "development"}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        yield live, {**os.environ, **settings_of(live.found.directory), **found, "PATH": path}


@contextmanager
def killed_at_the_end(command: list[str], environment: dict[str, str]) -> Generator[None]:
    """A running program. With it everything is killed that it started."""
    program = subprocess.Popen(command, env=environment, start_new_session=True)
    try:
        yield
    finally:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()


class Shopping:
    """What happens in a shop: events that come, are updated, and of which some are erased."""

    def __init__(self, live: Live) -> None:
        self.live, self.key, self.secret = live, live.issue()[1], live.issue("secret")[1]
        self.admin = Automation(live)
        self.visits, self.updates = 0, 0

    async def go_on(self) -> None:
        """So many events more, old enough to be given out."""
        made: list[dict[str, Any]] = []
        for _ in range(EVENTS):
            self.live.clock.now_ms += 7
            self.visits += 1
            response = await self.live.identify(self.key, report(self.visits))
            assert response.status_code == 200, response.text
            made.append(response.json())
        for answer in (made[0], made[7], made[0]):
            self.updates += 1
            path, headers = f"/api/v1/events/{answer['request_id']}", {"x-api-key": self.secret}
            changed = await self.live.client.patch(path, json={"tag": f"t{self.updates}"}, headers=headers)
            assert changed.status_code == 200, changed.text
        self.live.clock.now_ms += 7
        assert (await self.admin("DELETE", f"/visitors/{made[11]['visitor_id']}")).status_code == 204
        self.live.clock.now_ms += 3_000

    def tags(self) -> dict[str, str | None]:
        """Of each event that is there."""
        return {str(request_id): event.tag for request_id, event in self.live.events()}


async def killed_again_and_again(
    live: Live, environment: dict[str, str], command: list[str], read: Callable[[], list[dict[str, Any]]]
) -> None:
    """Run a program that follows changes, and kill it when part of them are there, `ROUNDS` times. Then each change is
    there once, and a copy that follows them is equal to the store.
    """
    shopping = Shopping(live)
    for turn in range(1, ROUNDS):
        with killed_at_the_end(command, environment):
            await shopping.go_on()
            enough = turn * EVENTS - EVENTS // 2
            await trio.to_thread.run_sync(until, lambda enough=enough: len(read()) >= enough or None)
    with killed_at_the_end(command, environment):
        await shopping.go_on()
        await trio.to_thread.run_sync(until, lambda: copied(read()) == shopping.tags() or None)
    said = Counter((change["type"], change["request_id"]) for change in read())
    assert sum(count for (kind, _), count in said.items() if kind == "event.updated") == shopping.updates
    assert all(count == 1 for (kind, _), count in said.items() if kind != "event.updated")
    assert sum(kind == "event.erased" for kind, _ in said) == ROUNDS


def copied(changes: list[dict[str, Any]]) -> dict[str, str | None]:
    """The tags of the events that a copy has."""
    found: dict[str, str | None] = {}
    for change in changes:
        if change["type"] == "event.erased":
            found.pop(change["request_id"], None)
        elif "event" in change:
            found[change["request_id"]] = change["event"].get("tag")
    return found


def changes_in(lines: str | None) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (lines or "").splitlines()]


@pytest.mark.slow(15)
async def test_nats_has_every_change_once(tmp_path: Path):
    need("nats-server", "nats", "jq")
    url = f"nats://127.0.0.1:{free_port()}"
    server = ["nats-server", "-a", "127.0.0.1", "-p", url.rpartition(":")[2], "-js", "-sd", str(tmp_path / "kept")]

    def nats(*arguments: str) -> str | None:
        done = subprocess.run(["nats", "-s", url, *arguments], capture_output=True, text=True, check=False)
        return done.stdout if done.returncode == 0 else None

    def there() -> list[dict[str, Any]]:
        count = json.loads(nats("stream", "info", "SVC", "--json") or "")["state"]["messages"]
        told = nats("sub", "--stream", "SVC", "--all", "--raw", "--count", str(count)) if count else ""
        return changes_in(told)

    async with shop(tmp_path) as (live, environment):
        with engine(server, tmp_path):
            until(lambda: nats("stream", "add", "SVC", "--subjects", "svc.events", "--defaults"))
            command = [str(SINKS / "nats.sh"), live.organization.id, "SVC", "svc.events"]
            await killed_again_and_again(live, {**environment, "NATS_URL": url}, command, there)


@pytest.fixture
def broker(tmp_path: Path) -> Generator[str]:
    """A running Kafka of one node."""
    need("kcat", "jq", "mvn", "java")
    paths = tmp_path / "paths"
    command = ["mvn", "--batch-mode", "--quiet", "--offline", "-f", str(BROKER), "dependency:build-classpath"]
    if subprocess.run([*command, f"-Dmdep.outputFile={paths}"], capture_output=True, check=False).returncode:
        pytest.skip(
            "not run without Kafka, which is fetched by: mvn -f tests/clients/programs/kafka dependency:build-classpath"
        )
    own, control = free_port(), free_port()
    settings = tmp_path / "server.properties"
    settings.write_text(
        f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{control}
listeners=PLAINTEXT://127.0.0.1:{own},CONTROLLER://127.0.0.1:{control}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={tmp_path / "kept"}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""
    )
    java = ["java", "-XX:TieredStopAtLevel=1", "-Xmx512m", "-cp", paths.read_text().strip()]
    named = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    made = [*java, "kafka.tools.StorageTool", "format", "-t", named, "-c", str(settings)]
    subprocess.run(made, check=True, capture_output=True)
    with engine([*java, "kafka.Kafka", str(settings)], tmp_path):
        yield f"127.0.0.1:{own}"


def kcat(broker: str, *arguments: str) -> str | None:
    done = subprocess.run(["kcat", "-q", "-b", broker, *arguments], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


@pytest.mark.long
@pytest.mark.slow(40)
async def test_kafka_has_every_change_once(tmp_path: Path, broker: str):
    until(lambda: kcat(broker, "-L"))
    made = ("-C", "-e", "-X", "allow.auto.create.topics=true", "-t", TOPIC, "-p", "0")
    until(lambda: kcat(broker, *made))
    async with shop(tmp_path) as (live, environment):
        command = [str(SINKS / "kafka.sh"), live.organization.id, broker, TOPIC]

        def there() -> list[dict[str, Any]]:
            return changes_in(kcat(broker, "-C", "-e", "-t", TOPIC, "-p", "0", "-o", "beginning"))

        await killed_again_and_again(live, {**environment, "EVERY_S": "0.1"}, command, there)


@pytest.mark.slow(10)
async def test_clickhouse_has_every_event_as_it_is(tmp_path: Path):
    need("clickhouse-server", "curl", "flock", "jq")
    http, own, place = free_port(), free_port(), tmp_path / "clickhouse"
    place.mkdir()
    (place / "users.xml").write_text(
        "<yandex><profiles><default/></profiles><quotas><default/></quotas><users><default><password/>"
        "<networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users></yandex>"
    )
    (place / "config.xml").write_text(
        f"<yandex><logger><level>warning</level><console>1</console></logger><http_port>{http}</http_port>"
        f"<tcp_port>{own}</tcp_port><listen_host>127.0.0.1</listen_host><path>{place}/</path><tmp_path>{place}/tmp/</tmp_path>"
        f"<users_config>{place}/users.xml</users_config><default_profile>default</default_profile>"
        "<default_database>default</default_database><mark_cache_size>10000000</mark_cache_size></yandex>"
    )
    url = f"http://127.0.0.1:{http}"

    def asked(query: str) -> str | None:
        try:
            response = httpx.post(url, content=query)
        except httpx.TransportError:
            return None
        assert response.status_code == 200, response.text
        return response.text

    folder = tmp_path / "state"
    folder.mkdir()
    async with shop(tmp_path) as (live, environment):
        command = [str(SINKS / "clickhouse.sh"), live.organization.id, url, str(folder)]
        with engine(["clickhouse-server", f"--config-file={place}/config.xml"], place):
            await trio.to_thread.run_sync(until, lambda: asked("select 1"))
            shopping = Shopping(live)
            for turn in range(3):
                await shopping.go_on()
                await trio.run_process(command, env=environment)
                if turn == 0:
                    # As if killed after ClickHouse had the changes and before the cursor moved.
                    (folder / "cursor").unlink()
            columns = "request_id, toUnixTimestamp(occurred_at), ifNull(tag, '')"
            rows = asked(f"select {columns} from svc_events final where not erased order by 1 format TSV")
            asked("optimize table svc_events final")
            left = asked("select count() from svc_events where occurred_at > 1")
        expected = sorted(
            f"{request_id}\t{event.occurred_at_ms // 1000}\t{event.tag or ''}" for request_id, event in live.events()
        )
    assert (rows or "").splitlines() == expected
    assert int(left or "") == len(expected), "what was erased is not there any more"
    assert {file.stat().st_mode & 0o077 for file in folder.iterdir()} == {0}, "others read no personal data"
