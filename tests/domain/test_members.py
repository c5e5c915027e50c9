"""Addresses, passwords, codes and roles, without a service."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from svc.features.members.sign_in.openid import (
    LEEWAY_MS,
    Identity,
    identity_of,
    new_attempt,
    read_attempt,
    role_of,
    write_attempt,
)
from svc.features.members.sign_in.passwords import password_hash, stored_password
from svc.features.members.sign_in.second_factor import code_at, code_secret, recovery_digest, step_of_code
from svc.kernel.access.members import canonical_email, read_roles
from svc.kernel.access.roles import KEY_ROLES, ROLES, ROLES_WITH, may

RFC_SECRET = b"12345678901234567890"
"""RFC 6238, appendix B, for SHA-1; its codes have eight digits, of which ours are the last six."""
VECTORS = {
    59: "94287082",
    1111111109: "07081804",
    1111111111: "14050471",
    1234567890: "89005924",
    2000000000: "69279037",
    20000000000: "65353130",
}


@pytest.mark.parametrize("at_s", VECTORS)
def test_codes_are_those_of_rfc_6238(at_s: int):
    assert code_at(RFC_SECRET, 1000 * at_s) == VECTORS[at_s][2:]
    assert step_of_code(RFC_SECRET, VECTORS[at_s][2:], 1000 * at_s, -1) == at_s // 30


def test_a_code_is_good_around_its_step_and_after_the_last_one_that_counted():
    now_ms = 1_234_567_890_000
    step = now_ms // 30_000
    shown = {drift: code_at(RFC_SECRET, now_ms + 30_000 * drift) for drift in (-2, -1, 0, 1, 2)}
    found = {drift: step_of_code(RFC_SECRET, code, now_ms, -1) for drift, code in shown.items()}
    assert found == {-2: None, -1: step - 1, 0: step, 1: step + 1, 2: None}
    assert step_of_code(RFC_SECRET, shown[0], now_ms, step - 1) == step
    assert step_of_code(RFC_SECRET, shown[0], now_ms, step) is None
    for text in ("", "1", shown[0] + "0", " " + shown[0], "\ud7ff", shown[0].encode().hex()):
        assert step_of_code(RFC_SECRET, text, now_ms, -1) is None


def test_15_3_codes_are_of_one_member_and_one_installation():
    key, other = b"k" * 32, b"l" * 32
    assert len({code_secret(key, "mem_1", 1), code_secret(key, "mem_2", 1), code_secret(other, "mem_1", 1)}) == 3
    digests = (recovery_digest(key, member_id, "abcde-fghij") for member_id in ("mem_1", "mem_2"))
    assert len({*digests, recovery_digest(other, "mem_1", "abcde-fghij")}) == 3


def test_15_4_the_same_subject_of_another_issuer_is_another_person():
    claims = {"sub": "7", "email": "ada@shop.example", "groups": "staff"}
    found = [identity_of(claims, f"https://{name}.example", "groups", {"staff": "viewer"}) for name in ("id", "sso")]
    assert len({identity.subject for identity in found if isinstance(identity, Identity)}) == 2


@pytest.mark.slow(0.2)
def test_a_password_is_hashed_with_its_address_and_key():
    first = password_hash(b"k" * 32, "ada@shop.example", "correct horse")
    assert password_hash(b"k" * 32, "ada@shop.example", "correct horse") == first
    assert password_hash(b"k" * 32, "ada@shop.example", "correct horsf") != first
    assert password_hash(b"k" * 32, "bob@shop.example", "correct horse") != first
    assert password_hash(b"l" * 32, "ada@shop.example", "correct horse") != first
    assert stored_password(b"k" * 32, "mem_1", first) != stored_password(b"k" * 32, "mem_2", first)
    composed, decomposed = "corre\u0301ct horse", "corr\u00e9ct horse"
    assert password_hash(b"k" * 32, "a@b.cd", composed) == password_hash(b"k" * 32, "a@b.cd", decomposed)


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        (" Ada@Shop.Example ", "ada@shop.example"),
        ("ada+x@shop.co.uk", "ada+x@shop.co.uk"),
        ("ada", None),
        ("ada@", None),
        ("@shop.example", None),
        ("ada@shop", None),
        ("ada@shop..", None),
        ("ada@shop.example@x.example", None),
        ("a b@shop.example", None),
        ("ada@shop.example\n", "ada@shop.example"),
        ("ada\n@shop.example", None),
        ("Ada <ada@shop.example>", None),
        ("a" * 65 + "@shop.example", None),
        ("a@" + "b" * 250 + ".example", None),
        ("", None),
        ("mi\u212ae@shop.example", None),
        ("\uff41da@shop.example", "\uff41da@shop.example"),
        ("Zoe\u0308@shop.example", "zo\u00eb@shop.example"),
        ("ada@B\u00fccher.example", "ada@b\u00fccher.example"),
        ("ada@xn--bcher-kva.Example", "ada@b\u00fccher.example"),
        ("ada@xn--.example", None),
        ("a\u200bda@shop.example", None),
        ("ada\ufeff@shop.example", None),
        ("\u202eada@shop.example", None),
        ("ada\x9b@shop.example", None),
        ("ada@shop\u2024example.com", None),
    ],
)
def test_an_address_has_one_spelling(text: str, spelled: str | None):
    assert canonical_email(text) == spelled


def test_an_admin_may_do_everything_and_without_a_role_nobody_may():
    for permission, roles in ROLES_WITH.items():
        assert "admin" in roles
        assert not may(None, permission)
        assert {role for role in ROLES if may(role, permission)} == roles
    assert ROLES_WITH["own"] == ROLES_WITH["read"] == set(ROLES)
    assert set(KEY_ROLES) < set(ROLES)


def test_the_table_of_the_guide_is_that_of_the_code():
    text = (Path(__file__).parents[2] / "docs/members.md").read_text()
    rows = re.findall(r"^\| ([a-z].*?) \| (.*) \|$", text.partition("## Roles")[2].partition("##")[0], re.MULTILINE)
    head, *told = [(name, cells.split(" | ")) for name, cells in rows]
    assert head == ("may", list(ROLES))
    order = ("read", "judge", "list", "judge", "develop", "administer")
    for (_, cells), permission in zip(told, order, strict=True):
        assert [cell == "yes" for cell in cells] == [may(role, permission) for role in ROLES]


@pytest.mark.parametrize(
    ("claims", "name", "role"),
    [
        ({"groups": "b"}, "groups", "viewer"),
        ({"groups": ["b", "a"]}, "groups", "admin"),
        ({"groups": ["b", 1, None, {"a": 1}]}, "groups", "viewer"),
        ({"groups": {"a": 1}}, "groups", None),
        ({}, "groups", None),
        ({"realm": {"roles": ["a"]}}, "realm.roles", "admin"),
        ({"realm": ["roles"]}, "realm.roles", None),
        ({"https://shop.example/roles": "a"}, "https://shop.example/roles", "admin"),
        ({"resource": {"svc.shop.example": {"roles": ["a"]}}}, "resource.svc.shop.example.roles", "admin"),
        ({"a.b": {"c": "a"}, "a": {"b": {"c": "b"}}}, "a.b.c", "admin"),
        ({"a.b.c": "b", "a.b": {"c": "a"}}, "a.b.c", "viewer"),
        ({"a.b": {"x": "a"}, "a": {"b": {"c": "a"}}}, "a.b.c", None),
        ({"a.b.c": None, "a": {"b": {"c": "a"}}}, "a.b.c", None),
        ({"a": "a"}, "a.b", None),
        ({"hd": "A"}, "hd", None),
    ],
)
def test_a_claim_gives_the_strongest_role_that_is_mapped(claims: dict[str, Any], name: str, role: str | None):
    assert role_of(claims, name, read_roles(("a=admin", "b=viewer"))) == role


def test_an_attempt_is_read_back_where_and_when_it_may_be():
    made = new_attempt(b"k" * 32, b"s" * 32, 1_000_000, "https://a.example/x")
    text = write_attempt(b"k" * 32, made)
    assert read_attempt(b"k" * 32, text, 1_000_000, "https://a.example/x") == made
    for now_ms in (1_000_000 - LEEWAY_MS, 999_999, 1_599_999 + LEEWAY_MS):
        assert read_attempt(b"k" * 32, text, now_ms, "https://a.example/x") == made
    assert len({made.state, made.nonce, made.verifier}) == 3
    assert made.state != new_attempt(b"k" * 32, b"s" * 32, 1_000_000, "https://b.example/x").state
    for key, given, now_ms, uri in (
        (b"l" * 32, text, 1_000_000, "https://a.example/x"),
        (b"k" * 32, text, 1_600_000 + LEEWAY_MS, "https://a.example/x"),
        (b"k" * 32, text, 999_999 - LEEWAY_MS, "https://a.example/x"),
        (b"k" * 32, text, 1_000_000, "https://b.example/x"),
        (b"k" * 32, text[:-1] + ("A" if text[-1] != "A" else "B"), 1_000_000, "https://a.example/x"),
        (b"k" * 32, "", 1_000_000, "https://a.example/x"),
        (b"k" * 32, "é", 1_000_000, "https://a.example/x"),
    ):
        assert read_attempt(key, given, now_ms, uri) is None
