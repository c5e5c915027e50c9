"""Attestations as reports carry them (decisions 7.5): key descriptions, what is asked of them, files of trust."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given, settings
from hypothesis import strategies as st

from svc.identify.attestation.challenge import (
    LIFETIME_MS,
    Challenge,
    as_text,
    from_text,
    period,
    periods_to_search,
    refusal,
)
from svc.identify.attestation.claim import Attestation, observe, read_attestation, verify_claims
from svc.identify.attestation.key_attestation import (
    ATTESTATION_EXTENSION,
    MAX_CERTIFICATES,
    ApplicationId,
    BootState,
    KeyDescription,
    KeyOrigin,
    RootOfTrust,
    SecurityLevel,
    read_key_description,
)
from svc.identify.attestation.trust import Trust, published_trust, read_revoked, read_roots
from svc.identify.identification import Submission, assess
from svc.identify.model import RequestFacts
from svc.kernel.values.fields import PLATFORMS, Platform
from tests.domain.attestation_world import (
    APP,
    CHALLENGE,
    HARDWARE,
    NOW_MS,
    SIGNER,
    SOFTWARE,
    app_id,
    attested,
    boolean,
    boot,
    chain,
    described,
    octets,
    read_pem,
    root,
    sequence,
    tagged,
    trust,
    whole,
)
from tests.support.effort import effort


def read(attestation: Any, platform: Platform = "android", trusted: Trust | None = None) -> Attestation | None:
    return read_attestation({"attestation": attestation}, platform, trusted or trust(), NOW_MS)


def failures(description: bytes, **trusted: Any) -> list[str]:
    found = read_key_description(description)
    assert found is not None
    return [*verify_claims(found, CHALLENGE, trust(**trusted))]


# Key descriptions


def test_a_key_description_is_read_as_it_was_written():
    assert read_key_description(described(levels=(2, 1))) == KeyDescription(
        attestation_version=300,
        attestation_level=SecurityLevel.STRONG_BOX,
        keymint_version=300,
        keymint_level=SecurityLevel.TRUSTED_ENVIRONMENT,
        challenge=CHALLENGE,
        origin=KeyOrigin.GENERATED,
        root_of_trust=RootOfTrust(device_locked=True, boot_state=BootState.VERIFIED),
        application=ApplicationId(frozenset({APP}), frozenset({SIGNER})),
    )


def expected(file: Path) -> dict[str, Any]:
    """What is known of a shared chain, as far as it is read here."""
    known = json.loads(file.read_text())
    hardware, app = known["hardwareEnforced"], known["softwareEnforced"]["attestationApplicationId"]
    boot_of = hardware.get("rootOfTrust")
    return {
        "attestation_version": int(known["attestationVersion"]),
        "attestation_level": SecurityLevel[known["attestationSecurityLevel"]],
        "keymint_version": int(known["keyMintVersion"]),
        "keymint_level": SecurityLevel[known["keyMintSecurityLevel"]],
        "challenge": base64.b64decode(known["attestationChallenge"]),
        "origin": KeyOrigin[hardware["origin"]],
        "boot": boot_of and (boot_of["deviceLocked"], BootState[boot_of["verifiedBootState"]]),
        "packages": {package["name"] for package in app["packages"]},
        "signing_digests": {base64.b64decode(digest) for digest in app["signatures"]},
    }


def test_key_descriptions_of_real_devices_match_the_published_values(shared_data: Path):
    files = [file for file in (shared_data / "attestation").rglob("*.json") if file.with_suffix(".pem").exists()]
    assert len(files) == 13
    for file in files:
        found = read_key_description(extension_of(read_pem(file.with_suffix(".pem"))[0]))
        assert found is not None, file
        assert found.application is not None
        read_here = {
            "attestation_version": found.attestation_version,
            "attestation_level": found.attestation_level,
            "keymint_version": found.keymint_version,
            "keymint_level": found.keymint_level,
            "challenge": found.challenge,
            "origin": found.origin,
            "boot": found.root_of_trust and (found.root_of_trust.device_locked, found.root_of_trust.boot_state),
            "packages": set(found.application.packages),
            "signing_digests": set(found.application.signing_digests),
        }
        assert read_here == expected(file), file


def extension_of(leaf: bytes) -> bytes:
    extensions = x509.load_der_x509_certificate(leaf).extensions
    found = extensions.get_extension_for_oid(x509.ObjectIdentifier(ATTESTATION_EXTENSION)).value
    assert isinstance(found, x509.UnrecognizedExtension)
    return found.value


def test_unknown_tags_are_skipped(shared_data: Path):
    (leaf,) = read_pem(shared_data / "attestation" / "allow_while_on_body.pem")
    assert read_key_description(extension_of(leaf)) is not None
    assert failures(described(hardware={**HARDWARE, 9_999: whole(1)})) == []


MALFORMED = {
    "empty": b"",
    "another type": whole(1),
    "bytes behind": described() + b"\x00",
    "cut short": described()[:-1],
    "a field missing": sequence(whole(300)),
    "an unknown level": described(levels=(3, 1)),
    "tags in disorder": described(hardware={704: boot(), 702: whole(0)}),
    "a boolean that is neither": described(hardware={704: boot(locked=b"\x01\x01\x01")}),
    "a boolean of two bytes": described(hardware={704: boot(locked=b"\x01\x02\xff\xff")}),
    "an unknown boot state": described(hardware={704: boot(state=4)}),
    "an unknown origin": described(hardware={702: whole(5)}),
    "half a root of trust": described(hardware={704: sequence(octets(b"key"), boolean(True))}),
    "a list without tags": described(hardware={}).replace(b"\x30\x00", b"\x31\x00"),
    "an app id that is none": described(software={709: octets(b"\x30\x00")}),
    "an app name that is not UTF-8": described(software={709: app_id().replace(b"com.", b"\xff\xff\xff\xff")}),
    "a length in two bytes for one": b"\x30\x81\x05" + b"\x02\x01\x01\x05\x00",
    "a length without an end": b"\x30\x80\x00\x00",
    "a length of four bytes": b"\x30\x84\x00\x00\x00\x01\x00",
    "a padded number": described().replace(whole(300), b"\x02\x03\x00\x01\x2c"),
    "a tag number in the long form for a short one": described(hardware={}).replace(
        sequence(), sequence(b"\xbf\x05" + tagged(5, whole(1))[1:])
    ),
}


@pytest.mark.parametrize("raw", MALFORMED.values(), ids=MALFORMED)
def test_a_non_canonical_encoding_is_not_a_key_description(raw: bytes):
    assert read_key_description(raw) is None


@settings(max_examples=effort(40, 300))
@given(st.binary(max_size=200), st.integers(0, 400), st.binary(max_size=4))
def test_no_bytes_raise_an_exception(raw: bytes, at: int, put_in: bytes):
    assert read_key_description(raw) is None
    whole_one = described()
    changed = whole_one[:at] + put_in + whole_one[at + len(put_in) :]
    assert changed != whole_one or read_key_description(changed) is not None


# What is asked of them


def test_a_locked_and_verified_device_with_our_challenge_passes_all_checks():
    assert failures(described()) == []
    assert failures(described(levels=(2, 2))) == []


@pytest.mark.parametrize(
    ("description", "named"),
    [
        (described(challenge=b"challenge"), ["challenge_mismatch"]),
        (described(challenge=b""), ["challenge_mismatch"]),
        (described(levels=(0, 1)), ["software_only"]),
        (described(levels=(1, 0)), ["software_only"]),
        (described(hardware={**HARDWARE, 702: whole(2)}), ["key_not_generated"]),
        (described(hardware={**HARDWARE, 704: boot(state=1)}), ["boot_unverified"]),
        (described(hardware={**HARDWARE, 704: boot(state=2)}), ["boot_unverified"]),
        (described(hardware={**HARDWARE, 704: boot(locked=boolean(False), hashed=False)}), ["device_unlocked"]),
        (described(hardware={702: whole(0)}), ["boot_unverified", "device_unlocked"]),
        (
            described(software={702: whole(0), 704: boot(), 709: app_id()}, hardware={}),
            ["key_not_generated", "boot_unverified", "device_unlocked"],
        ),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, list) else None,
)
def test_each_failed_check_is_named(description: bytes, named: list[str]):
    """What Android says of the boot and of the key counts nothing: only the hardware's word does."""
    assert failures(description) == named


APPS = frozenset({APP, "com.example.other"})


@pytest.mark.parametrize(
    ("app", "packages", "signers", "expected_one"),
    [
        (app_id(), APPS, {SIGNER}, True),
        (app_id(), APPS, set[bytes](), True),
        (app_id(), frozenset[str](), {SIGNER}, True),
        (app_id(["com.example.shared", APP]), APPS, {SIGNER}, True),
        (app_id(["com.example.fake"]), APPS, {SIGNER}, False),
        (app_id(signers=[b"\x01" * 32]), APPS, {SIGNER}, False),
        (app_id(signers=[SIGNER, b"\x01" * 32]), APPS, {SIGNER}, False),
        (app_id(signers=[]), APPS, {SIGNER}, False),
        (app_id([]), APPS, set[bytes](), False),
        (None, APPS, set[bytes](), False),
        (None, frozenset[str](), {SIGNER}, False),
        (None, frozenset[str](), set[bytes](), True),
    ],
)
def test_only_expected_apps_may_attest(
    app: bytes | None, packages: frozenset[str], signers: set[bytes], expected_one: bool
):
    software = {701: SOFTWARE[701]} if app is None else {**SOFTWARE, 709: app}
    found = failures(described(software=software), packages=packages, signing_digests=frozenset(signers))
    assert found == ([] if expected_one else ["app_unexpected"])


# Reports


def test_a_report_with_a_valid_proof_has_no_failures():
    assert read(attested(chain())) == Attestation(CHALLENGE, (), "android-key")


def test_a_report_without_attestation_is_not_checked():
    assert read_attestation({}, "android", trust(), NOW_MS) is None
    assert read(None) is None


def test_the_format_none_proves_nothing_and_has_no_failures():
    assert read({"format": "none"}) == Attestation(None, ())
    assert read({"format": "none", "challenge": as_text(CHALLENGE)}) == Attestation(CHALLENGE, ())
    assert read({"format": "none", "challenge": "short"}) == Attestation(None, ("challenge_unknown",))


GOOD = attested(chain())


@pytest.mark.parametrize(
    ("attestation", "named"),
    [
        ({}, ("format_unknown",)),
        ([], ("format_unknown",)),
        ("android-key", ("format_unknown",)),
        ({**GOOD, "format": "apple-appattest"}, ("format_unknown",)),
        ({**GOOD, "format": ["none"]}, ("format_unknown",)),
        ({**GOOD, "challenge": None}, ("challenge_missing",)),
        ({**GOOD, "challenge": ""}, ("challenge_unknown",)),
        ({**GOOD, "challenge": 7}, ("challenge_unknown",)),
        ({**GOOD, "challenge": "!" * 44}, ("challenge_unknown",)),
        ({**GOOD, "challenge": as_text(bytes(32))}, ("challenge_mismatch",)),
        ({**GOOD, "certificate_chain": None}, ("chain_malformed",)),
        ({**GOOD, "certificate_chain": []}, ("chain_malformed",)),
        ({**GOOD, "certificate_chain": [None, None]}, ("chain_malformed",)),
        ({**GOOD, "certificate_chain": ["é", "é"]}, ("chain_malformed",)),
        ({**GOOD, "certificate_chain": GOOD["certificate_chain"][:2]}, ("chain_untrusted",)),
        ({**GOOD, "certificate_chain": ["A" * 13_340] * 2}, ("chain_malformed",)),
        ({**GOOD, "certificate_chain": GOOD["certificate_chain"] * 4}, ("chain_malformed",)),
    ],
)
def test_a_report_that_fails_its_proof_names_the_reason(attestation: Any, named: tuple[str, ...]):
    found = read(attestation)
    assert found is not None
    assert found.failures == named


def test_an_android_key_proves_no_other_platform():
    for platform in PLATFORMS:
        found = read(GOOD, platform)
        assert found is not None
        assert found.failures == (() if platform == "android" else ("platform_mismatch",))


def test_one_failure_is_medium_confidence_and_two_are_high():
    assert observe(()) == ()
    assert [(one.signal, one.confidence, one.evidence) for one in observe(("chain_broken",))] == [
        ("attestation_failed", "medium", ("chain_broken",))
    ]
    assert observe(("challenge_used", "chain_broken"))[0].confidence == "high"


def test_an_assessment_contains_the_attestation_of_its_report():
    signals = {"attestation": GOOD}
    submission = Submission(
        request_id=UUID(int=7),
        new_visitor_id="0" * 20,
        at_ms=NOW_MS,
        organization=1,
        key_id="key_1",
        touched_key=None,
        environment="development",
        sdk_platform="flutter-android",
        sdk_version=None,
        origin=None,
        tag=None,
        idempotency=None,
        facts=RequestFacts(ip="192.0.2.1"),
        signals=signals,
        signals_json=msgspec.json.encode(signals),
    )
    assert assess(submission, None, trust()).attestation == Attestation(CHALLENGE, (), "android-key")
    assert assess(submission, None).attestation == Attestation(CHALLENGE, ("chain_untrusted",), "android-key")


names = st.sampled_from(["format", "challenge", "certificate_chain", "none", "android-key", *GOOD["certificate_chain"]])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=50) | names,
    lambda inner: st.lists(inner, max_size=MAX_CERTIFICATES + 2) | st.dictionaries(names, inner, max_size=4),
)


@settings(max_examples=50)
@given(json_values, st.sampled_from(PLATFORMS))
@pytest.mark.slow(0.2)
def test_no_json_raises_an_exception(attestation: Any, platform: Platform):
    found = read(attestation, platform)
    assert (found is None) == (attestation is None)


# Challenges


def test_a_challenge_is_valid_for_five_minutes_one_key_and_one_use():
    given_out = Challenge("key_1", NOW_MS)
    assert refusal(given_out, "key_1", NOW_MS) is None
    assert refusal(given_out, "key_1", NOW_MS + 300_000 - 1) is None
    assert refusal(given_out, "key_1", NOW_MS + 300_000) == "challenge_expired"
    assert refusal(given_out, "key_2", NOW_MS) == "challenge_foreign"
    assert refusal(msgspec.structs.replace(given_out, used=True), "key_1", NOW_MS) == "challenge_used"


@given(st.integers(0, 2**41), st.integers(-LIFETIME_MS, LIFETIME_MS - 1))
def test_a_valid_challenge_is_searched_in_the_period_it_was_stored_in(issued_at_ms: int, later_ms: int):
    """The clock may have been set back in between."""
    assert period(issued_at_ms) in periods_to_search(max(0, issued_at_ms + later_ms))


@given(st.binary(max_size=40))
def test_a_challenge_in_text_form_is_read_back_and_other_text_is_rejected(raw: bytes):
    assert from_text(as_text(raw)) == (raw if len(raw) == 32 else None)


# Files of trust


def test_the_published_roots_are_the_two_in_force(shared_data: Path):
    published = json.loads((shared_data / "attestation" / "roots.json").read_text())
    assert len(published_trust().roots) == len(published) == 2
    assert read_roots(json.dumps(published).encode()) == published_trust().roots


def test_roots_are_read_from_pem_and_from_a_json_array_of_pem():
    pem = x509.load_der_x509_certificate(root()).public_bytes(Encoding.PEM)
    assert read_roots(pem) == read_roots(json.dumps([pem.decode()]).encode()) == trust().roots


@pytest.mark.parametrize("raw", [b"", b"[]", b"[1]", b"[", b"-----BEGIN CERTIFICATE-----\nAAAA\n", b"\xff"])
def test_a_file_without_roots_is_rejected_with_a_reason(raw: bytes):
    with pytest.raises(ValueError, match="certificates"):
        read_roots(raw)


def test_revoked_and_suspended_serial_numbers_are_read_from_the_published_format():
    listed = {
        "entries": {
            "2c8cdddfd5e03bfc": {"status": "REVOKED", "expires": "2020-11-13", "reason": "KEY_COMPROMISE"},
            "c8966fcb2fbb0d7a": {"status": "SUSPENDED", "comment": "a flaw"},
        }
    }
    assert read_revoked(json.dumps(listed).encode()) == {0x2C8CDDDFD5E03BFC, 0xC8966FCB2FBB0D7A}
    assert read_revoked(b'{"entries": {}}') == frozenset()


@pytest.mark.parametrize(
    "raw", [b"", b"[]", b"{}", b'{"entries": {"0g": {"status": "REVOKED"}}}', b'{"entries": {"1": {}}}']
)
def test_an_unreadable_status_list_is_rejected_with_a_reason(raw: bytes):
    with pytest.raises(ValueError, match=r"statuses|serial number"):
        read_revoked(raw)
