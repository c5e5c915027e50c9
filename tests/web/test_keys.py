"""Keys in the browser: visits of a headless Chromium whose reports are signed, to a real service (docs/adr/0084)."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.web.visits import Visits, seen_by

pytestmark = pytest.mark.slow(60)

INSTALLED = shutil.which("chromium") or shutil.which("google-chrome")
"""A browser that keeps pages to go back to."""


@pytest.fixture(scope="session")
def visits(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Visits:
    return seen_by("keys.mjs", tmp_path_factory, worker_id, *([INSTALLED] if INSTALLED else []))


def identity(visit: dict[str, Any]) -> tuple[str | None, str | None]:
    """Token and key that a visit brought."""
    return visit["signals"].get("client_token"), visit["signals"].get("client_key")


def test_each_visit_is_signed_by_one_key(visits: Visits):
    assert [visits[name]["proof"] for name in ("first", "again")] == ["valid", "valid"]
    assert identity(visits["again"]) == identity(visits["first"])
    assert visits["first"]["signals"]["client_token_is_new"] is True
    assert "client_token_is_new" not in visits["again"]["signals"]
    assert visits["first"]["members"][-1] == "client_proof"


def test_a_proof_covers_account_action_and_tag(visits: Visits):
    """Decisions 18.3; `identify` works detached from its client, too."""
    everything = ["visitor", "account_id", "action", "tag"]
    assert [visits[name]["covers"] for name in ("again", "about")] == [everything, everything]
    assert visits["about"]["proof"] == "valid"


def test_a_request_that_is_sent_on_for_another_account_is_not_covered(visits: Visits):
    assert (visits["renamed"]["proof"], visits["renamed"]["proven"]) == ("signature", False)
    assert "covers" not in visits["renamed"]


def test_a_database_without_its_store_is_made_again(visits: Visits):
    """Who had a key has lost it, and gets another token with another key."""
    for name in ("broken store", "broken store, fresh"):
        visit = visits[name]
        assert (visit["proof"], identity(visit)) == ("valid", identity(visits[f"{name}, again"]))
        # Among the many equal browsers of this test the second visit may part it from another one: the third is proven.
        third = visits[f"{name}, third"]
        assert (third["proven"], identity(third)) == (True, identity(visit))
        assert visit["signals"]["client_token_is_new"] is True
    token, key = identity(visits["broken store"])
    lost = identity(visits["after the loss"])
    assert token != lost[0]
    assert key != lost[1]


def test_tabs_that_open_at_once_end_with_one_key_and_token(visits: Visits):
    rounds = [[visits[f"tabs {number} {tab}"] for tab in (1, 2, 3)] for number in (1, 2, 3)]
    for tabs in rounds:
        assert {tab["proof"] for tab in tabs} == {"valid"}
        assert len({identity(tab) for tab in tabs}) == 1
        assert sum(tab["signals"].get("client_token_is_new", False) for tab in tabs) == 1
        assert {tab["kept"]["local"] for tab in tabs[-1:]} == {identity(tabs[0])[0]}
    assert len({identity(tabs[0]) for tabs in rounds}) == 3


def test_two_clients_of_a_page_have_one_key(visits: Visits):
    clients = [visits[f"clients {place}"] for place in (1, 2, 3)]
    assert {client["proof"] for client in clients} == {"valid"}
    assert len({identity(client) for client in clients}) == 1


def test_a_private_window_has_a_key_of_its_own(visits: Visits):
    private = visits["private"]
    assert private["proof"] == "valid"
    assert identity(private)[1] not in (None, identity(visits["first"])[1])
    assert identity(visits["private again"]) == identity(private)


@pytest.mark.parametrize("name", ["a day ahead", "a day behind"])
def test_a_clock_that_is_wrong_by_a_day_proves(visits: Visits, name: str):
    assert visits[name]["proof"] == "valid"


def test_a_clock_that_is_wrong_by_a_month_does_not_prove_and_is_identified(visits: Visits):
    visit = visits["a month ahead"]
    assert visit["proof"] == "time"
    assert visit["result"]["visitor_id"] == visits["first"]["result"]["visitor_id"]


@pytest.mark.skipif(INSTALLED is None, reason="no Chromium is installed that keeps pages to go back to")
def test_a_page_of_the_back_forward_cache_signs_again(visits: Visits):
    assert visits["back"]["persisted"] is True
    assert visits["back"]["proof"] == "valid"
    assert identity(visits["back"]) == identity(visits["before leaving"])
    assert visits["back"]["signals"]["client_proof"] != visits["before leaving"]["signals"]["client_proof"]


def test_a_service_worker_in_between_changes_nothing(visits: Visits):
    assert visits["service worker"]["controller"] is True
    assert visits["service worker"]["proof"] == "valid"


def test_the_attempts_of_one_call_send_the_same_bytes(visits: Visits):
    assert (visits["attempts"]["count"], visits["attempts"]["distinct"]) == (2, 1)
    assert visits["retried"]["proof"] == "valid"


def test_a_proxy_that_writes_the_body_anew_costs_the_proof_and_nothing_else(visits: Visits):
    visit = visits["rewritten"]
    assert (visit["proof"], visit["proven"]) == ("signature", False)
    assert visit["result"]["visitor_id"] == visits["first"]["result"]["visitor_id"]


def test_a_page_with_an_old_library_sends_the_same_report(visits: Visits):
    visit, first = visits["old library"], visits["first"]
    assert visit["proof"] == "valid"
    assert identity(visit) == identity(first)
    assert visit["changes"] == []
    # The order is that in which things were ready. One member may be late on a busy machine, and then counts as missed.
    late = {"incognito"} & {*visit["timing"]["missed"], *first["timing"]["missed"]}
    assert {*visit["members"]} - late == {*first["members"]} - late - {"client_token_is_new"}


def test_markup_named_as_the_running_script_does_not_move_the_endpoint(visits: Visits):
    """The script is of the shop, where no service is: what matters is that the other origin gets nothing."""
    error = visits["named markup"]["error"]
    assert error["code"] == "bad_response"
    assert "http://localhost" in error["message"]


def test_what_is_on_the_prototype_of_all_objects_is_no_option(visits: Visits):
    visit = visits["polluted"]
    assert visit["proof"] == "valid"
    assert identity(visit) == identity(visits["first"])
    assert "verdict" not in visit["result"]


def test_a_cookie_that_another_host_has_set_replaces_no_token(visits: Visits):
    visit = visits["tossed cookie"]
    assert visit["proof"] == "valid"
    assert identity(visit) == identity(visits["first"])
    assert f"_svc={identity(visit)[0]}" in visit["kept"]["cookie"]


BROKEN = ["refuses", "hangs", "keeps no keys", "no subtle", "signs nothing"]


@pytest.mark.parametrize("kind", BROKEN)
def test_a_browser_that_keeps_no_key_is_identified_as_before(visits: Visits, kind: str):
    fresh, again = visits[f"{kind}, fresh"], visits[f"{kind}, fresh again"]
    assert "proof" not in fresh
    assert "visitor_id" in fresh["result"]
    if kind == "signs nothing":  # it has a key, without which its token proves nothing
        assert identity(fresh) == (None, None)
    else:
        assert identity(fresh)[0] is not None
        assert identity(again) == identity(fresh)
        assert fresh["signals"]["client_token_is_new"] is True


@pytest.mark.parametrize("kind", BROKEN[:2] + BROKEN[3:])
def test_a_token_whose_key_is_out_of_reach_stays_at_home(visits: Visits, kind: str):
    """It would contradict its key. The next visit that reaches the key brings both."""
    visit = visits[f"{kind}, with a key"]
    assert identity(visit) == (None, None)
    assert visit["result"]["visitor_id"] == visits["first"]["result"]["visitor_id"]
    assert identity(visits["as before"]) == identity(visits["first"])
    assert visits["as before"]["proof"] == "valid"


def test_a_key_that_does_not_answer_is_not_waited_for_longer_than_any_source(visits: Visits):
    """That is 1.5 seconds; the rest of the bound is for a busy machine."""
    assert 1500 <= visits["hangs, fresh"]["timing"]["took"]["key"] < 5000
    assert 1500 <= visits["signs nothing, fresh"]["timing"]["took"]["proof"] < 5000


def test_plain_http_has_a_token_and_no_key(visits: Visits):
    token, key = identity(visits["plain http"])
    assert (token is None, key) == (False, None)
    assert identity(visits["plain http again"]) == (token, None)
    assert any("https" in note for note in visits["plain http"]["timing"]["notes"])


def test_a_token_from_before_there_were_keys_gets_one(visits: Visits):
    token, key = identity(visits["upgraded"])
    assert (token, key is None, visits["upgraded"]["proof"]) == ("ab" * 16, False, "valid")


def test_who_loses_the_key_gets_another_token_with_another_key(visits: Visits):
    assert visits["key lost"]["before"] == ["_svc"]
    token, key = identity(visits["key lost"])
    assert token not in (None, identity(visits["first"])[0])
    assert key not in (None, identity(visits["first"])[1])
    assert visits["key lost"]["signals"]["client_token_is_new"] is True
    assert identity(visits["after the loss"]) == (token, key)
    assert visits["after the loss"]["proof"] == "valid"


def test_cleared_storage_makes_token_and_key_anew(visits: Visits):
    token, key = identity(visits["cleared"])
    assert token not in (None, identity(visits["after the loss"])[0])
    assert key not in (None, identity(visits["after the loss"])[1])
    assert visits["cleared"]["proof"] == "valid"


def test_forgetting_leaves_nothing(visits: Visits):
    assert visits["forgotten"]["left"] == {"databases": 0, "entries": 0, "cookie": ""}


def test_each_visit_says_what_key_and_signature_took(visits: Visits):
    """How long that is depends on what else the machine does."""
    costs = visits["costs"]["costs"]
    assert [cost.keys() for cost in costs] == [{"key", "proof", "collectMs"}] * 8
    assert min(value for cost in costs for value in cost.values()) >= 0
