"""Decisions 10 and 5.3: the commands that there are, their exit statuses, and what `--json` prints."""

from __future__ import annotations

import json
import os
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from svc.kernel.tenants.billing import BILLING_STATUSES
from tests.spec.commands import Run, place_of
from tests.spec.responses import TIMESTAMP
from tests.support.live import bytes_of, opened

ORGANIZATION_FIELDS = {
    "organization_id", "name", "created_at", "billing_status", "blocked_reason", "balance_usd", "balance_micros",
    "credit_limit_usd", "rate_limit_per_s", "removed_at",
}  # fmt: skip
ALLOWED = {
    ("free", "active"), ("active", "free"), ("active", "past_due"), ("past_due", "active"), ("past_due", "blocked"),
    ("free", "blocked"), ("active", "blocked"), ("blocked", "active"), ("blocked", "free"),
}  # fmt: skip
WAY_TO: dict[str, tuple[str, ...]] = {
    "free": (), "active": ("active",), "past_due": ("active", "past_due"), "blocked": ("blocked",),
}  # fmt: skip


def organization(run: Run, *options: object) -> str:
    return run("org", "create", "Shop", "--credit-usd", 0, "--json", *options).json["organization_id"]


def issue(run: Run, *arguments: object) -> dict[str, Any]:
    return run("key", "issue", *arguments, "--json").json


@pytest.mark.parametrize(
    "command",
    ["", "dev", "serve", "org", "org create", "org list", "org show", "org credit", "org billing-status",
     "org rate-limit", "org credit-limit", "org statement", "visitor", "visitor erase", "signals", "webhook", "audit",
     "console", "console link", "key", "key issue", "key list", "key revoke", "data", "data status", "data check",
     "check", "backup", "restore"],
)  # fmt: skip
def test_every_command_has_help(run: Run, command: str):
    """Decisions 10: `svc` is the one program, and these are its commands."""
    ran = run(*command.split(), "--help")
    assert (ran.status, ran.err) == (0, "")
    assert "Usage: svc" in ran.out


def test_the_first_organization_is_created_with_its_data_directory(run: Run, tmp_path: Path):
    """Decisions 10, 1.1, 1.2, 4, 5.2: free, 100 per second, with the credit that the operator gives."""
    created = run("org", "create", "My shop", "--credit-usd", "12.5", "--json").json
    assert set(created) == ORGANIZATION_FIELDS
    assert re.fullmatch(r"org_[0-9A-Za-z]{20}", created["organization_id"])
    assert TIMESTAMP.fullmatch(created["created_at"])
    assert (created["name"], created["billing_status"], created["blocked_reason"]) == ("My shop", "free", None)
    assert (created["balance_micros"], created["rate_limit_per_s"]) == (12_500_000, 100)
    assert (tmp_path / "data" / "pepper").stat().st_mode & 0o777 == 0o600


def test_the_options_of_create_are_its_credit_and_its_limit(run: Run):
    """Decisions 10."""
    created = run("org", "create", "a", "--rate-limit", 0, "--json").json
    assert (created["balance_micros"], created["rate_limit_per_s"]) == (0, 0)
    assert (
        run("org", "create", "b", "--rate-limit", 7, "--credit-usd", "0.000001", "--json").json["balance_micros"] == 1
    )


def test_organizations_are_listed_and_shown(run: Run):
    """Decisions 10: oldest first, the same fields."""
    assert run("org", "create", "first").status == 0
    second = run("org", "create", "second", "--credit-usd", 1, "--json").json
    listed = run("org", "list", "--json").json
    assert set(listed) == {"organizations"}
    assert [row["name"] for row in listed["organizations"]] == ["first", "second"]
    assert listed["organizations"][1] == second
    shown = run("org", "show", second["organization_id"], "--json").json
    held = {"events": 0, "visitors": 0, "report_bytes": 0, "held_bytes": 0, "held_share": 0.0}
    assert shown == second | held


def test_output_is_for_people_unless_json_is_requested(run: Run):
    """Decisions 10."""
    ran = run("org", "create", "Shop")
    assert ran.status == 0
    with pytest.raises(json.JSONDecodeError):
        json.loads(ran.out)
    org_id = re.search(r"org_[0-9A-Za-z]{20}", ran.out)
    assert org_id is not None
    for command in (("org", "list"), ("org", "show", org_id[0]), ("key", "list", org_id[0]), ("data", "status")):
        ran = run(*command)
        assert ran.status == 0
        assert ran.out.strip()
        assert not ran.out.startswith("{")


def test_credit_is_granted_and_withdrawn(run: Run):
    """Decisions 5.1, 5.2, 10: exact to a millionth."""
    org = organization(run, "--credit-usd", 1)
    assert run("org", "credit", org, "--usd", "0.1", "--json").json["balance_micros"] == 1_100_000
    assert run("org", "credit", org, "--usd", "-0.000001", "--json").json["balance_micros"] == 1_099_999
    assert run("org", "show", org, "--json").json["balance_micros"] == 1_099_999
    assert run("check", "--json").json["ok"] is True


@pytest.mark.parametrize("amount", ["", "much", "1e999", "1e999999", "nan", "snan", "inf", "0.0000001", "1e-999999999"])
def test_an_invalid_amount_is_a_usage_error(run: Run, amount: str):
    """Decisions 10: exit status 2, and nothing changed."""
    org = organization(run)
    run("org", "credit", org, "--usd", amount).assert_usage()
    run("org", "create", "b", "--credit-usd", amount).assert_usage()
    assert run("org", "show", org, "--json").json["balance_micros"] == 0


def test_a_rate_limit_is_set(run: Run):
    """Decisions 4, 10: 0 = none; less is nonsense."""
    org = organization(run)
    for limit in (5, 0, 1000):
        assert run("org", "rate-limit", org, limit, "--json").json["rate_limit_per_s"] == limit
    for limit in ("-1", "fast", "1.5"):
        run("org", "rate-limit", org, "--", limit).assert_usage()


def test_a_credit_limit_is_set(run: Run):
    """Decisions 5.2: how far the balance may go below zero; 0 when nothing is set."""
    org = organization(run)
    assert run("org", "show", org, "--json").json["credit_limit_usd"] == "0"
    assert run("org", "credit-limit", org, "--usd", "2.5", "--json").json["credit_limit_usd"] == "2.5"
    unlimited = run("org", "credit-limit", org, "--usd", "none", "--json").json
    assert (unlimited["credit_limit_usd"], unlimited["billing_status"]) == (None, "free"), "it changes no status"
    assert run("org", "credit-limit", org, "--usd", 0, "--json").json["credit_limit_usd"] == "0"
    run("org", "credit-limit", org, "--usd", "-1").assert_usage()
    run("org", "credit-limit", org, "--usd", "much").assert_usage()


@pytest.mark.parametrize("before", BILLING_STATUSES)
@pytest.mark.every_case
def test_a_billing_status_changes_only_by_its_transition_table(run: Run, before: str):
    """Decisions 5.3: every pair of statuses; `blocked_reason` is `operator` while blocked, else `null`."""
    for after in BILLING_STATUSES:
        if after == before:
            continue
        org = organization(run)
        for status in WAY_TO[before]:
            assert run("org", "billing-status", org, status).status == 0
        ran = run("org", "billing-status", org, after, "--json")
        if (before, after) in ALLOWED:
            assert ran.json["billing_status"] == after
            assert ran.json["blocked_reason"] == ("operator" if after == "blocked" else None)
        else:
            ran.assert_refused(before, after)
            assert run("org", "show", org, "--json").json["billing_status"] == before


def test_an_unknown_organization_or_key_is_reported_in_one_line(run: Run):
    """Decisions 10: exit status 1."""
    organization(run)
    nobody = "org_AAAAAAAAAAAAAAAAAAAA"
    for command in (
        ("org", "show", nobody),
        ("org", "show", ""),
        ("org", "credit", nobody, "--usd", 1),
        ("org", "billing-status", nobody, "active"),
        ("org", "rate-limit", nobody, 1),
        ("key", "list", nobody),
        ("key", "issue", nobody, "--kind", "secret", "--environment", "production"),
        ("key", "revoke", "key_AAAAAAAAAAAAAAAAAAAA"),
        ("key", "revoke", "x" * 600),
    ):
        run(*command).assert_refused()
        run(*command, "--json").assert_refused()


@pytest.mark.parametrize(
    "command",
    [
        ("no-such-command",),
        ("org", "no-such-command"),
        ("org", "create"),
        ("org", "create", "a", "--no-such-option"),
        ("org", "create", "a", "--rate-limit", "many"),
        ("org", "credit", "org_x"),
        ("org", "billing-status", "org_x", "rich"),
        ("key", "issue", "org_x"),
        ("key", "issue", "org_x", "--kind", "golden"),
        ("key", "issue", "org_x", "--kind", "public"),
        ("key", "issue", "org_x", "--kind", "secret", "--environment", "moon"),
        ("key", "issue", "org_x", "--kind", "management", "--environment", "production"),
        ("key", "issue", "org_x", "--kind", "management", "--role", "king"),
        ("key", "issue", "org_x", "--kind", "secret", "--environment", "staging", "--role", "admin"),
        ("key", "issue", "org_x", "--kind", "proxy", "--environment", "staging", "--origin", "https://a.example"),
        ("key", "issue", "org_x", "--kind", "secret", "--environment", "staging", "--platform", "ios"),
        ("key", "issue", "org_x", "--kind", "public", "--environment", "staging", "--platform", "tizen"),
        ("key", "revoke"),
        ("data", "check"),
    ],
    ids=" ".join,
)
def test_a_usage_error_exits_with_status_2(run: Run, command: tuple[str, ...]):
    """Decisions 10."""
    run(*command).assert_usage()


def test_a_public_key_is_issued_with_its_record_and_its_secret(run: Run):
    """Interface 5, 2.8; decisions 2.4, 10: `{key, secret}`."""
    org = organization(run)
    origins = ("--origin", "https://Shop.example:443", "--origin", "https://*.shop.example")
    platforms = ("--platform", "web", "--platform", "ios")
    issued = issue(run, org, "--kind", "public", "--environment", "production", "--name", "Web", *origins, *platforms)
    assert set(issued) == {"key", "secret"}
    key = issued["key"]
    assert re.fullmatch(r"key_[0-9A-Za-z]{20}", key["id"])
    assert (key["name"], key["kind"], key["environment"], key["region"]) == ("Web", "public", "production", "us")
    assert key["allowed_origins"] == ["https://shop.example", "https://*.shop.example"]
    assert (key["platforms"], key["status"]) == (["web", "ios"], "active")
    assert (key["prefix"], key["last4"]) == ("svc_pk_us_production", issued["secret"][-4:])
    assert (key["last_used_at"], key["expires_at"], key["revoked_at"]) == (None, None, None)
    assert TIMESTAMP.fullmatch(key["created_at"])
    assert key["public_key"] == issued["secret"], "it is no secret"


@pytest.mark.parametrize(("kind", "mark"), [("public", "pk"), ("secret", "sk"), ("proxy", "px"), ("management", "mk")])
@pytest.mark.every_case
def test_every_kind_of_key_is_issued(run: Run, kind: str, mark: str):
    """Interface 5, decisions 2.4, 10."""
    org = organization(run)
    environment = () if kind == "management" else ("--environment", "staging")
    origin = ("--origin", "https://shop.example") if kind == "public" else ()
    issued = issue(run, org, "--kind", kind, *environment, *origin)
    key = issued["key"]
    assert issued["secret"].startswith(f"svc_{mark}_us_" + ("" if kind == "management" else "staging_"))
    assert (key["kind"], key.get("environment")) == (kind, None if kind == "management" else "staging")
    assert key.get("role") == ("admin" if kind == "management" else None)
    assert key.get("platforms") == (["web"] if kind == "public" else None)
    assert key.get("allowed_origins") == (["https://shop.example"] if kind == "public" else None)


@pytest.mark.parametrize("name", [" ", 201 * "n"])
def test_a_name_of_a_key_that_the_api_does_not_take_is_refused(run: Run, name: str):
    org = run("org", "create", "Shop", "--json").json["organization_id"]
    run("key", "issue", org, "--kind", "management", "--name", name).assert_refused("--name has 1 to 200 characters")
    assert run("key", "list", org, "--json").json["keys"] == []
    assert run("key", "issue", org, "--kind", "management", "--name", 200 * "n").status == 0


def test_a_management_key_has_the_requested_role(run: Run):
    """Interface 5, decisions 10."""
    org = organization(run)
    assert issue(run, org, "--kind", "management", "--role", "developer")["key"]["role"] == "developer"


@pytest.mark.parametrize("origin", ["*", "shop.example", "https://shop.example/path", "https://*", "null"])
def test_an_invalid_origin_is_rejected(run: Run, origin: str):
    """Decisions 2.6; no key is issued."""
    org = organization(run)
    run("key", "issue", org, "--kind", "public", "--environment", "staging", "--origin", origin).assert_refused(origin)
    assert run("key", "list", org, "--json").json == {"keys": []}


def test_a_secret_is_shown_once_and_never_again(run: Run, tmp_path: Path):
    """Interface 5 rule 4, decisions 2.2."""
    org = organization(run)
    ran = run("key", "issue", org, "--kind", "secret", "--environment", "production")
    secret = re.search(r"svc_sk_us_production_[0-9A-Za-z]{49}", ran.out)
    assert secret is not None
    for shown in (run("key", "list", org), run("key", "list", org, "--json")):
        assert secret[0] not in shown.out
        assert secret[0][-4:] in shown.out
    with closing((found := opened(tmp_path / "data")).store):
        assert secret[0].encode() not in bytes_of(found)


def test_keys_are_listed_oldest_first_including_revoked_ones(run: Run):
    """Decisions 2.4, 2.5, 10."""
    org = organization(run)
    other = organization(run)
    issued = [
        issue(run, org, "--kind", "secret", "--environment", "staging", "--name", name)["key"]
        for name in ("a", "b", "c")
    ]
    issue(run, other, "--kind", "secret", "--environment", "staging")
    revoked = run("key", "revoke", issued[0]["id"], "--yes", "--json").json
    assert revoked["status"] == "revoked"
    assert TIMESTAMP.fullmatch(revoked["revoked_at"])
    listed = run("key", "list", org, "--json").json
    assert set(listed) == {"keys"}
    assert listed["keys"] == [revoked, *issued[1:]]


def test_a_key_is_revoked_once_and_permanently(run: Run):
    """Interface 3, decisions 10."""
    key = issue(run, organization(run), "--kind", "proxy", "--environment", "production")["key"]
    assert run("key", "revoke", key["id"], "--yes").status == 0
    run("key", "revoke", key["id"]).assert_refused(key["id"])


def test_the_region_of_new_keys_is_that_of_the_settings(run: Run, monkeypatch: pytest.MonkeyPatch):
    """Interface 5, decisions 2.11."""
    org = organization(run)
    monkeypatch.setenv("SVC_REGION", "eu")
    issued = issue(run, org, "--kind", "secret", "--environment", "production")
    assert issued["key"]["region"] == "eu"
    assert issued["secret"].startswith("svc_sk_eu_production_")


def test_the_data_directory_comes_from_an_option_or_a_variable(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Decisions 10: `--data`, or `SVC_DATA`; the option goes first."""
    organization(run)
    elsewhere = tmp_path / "elsewhere"
    created = run("org", "create", "x", "--data", elsewhere, "--json").json
    assert run("org", "list", "--data", elsewhere, "--json").json["organizations"] == [created]
    monkeypatch.delenv("SVC_DATA")
    run("org", "list").assert_usage()
    assert run("org", "list", "--data", elsewhere).status == 0


def test_a_directory_without_data_is_rejected_and_not_created(run: Run, tmp_path: Path):
    """Decisions 10: only `org create`, `dev` and `serve --init` make one."""
    for command in (("org", "list"), ("key", "list", "org_x")):
        run(*command).assert_refused(place_of(tmp_path / "data"))
    run("check").assert_refused(str(tmp_path / "data"))
    assert not (tmp_path / "data").exists()


@pytest.mark.only_on("lmdb", "a database has no such files")
def test_an_inaccessible_directory_is_rejected_with_one_line(run: Run, tmp_path: Path):
    run("org", "create", "Shop")
    run("backup", tmp_path / "backups")
    (tmp_path / "backups").chmod(0)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)  # root may use anything
    try:
        refused = run("check", tmp_path / "backups")
    finally:
        os.seteuid(user)
    refused.assert_refused("Permission denied; run the command as the user to whom it belongs")


def test_the_pepper_may_be_in_another_place_and_is_never_replaced(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Decisions 2.2: `SVC_PEPPER_FILE` moves it; a lost or a wrong one is refused instead of made again."""
    kept = tmp_path / "kept"
    monkeypatch.setenv("SVC_PEPPER_FILE", str(kept))
    organization(run)
    assert kept.stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "data" / "pepper").exists()
    monkeypatch.delenv("SVC_PEPPER_FILE")
    run("org", "list").assert_refused("pepper")
    (tmp_path / "data" / "pepper").write_bytes(bytes(32))
    run("org", "list").assert_refused("pepper")


def test_data_status_names_what_is_in_use(run: Run, monkeypatch: pytest.MonkeyPatch):
    """Decisions 10."""
    status = run("data", "status", "--json").json
    assert status["built_in_ranges"] == "on"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", status["built_at"])
    assert status["ranges"] > 1000
    monkeypatch.setenv("SVC_NETWORK_BUILTIN", "false")
    assert run("data", "status", "--json").json["built_in_ranges"] == "off"


NO_FACTS = "none: no database or list in use has this address"


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("81.2.69.160", {"ip": "81.2.69.160", "state": "enriched", "facts": NO_FACTS}),
        ("::ffff:81.2.69.160", {"ip": "81.2.69.160", "state": "enriched", "facts": NO_FACTS}),
        (
            "185.220.101.1",
            {
                "ip": "185.220.101.1",
                "state": "enriched",
                "tor": True,
                "anonymity_network": "tor",
                "sources": [{"fact": "tor", "says": "Tor", "source": "built-in ranges"}],
            },
        ),
        ("10.0.0.1", {"ip": "10.0.0.1", "state": "unavailable", "reason": "private_address"}),
    ],
)
def test_data_check_shows_what_is_known_about_an_address(run: Run, address: str, says: dict[str, Any]):
    """Decisions 3.4, 10."""
    assert run("data", "check", address, "--json").json == says


def test_data_check_rejects_an_invalid_address(run: Run):
    """Decisions 10."""
    for text in ("", "nonsense", "1.2.3", "10.0.0.0/8"):
        run("data", "check", text).assert_refused()
