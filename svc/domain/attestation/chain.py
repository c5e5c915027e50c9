"""The certificate chain of an attested key, verified from its root down to the key description in its leaf.

What may live here: the rules for chains of Android key attestation. They are the platform's, not those of web
servers: the device writes the leaf's dates, factories gave out certificates that are no certificate authorities or have
expired since, and the extension counts in the leaf alone, because the holder of an attested key can sign anything below
it.

The order bounds the work: no key is used that a key above it has not signed, so that an invented chain costs its
reading and one signature of a root at most.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.utils import CryptographyDeprecationWarning
from cryptography.x509.oid import ObjectIdentifier, SignatureAlgorithmOID

from svc.domain.attestation.key_description import ATTESTATION_EXTENSION, KeyDescription, read_key_description
from svc.domain.attestation.trust import Trust, public_key

MAX_CERTIFICATES = 10
MAX_CERTIFICATE_BYTES = 10_000

ChainFailure = Literal[
    "chain_malformed",
    "chain_untrusted",
    "chain_broken",
    "chain_expired",
    "chain_revoked",
    "description_missing",
    "description_repeated",
    "description_malformed",
]

_EXTENSION = ObjectIdentifier(ATTESTATION_EXTENSION)
_PROVISIONING = ObjectIdentifier("1.3.6.1.4.1.11129.2.1.30")
"""Marks the certificate of a key that was certified over the network, for weeks, rather than in a factory."""
_SIGNATURES = frozenset(
    {
        SignatureAlgorithmOID.RSA_WITH_SHA256,
        SignatureAlgorithmOID.RSA_WITH_SHA384,
        SignatureAlgorithmOID.RSA_WITH_SHA512,
        SignatureAlgorithmOID.ECDSA_WITH_SHA256,
        SignatureAlgorithmOID.ECDSA_WITH_SHA384,
        SignatureAlgorithmOID.ECDSA_WITH_SHA512,
    }
)
_Chain = Sequence[x509.Certificate]


def verify_chain(certificates: Sequence[bytes], trust: Trust, at_ms: int) -> KeyDescription | ChainFailure:
    """The key description in the leaf of a valid certificate chain, or why the chain is not valid. No bytes make it
    raise.

    `certificates` are DER, the leaf first and the root last. `at_ms` is the time now.
    """
    chain = _read(certificates)
    if chain is None:
        return "chain_malformed"
    try:
        return _verify(chain, trust, at_ms)
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        return "chain_malformed"


def _read(certificates: Sequence[bytes]) -> _Chain | None:
    if not 2 <= len(certificates) <= MAX_CERTIFICATES or max(map(len, certificates)) > MAX_CERTIFICATE_BYTES:
        return None
    if len(set(certificates)) != len(certificates):
        return None
    # What the library still reads, but announces to refuse, is refused today.
    with warnings.catch_warnings():
        warnings.simplefilter("error", CryptographyDeprecationWarning)
        try:
            return [x509.load_der_x509_certificate(raw) for raw in certificates]
        except (ValueError, x509.InvalidVersion, CryptographyDeprecationWarning):
            return None


def _verify(chain: _Chain, trust: Trust, at_ms: int) -> KeyDescription | ChainFailure:
    failure = _failure(chain, trust, at_ms)
    if failure is not None:
        return failure
    if any(_extension(certificate, _EXTENSION) is not None for certificate in chain[1:]):
        return "description_repeated"
    raw = _extension(chain[0], _EXTENSION)
    if raw is None:
        return "description_missing"
    return read_key_description(raw) or "description_malformed"


def _failure(chain: _Chain, trust: Trust, at_ms: int) -> ChainFailure | None:
    root = chain[-1]
    if public_key(root) not in trust.roots:
        return "chain_untrusted"
    if not all(_is_issued_by(child, parent) for parent, child in pairwise((root, *reversed(chain)))):
        return "chain_broken"
    if any(certificate.serial_number in trust.revoked for certificate in chain):
        return "chain_revoked"
    return None if _is_in_time(chain[1:-1], at_ms) else "chain_expired"


def _is_issued_by(child: x509.Certificate, parent: x509.Certificate) -> bool:
    """Name and signature; of a root by itself, too, since its copy came with the report."""
    if child.signature_algorithm_oid not in _SIGNATURES:
        return False
    try:
        child.verify_directly_issued_by(parent)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _is_in_time(issuers: _Chain, at_ms: int) -> bool:
    """Whether the certificates between leaf and root were valid when it mattered.

    That is now, where the key was certified over the network: such certificates live for weeks and are renewed. A key
    from the factory cannot be renewed and is used for longer than its certificates said; there it is the chain's own
    time, the moment when the last of them was given out.
    """
    if not issuers:
        return True
    starts = [issuer.not_valid_before_utc.timestamp() for issuer in issuers]
    provisioned = any(_extension(issuer, _PROVISIONING) is not None for issuer in issuers)
    moment = at_ms / 1000 if provisioned else max(starts)
    return all(
        start <= moment <= issuer.not_valid_after_utc.timestamp() for start, issuer in zip(starts, issuers, strict=True)
    )


def _extension(certificate: x509.Certificate, name: ObjectIdentifier) -> bytes | None:
    for extension in certificate.extensions:
        if extension.oid == name and isinstance(extension.value, x509.UnrecognizedExtension):
            return extension.value.value
    return None
