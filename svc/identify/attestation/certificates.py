"""X.509 certificates that came with a report: read strictly, and who issued whom.

What may live here: what the chains of all platforms have in common. Which chain is valid is the platform's own rule
(`chain` for Android, `app_attest` for Apple).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Literal

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.utils import CryptographyDeprecationWarning
from cryptography.x509.oid import ObjectIdentifier, SignatureAlgorithmOID

MAX_CERTIFICATE_BYTES = 10_000

ChainFailure = Literal["chain_malformed", "chain_untrusted", "chain_broken", "chain_expired"]
"""What is wrong with a chain of any platform."""

CERTIFICATE_ERRORS = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)
"""What the library raises for parts of a certificate that it reads when they are first used."""

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


def read_certificates(certificates: Sequence[bytes]) -> list[x509.Certificate] | None:
    """Return the certificates (DER) parsed; `None` if one is too large or cannot be read."""
    if any(len(raw) > MAX_CERTIFICATE_BYTES for raw in certificates):
        return None
    # What the library still reads, but announces to refuse, is refused today.
    with warnings.catch_warnings():
        warnings.simplefilter("error", CryptographyDeprecationWarning)
        try:
            return [x509.load_der_x509_certificate(raw) for raw in certificates]
        except (ValueError, x509.InvalidVersion, CryptographyDeprecationWarning):
            return None


def is_issued_by(child: x509.Certificate, parent: x509.Certificate) -> bool:
    """Return whether the name and the key of `parent` have signed `child`, with a digest that is not weak."""
    if child.signature_algorithm_oid not in _SIGNATURES:
        return False
    try:
        child.verify_directly_issued_by(parent)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def is_valid_at(certificate: x509.Certificate, at_ms: float) -> bool:
    """Return whether `at_ms` lies within the dates of the certificate, both included."""
    start, end = certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp()
    return start <= at_ms / 1000 <= end


def extension_value(certificate: x509.Certificate, name: ObjectIdentifier) -> bytes | None:
    """Return the content of an extension that the library does not know; `None` if the certificate has none of that
    name. Raises one of `CERTIFICATE_ERRORS` for extensions that cannot be read.
    """
    for extension in certificate.extensions:
        if extension.oid == name and isinstance(extension.value, x509.UnrecognizedExtension):
            return extension.value.value
    return None
