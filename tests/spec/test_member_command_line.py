"""Decisions 10 and 15: `svc member`."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.spec.commands import Run

TOKEN = re.compile(r"svc_ci_[0-9A-Za-z]{43}_[0-9A-Za-z]{20}")
ADA = "ada@shop.example"


@pytest.fixture
def shop(run: Run) -> str:
    return run("org", "create", "shop", "--json").json["organization_id"]


def members(run: Run, shop: str) -> list[dict[str, Any]]:
    return run("member", "list", shop, "--json").json["members"]


def test_an_invitation_is_a_url_with_the_token_as_fragment(run: Run, shop: str):
    told = run("member", "invite", shop, "Ada@Shop.example", "--name", "Ada", "--role", "admin", "--json").json
    base, _, token = told["invitation_url"].partition("/console#")
    assert base == "http://127.0.0.1:8080"
    assert TOKEN.fullmatch(token)
    assert (told["email"], told["name"], told["role"], told["status"]) == (ADA, "Ada", "admin", "invited")
    (listed,) = members(run, shop)
    assert listed == {name: told[name] for name in listed}
    record, *_ = run("audit", "--org", shop, "--json").json["records"]
    assert (record["action"], record["subject"]) == ("svc member invite", told["id"])
    assert record["change"] == {"email": "Ada@Shop.example", "name": "Ada", "role": "admin"}


def test_an_invitation_is_printed_with_what_to_do_with_it(run: Run, shop: str):
    told = run("member", "invite", shop, ADA, "--url", "https://svc.example.com/")
    assert told.out.startswith("https://svc.example.com/console#svc_ci_")
    assert f"Hand it to {ADA} (mem_" in told.out
    assert "it works once" in told.out
    assert [(one["name"], one["role"]) for one in members(run, shop)] == [(ADA, "viewer")]


def test_a_member_is_named_by_id_or_address_and_changed(run: Run, shop: str):
    made = run("member", "invite", shop, ADA, "--json").json
    assert run("member", "role", shop, made["id"], "analyst", "--json").json["role"] == "analyst"
    assert run("member", "role", shop, "ADA@shop.example", "admin", "--json").json["role"] == "admin"
    again = run("member", "reset", shop, ADA, "--json").json
    assert again["invitation_url"] != made["invitation_url"]
    removed = run("member", "remove", shop, ADA, "--yes", "--json").json
    assert (removed["id"], removed["status"]) == (made["id"], "removed")
    assert members(run, shop) == []
    actions = [record["action"] for record in run("audit", "--org", shop, "--json").json["records"]]
    assert actions[:5] == [
        "svc member remove", "svc member reset", "svc member role", "svc member role", "svc member invite",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("invite", "{shop}", "ada"), "ada: email: invalid value"),
        (("invite", "{shop}", ADA), "The organization has a member with this address. Give it a new link"),
        (("invite", "{shop}", "bob@shop.example", "--name", " "), "name: invalid value"),
        (("invite", "{shop}", "bob@shop.example", "--url", "svc.example.com"), "--url https://svc.example.com"),
        (("role", "{shop}", "bob@shop.example", "admin"), "has no member 'bob@shop.example'"),
        (("role", "{shop}", "mem_none", "admin"), "has no member 'mem_none'"),
        (("suspend", "{shop}", ADA), "has not accepted the invitation yet"),
        (("activate", "{shop}", ADA), "has not accepted the invitation yet"),
        (("remove", "{shop}", ADA), "add --yes"),
        (("list", "org_" + 20 * "a"), "there is no organization"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(run: Run, shop: str, arguments: tuple[str, ...], says: str):
    run("member", "invite", shop, ADA, "--name", "Ada")
    before = members(run, shop)
    run("member", *(argument.replace("{shop}", shop) for argument in arguments)).assert_refused(says)
    assert members(run, shop) == before


def test_a_role_that_is_none_is_a_usage_error(run: Run, shop: str):
    run("member", "invite", shop, ADA, "--role", "owner").assert_usage()


def test_a_link_leads_to_the_public_url_of_the_settings(run: Run, shop: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SVC_PUBLIC_URL", "https://svc.shop.example/")
    for command in (("member", "invite", shop, ADA), ("console", "link", shop)):
        assert run(*command).out.startswith("https://svc.shop.example/console#svc_c")
