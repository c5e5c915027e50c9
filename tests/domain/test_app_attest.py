"""App Attest (decisions 7.5): objects of real devices, those of a maker of our own, and their forgeries."""

from __future__ import annotations

import base64
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import cbor2
import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given, settings
from hypothesis import strategies as st

from svc.identify.attestation.app_attest import (
    MAX_DEPTH,
    MAX_ITEMS,
    Assertion,
    AttestedCredential,
    AuthenticatorData,
    CborError,
    NewKey,
    failures_of,
    read_assertion,
    read_assertion_data,
    read_attestation_data,
    read_item,
    updated,
    verify_attestation,
)
from svc.identify.attestation.challenge import AttestationResult, AttestedKey
from svc.identify.attestation.claim import Attestation, missing, read_attestation, result
from svc.identify.attestation.trust import AppleTrust, Trust, apps_by_digest, published_trust, read_apple_roots
from tests.domain import attestation_world
from tests.domain.apple_world import (
    APP,
    DEVELOPMENT,
    EXTENSIONS_OF_IOS_27,
    NONCE_HEAD,
    Device,
    certificate,
    intermediate,
    key,
    root,
    sha256,
    trust,
)
from tests.domain.attestation_world import CHALLENGE, NOW_MS
from tests.support.effort import effort

Vector = dict[str, Any]
DAY_MS = 86_400_000


def vectors(shared_data: Path, name: str) -> list[Vector]:
    lines = (shared_data / "attestation/apple" / name).read_text().splitlines()
    return [json.loads(line) for line in lines]


def raw(vector: Vector, name: str) -> bytes:
    return base64.b64decode(vector[name])


def apple(app_id: str) -> AppleTrust:
    """The published root and one app."""
    return msgspec.structs.replace(published_trust().apple, apps=apps_by_digest([app_id]))


def attest(device: Device, trusted: AppleTrust | None = None, at_ms: int = NOW_MS, **given: Any) -> Any:
    """What becomes of an attestation of that device."""
    made = device.attestation(**given)
    return verify_attestation(made, device.id, sha256(CHALLENGE).digest(), trusted or trust(), at_ms)


def assert_(device: Device, **given: Any) -> Any:
    return read_assertion(device.assertion(**given), device.id, sha256(CHALLENGE).digest(), trust())


def known(device: Device, counter: int = 0, app_id: str = APP, **given: Any) -> AttestedKey:
    fields: dict[str, Any] = {"environment": "production", "visitor_id": "v" * 20, **given}
    return AttestedKey(device.point, app_id, counter=counter, first_seen_ms=7, last_seen_ms=9, **fields)


# Real devices


def test_the_built_in_root_is_the_published_one(shared_data: Path):
    published = read_apple_roots((shared_data / "attestation/apple/apple_app_attestation_root_ca.pem").read_bytes())
    assert published_trust().apple == AppleTrust(roots=published)
    (der,) = (one.public_bytes(Encoding.DER) for one in published)
    assert sha256(der).hexdigest() == "1cb9823ba28ba6ad2d33a006941de2ae4f513ef1d4e831b9f7e0fa7b6242c932"


@pytest.mark.slow(1)
def test_attestations_of_real_devices_verify_and_modified_ones_do_not(shared_data: Path):
    judged = {"accept": 0, "reject": 0, "either": 0}
    for vector in vectors(shared_data, "attestations.jsonl"):
        at_ms = int(datetime.fromisoformat(vector["at"]).timestamp() * 1000)
        key_id, hashed = raw(vector, "key_id"), raw(vector, "client_data_hash")
        found = verify_attestation(raw(vector, "attestation"), key_id, hashed, apple(vector["app_id"]), at_ms)
        verified = isinstance(found, NewKey) and found.environment == vector["environment"]
        assert verified or not isinstance(found, tuple) or found, "a failure has a name"
        if vector["expect"] != "either":
            assert verified == (vector["expect"] == "accept"), (vector["id"], found)
        if verified and "made_from" not in vector:
            assert isinstance(found, NewKey)
            assert found.public_key == raw(vector, "public_key")[-65:]
            assert found.app_id == vector["app_id"]
        judged[vector["expect"]] += 1
    assert min(judged.values()) > 4
    assert judged["accept"] >= 17


def test_assertions_of_real_devices_verify_and_modified_ones_do_not(shared_data: Path):
    judged = {"accept": 0, "reject": 0, "either": 0}
    for vector in vectors(shared_data, "assertions.jsonl"):
        found = read_assertion(
            raw(vector, "assertion"), bytes(32), raw(vector, "client_data_hash"), apple(vector["app_id"])
        )
        failures: Any = found
        if isinstance(found, Assertion):
            point, app_id = raw(vector, "public_key")[-65:], vector["app_id"]
            before = AttestedKey(point, app_id, "production", vector["previous_counter"], "v" * 20, 0, 0)
            failures = tuple(failures_of(found, before, "production"))
            if not failures:
                assert updated(found, before, "w" * 20, NOW_MS).counter == found.data.counter
        if vector["expect"] != "either":
            assert (failures == ()) == (vector["expect"] == "accept"), (vector["id"], failures)
        judged[vector["expect"]] += 1
    assert judged["accept"] >= 13
    assert judged["reject"] > 30


def test_authenticator_data_of_ios_27_is_read_with_the_trailing_map(shared_data: Path):
    found = {vector["id"]: vector for vector in vectors(shared_data, "authenticator-data.jsonl")}
    attestation, assertion = found["ios-27.0-attestation"], found["ios-27.0-assertion"]
    data, credential = read_attestation_data(raw(attestation, "authenticator_data"))
    assert data == AuthenticatorData(raw(attestation, "rp_id_hash"), 0, "1", "development")
    assert credential.environment == "development"
    assert credential.point is not None
    assert sha256(credential.point).digest() == credential.id
    data = read_assertion_data(raw(assertion, "authenticator_data"))
    assert data == AuthenticatorData(raw(assertion, "rp_id_hash"), 1, "1", "development")


# Attestations


@pytest.mark.parametrize("flags", [0x40, 0xC0])
@pytest.mark.parametrize("extensions", [None, {}, EXTENSIONS_OF_IOS_27, {"a_later_one": [True, None, 1.5, {}]}])
def test_a_generated_device_verifies_with_or_without_a_map_after_its_key(flags: int, extensions: Any):
    device = Device()
    found = attest(device, signed=device.authenticator_data(flags=flags, extensions=extensions))
    assert isinstance(found, NewKey)
    assert (found.public_key, found.app_id, found.environment) == (device.point, APP, "production")
    shown = ("42", "app_store") if extensions is EXTENSIONS_OF_IOS_27 else (None, None)
    assert (found.data.bundle_version, found.data.distribution) == shown
    assert attest(Device(aaguid=DEVELOPMENT)).environment == "development"


DEVICE, OTHER = Device(), Device("another device")
CHANGED: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "another challenge": ({"challenge": bytes(32)}, ("nonce_mismatch",)),
    "the challenge itself for its hash": (
        {"nonce": NONCE_HEAD + sha256(DEVICE.authenticator_data() + CHALLENGE).digest()},
        ("nonce_mismatch",),
    ),
    "a nonce in another form": ({"nonce": b"\x04\x20" + bytes(32)}, ("nonce_mismatch",)),
    "flags changed": ({"sent": DEVICE.authenticator_data(flags=0xC1)}, ("nonce_mismatch",)),
    "another app": ({"signed": Device(app="A1B2C3D4E5.com.example.fake").authenticator_data()}, ("app_unexpected",)),
    "an app id in capitals": ({"signed": Device(app=APP.upper()).authenticator_data()}, ("app_unexpected",)),
    "a counter": ({"signed": DEVICE.authenticator_data(counter=1)}, ("counter_unexpected",)),
    "an unknown environment": ({"signed": Device(aaguid=bytes(16)).authenticator_data()}, ("environment_unexpected",)),
    "another credential id": ({"signed": DEVICE.authenticator_data(credential=bytes(32))}, ("key_mismatch",)),
    "a short credential id": ({"signed": DEVICE.authenticator_data(credential=b"")}, ("attestation_malformed",)),
    "another key in the data": ({"signed": OTHER.authenticator_data(credential=DEVICE.id)}, ("key_mismatch",)),
    "a key that is none": ({"signed": DEVICE.authenticator_data(cose={1: 2})}, ("key_mismatch",)),
    "a list for a key": ({"signed": DEVICE.authenticator_data(cose=[])}, ("key_mismatch",)),
    "a leaf for another key": ({"leaf_key": "another device"}, ("key_mismatch",)),
    "a list behind the key": ({"signed": DEVICE.authenticator_data(extensions=[])}, ("attestation_malformed",)),
    "two maps": ({"signed": DEVICE.authenticator_data(extensions={}, behind=b"\xa0")}, ("attestation_malformed",)),
    "half a map": ({"signed": DEVICE.authenticator_data(behind=b"\xa1")}, ("attestation_malformed",)),
    "half the data": ({"signed": DEVICE.authenticator_data()[:40]}, ("attestation_malformed",)),
    "no data": ({"signed": b""}, ("attestation_malformed",)),
    "text for data": ({"fields": {"authData": "text"}}, ("attestation_malformed",)),
    "another format": ({"fields": {"fmt": "packed"}}, ("attestation_malformed",)),
    "no statement": ({"fields": {"attStmt": None}}, ("attestation_malformed",)),
    "no certificates": ({"fields": {"attStmt": {}}}, ("attestation_malformed",)),
    "certificates that are text": ({"chain": ["leaf", "ca"]}, ("attestation_malformed",)),
    "a certificate that is none": ({"chain": [b"leaf", intermediate()]}, ("chain_malformed",)),
    "the intermediate alone": ({"chain": [intermediate()]}, ("chain_malformed",)),
    "another chain, of Android": ({"chain": attestation_world.chain()[:2]}, ("chain_untrusted",)),
    "a leaf that is not signed by the intermediate": (
        {"chain": [certificate("leaf", key("x"), "apple ca", key("forger")), intermediate()]},
        ("chain_broken",),
    ),
    "an intermediate that is no authority": (
        {"chain": [certificate("leaf", key("x"), "apple ca", key("apple ca")), intermediate(extensions={})]},
        ("chain_broken",),
    ),
    "a leaf that is not valid yet": ({"days": (1, 3)}, ("chain_expired",)),
    "a leaf that has expired": ({"days": (-3, -1)}, ("chain_expired",)),
}


@pytest.mark.parametrize(("given_changes", "named"), CHANGED.values(), ids=CHANGED)
def test_each_failed_check_is_named(given_changes: dict[str, Any], named: tuple[str, ...]):
    assert attest(DEVICE, **given_changes) == named


def test_several_failed_checks_are_all_named():
    found = attest(Device(app="x", aaguid=bytes(16)), signed=None, challenge=bytes(32))
    assert found == ("nonce_mismatch", "app_unexpected", "environment_unexpected")


def test_an_expired_intermediate_expires_the_chain():
    leaf = cbor2.loads(DEVICE.attestation())["attStmt"]["x5c"][0]
    assert attest(DEVICE, chain=[leaf, intermediate(days=(-9, -1))]) == ("chain_expired",)


def test_the_validity_of_a_leaf_is_checked_to_the_second_of_arrival():
    for at_ms, holds in ((NOW_MS - DAY_MS, True), (NOW_MS - DAY_MS - 1, False)):
        assert isinstance(attest(DEVICE, at_ms=at_ms), NewKey) == holds
    for at_ms, holds in ((NOW_MS + 2 * DAY_MS, True), (NOW_MS + 2 * DAY_MS + 1000, False)):
        assert isinstance(attest(DEVICE, at_ms=at_ms), NewKey) == holds


def test_without_a_root_or_an_app_nothing_verifies():
    assert attest(DEVICE, AppleTrust(apps=trust().apps)) == ("chain_untrusted",)
    assert attest(DEVICE, AppleTrust(roots=trust().roots)) == ("app_unexpected",)


def test_roots_of_android_and_of_apple_do_not_verify_each_other():
    """Each root takes the place of the other's."""
    of_android = x509.load_der_x509_certificate(attestation_world.root())
    both = Trust(
        roots=frozenset({attestation_world.public_key(trust().roots[0])}),
        apple=AppleTrust(roots=(of_android,), apps=trust().apps),
    )
    assert attest(DEVICE, both.apple) == ("chain_untrusted",)
    leaf = cbor2.loads(DEVICE.attestation())["attStmt"]["x5c"][0]
    ours = [leaf, intermediate(), root()]
    assert attestation_world.verify(ours) == "chain_untrusted"
    assert attestation_world.verify_chain(ours, both, NOW_MS) == "description_missing"
    assert read_attestation({"attestation": DEVICE.attested()}, "ios", both, NOW_MS) == Attestation(
        CHALLENGE, ("chain_untrusted",), "apple-app-attest"
    )


@pytest.mark.slow(1)
def test_no_bit_of_an_attestation_can_change_except_in_its_receipt():
    made = DEVICE.attestation()
    start, end = made.index(b"receipt"), made.index(bytes(500)) + 500
    for at in range(0, len(made), 3):
        if not start <= at < end:
            changed = made[:at] + bytes((made[at] ^ 0x10,)) + made[at + 1 :]
            found = verify_attestation(changed, DEVICE.id, sha256(CHALLENGE).digest(), trust(), NOW_MS)
            assert isinstance(found, tuple), at


@pytest.mark.slow(1)
@settings(max_examples=60)
@given(st.data())
def test_corrupt_input_never_makes_a_reader_raise(data: st.DataObject):
    """Bytes of both objects written over, left out or put in; objects in each other's place."""
    first = DEVICE.attestation()
    second = Device().assertion(extensions=EXTENSIONS_OF_IOS_27)
    for made in (first, second, data.draw(st.binary(max_size=100))):
        changed = made
        for _ in range(data.draw(st.integers(1, 3))):
            start = data.draw(st.integers(0, len(changed)))
            end = min(len(changed), start + data.draw(st.integers(0, 4)))
            changed = changed[:start] + data.draw(st.binary(max_size=6)) + changed[end:]
        hashed = sha256(CHALLENGE).digest()
        attested = verify_attestation(changed, DEVICE.id, hashed, trust(), NOW_MS)
        assert isinstance(attested, tuple) or judged_parts(changed) == judged_parts(first)
        asserted = read_assertion(changed, DEVICE.id, hashed, trust())
        if isinstance(asserted, Assertion):
            list(failures_of(asserted, known(DEVICE), "production"))


def judged_parts(attestation: bytes) -> tuple[Any, ...]:
    """All but the receipt."""
    found = cbor2.loads(attestation)
    return found["fmt"], found["attStmt"]["x5c"], found["authData"]


# Assertions


@pytest.mark.parametrize("extensions", [None, {}, EXTENSIONS_OF_IOS_27])
def test_an_assertion_verifies_with_or_without_a_trailing_map(extensions: Any):
    found = assert_(Device(), extensions=extensions)
    assert isinstance(found, Assertion)
    assert list(failures_of(found, known(DEVICE), "production")) == []


@pytest.mark.parametrize(
    ("device", "given_changes", "before", "named"),
    [
        (Device(), {}, None, ["key_unknown"]),
        (Device(), {}, known(DEVICE, counter=1), ["counter_replayed"]),
        (Device(), {}, known(DEVICE, counter=7), ["counter_replayed"]),
        (Device(), {"counter": 0}, known(DEVICE), ["counter_replayed"]),
        (Device(), {"challenge": bytes(32)}, known(DEVICE), ["signature_invalid"]),
        (Device("another device"), {}, known(DEVICE), ["signature_invalid"]),
        (Device(), {"behind": b"\xa0"}, known(DEVICE), ["signature_invalid"]),
        (Device(), {"fields": {"signature": b""}}, known(DEVICE), ["signature_invalid"]),
        (Device(), {}, known(DEVICE, app_id="A1B2C3D4E5.com.example.other"), ["app_unexpected"]),
        (Device(), {}, known(DEVICE, environment="development"), ["environment_unexpected"]),
        (Device(), {"challenge": b""}, known(DEVICE, counter=9), ["signature_invalid", "counter_replayed"]),
    ],
)
def test_an_assertion_is_checked_against_the_stored_state_of_its_key(
    device: Device, given_changes: dict[str, Any], before: AttestedKey | None, named: list[str]
):
    found = assert_(device, **given_changes)
    assert isinstance(found, Assertion)
    assert list(failures_of(found, before, "production")) == named


@pytest.mark.parametrize(
    ("device", "given_changes", "named"),
    [
        (Device(app="A1B2C3D4E5.com.example.fake"), {}, "app_unexpected"),
        (Device(), {"behind": b"\x00"}, "assertion_malformed"),
        (Device(), {"extensions": {}, "behind": b"\xa0"}, "assertion_malformed"),
        (Device(), {"fields": {"signature": "text"}}, "assertion_malformed"),
        (Device(), {"fields": {"authenticatorData": None}}, "assertion_malformed"),
        (Device(), {"fields": {"authenticatorData": bytes(36)}}, "assertion_malformed"),
    ],
)
def test_a_malformed_assertion_fails_with_a_reason(device: Device, given_changes: dict[str, Any], named: str):
    assert assert_(device, **given_changes) == (named,)


def test_a_development_build_proves_nothing_in_production_but_counts_elsewhere():
    attested = attest(Device(aaguid=DEVELOPMENT))
    assert list(failures_of(attested, None, "production")) == ["environment_unexpected"]
    assert list(failures_of(attested, None, "staging")) == list(failures_of(attest(Device()), None, "staging")) == []
    asserted = assert_(Device())
    assert list(failures_of(asserted, known(DEVICE, environment="development"), "development")) == []


def test_a_counter_never_decreases_and_the_first_seen_time_is_kept():
    before = known(DEVICE, counter=7)
    again = updated(attest(DEVICE), before, "w" * 20, NOW_MS)
    assert (again.counter, again.visitor_id, again.first_seen_ms, again.last_seen_ms) == (7, "w" * 20, 7, NOW_MS)
    asserted = updated(assert_(Device(), counter=8), before, "w" * 20, 5)
    assert (asserted.counter, asserted.first_seen_ms, asserted.last_seen_ms) == (8, 7, 9)
    new = updated(attest(DEVICE), None, "w" * 20, NOW_MS)
    assert (new.counter, new.first_seen_ms, new.last_seen_ms) == (0, NOW_MS, NOW_MS)


# Reports


def read(attestation: Any, platform: Any = "ios") -> Attestation | None:
    trusted = Trust(roots=attestation_world.trust().roots, apple=trust())
    return read_attestation({"attestation": attestation}, platform, trusted, NOW_MS)


def test_a_report_carries_an_attestation_or_an_assertion():
    for sent, kind in ((DEVICE.attested(), NewKey), (Device().asserted(), Assertion)):
        found = read(sent)
        assert found is not None
        assert (found.challenge, found.failures, found.format) == (CHALLENGE, (), "apple-app-attest")
        assert isinstance(found.proof, kind)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"challenge": None}, ("challenge_missing", "nonce_mismatch")),
        ({"challenge": "?"}, ("challenge_unknown", "nonce_mismatch")),
        ({"challenge": base64.b64encode(bytes(32)).decode()}, ("nonce_mismatch",)),
        ({"key_id": None}, ("attestation_malformed",)),
        ({"key_id": base64.b64encode(bytes(31)).decode()}, ("attestation_malformed",)),
        ({"key_id": base64.b64encode(bytes(32)).decode()}, ("key_mismatch",)),
        ({"attestation": None}, ("attestation_malformed",)),
        ({"attestation": "é"}, ("attestation_malformed",)),
        ({"attestation": "A" * 26_672}, ("attestation_malformed",)),
        ({"assertion": "AAAA"}, ("assertion_malformed",)),
        ({"assertion": ["AAAA"], "attestation": None}, ("assertion_malformed",)),
        ({"assertion": "A" * 5_340, "attestation": None}, ("assertion_malformed",)),
        ({"assertion": "AAAA", "attestation": None, "key_id": "AAAA"}, ("assertion_malformed",)),
    ],
)
def test_a_report_that_fails_its_proof_names_the_reason(changes: dict[str, Any], named: tuple[str, ...]):
    found = read({**DEVICE.attested(), **changes})
    assert found is not None
    assert (found.failures, found.proof) == (named, None)


def test_app_attest_proves_no_other_platform():
    for platform in ("web", "android"):
        found = read(DEVICE.attested(), platform)
        assert found is not None
        assert found.failures == ("platform_mismatch",)


def test_a_document_contains_the_attestation_result():
    found = read(DEVICE.attested())
    assert found is not None
    assert result(found, (), known(DEVICE, counter=3)) == AttestationResult(
        "apple-app-attest", True, APP, "production", 3, 7
    )
    assert result(found, ("challenge_used",), None) == AttestationResult("apple-app-attest", False)
    assert result(Attestation(None, ()), (), None) == AttestationResult("none", False)
    assert result(Attestation(CHALLENGE, (), "android-key"), (), None) == AttestationResult("android-key", True)


@pytest.mark.parametrize(
    ("platform", "signals", "evidence"),
    [
        ("ios", {}, ["attestation_absent"]),
        ("android", {"attestation": None}, ["attestation_absent"]),
        ("ios", {"attestation": {"format": "none"}}, ["attestation_none"]),
        ("ios", {"attestation": []}, []),
        ("android", {"attestation": {"format": "android-key"}}, []),
        ("web", {}, []),
    ],
)
def test_a_missing_attestation_is_detected(platform: Any, signals: dict[str, Any], evidence: list[str]):
    found = missing(signals, platform)
    assert [name for one in found for name in one.evidence] == evidence
    assert {one.signal for one in found} <= {"attestation_missing"}


names = st.sampled_from(["format", "challenge", "key_id", "attestation", "assertion", *DEVICE.attested().values()])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=50) | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=5),
)


@pytest.mark.slow(1)
@settings(max_examples=60)
@given(json_values)
def test_no_json_raises_an_exception(attestation: Any):
    read(attestation)
    read({"format": "apple-app-attest", **DEVICE.attested(), "key_id": attestation})
    read({"format": "apple-app-attest", "key_id": DEVICE.attested()["key_id"], "assertion": attestation})
    missing({"attestation": attestation}, "ios")


# CBOR and authenticator data


cbor_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**64), 2**64 - 1) | st.binary(max_size=9) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.integers(-9, 300) | st.text(max_size=3) | st.binary(max_size=3), inner, max_size=3)
    ),
    max_leaves=20,
)


@pytest.mark.slow(1)
@given(cbor_values, st.binary(max_size=3))
def test_reading_restores_what_was_written(value: Any, behind: bytes):
    written = cbor2.dumps(value)
    if depth(value) > MAX_DEPTH:
        with pytest.raises(CborError, match="too deep"):
            read_item(written)
    else:
        assert read_item(b"\xff" + written + behind, 1) == (value, 1 + len(written))


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    keys = (1,) if isinstance(value, dict) and value else ()
    return 1 + max((*map(depth, inner), *keys), default=0)


@pytest.mark.parametrize(("half", "value"), [("f93e00", 1.5), ("fa3fc00000", 1.5), ("fb3ff8000000000000", 1.5)])
def test_floating_point_numbers_are_read(half: str, value: float):
    assert read_item(bytes.fromhex(half)) == (value, len(half) // 2)


@pytest.mark.slow(1)
@settings(max_examples=effort(40, 300))
@given(st.binary(max_size=60))
def test_accepted_bytes_are_read_as_the_reference_library_reads_them(raw_item: bytes):
    try:
        value, end = read_item(raw_item)
    except CborError:
        return
    assert repr(value) == repr(cbor2.loads(raw_item[:end]))


@pytest.mark.parametrize(
    "written",
    [
        "",
        "1c",
        "1800",
        "190017",
        "1a0000ffff",
        "1b00000000ffffffff",
        "5fff",
        "7fff",
        "9fff",
        "bfff",
        "ff",
        "f7",
        "f820",
        "c000",
        "d9d9f700",
        "61ff",
        "a2010102",
        "a201000100",
        "a1f500",
        "a18000",
        "5b7fffffffffffffff00",
        "9bffffffffffffffff00",
        "bbffffffffffffffff00",
        "81" * MAX_DEPTH + "00",
        "a100" * MAX_DEPTH + "00",
        f"98{MAX_ITEMS:02x}" + "00" * MAX_ITEMS,
    ],
)
def test_unsupported_encodings_are_rejected(written: str):
    with pytest.raises(CborError):
        read_item(bytes.fromhex(written))


@given(st.binary(max_size=250))
def test_authenticator_data_of_any_bytes_is_read_or_rejected_with_a_value_error(raw_data: bytes):
    for reader in (read_assertion_data, read_attestation_data):
        try:
            found: Any = reader(raw_data)
        except ValueError:
            continue
        head = found[0] if isinstance(found, tuple) else found
        assert head.app_digest == raw_data[:32]
        assert isinstance(found, AuthenticatorData) or isinstance(found[1], AttestedCredential)


@pytest.mark.parametrize(("value", "shown"), [(b"\x63\x00\x00\x00", "99"), (b"\x04", None), ("4", None), (4, None)])
def test_an_unnamed_distribution_is_shown_as_its_number(value: Any, shown: str | None):
    data = DEVICE.authenticator_data(extensions={"apple_validation_category_01": value, "apple_bundle_version_01": 7})
    found, _ = read_attestation_data(data)
    assert (found.bundle_version, found.distribution) == (None, shown)


@pytest.mark.parametrize("pem", [b"", b"[]", b"-----BEGIN CERTIFICATE-----\nAAAA\n"])
def test_a_file_without_apple_roots_is_rejected_with_a_reason(pem: bytes):
    with pytest.raises(ValueError, match="certificates"):
        read_apple_roots(pem)
