"""The second net: what has the form of a key or a signing secret does not get through; nothing else is touched."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.features.webhooks.content.envelope import signing_secret
from svc.kernel.access.credentials import KEY_KINDS, issue_secret, prefix, redact
from svc.kernel.values.fields import ENVIRONMENTS

ENTROPY = st.binary(min_size=32, max_size=32)


@given(ENTROPY, st.sampled_from(KEY_KINDS), st.sampled_from(ENVIRONMENTS), st.text(), st.text())
def test_a_key_of_any_kind_is_redacted_from_any_text(entropy, kind, environment, before, after):
    environment = None if kind == "management" else environment
    secret = issue_secret(kind, "us", environment, entropy)
    for text in (before + secret + after, json.dumps({before: [secret + after]}), repr({secret: (before, secret)})):
        clean = redact(text)
        assert secret not in clean
        assert secret[-49:-6] not in clean
        assert f"{prefix(kind, 'us', environment)}_[redacted]" in clean
        assert redact(clean) == clean


@given(ENTROPY, st.integers(1, 99))
def test_a_signing_secret_is_redacted(entropy, generation):
    secret = signing_secret(entropy, "whk_1", generation)
    assert redact(f"signed with {secret}, rotated") == "signed with svc_whsec_[redacted], rotated"


def test_malformed_keys_are_redacted_too():
    body = "Zx9" * 16
    for wrong in (
        f"svc_sk_us_production_{body}",  # no checksum
        f"svc_sk_us_{body}",  # no environment
        f"svc_sk_{body}",
        f"svc_sk_US_live_{body}",
        f"svc_mk_us_production_{body}",
        f"svc_sk_us_production_{body[:20]}",  # cut off
        f"svc_sk_us_production_{body * 9}",
    ):
        assert body[:17] not in redact(f"'{wrong}'"), wrong


@pytest.mark.parametrize(
    "text",
    [
        "",
        "svc_http_requests_total",
        "key_kP0t7Y1QWunnGAt8ERjA of org_KUZWddAPzqBFvr55h1Rk",
        "svc_pk_us_production",
        "svc_whsec_",
        "019b76da-a800-7000-8000-000000000000",
        "SVC_WEBHOOK_ALLOW_NETWORKS",
    ],
)
def test_names_ids_and_prefixes_are_not_redacted(text):
    assert redact(text) == text
