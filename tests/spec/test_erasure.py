"""Decisions 7.6 and 10: a visitor is erased by its organization, or by the operator, and nothing of it is left."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from svc.features.checks.invariants import violations
from svc.features.erasure.visitors import erase_visitor
from svc.features.retention.sweeper import sweep
from svc.features.webhooks.jobs.endpoints import NewEndpoint, create_endpoint
from svc.features.webhooks.tables import DELIVERIES, WEBHOOK_EVENTS
from svc.identify.events.archive import inflate
from svc.identify.tables import (
    ADDRESSES,
    BLOCKS,
    DELETED_VISITORS,
    DOCUMENTS,
    ERASURES,
    EVENTS,
    REPORT_FINGERPRINTS,
)
from svc.kernel.store.steps import EVENT_ROWS, items_of_step
from svc.kernel.tenants.tables import LEDGER
from tests.spec.automation import Automation
from tests.spec.commands import Run, run_beside
from tests.spec.responses import DRIVEN, TOO_LITTLE, assert_error, nothing_stored, visit
from tests.support.live import ORIGIN, Live, report, succeeded

NOBODY = "AAAAAAAAAAAAAAAAAAAA"


def marked(mark: str, device: int = 1) -> dict[str, Any]:
    """A report that says whose it is wherever a report may say something."""
    return report(device, client_token=f"token-{mark}-0123456789", nonce=f"a-nonce-{mark}", note=f"note-{mark}")


async def identified(live: Live, secret: str, signals: Any = None, **given: Any) -> dict[str, Any]:
    return succeeded(await visit(live, secret, signals, **given))


async def events(live: Live, secret: str, visitor_id: str | None = None) -> list[dict[str, Any]]:
    query = {"limit": 200} | ({} if visitor_id is None else {"visitor": visitor_id})
    answer = await live.client.get("/api/v1/events", params=query, headers={"x-api-key": secret})
    return answer.json()["rows"]


async def tell_later(live: Live, secret: str, answer: dict[str, Any], mark: str) -> None:
    body = {
        "token": answer["deferred_token"],
        "sdk": {"platform": "web", "version": "1.0"},
        "signals": {"tier": "deferred", "note": f"later-{mark}"},
    }
    path = f"/api/v1/events/{answer['request_id']}/supplement"
    sent = await live.client.post(path, json=body, headers={"x-api-key": secret, "origin": ORIGIN})
    assert sent.status_code == 202, sent.text


def live_pages(live: Live, directory: Path) -> bytes:
    """The store's file without the pages that are free, and every value of it that is deflated, inflated. Of a database
    its rows: when it frees a page is its own affair.
    """
    with live.found.store.read() as snapshot:
        archives = [inflate(document.signals) for _, document in snapshot.scan(DOCUMENTS)]
    if live.found.store.is_shared:
        return live.stored_bytes() + b"".join(archives)
    directory.mkdir()
    live.found.store.engine.copy(directory, lambda: 0)
    return (directory / "data.mdb").read_bytes() + b"".join(archives)


async def test_an_erased_visitor_can_no_longer_be_read_and_others_can(live: Live, admin: Automation):
    """Decisions 7.6: its events of every environment; the answer has no body."""
    public, secret = live.issue()[1], live.issue("secret")[1]
    staging, staging_secret = live.issue(environment="staging")[1], live.issue("secret", "staging")[1]
    answers = [await identified(live, public, marked("a")) for _ in range(3)]
    await identified(live, staging, marked("a"))
    other = await identified(live, public, marked("b", 2))
    visitor_id = answers[0]["visitor_id"]
    assert {answer["visitor_id"] for answer in answers} == {visitor_id} != {other["visitor_id"]}
    assert [len(await events(live, key, visitor_id)) for key in (secret, staging_secret)] == [3, 1]

    erased = await admin("DELETE", f"/visitors/{visitor_id}")
    assert (erased.status_code, erased.content) == (204, b"")
    assert [row["visitor_id"] for row in await events(live, secret)] == [other["visitor_id"]]
    assert await events(live, staging_secret) == []
    for answer in answers:
        path = f"/api/v1/events/{answer['request_id']}"
        assert_error(await live.client.get(path, headers={"x-api-key": secret}), 404, "event_not_found")
    assert (await identified(live, public, marked("b", 2)))["visitor_id"] == other["visitor_id"]


@pytest.mark.slow(0.2)
async def test_nothing_of_an_erased_visitor_is_found_in_the_store(live: Live, admin: Automation, tmp_path: Path):
    """Decisions 7.6: not in any page that is in use; the same search finds all of it before."""
    _, public = live.issue()
    for device in range(2, 12):
        await identified(live, public, marked(f"other-{device}", device))
    given = {"tag": "tag-of-a", "headers": {"x-forwarded-for": "81.2.69.77", "idempotency-key": "key-of-a"}}
    first = await identified(live, public, marked("of-a"), **given)
    second = await identified(live, public, {**marked("of-a"), "padding": "x" * 9000}, tag="tag-of-a")
    await tell_later(live, public, first, "of-a")
    with live.found.store.read() as snapshot:
        archives = [
            snapshot.get(DOCUMENTS, live.organization.number, bytes.fromhex(answer["request_id"].replace("-", "")))
            for answer in (first, second)
        ]
    marks = [first["visitor_id"].encode(), b"tag-of-a", b"81.2.69.77"]
    inside = [b"note-of-a", b"nonce-of-a", b"token-of-a"]
    deflated = [archive.signals[-end:][:24] for archive in archives if archive for end in (64, 44, 24)]
    before = live_pages(live, tmp_path / "before")
    assert [mark for mark in marks + inside + deflated if mark not in before] == []
    assert b"later-of-a" not in before  # deflated; found by inflating it, below
    assert len(deflated) == 6

    assert (await admin("DELETE", f"/visitors/{first['visitor_id']}")).status_code == 204
    after = live_pages(live, tmp_path / "after")
    assert [mark for mark in marks[1:] + inside + deflated if mark in after] == []
    assert after.count(marks[0]) == 1, "its id, on record as erased (docs/audit.md), and nowhere else"
    assert after.count(b"note-other") == before.count(b"note-other") == 10


async def test_pending_webhooks_about_an_erased_visitor_are_erased(live: Live, admin: Automation, key: str):
    """Decisions 7.6: those queued, and those that could be sent again; others' stay."""
    events_told = ("identification.completed", "visitor.suspect")
    new = NewEndpoint(
        id="whk_" + "A" * 20, url="https://127.0.0.1/hook", description="", environment="test", events=events_told
    )
    number = live.organization.number
    register = partial(create_endpoint, number=number, new=new, secrets_key=b"k" * 32, now_ms=0)
    live.found.store.write_now([register])
    driven = await identified(live, key, {**marked("a"), **DRIVEN})
    other = await identified(live, key, marked("b", 2))
    assert Counter(queued(live)) == {driven["visitor_id"]: 2, other["visitor_id"]: 1}
    assert (await admin("DELETE", f"/visitors/{driven['visitor_id']}")).status_code == 204
    assert queued(live) == [other["visitor_id"]]
    assert live.count(DELIVERIES) == 1


def queued(live: Live) -> list[str]:
    """Whom each webhook event that is kept tells of."""
    with live.found.store.read() as snapshot:
        kept = [event.body for _, event in snapshot.scan(WEBHOOK_EVENTS, live.organization.number)]
    return [msgspec.json.decode(body)["data"]["visitor_id"] for body in kept]


async def test_an_erased_visitor_returns_as_a_new_one(live: Live, key: str, admin: Automation):
    """Decisions 7.6, 3.5: under another id, even with its old token; and the report it sends is not a replay."""
    first = await identified(live, key, marked("a"))
    await admin("DELETE", f"/visitors/{first['visitor_id']}")
    again = await identified(live, key, marked("a"))
    assert (again["visitor_is_new"], again["visitor_confidence"]) == (True, 0)
    assert again["visitor_id"] != first["visitor_id"]
    assert "replayed" not in {trigger["signal"] for trigger in again.get("triggers", ())}
    assert {event.verdict.visitor_id for _, event in live.events()} == {again["visitor_id"]}


@pytest.mark.slow(0.2)
async def test_erasing_refunds_nothing(live: Live, public: str, admin: Automation):
    """Decisions 5.1: the ledger is append-only; its lines say when and how much, and of nobody."""
    answer = await identified(live, public, marked("a"))
    with live.found.store.read() as snapshot:
        before = list(snapshot.scan(LEDGER))
    await admin("DELETE", f"/visitors/{answer['visitor_id']}")
    with live.found.store.read() as snapshot:
        assert list(snapshot.scan(LEDGER)) == before
    assert live.balance() == 10_000_000 - 3_000


async def test_a_retry_of_an_erased_identification_is_still_a_duplicate(live: Live, key: str, admin: Automation):
    """Decisions 3.2, 7.6: the key is remembered by its digest, and brings nobody back."""
    answer = await identified(live, key, marked("a"), headers={"idempotency-key": "k"})
    await admin("DELETE", f"/visitors/{answer['visitor_id']}")
    again = await identified(live, key, marked("a"), headers={"idempotency-key": "k"})
    assert again == {"request_id": answer["request_id"], "duplicate": True}
    assert live.events() == []


async def test_an_unidentifiable_visitor_is_erased_by_the_id_of_its_event(live: Live, key: str, admin: Automation):
    """Decisions 3.6, 7.6."""
    answer = await identified(live, key, TOO_LITTLE)
    assert answer["identifiable"] is False
    assert (await admin("DELETE", f"/visitors/{answer['visitor_id']}")).status_code == 204
    assert live.events() == []
    assert_error(await admin("DELETE", f"/visitors/{answer['visitor_id']}"), 404, "not_found")


async def test_an_unknown_visitor_returns_404(live: Live, key: str, admin: Automation):
    """Decisions 7.6; whatever the path says in its place."""
    await identified(live, key)
    with nothing_stored(live):
        for visitor_id in (NOBODY, "short", NOBODY + "A", "%C3%A9" * 20, "AAAAAAAAAAAAAAAAAAA%00"):
            assert_error(await admin("DELETE", f"/visitors/{visitor_id}"), 404, "not_found")


async def test_only_an_admin_of_the_organization_can_erase_a_visitor(live: Live, admin: Automation):
    """Decisions 7.6, interface 5: another organization's visitor is not there."""
    public, developer = live.issue()[1], Automation(live, role="developer")
    elsewhere = Automation(live, organization=live.new_organization())
    visitor_id = (await identified(live, public))["visitor_id"]
    with nothing_stored(live):
        assert_error(await developer("DELETE", f"/visitors/{visitor_id}"), 403, "insufficient_role")
    assert_error(await elsewhere("DELETE", f"/visitors/{visitor_id}"), 404, "not_found")
    assert len(live.events()) == 1
    assert (await admin("DELETE", f"/visitors/{visitor_id}")).status_code == 204
    assert_error(await admin("DELETE", f"/visitors/{visitor_id}"), 404, "not_found")


@pytest.mark.slow
async def test_an_interrupted_erasure_is_completed_by_the_sweeper(live: Live):
    """One step is one commit: what a crash leaves is whole, is added to by nobody, and is erased at the next sweep."""
    public, number = live.issue()[1], live.organization.number
    visits = 4 * items_of_step(EVENT_ROWS) + 5
    for _ in range(visits):
        visitor_id = (await identified(live, public, marked("a")))["visitor_id"]
    step = partial(erase_visitor, number=number, visitor_id=visitor_id, now_ms=live.clock.now_ms)
    assert live.found.store.write_now([step]) == [False]
    assert 0 < len(live.events()) <= visits - items_of_step(EVENT_ROWS)
    assert (await identified(live, public, marked("a")))["visitor_id"] != visitor_id
    with live.found.store.read() as snapshot:
        assert list(violations(snapshot)) == []
        assert snapshot.count(ERASURES) == 1
    await sweep(live.found.store, live.clock.now_ms, 365, with_passes=False)
    assert visitor_id not in {event.verdict.visitor_id for _, event in live.events()}
    assert [live.count(table) for table in (ERASURES, EVENTS)] == [0, 1]


@pytest.mark.slow
async def test_a_visitor_with_many_events_is_erased_before_the_response(live: Live, key: str, admin: Automation):
    """Decisions 7.6: in several commits, of which the caller sees nothing."""
    for _ in range(2 * items_of_step(EVENT_ROWS) + 5):
        answer = await identified(live, key, marked("a"))
    commits = live.found.store.statistics().commits
    assert (await admin("DELETE", f"/visitors/{answer['visitor_id']}")).status_code == 204
    assert live.events() == []
    assert live.found.store.statistics().commits == commits + 2 + 1  # the last notes the use of the key


async def test_the_sweeper_removes_an_erased_visitor_from_the_blocks_of_former_values(live: Live, admin: Automation):
    """What the record does not tell any more is found by looking at every block; until then a number leads nowhere."""
    _, public = live.issue()
    for canvas in range(12):
        answer = await identified(live, public, marked("a") | {"canvas": f"{canvas:032x}", "nonce": f"n{canvas:09d}"})
    assert (await admin("DELETE", f"/visitors/{answer['visitor_id']}")).status_code == 204
    with live.found.store.read() as snapshot:
        assert snapshot.count(BLOCKS) > 0
        assert snapshot.count(DELETED_VISITORS) == 1
        assert snapshot.count(ADDRESSES) == snapshot.count(REPORT_FINGERPRINTS) == 0
    await sweep(live.found.store, live.clock.now_ms, 365, with_passes=True)
    assert [live.count(table) for table in (BLOCKS, DELETED_VISITORS)] == [0, 0]


@pytest.mark.slow
async def test_the_operator_erases_while_the_service_runs(live: Live, key: str):
    """Decisions 10: `svc visitor erase ORG VISITOR`."""
    org = live.organization.id
    visitor_id = (await identified(live, key, marked("a")))["visitor_id"]
    beside = (*live.options, "--json")
    erased = (await run_beside("visitor", "erase", org, visitor_id, "--yes", *beside)).json
    assert erased == {"organization_id": org, "visitor_id": visitor_id, "status": "erased"}
    assert live.events() == []
    (await run_beside("visitor", "erase", org, visitor_id, "--yes", *live.options)).assert_refused(visitor_id)


def test_the_command_rejects_an_unknown_visitor(run: Run):
    """Decisions 10: one clear line."""
    org = run("org", "create", "Shop", "--json").json["organization_id"]
    run("visitor", "erase", org, NOBODY, "--yes").assert_refused(org, NOBODY)
    run("visitor", "erase", "org_x", NOBODY).assert_refused("org_x")
    run("visitor", "erase", org).assert_usage()
