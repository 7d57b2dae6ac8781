"""PEM: keys and certificates in one file, in any order, with any text between them (Bag Attributes)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from artemis_py.security.certificate import Certificate, chain_from, der_of
from artemis_py.security.stores.store import (
    KeyEntry,
    Store,
    StoreError,
    WantedKey,
    certificates_of,
    how_to_look,
    own_certificate,
)

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
    return Store("PEM", KeyEntry("", key, chain, password or ""), tuple(certificates), paths)


def _der(path: Path, block: bytes) -> bytes:
    try:
        return der_of(block)
    except ValueError as error:
        raise StoreError(f"{path} has a certificate that cannot be read: {error}") from None
