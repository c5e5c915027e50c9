"""Decisions 4 and 10: what one organization may take of the store, and how the operator takes it back."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from svc.features.checks.invariants import violations
from svc.features.erasure import organizations as removal
from svc.features.retention.sweeper import sweep
from svc.features.tables import TABLES
from svc.identify.tables import DOCUMENTS, EVENTS, REPORT_FINGERPRINTS
from svc.kernel.store.steps import EVENT_ROWS, items_of_step
from svc.kernel.tenants.jobs import holding
from svc.kernel.tenants.tables import HOLDINGS
from svc.kernel.values.ids import first_id
from tests.spec.automation import Automation
from tests.spec.commands import Run
from tests.spec.responses import BROWSER, assert_error, visit
from tests.spec.test_metrics import Scraped
from tests.support import process
from tests.support.live import ORIGIN, Live, report

ARCHIVE = 1 / (1 << 20)
"""1 KiB in GiB."""


def noisy(size: int = 6_000) -> dict[str, Any]:
    """A report that does not become smaller."""
    return report(1, padding=os.urandom(size // 2).hex())


async def detail(live: Live, request_id: str, environment: str) -> Any:
    _, secret = live.issue("secret", environment=environment)
    return (await live.client.get(f"/api/v1/events/{request_id}", headers={"x-api-key": secret})).json()


@pytest.mark.served(archive_gib_per_day=5 * ARCHIVE, nonproduction_archive_gib_per_day=5 * ARCHIVE)
async def test_events_over_the_daily_budget_are_stored_without_their_document(live: Live):
    """Decisions 4: in production and outside of it separately; the next day has a new budget."""
    for environment in ("staging", "production"):
        _, key = live.issue(environment=environment)
        answers = [(await live.identify(key, noisy(), headers=BROWSER)).json() for _ in range(3)]
        shown = [await detail(live, answer["request_id"], environment) for answer in answers]
        assert [event["has_document"] for event in shown] == [True, False, False]
        assert [event["document"] is None for event in shown] == [False, True, True]
        assert answers[1]["visitor_id"] == answers[0]["visitor_id"]
    live.clock.advance(hours=24)
    again = (await live.identify(key, noisy(), headers=BROWSER)).json()
    assert (await detail(live, again["request_id"], "production"))["has_document"]


@pytest.mark.served(archive_gib_per_day=5 * ARCHIVE)
async def test_deferred_reports_count_against_the_same_budget(live: Live, public: str):
    """Decisions 4: they are archived, too."""
    answer = (await live.identify(public, noisy(), headers=BROWSER)).json()
    body = {"token": answer["deferred_token"], "sdk": {}, "signals": {**noisy(), "tier": "deferred"}}
    path = f"/api/v1/events/{answer['request_id']}/supplement"
    refused = await live.client.post(path, json=body, headers={"x-api-key": public, "origin": ORIGIN, **BROWSER})
    assert_error(refused, 429, "rate_limited")
    assert int(refused.headers["retry-after"]) > 3600


@pytest.mark.served(archive_gib_per_day=0)
async def test_an_event_without_a_document_is_erased_with_its_report_fingerprint(live: Live):
    """Decisions 4, 7.6: what the report is known again by goes, too."""
    admin, (_, key) = Automation(live), live.issue(environment="production")
    sent = report(1, nonce="n" * 24)
    answer = (await live.identify(key, sent, headers=BROWSER)).json()
    assert live.count(REPORT_FINGERPRINTS) == 1
    assert (await admin("DELETE", f"/visitors/{answer['visitor_id']}")).status_code == 204
    with live.found.store.read() as snapshot:
        assert (snapshot.count(REPORT_FINGERPRINTS), snapshot.count(EVENTS)) == (0, 0)
        assert holding(snapshot, live.organization.number).held_bytes == 0


@pytest.mark.served(map_bytes=16 << 20, store_share=0.001, metrics=True)
async def test_an_organization_at_its_share_gets_a_503_and_others_continue(
    live: Live, key: str, capsys: pytest.CaptureFixture[str]
):
    """Decisions 4: and the log names it."""
    other = live.new_organization()
    answer = await live.identify(key, noisy(60_000), headers={**BROWSER, "idempotency-key": "k"})
    assert answer.status_code == 200
    refused = await visit(live, key)
    message = assert_error(refused, 503, "service_unavailable")
    assert "its share of the store" in message
    assert "`svc org drop-documents`" in message
    assert "Send it again" not in message
    again = await live.identify(key, noisy(), headers={**BROWSER, "idempotency-key": "k"})
    assert again.json()["duplicate"] is True
    _, modest = live.issue(environment="production", organization=other.number)
    assert (await visit(live, modest)).status_code == 200
    assert (await live.client.get("/readyz")).status_code == 200
    said = [line for line in capsys.readouterr().out.splitlines() if "an organization holds its share" in line]
    assert len(said) == 1
    assert live.organization.id in said[0]
    metrics = (await live.client.get(live.metrics_url)).text
    assert f'svc_organization_stored_bytes{{organization="{live.organization.id}"}}' in metrics
    assert 'svc_quota_reached_total{quota="store_share"} 1.0' in metrics
    assert f"svc_organization_limit_bytes {round(0.001 * (16 << 20)):.1f}" in metrics
    assert f'svc_organization_share{{organization="{live.organization.id}"}}' in metrics


@pytest.mark.served(map_bytes=16 << 20, store_share=0.001, metrics=True)
@pytest.mark.every_case
async def test_an_organization_that_is_alone_may_hold_all_of_the_store(live: Live, key: str):
    """Decisions 4: a share is of those that use the store, and one that was removed does not."""
    for _ in range(2):
        assert (await live.identify(key, noisy(60_000), headers=BROWSER)).status_code == 200
    metrics = Scraped((await live.client.get(live.metrics_url)).text)
    assert metrics("svc_organization_limit_bytes") == 16 << 20
    other = live.new_organization()
    assert_error(await visit(live, key), 503, "service_unavailable")
    remove = partial(removal.remove_organization, number=other.number, now_ms=live.clock.now_ms)
    live.found.store.write_now([remove])
    assert (await visit(live, key)).status_code == 200


async def test_the_holding_of_an_organization_shrinks_with_expired_rows(live: Live, public: str):
    """Decisions 4: counted in the transaction that deletes; `svc check` compares it with the rows."""
    for device in range(3):
        await live.identify(public, report(device), headers=BROWSER)
    number = live.organization.number
    with live.found.store.read() as snapshot:
        held = holding(snapshot, number)
        assert (held.events, held.visitors) == (3, 3)
    live.clock.advance(hours=24 * 400)
    await sweep(live.found.store, live.clock.now_ms, 365, with_passes=True)
    await sweep(live.found.store, live.clock.now_ms, 365, with_passes=True)
    with live.found.store.read() as snapshot:
        assert holding(snapshot, number).held_bytes == 0


@pytest.mark.slow
async def test_documents_are_dropped_in_steps_and_the_events_stay(live: Live, admin: Automation):
    """Decisions 10: while the service runs; what arrives later is kept."""
    _, key = live.issue(environment="production")
    made = [
        (await live.identify(key, report(device, nonce=f"{device:024}"), headers=BROWSER)).json()
        for device in range(40)
    ]
    number, store = live.organization.number, live.found.store
    beyond = first_id(live.clock.now_ms + 1)
    live.clock.advance(seconds=1)
    later = (await live.identify(key, report(99, nonce="later" * 5), headers=BROWSER)).json()
    steps = []
    while not steps or steps[-1]:
        steps += store.write_now([partial(removal.drop_documents, number=number, beyond=beyond)])
        with store.read() as snapshot:
            assert list(violations(snapshot)) == []
    assert steps == [items_of_step(EVENT_ROWS), 40 - items_of_step(EVENT_ROWS), 0]
    shown = await detail(live, made[0]["request_id"], "production")
    assert (shown["has_document"], shown["document"]) == (False, None)
    assert (await detail(live, later["request_id"], "production"))["has_document"]
    for answer in made:
        assert (await admin("DELETE", f"/visitors/{answer['visitor_id']}")).status_code == 204
        live.clock.advance(seconds=1)
    with store.read() as snapshot:
        assert snapshot.count(DOCUMENTS) == 1
        kept = [key[2] for key, _ in snapshot.scan(REPORT_FINGERPRINTS)]
    assert len(kept) == 1, "only the report that was not erased is known again"


@pytest.mark.slow(0.3)
async def test_a_removed_organization_is_refused_at_once_and_erased_in_steps(live: Live):
    """Decisions 10: at any moment in between the store is sound, and the sweeper ends what was begun."""
    organization = live.new_organization()
    issue = partial(live.issue, organization=organization.number)
    _, key = issue(environment="production")
    _, management = issue("management")
    kept = live.issue(environment="production")[1]
    for device in range(3):
        await live.identify(key, report(device), headers={**BROWSER, "idempotency-key": f"k{device}"})
        await live.identify(kept, report(device), headers=BROWSER)
    store, number = live.found.store, organization.number
    with store.read() as snapshot:
        of_others = {table.name: count_beside(snapshot, table, number) for table in TABLES}
    begin = partial(removal.remove_organization, number=number, now_ms=live.clock.now_ms)
    assert store.write_now([begin, begin]) == [True, False]
    assert_error(await visit(live, key), 401, "unauthorized")
    asked = await live.client.get("/api/v1/management/key", headers={"x-api-key": management})
    assert_error(asked, 401, "unauthorized")
    for _ in range(3):
        assert store.write_now([partial(removal.continue_removal, number=number)])[0]
        with store.read() as snapshot:
            assert list(violations(snapshot)) == []
    await sweep(store, live.clock.now_ms, 365, with_passes=False)
    with store.read() as snapshot:
        assert not removal.is_removal_pending(snapshot, number)
        left = {table.name for table in TABLES for key, _ in snapshot.scan(table) if is_of(table, key, number)}
        assert {table.name: count_beside(snapshot, table, number) for table in TABLES} == {
            **of_others,
            "keys": of_others["keys"] - 2,
            "key_ids": of_others["key_ids"] - 2,
        }
    assert left == {"organizations", "balances", "ledger", "ledger_credits", "audit"}
    assert (await visit(live, kept)).status_code == 200


def is_of(table: Any, key: tuple[Any, ...], number: int) -> bool:
    return table.by_organization and key[0] == number


def count_beside(snapshot: Any, table: Any, number: int) -> int:
    return sum(not is_of(table, key, number) for key, _ in snapshot.scan(table))


async def test_a_request_in_progress_when_its_organization_is_removed_is_refused(live: Live):
    """Decisions 10: nothing is added to a removed organization."""
    from svc.features.identification.pipeline.messages import Identify, PipelineResult
    from svc.identify.identification import Refused
    from svc.kernel.work.mailbox import Reply
    from tests.actors.test_pipeline import submission

    organization = live.new_organization()
    store, number = live.found.store, organization.number
    store.write_now([partial(removal.remove_organization, number=number, now_ms=live.clock.now_ms)])
    from msgspec.structs import replace

    reply: Reply[PipelineResult] = Reply()
    live.service.pipeline.admission.offer(Identify(replace(submission(1), organization=number), 0, None, reply))
    outcome = (await reply.wait()).outcome
    assert isinstance(outcome, Refused)
    assert outcome.refusal.code == "unauthorized"


def test_a_removed_organization_leaves_only_its_accounts_and_its_audit_log():
    """Decisions 10: a table whose keys begin with an organization goes with it, unless it is declared to stay."""
    ledger = {"balances", "ledger", "ledger_credits", "ledger_days", "settlements"}
    stays = {"organizations", "billing_changes", "past_due", "audit"} | ledger
    assert {table.name for table in TABLES if table.by_organization} == stays | {
        table.name for table in removal.REMOVED
    }
    assert HOLDINGS in removal.REMOVED


def test_removing_and_dropping_require_confirmation(run: Run):
    """Decisions 10."""
    org = run("org", "create", "shop", "--json").json["organization_id"]
    key = run("key", "issue", org, "--kind", "secret", "--environment", "production", "--json").json["key"]["id"]
    run("org", "drop-documents", org).assert_refused("--yes", "Nothing was changed")
    assert run("org", "drop-documents", org, "--yes", "--json").json == {
        "organization_id": org,
        "dropped": 0,
        "freed_bytes": 0,
    }
    run("org", "remove", org).assert_refused("--yes", "Nothing was changed")
    assert run("org", "show", org, "--json").json["removed_at"] is None
    assert run("org", "remove", org, "--yes", "--json").json["status"] == "removed"
    assert run("org", "remove", org, "--json").json["rows_erased"] == 0
    shown = run("org", "show", org, "--json").json
    assert shown["removed_at"] is not None
    assert (shown["events"], shown["held_bytes"]) == (0, 0)
    assert shown["removed_at"] in run("org", "list").out, "its status and balance stay, as if it were in use"
    run("key", "issue", org, "--kind", "secret", "--environment", "production").assert_refused("was removed")
    run("key", "revoke", key).assert_refused(key)
    records = run("audit", "--org", org, "--json").json["records"]
    assert "svc org remove" in [record["action"] for record in records]


def test_initial_credit_is_not_negative_and_large_amounts_need_confirmation(run: Run):
    """Decisions 10: a slip of the keyboard changes nothing."""
    run("org", "create", "a", "--credit-usd", "-7").assert_refused("0 or more")
    run("org", "create", "a", "--credit-usd", "1000000").assert_refused("--yes")
    org = run("org", "create", "a", "--credit-usd", "1000000", "--yes", "--json").json["organization_id"]
    run("org", "credit", org, "--usd", "2000000").assert_refused("2000000", "--yes")
    taken = run("org", "credit", org, "--usd", "-1000000")
    assert taken.status == 0
    assert "took 1000000 USD back; the balance is 0: production traffic is refused (402)" in taken.err


@pytest.mark.slow
def test_the_holding_limit_is_shown_with_the_settings_of_the_service(tmp_path: Path):
    """Whatever those of the command are: `svc org show` without them."""
    data = str(tmp_path / "data")
    created = process.run_json("org", "create", "shop", "--data", data, SVC_MAP_GIB="0.25")
    process.run_json("org", "create", "another", "--data", data, SVC_MAP_GIB="0.25")

    def said() -> str:
        return process.run("org", "show", created["organization_id"], "--data", data).stdout.partition("held_share")[2]

    process.Served(tmp_path / "data", SVC_MAP_GIB="0.5", SVC_STORE_SHARE="0.4").terminate()
    assert said().strip() == "0.0% of the 0.2 GiB that one organization may hold"
