import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.kernel.access.credentials import KEY_KINDS, digest, issue_secret, new_key, parse, prefix
from svc.kernel.values.fields import ENVIRONMENTS

secrets = st.builds(
    lambda kind, environment, entropy: issue_secret(kind, "us", None if kind == "management" else environment, entropy),
    st.sampled_from(KEY_KINDS),
    st.sampled_from(ENVIRONMENTS),
    st.binary(min_size=32, max_size=32),
)


@given(secrets)
def test_an_issued_key_reads_back_as_it_was_issued(secret: str):
    credential = parse(secret)
    assert credential is not None
    assert secret.startswith(prefix(credential.kind, credential.region, credential.environment) + "_")
    assert len(secret.rsplit("_", 1)[1]) == 43 + 6


def test_the_format_of_a_key_is_pinned():
    secret = issue_secret("public", "us", "production", bytes(32))
    assert secret == "svc_pk_us_production_" + "0" * 43 + "2e78FI"


@given(secrets, st.data())
def test_a_key_with_one_character_changed_is_rejected_without_a_lookup(secret: str, data: st.DataObject):
    index = data.draw(st.integers(0, len(secret) - 1))
    other = data.draw(st.sampled_from("0Aaz_"))
    if secret[index] != other:
        assert parse(secret[:index] + other + secret[index + 1 :]) is None


@given(st.text())
def test_no_text_makes_the_key_parser_raise(text: str):
    parse(text)
    parse("svc_pk_us_production_" + text)


def test_management_keys_have_no_environment_and_others_have_one():
    with pytest.raises(ValueError, match="no environment"):
        issue_secret("management", "us", "production", bytes(32))
    with pytest.raises(ValueError, match="no environment"):
        issue_secret("public", "us", None, bytes(32))


def test_only_public_keys_have_platforms_and_only_management_keys_a_role():
    fields = {"key_id": "key_x", "organization": 1, "name": "", "region": "us", "entropy": bytes(32), "now_ms": 0}
    with pytest.raises(ValueError, match="platforms"):
        new_key(**fields, kind="secret", environment="production", platforms=("web",))
    with pytest.raises(ValueError, match="role"):
        new_key(**fields, kind="secret", environment="production", role="admin")
    with pytest.raises(ValueError, match="role"):
        new_key(**fields, kind="management", environment=None)


def test_the_stored_digest_depends_on_the_pepper():
    assert digest(b"a" * 32, "svc") != digest(b"b" * 32, "svc")
    assert len(digest(b"a" * 32, "svc")) == 32


def test_a_key_shows_only_its_last_characters_when_printed():
    secret = issue_secret("secret", "us", "production", bytes(range(32)))
    credential = parse(secret)
    assert secret not in repr(credential)
    assert secret[-4:] in repr(credential)
