"""The console in a headless Chromium against a real `svc dev`: what an operator does by keyboard alone, what strangers
may write, and how every screen looks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.network_data.test_mmdb import database
from tests.support.chromium import browser, built
from tests.support.development import development_service
from tests.support.process import PROGRAM, run_json

pytestmark = pytest.mark.slow(20)

LOOKS = ("light", "dark", "phone")
SCREENS = (
    *("live", "events", "event", "app", "visitors", "visitor", "accounts", "reviews", "overview", "rules", "lists"),
    *(
        "performance",
        "webhooks",
        "keys",
        "weights",
        "members",
        "settings",
        "audit",
        "billing",
        "search",
        "period",
        "attempts",
        "nothing",
        "unknown",
        "link",
    ),
)
ATTACK = '"><img src=x onerror="window.attacked=1"><script>window.attacked=1</script>'

TURNED = "\u202eאבג 12"
"""Its first character turns around what is behind it, until the end of the paragraph or of what is apart in it."""
VISITOR_ADDRESS = "81.2.69.160"


class Console:
    """A development service, and what signs in to it."""

    def __init__(self, service: str, data: Path) -> None:
        self.service = service
        self.data = data
        self.keys: dict[str, str] = json.loads((data / "dev-keys.json").read_bytes())
        described = self.manage("GET", "/management/key").json()
        self.organization: str = described["organization_id"]

    def manage(self, method: str, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        headers = {"x-api-key": self.keys["management"]}
        response = httpx.request(method, f"{self.service}/api/v1{path}", headers=headers, json=body)
        response.raise_for_status()
        return response

    def command(self, *arguments: str) -> dict[str, Any]:
        return run_json(*arguments, "--data", str(self.data))

    def drive(self, mode: str, **more: Any) -> dict[str, Any]:
        """What `web/browsers/console.mjs` found."""
        configuration = {
            "service": self.service,
            "secret": self.keys["secret"],
            "management": self.keys["management"],
            **more,
        }
        return json.loads(browser().run("console.mjs", mode, json.dumps(configuration)))


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    built()
    networks: Path = tmp_path_factory.mktemp("networks")
    operator = {"asn": "AS20712", "as_name": f"A & A {ATTACK}"}
    (networks / "asn.mmdb").write_bytes(database(operator, VISITOR_ADDRESS))
    settings = {
        "SVC_TRUSTED_PROXIES": "127.0.0.1/32",
        "SVC_WEBHOOK_ALLOW_NETWORKS": "192.0.2.0/24",
        "SVC_NETWORK_DIRECTORY": str(networks),
    }
    with development_service(tmp_path_factory.mktemp("service") / "data", **settings) as dev:
        running = Console(dev.url, dev.data)
        endpoint = {
            "url": "https://192.0.2.1/hooks",
            "environment": "test",
            "events": ["identification.completed"],
            "description": f"Shop {ATTACK}",
        }
        running.manage("POST", f"/management/organizations/{running.organization}/webhooks", endpoint)
        yield running


@pytest.fixture(scope="module")
def tour(console: Console) -> dict[str, Any]:
    link = console.command("console", "link", console.organization, "--url", console.service)
    elsewhere = console.command("org", "create", "Elsewhere", "--credit-usd", "0")
    other = console.command("console", "link", elsewhere["organization_id"], "--url", console.service)
    revoke = [*PROGRAM, "key", "revoke", "--yes", "--data", str(console.data)]
    return {**console.drive("walk", link=link["url"], other=other["url"], revoke=revoke), "link": link}


@pytest.fixture(scope="module")
def member(console: Console) -> dict[str, Any]:
    email = "ada@shop.example"
    options = ("--name", f"Ada {ATTACK}", "--role", "analyst", "--url", console.service)
    invited = console.command("member", "invite", console.organization, email, *options)
    return {**console.drive("member", invitation=invited["invitation_url"], email=email), "invited": invited}


@pytest.fixture(scope="module")
def looks(console: Console, tour: dict[str, Any]) -> dict[str, Any]:
    """After the tour, so that there is something to look at."""
    assert tour
    under = f"/management/organizations/{console.organization}"
    names = {"name": f"key{TURNED}", "environment": "development"}
    for path in ("sdk-keys", "proxy-credentials"):
        console.manage("POST", f"{under}/{path}", names)
    console.manage("POST", f"{under}/members", {"email": "eve@shop.example", "name": f"Eve{TURNED}", "role": "viewer"})
    saved = console.manage("GET", f"{under}/rules?environment=test").json()
    rule = {"name": f"Rule{TURNED}", "condition": f'score >= 0 && tag != "{TURNED}"', "action": "review"}
    rules = {"revision": saved["revision"], "rules": [{**rule, "mode": "shadow"}, rule, *saved["rules"]]}
    rules["rules"][0] |= {"name": f"Shadow{TURNED}"}
    console.manage("PUT", f"{under}/rules?environment=test", rules)
    return console.drive("look")


def test_a_link_signs_in_once_and_leaves_nothing_readable_by_a_script(tour: dict[str, Any]):
    token = tour["link"]["url"].partition("#")[2]
    assert token
    assert token not in tour["address"]
    assert tour["stored"] == ["", 0, 0]
    assert "svc console link" in tour["usedLink"], "it says how to get another one"


def test_an_identification_arrives_and_the_event_is_explained(tour: dict[str, Any]):
    assert "account-7" in tour["arrived"]
    assert "headless" in tour["arrived"]
    assert "The browser runs without a window" in tour["event"]
    assert "How the visitor was recognized" in tour["event"]
    assert f"A & A {ATTACK}" in tour["event"], "the operator of the network, as its database names it"
    assert tour["focus"] == "H1", "who cannot see the page is told of the new screen"
    assert tour["report"], "the report is shown as text"
    assert "account-7" in tour["visitor"]


def test_a_filter_that_is_being_typed_outlasts_what_arrives(tour: dict[str, Any]):
    assert tour["typed"] == "half a ta"


def test_an_event_is_found_by_its_id_from_any_screen(tour: dict[str, Any]):
    assert re.search(r"#/events/[0-9a-f-]{36}\?environment=development$", tour["sought"])


def test_what_looks_like_an_id_and_is_none_is_looked_for_as_a_tag(tour: dict[str, Any]):
    assert tour["asTag"].endswith("#/visitors?environment=development&tag=account0of20letters0")


def test_a_tag_turns_the_direction_of_writing_within_itself_only(tour: dict[str, Any]):
    assert tour["direction"] == "isolate"


def test_weights_are_previewed_before_they_are_saved(tour: dict[str, Any]):
    assert "in development would change their level" in tour["preview"]
    assert tour["saved"]["weights"]["headless"] == 77
    assert tour["negative"] == ["-5", False], "what was typed stays, and is not saved as another number"
    assert tour["saved"]["revision"] == 1


def test_filters_of_changes_and_attempts_are_chosen_by_keyboard_and_kept_in_the_address(tour: dict[str, Any]):
    (audit, period, changes), (webhooks, endpoint, attempts) = tour["filtered"]
    assert "window=7d" in audit
    assert period == "Last 7 days"
    assert re.search(r"endpoint=whk_[0-9A-Za-z]{20}$", webhooks)
    assert endpoint.endswith("https://192.0.2.1/hooks")
    assert min(changes, attempts) >= 1


def test_a_rotated_secret_is_shown_once_and_the_dialog_restores_the_focus(tour: dict[str, Any]):
    assert re.fullmatch(r"svc_whsec_[0-9A-Za-z]{43}", tour["secret"])
    assert tour["copied"] in {"Copied.", "The browser allows no copying here: select the text and copy it."}
    assert tour["focusAfterDialog"].startswith("Rotate secret of")


def test_a_filter_of_an_endpoint_is_refused_with_its_position_until_it_can_be_used(tour: dict[str, Any]):
    assert "line 1, column" in tour["faulty"]
    assert "Filter is not a valid condition." in tour["faulty"]
    assert "score >= 60" in tour["endpoint"]
    assert "JSON, signed" in tour["endpoint"]


def test_an_endpoint_of_a_chat_begins_with_suspects_and_reviews_until_somebody_ticks(tour: dict[str, Any]):
    of_people = ["visitor.suspect", "review.opened"]
    assert tour["ticked"] == {
        "json": ["identification.completed"],
        "slack": of_people,
        "teams": of_people,
        "own": [*of_people, "review.closed"],
    }


def test_a_visitor_is_erased_only_after_its_id_was_typed(tour: dict[str, Any]):
    assert (tour["kept"], tour["erased"]) == (200, 404)


def test_a_user_whose_key_is_revoked_is_signed_out_and_returns_to_the_same_view(tour: dict[str, Any]):
    assert "session has ended" in tour["reason"]
    assert "#/events" in tour["afterwards"]


def test_a_link_replaces_a_session_only_after_confirmation(tour: dict[str, Any]):
    """Login CSRF: any site can lead a browser to a link of its own organization."""
    for asked in (tour["asked"], tour["useless"], tour["askedOnArrival"]):
        assert asked["organization"] != "Elsewhere"
        assert f"You are signed in to {asked['organization']} as " in asked["text"]
        assert asked["focus"] == "Stay signed in"
        assert "svc_cl_" not in asked["address"]
    assert tour["moved"] == "Elsewhere", "the link was not used up before"


def test_other_tabs_follow_to_the_organization_of_the_new_session(tour: dict[str, Any]):
    assert "svc Elsewhere" in tour["otherTab"]
    assert "Another tab has signed in to Elsewhere as console link." in tour["otherTab"]
    assert "No credit is left" in tour["otherTab"], "of its billing"


def test_an_invalid_link_keeps_the_session(tour: dict[str, Any]):
    assert "svc console link" in tour["useless"]["text"]
    assert "Your session goes on" in tour["useless"]["text"]
    assert "Use the link" not in tour["useless"]["text"]


def test_every_visited_control_shows_its_focus(tour: dict[str, Any]):
    assert set(tour["outlines"]) == {"solid"}


def test_client_data_is_shown_as_text(tour: dict[str, Any], looks: dict[str, Any]):
    """A tag, a user agent, an SDK's version, a report and an endpoint's description with markup and scripts in them. No
    origin can have any.
    """
    assert ATTACK in tour["arrived"]
    assert "422" in tour["origin"]
    assert (tour["attacked"], looks.get("attacked")) == (None, None)


def test_the_tour_violates_no_policy_and_requests_no_other_host(tour: dict[str, Any], looks: dict[str, Any]):
    assert (tour["violations"], tour["outside"]) == ([], [])
    assert (looks["violations"], looks["outside"]) == ([], [])
    refused = {entry.split()[0] for entry in tour["failed"] + looks["failed"]}
    assert refused <= {"401", "404", "422"}, "signed out, the visitor that is gone, and a filter that cannot be used"
    logged = [line for line in tour["console"] + looks["console"] if not line.startswith("Failed to load resource")]
    assert logged == []


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("screen", SCREENS)
def test_a_screen_has_no_serious_axe_finding_and_fits_its_window(looks: dict[str, Any], screen: str, look: str):
    found = looks["screens"][screen][look]
    assert {one["id"]: one["nodes"] for one in found["axe"] if one["impact"] in ("serious", "critical")} == {}
    assert found["overflows"] == []


@pytest.mark.parametrize("screen", SCREENS)
def test_a_name_turns_no_text_beside_it_around(looks: dict[str, Any], screen: str):
    assert looks["screens"][screen]["turned"] == []


@pytest.mark.parametrize("screen", SCREENS)
def test_a_screen_fits_on_paper_without_its_buttons(looks: dict[str, Any], screen: str):
    assert looks["screens"][screen]["print"] == {"overflows": [], "buttons": 0}


def test_the_console_follows_the_dark_color_scheme_of_the_browser(looks: dict[str, Any]):
    for found in looks["screens"].values():
        assert found["dark"]["background"] != found["light"]["background"]


def test_an_invited_member_chooses_a_password_and_is_in(member: dict[str, Any]):
    assert member["address"].endswith("/console"), "the token stays in no address"
    assert all(part in member["invitation"] for part in (member["session"]["organization"]["name"], "analyst", ATTACK))
    assert member["username"] == ["ada@shop.example", True], "a password manager stores the password under it"
    assert member["different"] == "This is not the password above."
    assert member["session"]["member"]["id"] == member["invited"]["id"]
    assert member["session"]["role"] == "analyst"


def test_a_member_sets_up_codes_and_signs_in_with_them(member: dict[str, Any]):
    assert member["wrongCode"]
    role, width, drawn = member["qr"]
    assert (role, drawn) == ("img", 1)
    assert width >= 150
    assert len(set(member["recovery"]) - set(member["replaced"])) == 10
    assert member["common"]
    assert "the code is wrong" in member["withoutCode"]
    assert member["again"]["member"]["has_totp"] is True
    assert member["again"]["member"]["id"] == member["invited"]["id"]
    assert member["afterwards"].endswith("/console"), "what the provider said is in no address"


@pytest.mark.parametrize("name", ["invitation", "proof", "codes", "recovery codes", "password", "sign in"])
def test_a_page_of_signing_in_has_no_serious_axe_finding_and_fits_its_window(member: dict[str, Any], name: str):
    for how, seen in member["screens"][name].items():
        assert (seen["overflows"], seen["axe"]) == ([], []), how
    assert set(member["outlines"]) <= {"solid"}
