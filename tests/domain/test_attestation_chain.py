"""Chains of attested keys (decisions 7.5): those of real devices, those of a maker of our own, and their forgeries."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA224
from hypothesis import given, settings
from hypothesis import strategies as st

from svc.identify.attestation.key_attestation import ATTESTATION_EXTENSION, KeyDescription, verify_chain
from svc.identify.attestation.trust import MAX_CERTIFICATE_BYTES, Trust, public_key, published_trust
from tests.domain.attestation_world import (
    NOW_MS,
    PROVISIONING_EXTENSION,
    batch,
    certificate,
    chain,
    described,
    key,
    leaf,
    read_pem,
    root,
    verify,
)

DAY_MS = 86_400_000
MAY_2026_MS = 1_779_667_200_000
"""2026-05-25, when the root certificate of the first factory chains has expired."""
IN_2024_MS = 1_727_740_800_000
"""2024-10-01, when the certificates of `akita` were current."""
TRUSTED = ("akita", "blueline", "sony-xperia10-iii")
"""The others of the shared chains were attested by software, up to a root whose key is public."""


@pytest.fixture(scope="session")
def real(shared_data: Path) -> dict[str, list[bytes]]:
    """The chains of real devices up to the published root, by file."""
    folder = shared_data / "attestation"
    files = [file for device in TRUSTED for file in sorted((folder / device).rglob("*.pem"))]
    return {file.relative_to(folder).as_posix(): read_pem(file) for file in files}


def test_every_chain_of_a_real_device_verifies_up_to_the_published_root(real: dict[str, list[bytes]]):
    assert len(real) == 11
    for name, certificates in real.items():
        assert isinstance(verify_chain(certificates, published_trust(), IN_2024_MS), KeyDescription), name


def test_a_chain_up_to_another_root_verifies_only_where_that_root_is_configured(shared_data: Path):
    files = [*(shared_data / "attestation" / "marlin").rglob("*.pem")]
    assert len(files) == 2
    for file in files:
        certificates = read_pem(file)
        assert verify_chain(certificates, published_trust(), IN_2024_MS) == "chain_untrusted"
        software = Trust(roots=frozenset({public_key(x509.load_der_x509_certificate(certificates[-1]))}))
        assert isinstance(verify_chain(certificates, software, IN_2024_MS), KeyDescription)


def test_chains_known_to_be_invalid_do_not_verify(shared_data: Path):
    invalid = {
        file.stem: verify_chain(read_pem(file), published_trust(), IN_2024_MS)
        for file in (shared_data / "attestation" / "invalid").glob("*.pem")
    }
    assert invalid == {
        "malformed_rot_device_locked": "description_malformed",
        "tags_not_in_ascending_order": "chain_broken",
    }


def test_a_remotely_provisioned_chain_expires_and_a_factory_chain_does_not(real: dict[str, list[bytes]]):
    for name, certificates in real.items():
        for at_ms in (MAY_2026_MS, NOW_MS + 3650 * DAY_MS):
            found = verify_chain(certificates, published_trust(), at_ms)
            assert (found == "chain_expired") == name.startswith("akita"), name


@pytest.mark.slow(0.2)
def test_a_hundred_mutations_of_real_chains_do_not_verify(real: dict[str, list[bytes]]):
    """Bits flipped anywhere, certificates left out, swapped, repeated, taken from another device."""
    chance = random.Random(7)
    mutations = 0
    for name, certificates in real.items():
        others = [other for other in real.values() if other[1] != certificates[1]]
        mutated = [flipped(certificates, chance) for _ in range(20)]
        mutated += [certificates[:place] + certificates[place + 1 :] for place in range(len(certificates))]
        mutated += [swapped(certificates, place) for place in range(len(certificates) - 1)]
        mutated += [[*certificates[: place + 1], *certificates[place:]] for place in range(len(certificates) - 1)]
        mutated += [[certificates[0], *chance.choice(others)[1:]], [*chance.choice(others)[:1], *certificates[1:]]]
        mutated += [[leaf(), *certificates[1:]], [leaf(), *certificates]]
        for given_chain in mutated:
            found = verify_chain(given_chain, published_trust(), IN_2024_MS)
            assert isinstance(found, str), (name, found)
            mutations += 1
    assert mutations > 300


def flipped(certificates: list[bytes], chance: random.Random) -> list[bytes]:
    place = chance.randrange(len(certificates))
    raw = bytearray(certificates[place])
    raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
    return [*certificates[:place], bytes(raw), *certificates[place + 1 :]]


def swapped(certificates: list[bytes], place: int) -> list[bytes]:
    changed = list(certificates)
    changed[place], changed[place + 1] = changed[place + 1], changed[place]
    return changed


@pytest.mark.slow(0.2)
def test_a_generated_chain_verifies_and_none_of_its_bits_can_change():
    whole = chain()
    assert isinstance(verify(whole), KeyDescription)
    for place, raw in enumerate(whole):
        for at in range(0, len(raw), 3):
            changed = raw[:at] + bytes((raw[at] ^ 0x10,)) + raw[at + 1 :]
            assert isinstance(verify([*whole[:place], changed, *whole[place + 1 :]]), str), (place, at)


def test_a_root_with_the_same_name_and_another_key_is_not_trusted():
    forged = certificate("root", key("forger"), "root", key("forger"))
    middle = certificate("batch", key("batch"), "root", key("forger"))
    assert verify([leaf(), middle, forged]) == "chain_untrusted"
    assert verify([leaf(), middle, root()]) == "chain_broken"


def test_a_chain_without_its_root_is_not_trusted():
    assert verify(chain()[:-1]) == "chain_untrusted"


def test_a_leaf_signed_by_the_attested_key_itself_proves_nothing():
    """The holder of an attested key can sign any certificate with it, the extension included."""
    forged = certificate("forged", key("forger"), "leaf", key("leaf"), extensions={ATTESTATION_EXTENSION: described()})
    assert verify([forged, *chain()]) == "description_repeated"
    bare = certificate("forged", key("forger"), "leaf", key("leaf"))
    assert verify([bare, *chain()]) == "description_repeated"


def test_a_leaf_without_a_key_description_proves_nothing():
    assert verify([leaf(extensions={}), batch(), root()]) == "description_missing"
    assert verify([leaf(b"\x30\x00"), batch(), root()]) == "description_malformed"


def test_issuer_and_subject_names_must_be_consecutive():
    stranger = certificate(
        "leaf", key("leaf"), "another", key("batch"), extensions={ATTESTATION_EXTENSION: described()}
    )
    assert verify([stranger, batch(), root()]) == "chain_broken"


def test_a_signature_with_a_weak_digest_is_rejected():
    assert verify([leaf(algorithm=SHA224()), batch(), root()]) == "chain_broken"


def test_a_revoked_certificate_anywhere_breaks_the_trust():
    marked = [leaf(serial=11), batch(serial=12), root()]
    assert isinstance(verify(marked, revoked=frozenset({13})), KeyDescription)
    for serial in (11, 12, x509.load_der_x509_certificate(marked[2]).serial_number):
        assert verify(marked, revoked=frozenset({serial})) == "chain_revoked"


def test_the_dates_of_a_leaf_are_set_by_the_device_and_not_checked():
    assert isinstance(verify([leaf(days=(-20_000, -19_000)), batch(), root()]), KeyDescription)


@pytest.mark.parametrize(
    ("days", "provisioned", "holds"),
    [
        ((-30, 30), True, True),
        ((-60, -1), True, False),
        ((1, 60), True, False),
        ((-3000, -1), False, True),
    ],
    ids=["current", "expired", "not yet", "expired in a factory"],
)
def test_remotely_provisioned_certificates_expire_and_factory_ones_do_not(
    days: tuple[int, int], provisioned: bool, holds: bool
):
    marks = {PROVISIONING_EXTENSION: b"\xa1\x01\x08"} if provisioned else {}
    found = verify([leaf(), batch(days=days, extensions=marks), root()])
    assert isinstance(found, KeyDescription) if holds else found == "chain_expired"


def test_a_factory_certificate_that_had_expired_when_it_signed_is_not_trusted():
    line = certificate("line", key("line"), "root", key("root"), days=(-3000, -2000))
    late = certificate("batch", key("batch"), "line", key("line"), days=(-1000, 1000))
    assert verify([leaf(), late, line, root()]) == "chain_expired"
    early = certificate("batch", key("batch"), "line", key("line"), days=(-2500, -2400))
    assert isinstance(verify([leaf(), early, line, root()]), KeyDescription)


def test_a_chain_or_certificate_of_wrong_size_is_malformed():
    whole = chain()
    for sizes in ([], whole[:1], whole * 4, [*whole[:2], bytes(MAX_CERTIFICATE_BYTES + 1)]):
        assert verify(sizes) == "chain_malformed"


@settings(max_examples=150)
@given(st.lists(st.binary(max_size=80), max_size=12))
@pytest.mark.slow(0.2)
def test_no_bytes_raise_an_exception(certificates: list[bytes]):
    assert isinstance(verify(certificates), str)


@settings(max_examples=120)
@given(st.data())
@pytest.mark.slow(0.3)
def test_corrupt_chains_never_raise_an_exception(data: st.DataObject):
    """Bytes of a chain written over, left out or put in, up to a few of them."""
    whole = chain()
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, 2))
        raw = whole[place]
        start = data.draw(st.integers(0, len(raw)))
        end = min(len(raw), start + data.draw(st.integers(0, 4)))
        whole[place] = raw[:start] + data.draw(st.binary(max_size=6)) + raw[end:]
    assert isinstance(verify(whole), str) or whole == chain()
