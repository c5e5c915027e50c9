"""Decisions 8 and 10: `svc webhook recover`, after an outage of a receiver."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from svc.features.webhooks.jobs.deliveries import AttemptRecord, enqueue, log_attempt
from svc.features.webhooks.jobs.endpoints import NewEndpoint, change_endpoint, create_endpoint
from svc.features.webhooks.queries import ClaimedDelivery, next_delivery
from svc.features.webhooks.records import Attempted
from svc.features.webhooks.retries import AttemptResult
from svc.features.webhooks.sending import outbox
from svc.features.webhooks.tables import DELIVERIES
from svc.kernel.store.store import Store
from svc.kernel.values.partitions import EndpointKey
from svc.kernel.values.timestamps import timestamp
from svc.world import World
from tests.spec.commands import Run, place_of, run_beside
from tests.support.live import live_service, opened
from tests.support.outbox import EVENT
from tests.support.receivers import Receivers, always

URL = "https://receiver.example/"
ENDPOINT = "whk_00000000000000000001"
NEW = NewEndpoint(id=ENDPOINT, url=URL, description="", environment="live", events=(EVENT, "identification.completed"))
QUEUE = EndpointKey(1, 1)
GONE = Attempted(410, "http_status", 20, None)
LONG_AGO = "2020-01-01T00:00:00+01:00"


@pytest.fixture
def failed_at(run: Run, tmp_path: Path) -> int:
    """The data directory holds an endpoint to which three deliveries failed at this time, the present."""
    run("org", "create", "Shop")
    world = World.real()
    now_ms = world.now_ms()
    found = opened(tmp_path / "data", world)
    store = found.store
    store.write_now([partial(create_endpoint, number=1, new=NEW, secrets_key=b"", now_ms=now_ms)])
    for fact in range(3):
        store.write_now([lambda txn, fact=fact: enqueue(txn, 1, EVENT, "live", {"fact": fact}, now_ms)])
        with store.read() as snapshot:
            claim = next_delivery(snapshot, QUEUE, now_ms, ())
        assert isinstance(claim, ClaimedDelivery)
        result = AttemptResult(1, now_ms, now_ms, 12, 410, "http_status")
        made = AttemptRecord(world.request_id(now_ms), QUEUE, claim.key, claim.endpoint, claim.event, result)
        store.write_now([partial(log_attempt, made=made)])
    store.close()
    return now_ms


def states(store: Store) -> list[str]:
    with store.read() as snapshot:
        return [delivery.state for _, delivery in snapshot.scan(DELIVERIES)]


def test_the_number_of_recovered_deliveries_is_reported_and_none_is_queued_twice(run: Run, failed_at: int):
    """Decisions 8.4: nothing is lost; what ended `failed` is sent again when the operator says so."""
    first = run("webhook", "recover", ENDPOINT, "--since", LONG_AGO, "--json").json
    assert first["recovered"] == 3
    assert (first["endpoint_id"], first["url"], first["status"]) == (ENDPOINT, URL, "failing")
    assert first["since"] == "2019-12-31T23:00:00.000Z"
    assert run("webhook", "recover", ENDPOINT, "--since", LONG_AGO, "--json").json["recovered"] == 0
    assert run("check", "--json").json["ok"] is True
    (record,) = run("audit", "--action", "svc webhook recover", "--json").json["records"]
    assert record["subject"] == ENDPOINT
    assert record["change"] == {"since": first["since"], "until": first["until"]}, (
        "where nothing was done, nothing is said"
    )


def test_the_output_for_people_shows_the_result(run: Run, failed_at: int):
    """Decisions 10."""
    ran = run("webhook", "recover", ENDPOINT, "--since", LONG_AGO)
    assert ran.status == 0
    assert "recovered    3" in ran.out
    assert "recovered" not in ran.err


def test_a_window_without_a_failure_recovers_nothing(run: Run, failed_at: int):
    """The end of the window is not in it."""
    ran = run("webhook", "recover", ENDPOINT, "--since", LONG_AGO, "--until", timestamp(failed_at), "--json")
    assert ran.json["recovered"] == 0
    assert ran.json["until"] == timestamp(failed_at)
    ran = run(
        "webhook", "recover", ENDPOINT, "--since", timestamp(failed_at), "--until", "2999-01-01T00:00:00Z", "--json"
    )
    assert ran.json["recovered"] == 3
    assert ran.json["until"] < "2999", "what fails from now on is not what is recovered now"


def test_deliveries_recovered_for_a_paused_endpoint_wait_and_the_output_says_so(
    run: Run, failed_at: int, tmp_path: Path
):
    """Decisions 8.4: queued ones wait and go out on resume."""
    world = World.real()
    found = opened(tmp_path / "data", world)
    pause = partial(change_endpoint, number=1, endpoint_id=ENDPOINT, fields={"paused": True})
    found.store.write_now([pause])
    found.store.close()
    ran = run("webhook", "recover", ENDPOINT, "--since", LONG_AGO)
    assert "paused: they are sent when it is resumed" in ran.out


def test_an_impossible_recovery_is_rejected_with_one_line_and_changes_nothing(run: Run, failed_at: int, tmp_path: Path):
    """Decisions 10: status 1 refused, 2 usage."""
    run("webhook", "recover", "whk_nobody", "--since", LONG_AGO).assert_refused("whk_nobody")
    for arguments in (
        (),
        ("--since", "yesterday"),
        ("--since", "2026-01-05"),
        ("--since", "2999-01-01T00:00:00Z"),
        ("--since", "9999-12-31T23:59:59-23:59"),
        ("--since", LONG_AGO, "--until", "tomorrow"),
        ("--since", LONG_AGO, "--until", LONG_AGO),
        ("--since", LONG_AGO, "--until", "0001-01-01T00:00:00+23:59"),
    ):
        run("webhook", "recover", ENDPOINT, *arguments).assert_usage()
    run("webhook", "recover", ENDPOINT, "--since", LONG_AGO, "--data", tmp_path / "none").assert_refused(
        place_of(tmp_path / "none")
    )
    world = World.real()
    found = opened(tmp_path / "data", world)
    assert states(found.store) == ["failed"] * 3
    found.store.close()


@pytest.mark.slow
async def test_a_running_service_sends_deliveries_recovered_by_the_command_line(
    directory: Path, monkeypatch: pytest.MonkeyPatch
):
    """Decisions 8.1, 10: without a restart, with the same id and bytes. Nobody wakes: the outbox looks by itself."""
    monkeypatch.setattr(outbox, "POLL_INTERVAL_S", 0.1)
    receivers = Receivers()
    receivers.scripts[URL] = always(GONE, 0)
    async with live_service(directory, transport=receivers, now_ms=World.real().now_ms()) as live:
        beside = ("webhook", "recover", ENDPOINT, "--since", LONG_AGO, *live.options, "--json")
        live.found.store.write_now([partial(create_endpoint, number=1, new=NEW, secrets_key=b"", now_ms=0)])
        _, secret = live.issue(environment="production")
        for device in range(2):
            assert (await live.identify(secret, {"canvas": f"{device:032x}"})).status_code == 200
        with trio.fail_after(60):
            while states(live.found.store) != ["failed"] * 2:
                await wait_all_tasks_blocked(0.01)
        before = sorted((post.event_id, post.body) for post in receivers.posts)
        receivers.scripts[URL] = always(Attempted(200, None, 20, None), 0)
        assert (await run_beside(*beside)).json["recovered"] == 2
        live.clock.advance(hours=1)  # past the moment at which the other process, by its own clock, made them due
        with trio.fail_after(60):
            while states(live.found.store) != ["delivered"] * 2:
                await wait_all_tasks_blocked(0.01)
        assert sorted((post.event_id, post.body) for post in receivers.posts[2:]) == before
        assert (await run_beside(*beside)).json["recovered"] == 0
