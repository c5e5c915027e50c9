"""A certificate for this machine's own names, for receivers of webhooks in development."""

from __future__ import annotations

import datetime as dt
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from svc.kernel.values.timestamps import utc

CERTIFICATE_DAYS = 365


def loopback_certificate(directory: Path, host: str, now_ms: int) -> tuple[Path, Path]:
    """Return files of a certificate for this machine's own names, signed by itself, and of its key; kept until it
    expires.
    """
    certificate_file, key_file = directory / "certificate.pem", directory / "key.pem"
    now = utc(now_ms)
    if certificate_file.exists() and key_file.exists():
        kept = x509.load_pem_x509_certificate(certificate_file.read_bytes())
        if now < kept.not_valid_after_utc:
            return certificate_file, key_file
    key = ec.generate_private_key(ec.SECP256R1())
    directory.mkdir(parents=True, exist_ok=True)
    key_file.touch(mode=0o600)
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    certificate_file.write_bytes(_certificate(key, host, now).public_bytes(serialization.Encoding.PEM))
    return certificate_file, key_file


def _certificate(key: ec.EllipticCurvePrivateKey, host: str, now: dt.datetime) -> x509.Certificate:
    serial = x509.random_serial_number()
    # A name of its own: a client that trusts two certificates of one name may check with the wrong one.
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"svc webhook {serial:x}")])
    names: list[x509.GeneralName] = [x509.DNSName("localhost")]
    names += [x509.IPAddress(ip_address(address)) for address in ("127.0.0.1", "::1")]
    if host not in ("localhost", "127.0.0.1", "0.0.0.0"):  # noqa: S104  compared, not bound
        names.append(_general_name(host))
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(serial)
    builder = builder.not_valid_before(now - dt.timedelta(hours=1))
    builder = builder.not_valid_after(now + dt.timedelta(days=CERTIFICATE_DAYS))
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(usage, critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return builder.sign(key, hashes.SHA256())


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
