"""The certificate chain of an attested key, verified from its root down to the key description in its leaf.

What may live here: the rules for chains of Android key attestation. They are the platform's, not those of web
servers: the device writes the leaf's dates, factories gave out certificates that are no certificate authorities or have
expired since, and the extension counts in the leaf alone, because the holder of an attested key can sign anything below
it.

The order bounds the work: no key is used that a key above it has not signed, so that an invented chain costs its
reading and one signature of a root at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from cryptography import x509
from cryptography.x509.oid import ObjectIdentifier

from svc.domain.attestation.certificates import (
    CERTIFICATE_ERRORS,
    ChainFailure,
    extension_value,
    is_issued_by,
    is_valid_at,
    read_certificates,
)
from svc.domain.attestation.key_description import ATTESTATION_EXTENSION, KeyDescription, read_key_description
from svc.domain.attestation.trust import Trust, public_key

MAX_CERTIFICATES = 10

AndroidFailure = Literal[
    ChainFailure, "chain_revoked", "description_missing", "description_repeated", "description_malformed"
]

_EXTENSION = ObjectIdentifier(ATTESTATION_EXTENSION)
_PROVISIONING = ObjectIdentifier("1.3.6.1.4.1.11129.2.1.30")
"""Marks the certificate of a key that was certified over the network, for weeks, rather than in a factory."""
_Chain = Sequence[x509.Certificate]


def verify_chain(certificates: Sequence[bytes], trust: Trust, at_ms: int) -> KeyDescription | AndroidFailure:
    """The key description in the leaf of a valid certificate chain, or why the chain is not valid. No bytes make it
    raise.

    `certificates` are DER, the leaf first and the root last. `at_ms` is the time now.
    """
    if not 2 <= len(certificates) <= MAX_CERTIFICATES or len(set(certificates)) != len(certificates):
        return "chain_malformed"
    chain = read_certificates(certificates)
    try:
        return "chain_malformed" if chain is None else _failure(chain, trust, at_ms) or _description(chain)
    except CERTIFICATE_ERRORS:
        return "chain_malformed"


def _description(chain: _Chain) -> KeyDescription | AndroidFailure:
    if any(extension_value(certificate, _EXTENSION) is not None for certificate in chain[1:]):
        return "description_repeated"
    raw = extension_value(chain[0], _EXTENSION)
    if raw is None:
        return "description_missing"
    return read_key_description(raw) or "description_malformed"


def _failure(chain: _Chain, trust: Trust, at_ms: int) -> AndroidFailure | None:
    root = chain[-1]
    if public_key(root) not in trust.roots:
        return "chain_untrusted"
    # The root is verified by itself, too, since its copy came with the report.
    if not all(is_issued_by(child, parent) for parent, child in pairwise((root, *reversed(chain)))):
        return "chain_broken"
    if any(certificate.serial_number in trust.revoked for certificate in chain):
        return "chain_revoked"
    return None if _is_in_time(chain[1:-1], at_ms) else "chain_expired"


def _is_in_time(issuers: _Chain, at_ms: int) -> bool:
    """Whether the certificates between leaf and root were valid when it mattered.

    That is now, where the key was certified over the network: such certificates live for weeks and are renewed. A key
    from the factory cannot be renewed and is used for longer than its certificates said; there it is the chain's own
    time, the moment when the last of them was given out.
    """
    if not issuers:
        return True
    starts = [1000 * issuer.not_valid_before_utc.timestamp() for issuer in issuers]
    provisioned = any(extension_value(issuer, _PROVISIONING) is not None for issuer in issuers)
    moment_ms = at_ms if provisioned else max(starts)
    return all(is_valid_at(issuer, moment_ms) for issuer in issuers)
