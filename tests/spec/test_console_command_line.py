"""Decisions 10, ADR 38: `svc console link`."""

from __future__ import annotations

import re

import pytest

from svc.kernel.access.sessions import MAX_LINKS
from tests.spec.commands import Run

TOKEN = re.compile(r"svc_cl_[0-9A-Za-z]{43}_[0-9A-Za-z]{20}")


@pytest.fixture
def shop(run: Run) -> str:
    return run("org", "create", "shop", "--json").json["organization_id"]


def test_a_link_is_a_url_with_the_token_as_fragment_and_has_its_own_key(run: Run, shop: str):
    made = run("console", "link", shop, "--role", "developer", "--name", "anna", "--json").json
    assert set(made) == {"url", "expires_at", "key_id", "role"}
    base, _, token = made["url"].partition("/console#")
    assert base == "http://127.0.0.1:8080"
    assert TOKEN.fullmatch(token)
    assert token.endswith(shop.removeprefix("org_"))
    (key,) = run("key", "list", shop, "--json").json["keys"]
    assert (key["id"], key["kind"], key["role"], key["name"]) == (made["key_id"], "management", "developer", "anna")
    assert key["expires_at"] is not None


def test_a_link_is_printed_with_how_to_use_and_revoke_it(run: Run, shop: str):
    told = run("console", "link", shop, "--minutes", 5, "--url", "https://svc.example.com/")
    assert told.out.startswith("https://svc.example.com/console#svc_cl_")
    assert "within 5 minutes" in told.out
    key_id = re.search(r"svc key revoke (key_\w+)", told.out)
    assert key_id is not None
    assert run("key", "revoke", key_id[1], "--yes").status == 0


def test_a_link_is_in_the_audit_log_without_its_token(run: Run, shop: str):
    made = run("console", "link", shop, "--name", "anna", "--json").json
    record, *_ = run("audit", "--org", shop, "--json").json["records"]
    assert (record["action"], record["subject"]) == ("svc console link", made["key_id"])
    assert record["change"] == {"name": "anna", "role": "admin", "expires_at": made["expires_at"]}


@pytest.mark.slow
def test_unused_links_take_only_their_part_of_the_key_limit(run: Run, shop: str):
    for _ in range(MAX_LINKS + 2):
        assert run("console", "link", shop).status == 0
    keys = run("key", "list", shop, "--json").json["keys"]
    assert sum(key["status"] == "active" for key in keys) == MAX_LINKS


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (("--url", "svc.example.com"), 1, "--url https://svc.example.com"),
        (("--url", "https://svc.example.com/console"), 1, "--url https://svc.example.com"),
        (("--url", "ftp://svc.example.com"), 1, "--url https://svc.example.com"),
        (("--url", "http://svc.example.com"), 1, "signing in needs https"),
        (("--minutes", "0"), 2, "--minutes"),
        (("--minutes", "1441"), 2, "--minutes"),
        (("--role", "owner"), 2, "--role"),
        (("--name", " "), 1, "--name has 1 to 200 characters"),
        (("--name", 201 * "n"), 1, "--name has 1 to 200 characters"),
    ],
)
def test_an_unusable_link_is_not_created(run: Run, shop: str, arguments: tuple[str, ...], status: int, told: str):
    ran = run("console", "link", shop, *arguments)
    assert ran.status == status
    assert told in ran.err
    assert run("key", "list", shop, "--json").json["keys"] == []


def test_a_link_requires_an_existing_organization(run: Run, shop: str):
    ran = run("console", "link", "org_nobody")
    assert (ran.status, "svc org list" in ran.err) == (1, True)
