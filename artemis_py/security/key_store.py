"""What a key or trust store holds, whatever its format; and PEM, which is a text with keys and certificates.

Artemis users have PEM, PEMCFG, PKCS12 and JKS: the content says which.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

from artemis_py.errors import ArtemisError
from artemis_py.security.certificate import Certificate, certificate_of, chain_from, der_of, subject_of

_OF_ANOTHER_KEY: Final = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH")
_REMEDIES: Final = {
    "CA_MD_TOO_WEAK": "; its signature uses a hash that is not secure any more; have it signed with SHA-256",
    "EE_KEY_TOO_SMALL": "; its key is too short to be secure; make one of 2048 bits (RSA) or 256 bits (EC) or more",
    "CA_KEY_TOO_SMALL": "; the key of its issuer is too short to be secure; get a certificate of another one",
}
_COMMANDS: Final = {
    "PKCS12": "openssl pkcs12 -info -nokeys -in",
    "JKS": "keytool -list -v -keystore",
    "JCEKS": "keytool -list -v -storetype JCEKS -keystore",
}
"""What shows the certificates of a store and no key, by the format."""


class StoreError(ArtemisError):
    """A store cannot be used. The text names the file and the next step, and no password."""


@final
@dataclass(frozen=True, slots=True)
class WantedKey:
    """Which key of a store is meant: its ``alias`` (None: the only one) and its password (None: that of the store)."""

    alias: str | None = None
    password: str | None = field(default=None, repr=False)


@final
@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A private key in PEM and its certificates, the key's own first. ``password`` is that of an encrypted key."""

    key: bytes = field(repr=False)
    chain: tuple[Certificate, ...]
    password: str = field(default="", repr=False)

    def load_into(self, context: ssl.SSLContext) -> None:
        """Give key and chain to OpenSSL, which takes only files, by one in memory: no key goes to the disk. Raises
        ssl.SSLError.
        """
        with MemoryFile(b"".join(one.pem for one in self.chain) + self.key) as path:
            context.load_cert_chain(path, password=self.password)


@final
@dataclass(frozen=True, slots=True)
class Store:
    """The key that was asked for, and the certificates that the store trusts. ``files`` are all that were read."""

    format: str
    key: KeyEntry | None
    trusted: tuple[Certificate, ...]
    files: tuple[Path, ...]


@final
class MemoryFile:
    """A file in memory with a name that OpenSSL can open."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._descriptor = -1

    def __enter__(self) -> str:
        self._descriptor = os.memfd_create("store", os.MFD_CLOEXEC)
        view = memoryview(self._data)
        while view:
            view = view[os.write(self._descriptor, view) :]
        return f"/proc/self/fd/{self._descriptor}"

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def certificates_of(path: Path, found: Iterable[bytes]) -> tuple[Certificate, ...]:
    """Read the certificates of a store, each in DER. Raises StoreError."""
    try:
        return tuple(map(certificate_of, found))
    except ValueError as error:
        raise StoreError(f"{path} has a certificate that cannot be read: {error}") from None


def own_of(key: bytes, password: str, certificates: Iterable[Certificate]) -> Certificate | None:
    """Return the certificate of a private key in PEM: OpenSSL says whether they belong together. Raises ssl.SSLError
    if it cannot read the key.
    """
    refused: ssl.SSLError | None = None
    for each in certificates:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_ciphers("ALL:@SECLEVEL=0")  # only the question whether they belong together
        try:
            KeyEntry(key, (each,), password).load_into(context)
        except ssl.SSLError as error:
            if error.reason not in _OF_ANOTHER_KEY:
                refused = error
        else:
            return each
    if refused is not None:
        raise refused
    return None


def own_certificate(
    path: Path, key: bytes, password: str, certificates: Sequence[Certificate], look: str, hint: str = ""
) -> Certificate:
    """Return the first certificate of a private key in PEM. ``hint`` says why the key may be unreadable, if that is
    known. Raises StoreError.
    """
    try:
        own = own_of(key, password, certificates)
    except ssl.SSLError as error:
        told = refused_certificate(certificates, look) or hint or refusal_of(error, look)
        raise StoreError(f"{path}: {told}") from None
    if own is None:
        raise StoreError(f"{path} has a private key, but no certificate of this key; put the certificate into it, too")
    return own


def how_to_look(format: str, files: Sequence[Path]) -> str:
    """Return the command by which a person sees the certificates of a store that was read from ``files``; of PEMCFG
    the first of these only names the others.
    """
    if format in _COMMANDS:
        return f"{_COMMANDS[format]} {files[0]}"
    return " and ".join(
        f"openssl x509 -noout -text -in {file}" for file in (files[1:] if format == "PEMCFG" else files)
    )


def refused_certificate(certificates: Iterable[Certificate], look: str) -> str:
    """Return which of the certificates OpenSSL does not take with any key, and why; empty if there is none. ``look``
    is ``how_to_look`` at them.
    """
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    other = ec.generate_private_key(ec.SECP256R1())
    key = other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for each in certificates:
        try:
            own_of(key, "", (each,))
        except ssl.SSLError as error:
            whose = subject_of(each.der).text or "nobody"
            if getattr(error, "reason", None) is None:
                return f"OpenSSL cannot read the certificate of {whose}; see what it says: {look}"
            told = error.reason.replace("_", " ").lower()
            return f"OpenSSL does not accept the certificate of {whose}: {told}; get another one from its issuer"
    return ""


def wrong_password(path: Path, wanted: WantedKey | None) -> StoreError:
    """The password of a whole store does not fit. Only of a key store a key is wanted."""
    which = "trustStorePassword" if wanted is None else "keyStorePassword"
    return StoreError(
        f"{path}: the password is wrong ({which}), or the file is damaged; try it with: keytool -list -keystore {path}"
    )


def wrong_key_password(path: Path) -> StoreError:
    """The password of a store fits, and that of its key does not."""
    return StoreError(
        f"{path}: the key has another password than keyStorePassword; write it as keyPassword, or correct what is there"
    )


def refusal_of(error: ssl.SSLError, look: str) -> str:
    """Return why OpenSSL does not take a key with its certificates, and the next step, which may be to ``look``."""
    reason = getattr(error, "reason", None)
    if reason is None:
        return f"OpenSSL cannot read the key or a certificate; see what it says: {look}"
    told = reason.replace("_", " ").lower()
    return f"OpenSSL does not accept the key or certificate: {told}{_REMEDIES.get(reason, '')}"


def pick(path: Path, aliases: list[str], wanted: str | None) -> str | None:
    """Return which of the key entries ``aliases`` is meant; None if there is none and none is named. As in Java, the
    case of letters does not matter. Raises StoreError.
    """
    shown = ", ".join(aliases) or "none"
    if wanted is not None:
        for alias in aliases:
            if alias.casefold() == wanted.casefold():
                return alias
        raise StoreError(f"{path} has no key with the alias {wanted!r}, only: {shown}; correct keyStoreAlias")
    if len(aliases) > 1:
        raise StoreError(f"{path} has {len(aliases)} keys ({shown}); name one of them with keyStoreAlias")
    return aliases[0] if aliases else None


# ---- PEM -------------------------------------------------------------------------------------------------------------
#
# Keys and certificates in one file, in any order, with any text between them (Bag Attributes).


_BLOCK: Final = re.compile(rb"-----BEGIN ([A-Z0-9 ]{1,40})-----.{0,65536}?-----END \1-----", re.DOTALL)
_BEGIN: Final = re.compile(rb"-----BEGIN")
_CERTIFICATES: Final = (b"CERTIFICATE", b"X509 CERTIFICATE", b"TRUSTED CERTIFICATE")
_WRONG_PASSWORD: Final = "the password is wrong (keyPassword, or else keyStorePassword), or the key is damaged; try:"


def read_pem(files: Sequence[tuple[Path, bytes]], wanted: WantedKey | None) -> Store:
    """Read one file, or several as if they were one. A PEM file names no aliases, so it must hold one key at most.
    Raises StoreError.
    """
    keys: list[tuple[Path, bytes]] = []
    certificates: list[Certificate] = []
    for path, data in files:
        if len(_BEGIN.findall(data)) != len(_BLOCK.findall(data)):
            raise StoreError(f"{path} has a -----BEGIN without its -----END, so it may have been cut; write it again")
        for block in _BLOCK.finditer(data):
            if block[1].endswith(b"PRIVATE KEY"):
                keys.append((path, block[0] + b"\n"))
            elif block[1] in _CERTIFICATES:
                certificates.extend(certificates_of(path, [_der(path, block[0])]))
    paths = tuple(path for path, _ in files)
    if not keys and not certificates:
        raise StoreError(f"{paths[-1]} has no key and no certificate between -----BEGIN and -----END")
    if not keys or wanted is None:
        return Store("PEM", None, tuple(certificates), paths)
    if len(keys) > 1:
        raise StoreError(f"{keys[1][0]} has a second private key; give each key a file of its own")
    (path, key), password = keys[0], wanted.password
    is_encrypted = b"ENCRYPTED" in key
    if password is None and is_encrypted:
        raise StoreError(f"{path}: its key is encrypted, and keyStorePassword is missing")
    hint = f"its private key cannot be read: {_WRONG_PASSWORD} openssl pkey -noout -in {path}" if is_encrypted else ""
    own = own_certificate(path, key, password or "", certificates, how_to_look("PEM", paths), hint)
    chain = chain_from(own, tuple(certificates))
    return Store("PEM", KeyEntry(key, chain, password or ""), tuple(certificates), paths)


def _der(path: Path, block: bytes) -> bytes:
    try:
        return der_of(block)
    except ValueError as error:
        raise StoreError(f"{path} has a certificate that cannot be read: {error}") from None
