"""JKS, the format of Java's key stores until Java 8: read, never written.

The layout is that of ``sun.security.provider.JavaKeyStore`` and, for the protection of keys, ``KeyProtector``. All
numbers are big-endian. The file ends with a SHA-1 over the password, a fixed text and all bytes before.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_der_private_key

from artemis_py.security.stores.store import KeyEntry, Store, StoreError, pick

MAGIC: Final = b"\xfe\xed\xfe\xed"
_WHITENER: Final = b"Mighty Aphrodite"
_DIGEST_BYTES: Final = 20
_PROTECTOR: Final = bytes.fromhex("060a2b060104012a02110101")
"""The object identifier 1.3.6.1.4.1.42.2.17.1.1, which says that the key is protected in the way of JKS."""
_KEY: Final = 1
_CERTIFICATE: Final = 2


@final
@dataclass(frozen=True, slots=True)
class _Key:
    protected: bytes
    chain: tuple[bytes, ...]


@final
class _Reader:
    """Reads values one after another. Raises EOFError behind the end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size_bytes: int) -> bytes:
        taken = self._data[self._at : self._at + size_bytes]
        if len(taken) < size_bytes:
            raise EOFError
        self._at += size_bytes
        return taken

    def number(self, size_bytes: int = 4) -> int:
        return int.from_bytes(self.take(size_bytes), "big")

    def text(self) -> str:
        """Java's modified UTF-8, which is UTF-8 but for NUL and characters beyond the basic plane."""
        return self.take(self.number(2)).replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")

    def certificate(self, version: int) -> bytes:
        if version > 1:
            self.text()  # the type, always X.509
        return self.take(self.number())


def read_jks(path: Path, data: bytes, password: str | None, alias: str | None) -> Store:
    """Read a store; only the key that is asked for is decrypted. Raises StoreError."""
    if password is not None:
        _check_trailer(path, data, password)
    try:
        keys, trusted = _entries(_Reader(data[:-_DIGEST_BYTES]))
    except (EOFError, UnicodeDecodeError):
        raise StoreError(f"{path} is damaged: it ends in the middle of an entry; copy it again") from None
    found = pick(path, list(keys), alias)
    entry: KeyEntry | None = None
    try:
        if found is not None:
            der = _unprotect(path, keys[found].protected, password)
            chain = tuple(map(x509.load_der_x509_certificate, keys[found].chain))
            entry = KeyEntry(found, load_der_private_key(der, None), chain)
        return Store("JKS", entry, tuple(map(x509.load_der_x509_certificate, trusted)), (path,))
    except ValueError as error:
        raise StoreError(f"{path} has a key or certificate that cannot be read: {error}") from None


def _check_trailer(path: Path, data: bytes, password: str) -> None:
    """Does the digest at the end fit the password and the content?"""
    content, trailer = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    digest = hashlib.sha1(password.encode("utf-16-be") + _WHITENER + content).digest()
    if not hmac.compare_digest(digest, trailer):
        raise StoreError(
            f"{path}: the password is wrong, or the file is damaged; try it with: keytool -list -keystore {path}"
        )


def _entries(reader: _Reader) -> tuple[dict[str, _Key], list[bytes]]:
    reader.take(len(MAGIC))
    version = reader.number()
    keys: dict[str, _Key] = {}
    trusted: list[bytes] = []
    for _ in range(reader.number()):
        tag = reader.number()
        alias = reader.text()
        reader.take(8)  # when it was made
        if tag == _KEY:
            protected = reader.take(reader.number())
            keys[alias] = _Key(protected, tuple(reader.certificate(version) for _ in range(reader.number())))
        elif tag == _CERTIFICATE:
            trusted.append(reader.certificate(version))
        else:
            raise EOFError
    return keys, trusted


def _unprotect(path: Path, protected: bytes, password: str | None) -> bytes:
    """Decrypt a key: salt, the key XOR a chain of digests of the password, and a digest of both as a check."""
    if password is None:
        raise StoreError(f"{path} has a key, and a key needs a password: set keyStorePassword")
    place = protected.find(_PROTECTOR)
    if place < 0:
        raise StoreError(
            f"{path}: its key is protected in a way that JKS does not have; convert the store: keytool "
            f"-importkeystore -srckeystore {path} -destkeystore {path.stem}.p12 -deststoretype PKCS12"
        )
    value = _octets(protected[place + len(_PROTECTOR) :])
    salt, cipher, check = value[:_DIGEST_BYTES], value[_DIGEST_BYTES:-_DIGEST_BYTES], value[-_DIGEST_BYTES:]
    secret = password.encode("utf-16-be")
    stream, block = b"", salt
    while len(stream) < len(cipher):
        block = hashlib.sha1(secret + block).digest()
        stream += block
    plain = bytes(one ^ other for one, other in zip(cipher, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + plain).digest(), check):
        raise StoreError(
            f"{path}: the key has another password than the store; give it the same one: keytool -keypasswd -keystore "
            f"{path}"
        )
    return plain


def _octets(der: bytes) -> bytes:
    """The OCTET STRING that follows, behind an optional NULL."""
    at = 2 if der[:2] == b"\x05\x00" else 0
    first = der[at + 1]
    if first < 0x80:
        return der[at + 2 : at + 2 + first]
    start = at + 2 + (first & 0x7F)
    return der[start : start + int.from_bytes(der[at + 2 : start], "big")]
