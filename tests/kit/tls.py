"""What the tests of TLS share: files of certificates, URIs of acceptors, and clients' contexts."""

from __future__ import annotations

import shutil
import socket
import ssl
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from tests.kit.certificates import PASSWORD, Authority, Issued
from tests.kit.forks import said_by
from tests.kit.process import LOOPBACK, WAIT_S, BrokerProcess

KEYTOOL = shutil.which("keytool")
OPENSSL = shutil.which("openssl")
needs_keytool = pytest.mark.skipif(KEYTOOL is None, reason="keytool, of a JDK, is not on this machine")
needs_openssl = pytest.mark.skipif(OPENSSL is None, reason="the command openssl is not on this machine")


def uri(protocol: str, **params: object) -> str:
    """An acceptor on any free port that speaks TLS, with these parameters."""
    texts = {"protocols": protocol, "sslEnabled": "true", **{name: str(value) for name, value in params.items()}}
    query = "&amp;".join(f"{name}={quote(quote(text, safe='/,'), safe='/,')}" for name, text in texts.items())
    return f"tcp://127.0.0.1:0?{query}"


@dataclass
class TlsBroker:
    """A broker, the folder of its files, and whom clients trust."""

    broker: BrokerProcess
    folder: Path
    authority: Authority

    def context(self, issued: Issued | None = None) -> ssl.SSLContext:
        """That of a client, with a certificate or without."""
        return trusting(self.authority, issued, self.folder)


def trusting(authority: Authority, issued: Issued | None = None, folder: Path | None = None) -> ssl.SSLContext:
    """A client's context that trusts an authority. With ``issued`` it has a certificate; its file is in ``folder``."""
    context = ssl.create_default_context(cadata=authority.certificate.public_bytes(Encoding.PEM).decode())
    if issued is not None:
        assert folder is not None
        context.load_cert_chain(issued.pem(folder / f"client-{issued.certificate.serial_number}.pem"))
    return context


def shake(port: int, context: ssl.SSLContext, name: str | None = "localhost") -> ssl.SSLSocket:
    """A connection after its handshake. ``name`` is the server's name that is asked for."""
    raw = socket.create_connection((LOOPBACK, port), WAIT_S)
    try:
        return context.wrap_socket(raw, server_hostname=name)
    except BaseException:
        raw.close()
        raise


def served(port: int, authority: Authority) -> bytes:
    """The certificate that a port serves now, as DER."""
    with shake(port, trusting(authority)) as connection:
        certificate = connection.getpeercert(binary_form=True)
        assert certificate is not None
        return certificate


keytool: Final = partial(said_by, KEYTOOL, "-J-Xshare:auto", "-J-XX:TieredStopAtLevel=1")
"""Runs Java's; fails with what it says."""
openssl: Final = partial(said_by, OPENSSL)
"""Runs the command; fails with what it says."""


def converted(source: Path, target: Path, kind: str, alias: str = "broker") -> Path:
    """A PKCS12 store as another kind, by keytool."""
    keytool(
        "-importkeystore", "-noprompt", "-srckeystore", source, "-srcstorepass", PASSWORD, "-srcstoretype", "PKCS12",
        "-srcalias", alias, "-destkeystore", target, "-deststoretype", kind, "-deststorepass", PASSWORD,
    )  # fmt: skip
    return target
