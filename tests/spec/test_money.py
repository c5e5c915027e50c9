"""Interface 3, 7 and 8, decisions 5 and 16.4: what an identification costs, and who is refused or told for money."""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import structlog
import trio
import trio.lowlevel

from svc.cli.serve.doctor import finding_of
from svc.cli.store.upgrade import upgrade_where_needed
from svc.command.data_directory import opened_directory
from svc.features.billing.credit_watch import CreditWatch
from svc.features.billing.settler import settle_all
from svc.features.erasure.visitors import erase_visitor
from svc.features.organizations import jobs as organizations
from svc.features.organizations.command import create_organization
from svc.kernel.config import Config
from svc.kernel.tenants import jobs as ledger
from svc.kernel.tenants import queries as lookups
from svc.kernel.tenants.billing import BILLING_STATUSES, LedgerEntry
from svc.kernel.tenants.jobs import close_day
from svc.kernel.tenants.organization import Organization
from svc.kernel.tenants.tables import LEDGER
from svc.kernel.values.ids import DAY_MS, first_id
from svc.kernel.work.store_watch import CorruptRows
from svc.world import World
from tests.spec.commands import Run
from tests.spec.console import Console
from tests.spec.responses import BROWSER, TIMESTAMP, TOO_LITTLE, assert_error, forward, nothing_stored, visit
from tests.spec.test_metrics import scrape
from tests.store.release import RELEASED, unpack
from tests.support.live import PUBLIC_ADDRESS, Live, live_service, opened, report

PRICE = 3_000


def postpaid(live: Live) -> tuple[Organization, str]:
    made = create_organization(live.found, live.world, "shop", credit=None, rate_limit=0)
    return made, live.issue(environment="production", organization=made.number)[1]


async def test_a_postpaid_organization_is_never_refused_for_money(live: Live):
    """Decisions 5.2: its balance goes below zero, and console and answers show that."""
    made, key = postpaid(live)
    assert (made.billing_status, made.credit_limit_micros) == ("active", None)
    for place in range(1, 4):
        answer = await visit(live, key)
        assert (answer.status_code, answer.headers["svc-balance-micros"]) == (200, str(-PRICE * place))
    shown = await Console(live, "developer", made).seen("/billing")
    assert (shown["status"], shown["credit_limit_micros"], shown["balance_micros"]) == ("active", None, -3 * PRICE)
    assert "credit_days" not in shown
    assert "refused" not in shown


async def test_a_blocked_postpaid_organization_is_refused(live: Live):
    """Decisions 5.3: that is the operator's word, and not the credit's."""
    made, key = postpaid(live)
    author = organizations.Author(live.world.request_id(0), 0, "operator")
    block = partial(organizations.set_billing_status, number=made.number, status="blocked", author=author)
    live.found.store.write_now([block])
    with nothing_stored(live):
        assert_error(await visit(live, key), 402, "billing_blocked")


async def test_an_organization_becomes_prepaid_and_postpaid_by_its_limit_alone(live: Live):
    """Decisions 5.2: `svc org credit-limit ORG --usd N|none` changes no status, and holds from the next request on."""
    made, key = postpaid(live)

    def limit(micros: int | None) -> None:
        live.found.store.write_now([partial(organizations.set_credit_limit, number=made.number, micros=micros)])
        with live.found.store.read() as snapshot:
            assert lookups.organization(snapshot, made.number).billing_status == "active"

    limit(PRICE)
    assert (await visit(live, key)).status_code == 200
    with nothing_stored(live):
        assert_error(await visit(live, key), 402, "no_credit")
    limit(None)
    assert (await visit(live, key)).status_code == 200


@pytest.mark.parametrize(
    ("options", "status", "limit", "says"),
    [
        ((), "active", None, ("postpaid", "--usd 0")),
        (("--credit-usd", 0), "free", "0", ("prepaid", "--usd none")),
        (("--credit-usd", 2.5), "free", "0", ("prepaid", "--usd none")),
    ],
)
def test_the_command_line_says_how_a_new_organization_pays(
    run: Run, options: tuple[object, ...], status: str, limit: str | None, says: tuple[str, ...]
):
    """Decisions 5.2: which it is, and how to change it."""
    made = run("org", "create", "Shop", *options, "--json").json
    assert (made["billing_status"], made["credit_limit_usd"]) == (status, limit)
    shown = run("org", "create", "Shop", *options)
    assert all(text in shown.out for text in says)
    assert run("check", "--json").json["ok"] is True
    listed = run("audit", "--json").json["records"]
    assert listed[0]["change"].get("credit_limit_usd") == (None if options else "none")


@pytest.mark.only_on("lmdb", "a store of an earlier version")
def test_an_organization_of_an_earlier_version_keeps_its_status_and_limit(tmp_path: Path):
    """Decisions 5.2."""
    for release in RELEASED.glob("*.tar.xz"):
        directory = unpack(release, tmp_path / release.stem).directory
        upgrade_where_needed(directory, Config(), World.real(), copy=False)
        with opened_directory(directory, Config(), World.real(), create=False) as found, found.store.read() as snapshot:
            kept = lookups.all_organizations(snapshot)
        assert kept
        assert all(each.credit_limit_micros is not None for each in kept)


# Decisions 16.4


def watch_of(live: Live) -> CreditWatch:
    return CreditWatch(live.found.store, live.world, CorruptRows())


async def told(watch: CreditWatch) -> list[dict[str, Any]]:
    """What a look logs."""
    with structlog.testing.capture_logs() as logged:
        await watch.look()
    return [dict(line) for line in logged]


def doctor(live: Live) -> tuple[str, str]:
    finding = finding_of(live.found.store, live.clock.now_ms)
    return finding.status, finding.says


async def test_credit_that_covers_less_than_seven_days_is_told_of(live: Live):
    """By the charges of the last seven days, divided by the days since the first of them. The log says it once."""
    watch = watch_of(live)
    prepaid = live.new_organization(credit_usd=0.03)
    key = live.issue(environment="production", organization=prepaid.number)[1]
    assert (doctor(live)[0], await told(watch)) == ("ok", [])
    live.clock.now_ms += 1234
    await visit(live, key)
    assert doctor(live)[0] == "ok", "one in a day: nine days are left"
    await visit(live, key)
    assert doctor(live) == ("warning", f"the credit of {prepaid.id} covers 4.0 days")
    (line,) = await told(watch)
    assert (line["organization"], line["days"]) == (prepaid.id, 4.0)
    assert (await told(watch), watch.statistics()) == ([], {"low": 1})
    live.clock.now_ms += 3 * DAY_MS
    assert (doctor(live)[0], await told(watch)) == ("ok", []), "two in three days: twelve are left"
    for _ in range(5):
        await visit(live, key)
    shown = await Console(live, "developer", prepaid).seen("/billing")
    assert shown["credit_days"] == pytest.approx(9_000 / (21_000 / 3))
    assert doctor(live) == ("warning", f"the credit of {prepaid.id} covers 1.3 days")
    live.clock.now_ms += 8 * DAY_MS
    assert doctor(live)[0] == "ok", "nothing was charged in the last seven days"


async def test_only_charges_of_the_last_seven_days_count_to_the_millisecond(live: Live):
    """Of the hour in which the seven days begin, what was before is neither charged nor the first."""
    prepaid = live.new_organization(credit_usd=0.03)
    key = live.issue(environment="production", organization=prepaid.number)[1]
    live.clock.now_ms = live.clock.now_ms // DAY_MS * DAY_MS
    await visit(live, key)
    live.clock.now_ms += 6 * DAY_MS + 1_800_000
    for _ in range(3):
        await visit(live, key)
    live.clock.now_ms += DAY_MS - 1_800_000 + 600_000
    assert doctor(live) == ("warning", f"the credit of {prepaid.id} covers 2.0 days"), "9,000 in a day; 18,000 are left"
    live.clock.now_ms -= 600_000
    assert doctor(live)[0] == "ok", "seven days ago to the millisecond counts: 12,000 in seven days"


async def test_credit_that_is_used_up_is_told_of_and_readiness_stays(live: Live):
    """Also that of an organization that never had any; not where nothing can run out: postpaid, blocked, removed."""
    watch = watch_of(live)
    made, key = postpaid(live)
    await visit(live, key)
    assert await told(watch) == []
    assert doctor(live)[0] == "ok"
    used = live.new_organization(credit_usd=0.0031)
    key = live.issue(environment="production", organization=used.number)[1]
    await visit(live, key)
    (line,) = await told(watch)
    assert (line["event"], line["organization"]) == ("credit used up: production traffic is refused (402)", used.id)
    assert doctor(live) == ("warning", f"{used.id} has used up its credit: its production traffic is refused (402)")
    assert_error(await visit(live, key), 402, "no_credit")
    ready = await live.client.get("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (200, "ready")
    live.new_organization(credit_usd=0)
    assert "; " in doctor(live)[1]
    await watch.look()
    assert watch.statistics() == {"used_up": 2}
    live.found.store.write_now([partial(organizations.set_credit_limit, number=used.number, micros=None)])
    await watch.look()
    assert watch.statistics() == {"used_up": 1}
    assert made.number


async def test_the_metrics_count_those_who_are_short_of_credit(directory: Path):
    found = opened(directory)
    create_organization(found, World.real(), "shop", credit=0)
    create_organization(found, World.real(), "another", credit=None)
    found.store.close()
    name = "svc_organizations_short_of_credit"
    async with live_service(directory, metrics=True) as live:
        scraped = await scrape(live)
        while scraped(name, state="used_up") == 0:  # its first look, once it is the leader
            await trio.lowlevel.checkpoint()
            scraped = await scrape(live)
        assert (scraped(name, state="used_up"), scraped(name, state="low")) == (1, 0)


@pytest.mark.slow(0.2)
async def test_an_erasure_does_not_make_credit_last_longer(live: Live):
    """What was charged for it counts: of today, of a day that is to be settled, and of settled days."""
    prepaid = live.new_organization(credit_usd=0.03)
    key, console = (
        live.issue(environment="production", organization=prepaid.number)[1],
        Console(live, "developer", prepaid),
    )

    async def days_after_erasing(device: int) -> float:
        erased = (await visit(live, key, report(device))).json()["visitor_id"]
        await visit(live, key, report(device + 1))
        live.found.store.write_now(
            [partial(erase_visitor, number=prepaid.number, visitor_id=erased, now_ms=live.clock.now_ms)]
        )
        return (await console.seen("/billing"))["credit_days"]

    live.clock.now_ms += DAY_MS // 2
    assert await days_after_erasing(1) == pytest.approx(24_000 / 6_000)
    live.clock.now_ms += DAY_MS
    assert (await console.seen("/billing"))["credit_days"] == pytest.approx(24_000 / 6_000)
    await settle_all(live.found.store, live.world, live.service.relay.due)
    live.clock.now_ms += DAY_MS
    assert await days_after_erasing(3) == pytest.approx(18_000 / (12_000 / 2))
    live.clock.now_ms += 6 * DAY_MS
    await settle_all(live.found.store, live.world, live.service.relay.due)
    assert await days_after_erasing(5) == pytest.approx(12_000 / (12_000 / 6)), "the first two were eight days ago"


async def test_a_day_that_a_clock_far_ahead_has_begun_does_not_count_as_one_day_of_charges(live: Live):
    """Versions before 0.3.0 left such days: the bill goes on there, and the counters say what the last days had."""
    prepaid = live.new_organization(credit_usd=0.03)
    key = live.issue(environment="production", organization=prepaid.number)[1]
    ahead = partial(close_day, number=prepaid.number, day=live.clock.now_ms // DAY_MS + 400)
    live.found.store.write_now([ahead])
    for _ in range(3):
        await visit(live, key)
        live.clock.now_ms += 2 * DAY_MS
    shown = await Console(live, "developer", prepaid).seen("/billing")
    assert shown["credit_days"] == pytest.approx(21_000 / (9_000 / 6))


@pytest.mark.slow
def test_doctor_names_the_organization_and_ends_with_status_0(run: Run):
    made = run("org", "create", "Shop", "--credit-usd", 0, "--json").json["organization_id"]
    found = run("doctor", "--json")
    lines = {each["check"]: each for each in json.loads(found.out)["checks"]}
    assert (lines["credit"]["status"], made in lines["credit"]["says"]) == ("warning", True)
    assert "--usd none" in lines["credit"]["do"]


# Interface 3, 7 and 8: prices and statements


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
