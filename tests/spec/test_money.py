"""Decisions 5.2 and 16.4: who pays afterwards meets no `402`, and whose credit runs out is told of in time."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

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
from svc.kernel.tenants import queries as lookups
from svc.kernel.tenants.jobs import close_day
from svc.kernel.tenants.organization import Organization
from svc.kernel.values.ids import DAY_MS
from svc.kernel.work.store_watch import CorruptRows
from svc.world import World
from tests.spec.commands import Run
from tests.spec.console import Console
from tests.spec.responses import assert_error, nothing_stored, visit
from tests.spec.test_metrics import scrape
from tests.store.release import RELEASED, unpack
from tests.support.live import Live, live_service, opened, report

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


@pytest.mark.usefixtures("engine")
async def test_the_metrics_count_those_who_are_short_of_credit(tmp_path: Path):
    found = opened(tmp_path)
    create_organization(found, World.real(), "shop", credit=0)
    create_organization(found, World.real(), "another", credit=None)
    found.store.close()
    name = "svc_organizations_short_of_credit"
    async with live_service(tmp_path, metrics=True) as live:
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
