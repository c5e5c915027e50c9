"""Each library for servers against a service that misbehaves (`clients/vectors/hostile.py`): what `check` comes to, how
often it asked, and how long it took. Java is in `test_java.py`, where it is compiled.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from svc_client import ApiError, AsyncClient, Checked, Client, UnreachableError

from tests.clients.conftest import Library
from tests.clients.hostility import CASES, DEADLINE_MS, TIMEOUT_MS, Told, agrees, in_lines, places
from tests.clients.test_go import go
from tests.clients.test_recipes import command
from tests.clients.vectors import reference

pytestmark = pytest.mark.slow(5)
REQUEST_ID = reference("cases_for_servers").REQUEST_ID
ACTION: dict[str, Any] = {"origin": "https://shop.example", "tag": "signup"}

PHP = """
require $argv[1];
$input = json_decode(stream_get_contents(STDIN), true);
foreach ($input['places'] as $name => $url) {
    $began = microtime(true);
    try {
        $event = svc_event($url, 'svc_sk_key', $input['id'], $input['deadline_ms'] / 1000);
        $found = svc_check($event, $input['action'], fn (string $id): bool => true)['decision'];
    } catch (RuntimeException $failed) {
        $found = $failed->getMessage();
    }
    echo json_encode([$name, $found, (microtime(true) - $began) * 1000]), "\\n";
}
"""

RUBY = """
require ARGV[0]
input = JSON.parse($stdin.read)
now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
told = input["places"].map do |name, url|
  Thread.new do
    began = now.call
    begin
      event = Svc.event(url, "svc_sk_key", input["id"], timeout_s: input["deadline_ms"] / 1000.0)
      found = Svc.check(event, **input["action"].transform_keys(&:to_sym)) { true }[:decision]
    rescue Svc::Refused => failed
      found = "svc: #{failed.message}"
    end
    [name, found, (now.call - began) * 1000]
  end
end
told.each { |one| puts JSON.generate(one.value) }
"""


def test_each_behavior_has_a_case():
    assert set(reference("hostile").BEHAVIORS) == set(CASES)
    assert len(CASES) >= 20


def timed(ask: Any, *given: Any) -> tuple[str, float]:
    """What a call of the library for Python comes to."""
    began = time.monotonic()
    try:
        result = ask(*given)
    except Exception as error:  # noqa: BLE001  it is what the test is about
        result = error
    return named(result), (time.monotonic() - began) * 1000


def named(result: Checked | Exception) -> str:
    if isinstance(result, ApiError):
        return f"{result.status} {result.code}"
    if isinstance(result, UnreachableError):
        return "unreachable"
    return result.decision if isinstance(result, Checked) else repr(result)


LIMITS = {"timeout_s": TIMEOUT_MS / 1000, "deadline_s": DEADLINE_MS / 1000}


def test_the_python_client_survives_each_behavior(
    hostile_service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))  # no client reads every authority there is
    clients = {name: Client(url, "svc_sk_key", **LIMITS) for name, url in places(hostile_service, "python").items()}

    def ask(name: str) -> tuple[str, float]:
        with clients[name] as client:
            return timed(lambda: client.check(REQUEST_ID, **ACTION, is_first_use=lambda _: True))

    with ThreadPoolExecutor(len(clients)) as pool:
        agrees(hostile_service, "python", dict(zip(clients, pool.map(ask, clients), strict=True)))


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_the_asynchronous_python_client_survives_each_behavior(hostile_service: str, loop: str):
    http = httpx.AsyncClient(verify=False)
    every = places(hostile_service, loop).items()
    clients = {name: AsyncClient(url, "svc_sk_key", **LIMITS, http=http) for name, url in every}
    told: Told = {}

    async def ask(name: str) -> None:
        began = time.monotonic()
        try:
            result = await clients[name].check(REQUEST_ID, **ACTION, is_first_use=lambda _: True)
        except Exception as error:  # noqa: BLE001  it is what the test is about
            result = error
        told[name] = named(result), (time.monotonic() - began) * 1000

    async def in_trio() -> None:
        async with http, trio.open_nursery() as nursery:
            for name in clients:
                nursery.start_soon(ask, name)

    async def in_asyncio() -> None:
        async with http:
            await asyncio.gather(*map(ask, clients))

    if loop == "trio":
        trio.run(in_trio)
    else:
        asyncio.run(in_asyncio())
    agrees(hostile_service, loop, told)


async def test_the_node_client_survives_each_behavior(library: Library, hostile_service: str):
    told = await library.run(
        """
        const said = await Promise.all(Object.entries(PLACES).map(async ([name, baseUrl]) => {
          const client = new Client({ baseUrl, apiKey: "svc_sk_key", timeoutMs: TIMEOUT_MS, deadlineMs: DEADLINE_MS });
          const began = performance.now();
          const found = await client.check(ID, { ...ACTION, isFirstUse: () => true }).then(
            ({ decision }) => decision,
            (error) => {
              if (error instanceof ApiError) return `${error.status} ${error.code}`;
              return error instanceof UnreachableError ? "unreachable" : String(error.stack);
            },
          );
          return [name, [found, performance.now() - began]];
        }));
        return Object.fromEntries(said);
        """,
        PLACES=places(hostile_service, "node"), ID=REQUEST_ID, ACTION=ACTION,
        TIMEOUT_MS=TIMEOUT_MS, DEADLINE_MS=DEADLINE_MS,
    )  # fmt: skip
    agrees(hostile_service, "node", told)


def test_the_go_client_survives_each_behavior(hostile_service: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SVC_HOSTILE", f"{hostile_service}/go")
    agrees(hostile_service, "go", in_lines(go("test", "-count=1", "-v", "-run", "TestHostile", "./...")))


@pytest.mark.parametrize("language", ["php", "ruby"])
def test_a_recipe_survives_each_behavior(hostile_service: str, language: str):
    given = {"id": REQUEST_ID, "action": ACTION, "deadline_ms": DEADLINE_MS}
    every = places(hostile_service, language)
    # PHP has no threads: a process for each behavior.
    shares = [{name: url} for name, url in every.items()] if language == "php" else [every]
    program = [PHP if part.startswith("\nrequire $argv") else part for part in command(language)]
    program = [RUBY if part.startswith("\nrequire ARGV") else part for part in program]

    def run(share: dict[str, str]) -> str:
        sent = json.dumps({**given, "places": share})
        done = subprocess.run(program, input=sent, capture_output=True, text=True, check=False, env=os.environ)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    with ThreadPoolExecutor(len(shares)) as pool:
        lines = [json.loads(line) for printed in pool.map(run, shares) for line in printed.splitlines()]
    told: Told = {}
    for name, said, took_ms in lines:
        result = said.removeprefix("svc: ").removeprefix("status ")
        result = "unreachable" if result.startswith("no response") else result
        told[str(name)] = "200 unexpected_response" if result == "unexpected_response" else result, took_ms
    agrees(hostile_service, language, told, is_recipe=True)
