"""PEM: keys and certificates in one file, in any order, with any text between them (Bag Attributes)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from artemis_py.security.stores.chains import in_order
from artemis_py.security.stores.store import KeyEntry, Store, StoreError

_BLOCK: Final = re.compile(rb"-----BEGIN ([A-Z0-9 ]{1,40})-----.{0,65536}?-----END \1-----", re.DOTALL)
_BEGIN: Final = re.compile(rb"-----BEGIN")
_CERTIFICATES: Final = (b"CERTIFICATE", b"X509 CERTIFICATE")


def read_pem(files: Sequence[tuple[Path, bytes]], password: str | None) -> Store:
    """Read one file, or several as if they were one. A PEM file names no aliases, so it must hold one key at most.
    Raises StoreError.
    """
    keys: list[tuple[Path, PrivateKeyTypes]] = []
    certificates: list[x509.Certificate] = []
    for path, data in files:
        if len(_BEGIN.findall(data)) != len(_BLOCK.findall(data)):
            raise StoreError(f"{path} has a -----BEGIN without its -----END, so it may have been cut; write it again")
        for block in _BLOCK.finditer(data):
            if block[1].endswith(b"PRIVATE KEY"):
                keys.append((path, _key(path, block[0], password)))
            elif block[1] in _CERTIFICATES:
                certificates.append(_certificate(path, block[0]))
    paths = tuple(path for path, _ in files)
    if not keys and not certificates:
        raise StoreError(f"{paths[-1]} has no key and no certificate between -----BEGIN and -----END")
    if not keys:
        return Store("PEM", None, tuple(certificates), paths)
    if len(keys) > 1:
        raise StoreError(f"{keys[1][0]} has a second private key; give each key a file of its own")
    path, key = keys[0]
    own = next((each for each in certificates if _spki(each) == _spki(key)), None)
    if own is None:
        raise StoreError(f"{path} has a private key, but no certificate of this key; put the certificate into it, too")
    return Store("PEM", KeyEntry("", key, in_order(own, certificates)), tuple(certificates), paths)


def _spki(owner: x509.Certificate | PrivateKeyTypes) -> bytes:
    """A public key as bytes that can be compared."""
    return owner.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _key(path: Path, block: bytes, password: str | None) -> PrivateKeyTypes:
    try:
        if b"ENCRYPTED" not in block:
            return load_pem_private_key(block, None)
        if password is None:
            raise StoreError(f"{path}: its key is encrypted, and keyStorePassword is missing")
        return load_pem_private_key(block, password.encode())
    except (ValueError, TypeError) as error:
        reason = "the password is wrong, or the key is damaged" if b"ENCRYPTED" in block else str(error)
        raise StoreError(f"{path}: its private key cannot be read: {reason}; try: openssl pkey -in {path}") from None


def _certificate(path: Path, block: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(block.replace(b"X509 CERTIFICATE", b"CERTIFICATE"))
    except ValueError as error:
        raise StoreError(f"{path} has a certificate that cannot be read: {error}") from None
