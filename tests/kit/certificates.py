"""Certificates for tests: an authority, and what it issues, made in a moment and never stored in the repository."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)
PASSWORD = "a secret of tests"


@dataclass(frozen=True)
class Issued:
    """A key and its certificate, with those of its issuers."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    issuers: tuple[x509.Certificate, ...] = ()

    def key_pem(self, password: str | None = None) -> bytes:
        """The key, encrypted if there is a password."""
        encryption = NoEncryption() if password is None else BestAvailableEncryption(password.encode())
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)

    def chain_pem(self) -> bytes:
        """The certificate and its issuers."""
        return b"".join(one.public_bytes(Encoding.PEM) for one in (self.certificate, *self.issuers))

    def pem(self, path: Path, password: str | None = None) -> Path:
        """A file with all of it."""
        path.write_bytes(self.key_pem(password) + self.chain_pem())
        return path

    def pkcs12(self, path: Path, alias: str = "broker", password: str = PASSWORD) -> Path:
        """A PKCS12 file with all of it."""
        encryption = BestAvailableEncryption(password.encode())
        path.write_bytes(
            pkcs12.serialize_key_and_certificates(
                alias.encode(), self.key, self.certificate, self.issuers or None, encryption
            )
        )
        return path


class Authority:
    """Issues certificates, and lists of revoked ones."""

    def __init__(self, name: str = "Test Authority", issuer: Authority | None = None) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        signer, issuer_name = (self.key, self.name) if issuer is None else (issuer.key, issuer.name)
        self.certificate = (
            _builder(self.name, issuer_name, -DAY, 3650 * DAY)
            .public_key(self.key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(signer, hashes.SHA256())
        )
        self.above: tuple[x509.Certificate, ...] = () if issuer is None else (issuer.certificate, *issuer.above)

    def issue(
        self,
        name: str | x509.Name,
        *,
        since: timedelta = -DAY,
        until: timedelta = 3650 * DAY,
        hosts: tuple[str, ...] = ("localhost",),
    ) -> Issued:
        """A certificate that is valid ``since`` and ``until`` these times from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) if isinstance(name, str) else name
        names: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts]
        names.append(x509.IPAddress(ip_address("127.0.0.1")))
        certificate = (
            _builder(subject, self.name, since, until)
            .public_key(key.public_key())
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return Issued(key, certificate, (self.certificate, *self.above))

    def pem(self, path: Path) -> Path:
        """A file with the authority's certificate: a trust store."""
        path.write_bytes(self.certificate.public_bytes(Encoding.PEM))
        return path

    def revoke(self, path: Path, *revoked: Issued, until: timedelta = 30 * DAY) -> Path:
        """A list of revoked certificates."""
        now = datetime.now(UTC)
        builder = x509.CertificateRevocationListBuilder().issuer_name(self.name)
        builder = builder.last_update(now - 60 * DAY).next_update(now + until)
        for one in revoked:
            row = x509.RevokedCertificateBuilder().serial_number(one.certificate.serial_number)
            builder = builder.add_revoked_certificate(row.revocation_date(now - DAY).build())
        path.write_bytes(builder.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM))
        return path


def _builder(subject: x509.Name, issuer: x509.Name, since: timedelta, until: timedelta) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + since)
        .not_valid_after(now + until)
    )
