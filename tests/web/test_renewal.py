"""Token and key are renewed: visits of a headless Chromium to a real service (decisions 18.2)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.visits import Visits, seen_by

pytestmark = pytest.mark.slow(30)


@pytest.fixture(scope="session")
def visits(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Visits:
    return seen_by("renewal.mjs", tmp_path_factory, worker_id)


def identity(visit: dict[str, Any]) -> tuple[str, str]:
    """Token and key that a visit brought."""
    return visit["signals"]["client_token"], visit["signals"]["client_key"]


def before(visit: dict[str, Any]) -> tuple[str | None, str | None]:
    """Those that they are in the place of."""
    return visit["signals"].get("client_token_before"), visit["signals"].get("client_key_before")


def owner(visits: Visits, *names: str) -> set[tuple[str, bool]]:
    """(visitor, proven) of these visits."""
    return {(visits[name]["result"]["visitor_id"], visits[name]["result"]["proven"]) for name in names}


def asked(visit: dict[str, Any]) -> bool:
    return visit["result"].get("client_token_renew", False)


def test_the_browser_is_asked_once_somebody_else_signed_with_its_token(visits: Visits):
    assert [asked(visits[name]) for name in ("first", "second", "asked")] == [False, False, True]
    assert "token_conflict" in {trigger["signal"] for trigger in visits["thief"]["result"]["triggers"]}


def test_a_renewing_browser_sends_the_former_token_and_key_once_beside_the_new_ones(visits: Visits):
    renewed = visits["renewed"]
    assert before(renewed) == identity(visits["asked"])
    assert renewed["proof"] == "valid"
    assert renewed["members"][-4:] == [
        "client_token_before",
        "client_key_before",
        "client_proof_before",
        "client_proof",
    ]
    assert renewed["signals"]["client_token_is_new"] is True
    assert before(visits["after it"]) == (None, None)
    assert identity(visits["after it"]) == identity(renewed)
    assert "client_token_is_new" not in visits["after it"]["signals"]


def test_the_new_token_and_key_are_stored_before_they_are_sent(visits: Visits):
    kept = visits["asked"]["kept"]
    assert (kept["token"], kept["next"]) == (identity(visits["asked"])[0], identity(visits["renewed"])[0])
    assert kept["extractable"] == [False, False]
    after = visits["renewed"]["kept"]
    assert (after["token"], after["local"], "next" in after) == (identity(visits["renewed"])[0],) * 2 + (False,)
    assert f"_svc={after['token']}" in after["cookie"]


def test_the_visitor_stays_and_goes_on_being_proven(visits: Visits):
    everything = ("second", "asked", "renewed", "after it", "asked 2", "after the lost answer", "after it 2")
    assert owner(visits, *everything) == {(visits["first"]["result"]["visitor_id"], True)}


@pytest.mark.parametrize("name", ["thief with the former token", "thief who renews"])
def test_nobody_else_goes_along_with_a_renewal(visits: Visits, name: str):
    """At the same address, which the test cannot change, the copied report is at most 89."""
    result = visits[name]["result"]
    assert (visits[name]["proof"], result["proven"], asked(visits[name])) == ("valid", False, False)
    assert result["visitor_confidence"] <= 89


def test_a_page_that_is_closed_before_the_answer_loses_nothing(visits: Visits):
    """Once the report arrived and once it did not: the next visit sends both again."""
    after = visits["after the lost answer"]
    assert before(after) == identity(visits["asked 2"])
    assert "next" not in after["kept"]
    assert before(visits["after it 2"]) == (None, None)
    assert identity(visits["after it 2"]) == identity(after)


def test_two_tabs_that_are_asked_at_once_renew_once(visits: Visits):
    tabs = [visits[f"asked in tab {place}"] for place in (1, 2)]
    assert [asked(tab) for tab in tabs] == [True, True]
    renewed = [visits[f"renewed in tab {place}"] for place in (1, 2)]
    assert len({identity(tab) for tab in renewed}) == 1
    assert {before(tab) for tab in renewed} == {identity(tabs[0])}
    names = [f"{what} in tab {place}" for what in ("asked", "renewed") for place in (1, 2)]
    assert owner(visits, *names, "after the tabs") == {(visits["first"]["result"]["visitor_id"], True)}


def test_a_tab_whose_report_was_ready_brings_the_former_token(visits: Visits):
    late = visits["a tab that was open"]
    assert identity(late) == identity(visits["asked in tab 1"])
    assert (late["result"]["visitor_id"], late["result"]["proven"]) == (visits["first"]["result"]["visitor_id"], True)
    assert not asked(late)
    assert identity(visits["after the tabs"]) == identity(visits["renewed in tab 1"])


def test_who_forgets_while_being_asked_leaves_nothing(visits: Visits):
    assert visits["forgotten"]["left"] == {"client_token_renew": True, "keys": 0, "entries": 0, "cookie": ""}
