"""Connections to the broker of a test (the fixture ``artemis``, of artemis_py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import artemis_py_kombu
import kombu
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from artemis_py.testing import ArtemisBroker

assert artemis_py_kombu.VERSION
Connect = Callable[..., kombu.Connection]


@pytest.fixture
def connect(artemis: ArtemisBroker) -> Iterator[Connect]:
    """Makes connections, as other processes would, and closes them."""
    made: list[kombu.Connection] = []

    def one(**options: Any) -> kombu.Connection:
        made.append(kombu.Connection(f"stomp://{artemis.host}:{artemis.port}//", **options))
        return made[-1]

    yield one
    for connection in made:
        connection.release()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and its certificate for 127.0.0.1, which signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "broker")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "broker.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(private + signed.public_bytes(Encoding.PEM))
    return path


@pytest.fixture
def connection(connect: Connect) -> kombu.Connection:
    return connect()
