"""A key and a certificate for the brokers that are measured over TLS: the same for all, made anew for each run."""

from __future__ import annotations

import functools
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

from bench.broker import LOOPBACK

PASSWORD: Final = "bench-bench"
_DAY: Final = timedelta(days=1)


@functools.cache
def _made() -> tuple[rsa.RSAPrivateKey, x509.Certificate]:
    """RSA with 2,048 bits, as most public certificates."""
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bench")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - _DAY, now + _DAY)
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(LOOPBACK))])
    return key, builder.add_extension(names, critical=False).sign(key, hashes.SHA256())


def write_certificate(home: Path) -> Path:
    """The certificate alone, as PEM: what clients trust."""
    file = home / "bench-certificate.pem"
    file.write_bytes(_made()[1].public_bytes(Encoding.PEM))
    return file


def write_pem(home: Path) -> Path:
    """Key and certificate in one file."""
    key, certificate = _made()
    file = home / "bench-key.pem"
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(pem + certificate.public_bytes(Encoding.PEM))
    return file


def write_pkcs12(home: Path) -> Path:
    """Key and certificate as Java has them, with PASSWORD."""
    key, certificate = _made()
    file = home / "bench-key.p12"
    encryption = BestAvailableEncryption(PASSWORD.encode())
    file.write_bytes(pkcs12.serialize_key_and_certificates(b"bench", key, certificate, None, encryption))
    return file
