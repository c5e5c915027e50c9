"""Interface 3 (billing status), 7, 8 and decisions 5: what an identification costs, and who is refused for money."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest

from svc.features.organizations import jobs as organizations
from svc.kernel.tenants import jobs as ledger
from svc.kernel.tenants.billing import BILLING_STATUSES, LedgerEntry
from svc.kernel.tenants.organization import Organization
from svc.kernel.tenants.tables import LEDGER
from svc.kernel.values.ids import first_id
from svc.world import World
from tests.spec.commands import Run
from tests.spec.responses import BROWSER, TIMESTAMP, TOO_LITTLE, assert_error, forward, nothing_stored, visit
from tests.support.live import PUBLIC_ADDRESS, Live, opened, report


def production_key(live: Live, credit_usd: float) -> tuple[Organization, str]:
    organization = live.new_organization(credit_usd=credit_usd)
    return organization, live.issue(environment="production", organization=organization.number)[1]


def ledger_sum(live: Live, number: int) -> int:
    with live.found.store.read() as snapshot:
        return sum(entry.amount_micros for _, entry in snapshot.scan(LEDGER, number))


async def test_an_identifiable_report_costs_3000_micros_and_an_unidentifiable_one_500(live: Live, public: str):
    """Interface 8, decisions 5.1; the balance header is that after this identification."""
    response = await visit(live, public)
    assert (response.json()["identifiable"], response.headers["svc-balance-micros"]) == (True, "9997000")
    response = await visit(live, public, TOO_LITTLE)
    assert (response.json()["identifiable"], response.headers["svc-balance-micros"]) == (False, "9996500")
    assert [event.price_micros for _, event in live.events()] == [3000, 500]


async def test_every_kind_of_production_key_is_billed(live: Live):
    """Interface 8: "production keys only", and all of them."""
    headers = {**BROWSER, "x-svc-visitor-ip": PUBLIC_ADDRESS}
    for number, kind in enumerate(("secret", "proxy"), start=1):
        _, secret = live.issue(kind, "production")
        response = await forward(live, secret, headers)
        assert int(response.headers["svc-balance-micros"]) == 10_000_000 - number * 3_000


@pytest.mark.parametrize("environment", ["staging", "development"])
async def test_other_environments_are_free(live: Live, environment: str):
    """Interface 8; the header still shows the balance of production traffic."""
    _, secret = live.issue(environment=environment)
    for signals in (report(), TOO_LITTLE):
        assert (await visit(live, secret, signals)).headers["svc-balance-micros"] == "10000000"
    assert live.balance() == 10_000_000
    assert [event.price_micros for _, event in live.events()] == [0, 0]


async def test_an_identification_without_a_lookup_is_free(live: Live, public: str):
    """Interface 8: `state` `unavailable`."""
    response = await visit(live, public, headers={"x-forwarded-for": "10.1.2.3"})
    assert response.json()["state"] == "unavailable"
    assert response.headers["svc-balance-micros"] == "10000000"


async def test_duplicates_and_refused_requests_are_free(live: Live, public: str):
    """Interface 8."""
    await visit(live, public, headers={"idempotency-key": "a"})
    with nothing_stored(live):
        await visit(live, public, headers={"idempotency-key": "a"})
        await visit(live, public, origin="https://other.example")
        await visit(live, public, sdk=5)
    assert live.balance() == 10_000_000 - 3_000


async def test_the_balance_is_the_sum_of_the_ledger(live: Live, public: str):
    """Decisions 5.1: the credit, then one line for each production identification, named by its request id."""
    answers = [(await visit(live, public, signals)).json() for signals in (report(), TOO_LITTLE, report(2))]
    number = live.organization.number
    with live.found.store.read() as snapshot:
        rows = [(key[1], entry) for key, entry in snapshot.scan(LEDGER, number)]
    assert sorted(entry.amount_micros for _, entry in rows) == [-3000, -3000, -500, 10_000_000]
    charged = {key.hex() for key, entry in rows if entry.kind == "identification"}
    assert charged == {answer["request_id"].replace("-", "") for answer in answers}
    assert live.balance() == ledger_sum(live, number) == 10_000_000 - 6_500


async def test_credit_lasts_to_the_last_micro(live: Live):
    """Decisions 5.2: refused only where the price is more than the balance; then nothing is stored."""
    organization, secret = production_key(live, 0.006)
    assert (await visit(live, secret)).headers["svc-balance-micros"] == "3000"
    assert (await visit(live, secret)).headers["svc-balance-micros"] == "0"
    with nothing_stored(live):
        response = await visit(live, secret)
        assert_error(response, 402, "no_credit")
        assert response.headers["svc-balance-micros"] == "0"
    assert ledger_sum(live, organization.number) == 0


async def test_credit_is_checked_against_the_price_of_this_very_identification(live: Live):
    """Decisions 5.2: half a cent's tenth is enough for a report that identifies nobody, and not for another one."""
    _, secret = production_key(live, 0.0005)
    with nothing_stored(live):
        assert_error(await visit(live, secret), 402, "no_credit")
    assert (await visit(live, secret, TOO_LITTLE)).headers["svc-balance-micros"] == "0"
    with nothing_stored(live):
        assert_error(await visit(live, secret, TOO_LITTLE), 402, "no_credit")


async def test_free_requests_are_served_without_credit(live: Live):
    """Interface 8, decisions 5.2, 5.3: other environments, and addresses that could not be looked up."""
    organization, secret = production_key(live, 0)
    with nothing_stored(live):
        assert_error(await visit(live, secret), 402, "no_credit")
    assert (await visit(live, secret, headers={"x-forwarded-for": "10.1.2.3"})).status_code == 200
    for environment in ("staging", "development"):
        _, free = live.issue(environment=environment, organization=organization.number)
        assert (await visit(live, free)).status_code == 200


async def test_the_balance_may_fall_to_the_credit_limit(live: Live):
    """Decisions 5.2."""
    organization, secret = production_key(live, 0.001)
    live.found.store.write_now([partial(organizations.set_credit_limit, number=organization.number, micros=5_000)])
    assert (await visit(live, secret)).headers["svc-balance-micros"] == "-2000"
    assert (await visit(live, secret)).headers["svc-balance-micros"] == "-5000"
    with nothing_stored(live):
        assert_error(await visit(live, secret), 402, "no_credit")


@pytest.mark.parametrize("path", [(), ("active",), ("active", "past_due")])
async def test_traffic_is_accepted_while_free_active_or_past_due(live: Live, public: str, path: tuple[str, ...]):
    """Interface 3."""
    for status in path:
        live.set_billing_status(status)
    assert (await visit(live, public)).status_code == 200


async def test_a_blocked_organization_is_refused_in_production_only(live: Live):
    """Interface 3, 7; decisions 5.3: `402 billing_blocked` at the next request, whatever the credit and the price."""
    keys = {name: live.issue(environment=name)[1] for name in ("production", "staging", "development")}
    assert (await visit(live, keys["production"])).status_code == 200
    live.set_billing_status("blocked")
    with nothing_stored(live):
        assert_error(await visit(live, keys["production"]), 402, "billing_blocked")
        free = {"x-forwarded-for": "10.1.2.3"}
        assert_error(await visit(live, keys["production"], headers=free), 402, "billing_blocked")
    for environment in ("staging", "development"):
        assert (await visit(live, keys[environment])).status_code == 200
    live.set_billing_status("active")
    assert (await visit(live, keys["production"])).status_code == 200


async def test_blocked_is_reported_before_no_credit(live: Live):
    """Decisions 5: more credit would not help who is blocked."""
    organization, secret = production_key(live, 0)
    author = organizations.Author(live.world.request_id(0), 0, "operator")
    block = partial(organizations.set_billing_status, number=organization.number, status="blocked", author=author)
    live.found.store.write_now([block])
    with nothing_stored(live):
        assert_error(await visit(live, secret), 402, "billing_blocked")


async def test_a_new_organization_is_free_and_there_are_four_statuses():
    """Interface 3, decisions 5.2."""
    assert Organization("org_x", 1, "new", 0).billing_status == "free"
    assert BILLING_STATUSES == ("free", "active", "past_due", "blocked")


def test_a_statement_shows_the_total_of_each_day(run: Run, tmp_path: Path):
    """Decisions 5.1, 10: identifications by price, credit, balance; exact, and closed by what the ledger sums to."""
    org = run("org", "create", "Shop", "--credit-usd", 1, "--json").json["organization_id"]
    lines = (("2020-01-01", 3_000), ("2020-01-31", 3_000), ("2020-01-31", 500), ("2020-01-31", 0), ("2020-02-01", 500))
    enter_lines(tmp_path, lines)
    told = run("org", "statement", org, "--month", "2020-01", "--json").json
    assert [tuple(day.values()) for day in told["days"]] == [
        ("2020-01-01", 1, 1, 0, 0, "0.003", "0", "-0.003"),
        ("2020-01-31", 3, 1, 1, 1, "0.0035", "0", "-0.0065"),
    ]
    assert (told["month"], told["opening_balance_usd"], told["closing_balance_usd"]) == ("2020-01", "0", "-0.0065")
    assert (told["identifications"], told["charged_usd"], told["credits"]) == (4, "0.0065", [])
    told = run("org", "statement", org, "--month", "2020-02", "--json").json
    assert (told["opening_balance_usd"], told["closing_balance_usd"]) == ("-0.0065", "-0.007")
    assert run("org", "show", org, "--json").json["balance_micros"] == 1_000_000 - 7_000


@pytest.mark.parametrize("change", [("credit", "--usd", "1"), ("billing-status", "active")])
def test_a_note_of_the_operator_has_a_limit(run: Run, change: tuple[str, ...]):
    org = run("org", "create", "Shop", "--credit-usd", 0, "--json").json["organization_id"]
    command, *given = change
    told = run("org", command, org, *given, "--note", "é" * 501)
    assert (told.status, "501 characters, and 500 is the most" in told.err) == (2, True)
    assert run("org", "show", org, "--json").json["balance_micros"] == 0
    assert run("org", command, org, *given, "--note", "é" * 500).status == 0


def test_a_statement_shows_credit_and_status_changes_with_operator_and_time(run: Run):
    """Decisions 5.1, 5.3: the operator's name on the machine, and the note."""
    org = run("org", "create", "Shop", "--credit-usd", 0, "--json").json["organization_id"]
    assert run("org", "credit", org, "--usd", "2.5", "--note", "invoice 7").status == 0
    assert run("org", "credit", org, "--usd", "-1").status == 0
    assert run("org", "billing-status", org, "active").status == 0
    assert run("org", "billing-status", org, "blocked", "--note", "fraud").status == 0
    assert run("org", "billing-status", org, "blocked").status == 0  # it was: nothing changes
    today = datetime.now(UTC)
    told = run("org", "statement", org, "--month", today.strftime("%Y-%m"), "--json").json
    who = pwd.getpwuid(os.getuid()).pw_name
    given = [(line["credit_usd"], line["by"]) for line in told["credits"]]
    assert given == [("2.5", f"{who}: invoice 7"), ("-1", who)]
    changes = [tuple(change.values())[1:] for change in told["billing_status_changes"]]
    assert changes == [("free", "active", None, who), ("active", "blocked", "operator", f"{who}: fraud")]
    for line in told["credits"] + told["billing_status_changes"]:
        assert TIMESTAMP.fullmatch(line["at"])
    (day,) = told["days"]
    assert (day["credit_usd"], day["balance_usd"]) == ("1.5", "1.5")
    shown = run("org", "statement", org, "--month", today.strftime("%Y-%m"))
    assert shown.status == 0
    for text in ("invoice 7", "blocked", "1.5"):
        assert text in shown.out
    assert run("check", "--json").json["ok"] is True


def test_a_month_without_lines_keeps_the_balance_of_its_time(run: Run, tmp_path: Path):
    """Decisions 5.1: what came later is not in it; the last month of a year ends with the year."""
    org = run("org", "create", "Shop", "--json").json["organization_id"]
    enter_lines(tmp_path, [("2020-12-31", 3_000), ("2021-01-01", 500)])
    months = (("2020-11", "0", "0"), ("2020-12", "0", "-0.003"), ("2021-01", "-0.003", "-0.0035"))
    for month, opening, closing in (*months, ("2021-02", "-0.0035", "-0.0035")):
        told = run("org", "statement", org, "--month", month, "--json").json
        assert (told["opening_balance_usd"], told["closing_balance_usd"]) == (opening, closing)
    for month in ("2020", "2020-13", "January", "1969-12", "0001-01", "9999-12"):
        run("org", "statement", org, "--month", month).assert_usage()
    run("org", "statement", org).assert_usage()
    run("org", "statement", "org_x", "--month", "2026-01").assert_refused("org_x")


def enter_lines(directory: Path, lines: Iterable[tuple[str, int]]) -> None:
    """Identifications of these days and prices on the ledger of the first organization."""
    world = World.real()
    found = opened(directory / "data", world)
    jobs = []
    for day, price in lines:
        at_ms = round(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1000)
        entry = LedgerEntry("identification", -price, at_ms)
        entry_id = UUID(bytes=first_id(at_ms)[:6] + bytes((0x70, len(jobs), 0x80, *range(7))))
        jobs.append(partial(ledger.enter, number=1, entry_id=entry_id, entry=entry))
    found.store.write_now(jobs)
    found.store.close()
