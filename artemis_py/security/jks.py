"""JKS, the format of Java's key stores until Java 8, and JCEKS, which protects keys better: read, never written.

The layout is that of ``sun.security.provider.JavaKeyStore``; keys are protected as by the ``KeyProtector`` beside it,
or by that of ``com.sun.crypto.provider``. All numbers are big-endian. The file ends with a SHA-1 over the password, a
fixed text and all bytes before.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from artemis_py.security.certificate import pem_of
from artemis_py.security.der import read_item, sequence
from artemis_py.security.key_store import (
    KeyEntry,
    Store,
    StoreError,
    WantedKey,
    certificates_of,
    pick,
    wrong_key_password,
    wrong_password,
)
from artemis_py.security.pkcs12 import decrypted_cbc

MAGICS: Final = {b"\xfe\xed\xfe\xed": "JKS", b"\xce\xce\xce\xce": "JCEKS"}
"""How a file begins, and its format."""
_MAGIC_BYTES: Final = 4
_WHITENER: Final = b"Mighty Aphrodite"
_DIGEST_BYTES: Final = 20
_OF_JKS: Final = "1.3.6.1.4.1.42.2.17.1.1"
_OF_JCEKS: Final = "1.3.6.1.4.1.42.2.19.1"
"""How a key is protected."""
_KEY: Final = 1
_CERTIFICATE: Final = 2
_SECRET: Final = 3
_SALT_BYTES: Final = 8
_ROUNDS_MAX: Final = 10_000_000


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


def read_jks(path: Path, data: bytes, password: str | None, wanted: WantedKey | None) -> Store:
    """Read a store; only the wanted key is decrypted, by its own password or else the store's. Raises StoreError."""
    if password is not None:
        _check_trailer(path, data, password, wanted)
    try:
        keys, trusted = _entries(path, _Reader(data[:-_DIGEST_BYTES]))
    except (EOFError, UnicodeDecodeError):
        raise StoreError(f"{path} is damaged: it ends in the middle of an entry; copy it again") from None
    found = None if wanted is None else pick(path, list(keys), wanted.alias)
    entry: KeyEntry | None = None
    if wanted is not None and found is not None:
        der = _unprotect(path, keys[found].protected, wanted.password)
        entry = KeyEntry(pem_of("PRIVATE KEY", der), certificates_of(path, keys[found].chain))
    return Store(MAGICS[data[:_MAGIC_BYTES]], entry, certificates_of(path, trusted), (path,))


def _check_trailer(path: Path, data: bytes, password: str, wanted: WantedKey | None) -> None:
    """Does the digest at the end fit the password and the content?"""
    content, trailer = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    digest = hashlib.sha1(password.encode("utf-16-be") + _WHITENER + content).digest()
    if not hmac.compare_digest(digest, trailer):
        raise wrong_password(path, wanted)


def _entries(path: Path, reader: _Reader) -> tuple[dict[str, _Key], list[bytes]]:
    reader.take(_MAGIC_BYTES)
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
        elif tag == _SECRET:
            raise StoreError(
                f"{path} has a secret key ({alias}), which only Java can read; remove it: keytool -delete -alias "
                f"{alias} -storetype JCEKS -keystore {path}"
            )
        else:
            raise EOFError
    return keys, trusted


def _unprotect(path: Path, protected: bytes, password: str | None) -> bytes:
    """Decrypt a key. Returns it as PKCS8 in DER."""
    if password is None:
        raise StoreError(f"{path} has a key, and a key needs a password: set keyStorePassword, or keyPassword")
    plain: bytes | None = None
    try:
        algorithm, value = sequence(read_item(protected), 2)[:2]
        kind, *params = sequence(algorithm)
        if kind.oid == _OF_JKS:
            plain = _unprotect_jks(value.octets, password)
        elif kind.oid == _OF_JCEKS:
            salt, rounds = sequence(params[0], 2)[:2]
            plain = _unprotect_jceks(value.octets, password, salt.octets, rounds.number)
        else:
            raise StoreError(
                f"{path}: its key is protected in a way that JKS does not have; convert the store: keytool "
                f"-importkeystore -srckeystore {path} -destkeystore {path.stem}.p12 -deststoretype PKCS12"
            )
    except (ValueError, IndexError) as error:
        raise StoreError(f"{path} has a key that cannot be read: {error}") from None
    if plain is None:
        raise wrong_key_password(path)
    return plain


def _unprotect_jks(value: bytes, password: str) -> bytes | None:
    """Salt, the key XOR a chain of digests of the password, and a digest of both as a check; None if that fails."""
    salt, cipher, check = value[:_DIGEST_BYTES], value[_DIGEST_BYTES:-_DIGEST_BYTES], value[-_DIGEST_BYTES:]
    secret = password.encode("utf-16-be")
    stream, block = b"", salt
    while len(stream) < len(cipher):
        block = hashlib.sha1(secret + block).digest()
        stream += block
    plain = bytes(one ^ other for one, other in zip(cipher, stream, strict=False))
    return plain if hmac.compare_digest(hashlib.sha1(secret + plain).digest(), check) else None


def _unprotect_jceks(value: bytes, password: str, salt: bytes, rounds: int) -> bytes | None:
    """Triple DES, its key and start by MD5 of the password and each half of the salt; None if the password is wrong."""
    if not 0 < rounds <= _ROUNDS_MAX or len(salt) != _SALT_BYTES:
        raise ValueError("it is protected with numbers that make no sense")
    secret = bytes(ord(each) & 0x7F for each in password)
    half = _SALT_BYTES // 2
    made = b""
    for begin in (0, half):
        block = salt[begin : begin + half]
        for _ in range(rounds):
            block = hashlib.md5(block + secret, usedforsecurity=False).digest()
        made += block
    try:
        plain = decrypted_cbc("DES-EDE3", made[:24], made[24:], value)
        sequence(read_item(plain), 3)  # PKCS8. A wrong password may give valid padding, but hardly ever this
    except ValueError:
        return None
    return plain
