"""TLS as programs use it towards a broker: whom they trust, and the certificate they show. Keys are in no ``repr``."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

from artemis_py.errors import ArtemisError

FILES: Final = ("caFile", "certificateFile", "keyFile")
_FATAL: Final = ("ALERT", "WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "UNSUPPORTED_PROTOCOL")


@final
@dataclass(frozen=True, slots=True)
class ClientTls:
    """What was in the files, so that a context can be made in another process, where the files are not.

    Without ``ca`` the system's certificates count. With ``verifies`` false any certificate of any host does.
    """

    ca: str | None = None
    certificate: bytes | None = field(default=None, repr=False)
    """The client's certificate and chain, in PEM, with the key if ``key`` is None."""
    key: bytes | None = field(default=None, repr=False)
    verifies: bool = True

    def context(self) -> ssl.SSLContext:
        """A context for connections. Raises ArtemisError if the files contain no certificates or no key."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if not self.verifies:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif self.ca is None:
            context.load_default_certs()
        else:
            try:
                context.load_verify_locations(cadata=self.ca)
            except (ssl.SSLError, ValueError) as error:
                raise ArtemisError(f"caFile contains no certificates in PEM ({_said(error)})") from None
        if self.certificate is not None:
            with _as_file(self.certificate + b"\n" + (self.key or b"")) as path:
                try:
                    context.load_cert_chain(path, password=_no_password)
                except (ssl.SSLError, ValueError, OSError) as error:
                    raise ArtemisError(
                        "certificateFile and keyFile are not a certificate with its key, in PEM and without a password "
                        f"({_said(error)})"
                    ) from None
        return context


def tls_of(given: Mapping[str, str], *, verifies: bool, named: Mapping[str, str]) -> ClientTls:
    """Read the files that ``given`` names by ``caFile``, ``certificateFile`` and ``keyFile``. ``named`` are the names
    by which a user knows these, for errors. Raises ArtemisError.
    """
    if "keyFile" in given and "certificateFile" not in given:
        raise ArtemisError(f"{named['keyFile']} needs {named['certificateFile']}")
    found = {name: _content(given[name], named[name]) for name in FILES if name in given}
    ca = found.get("caFile")
    if ca is not None and not verifies:
        raise ArtemisError(f"{named['caFile']} has no meaning if certificates are not verified")
    text = None if ca is None else ca.decode("latin-1")
    tls = ClientTls(text, found.get("certificateFile"), found.get("keyFile"), verifies)
    tls.context()
    return tls


def is_final(error: ssl.SSLError) -> bool:
    """Will another attempt fail in the same way? A lost connection is no such error."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return True
    return any(word in (error.reason or "").upper() for word in _FATAL)


def why_refused(error: ssl.SSLError, named: Mapping[str, str]) -> str:
    """The failure of a handshake in words, with what to change."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"the broker's certificate is not accepted: {error.verify_message}; {named['caFile']} names the "
            "certificates to trust"
        )
    reason = (error.reason or str(error)).upper()
    if "CERTIFICATE" in reason:
        return f"the broker refuses the client's certificate ({error.reason}); {named['certificateFile']} names another"
    return f"no TLS connection ({error.reason or error}); is this the port of an acceptor with sslEnabled=true?"


def _content(path: str, name: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ArtemisError(f"{name}: {path} cannot be read: {error.strerror}") from None


def _no_password() -> str:
    """Otherwise OpenSSL asks the terminal."""
    raise ValueError("the key has a password")


def _said(error: Exception) -> str:
    return (getattr(error, "reason", None) or str(error)).split("(_ssl.c", 1)[0].strip()


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """A path for a function that takes only paths: in memory where the system can do that, so that no key gets to a
    disk.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("artemis-py", os.MFD_CLOEXEC)
        try:
            with os.fdopen(os.dup(descriptor), "wb") as file:
                file.write(content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        yield file.name
