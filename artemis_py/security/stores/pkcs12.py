"""PKCS12 (RFC 7292): keys with their chains, and certificates. Read, never written."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

from artemis_py.security.certificate import chain_from, pem_of
from artemis_py.security.der import Item, read_item, sequence
from artemis_py.security.stores.pbe import MAC, ROUNDS_MAX, WrongPasswordError, decrypted, derived, hash_of, key_of
from artemis_py.security.stores.store import (
    KeyEntry,
    Store,
    StoreError,
    WantedKey,
    certificates_of,
    how_to_look,
    own_certificate,
    pick,
    wrong_key_password,
    wrong_password,
)

_DATA: Final = "1.2.840.113549.1.7.1"
_ENCRYPTED: Final = "1.2.840.113549.1.7.6"
_BAG: Final = "1.2.840.113549.1.12.10.1."
_KEY_BAG, _ENCRYPTED_KEY_BAG, _CERTIFICATE_BAG, _NESTED_BAG = (_BAG + number for number in "1236")
_X509: Final = "1.2.840.113549.1.9.22.1"
_FRIENDLY_NAME: Final = "1.2.840.113549.1.9.20"
_LOCAL_KEY: Final = "1.2.840.113549.1.9.21"
_PBMAC1: Final = "1.2.840.113549.1.5.14"
_DIGESTS: Final = {
    "1.3.14.3.2.26": "sha1",
    "2.16.840.1.101.3.4.2.4": "sha224",
    "2.16.840.1.101.3.4.2.1": "sha256",
    "2.16.840.1.101.3.4.2.2": "sha384",
    "2.16.840.1.101.3.4.2.3": "sha512",
    "2.16.840.1.101.3.4.2.5": "sha512_224",
    "2.16.840.1.101.3.4.2.6": "sha512_256",
    "1.2.840.113549.2.5": "md5",
}
_DEPTH_MAX: Final = 8


@final
@dataclass(slots=True)
class _Bags:
    """What is in the store: keys with their algorithm (None: not encrypted), and certificates; each with the name and
    the id by which they belong together.
    """

    keys: list[tuple[str, bytes, Item | None, bytes]] = field(default_factory=list)
    certificates: list[tuple[bytes, bytes]] = field(default_factory=list)


def read_pkcs12(path: Path, data: bytes, password: str | None, wanted: WantedKey | None) -> Store:
    """Read a store; only the wanted key is decrypted. Raises StoreError."""
    try:
        bags = _bags(data, password)
    except WrongPasswordError:
        raise wrong_password(path, wanted) from None
    except (ValueError, IndexError) as error:
        raise StoreError(f"{path} is not a PKCS12 store that can be read: {error}") from None
    certificates = certificates_of(path, [der for der, _ in bags.certificates])
    found = None if wanted is None else pick(path, [name for name, *_ in bags.keys], wanted.alias)
    if wanted is None or found is None:
        return Store("PKCS12", None, certificates, (path,))
    _, key_id, algorithm, value = next(each for each in bags.keys if each[0] == found)
    try:
        key = value if algorithm is None else _decrypted_key(algorithm, value, wanted.password or "")
    except WrongPasswordError:
        raise wrong_key_password(path) from None
    except (ValueError, IndexError) as error:
        raise StoreError(f"{path} has a key that cannot be read: {error}") from None
    pem = pem_of("PRIVATE KEY", key)
    with_ids = zip(certificates, bags.certificates, strict=True)
    likely_first = [each for each, _ in sorted(with_ids, key=lambda pair: pair[1][1] != key_id)]
    own = own_certificate(path, pem, "", likely_first, how_to_look("PKCS12", [path]))
    others = tuple(each for each in certificates if each is not own)
    return Store("PKCS12", KeyEntry(found, pem, chain_from(own, others)), others, (path,))


def _decrypted_key(algorithm: Item, value: bytes, password: str) -> bytes:
    """The key in PKCS8. What a wrong password gives rarely looks decrypted, and more rarely like that."""
    key = decrypted(algorithm, value, password)
    try:
        sequence(read_item(key), 3)
    except (ValueError, IndexError):
        raise WrongPasswordError from None
    return key


def _bags(data: bytes, password: str | None) -> _Bags:
    """Open everything but the keys. Raises ValueError, IndexError and WrongPasswordError."""
    _, safe, *mac = sequence(read_item(data), 2)
    content = _explicit(sequence(safe, 2), _DATA).octets
    secret = _checked_password(mac[0], content, password) if mac else password
    bags = _Bags()
    for info in sequence(read_item(content), 0):
        fields = sequence(info, 2)
        if fields[0].oid == _DATA:
            _open(bags, _explicit(fields, _DATA).octets, 0)
        elif fields[0].oid == _ENCRYPTED:
            _, inside = sequence(_explicit(fields, _ENCRYPTED), 2)[:2]
            _, algorithm, value = sequence(inside, 3)[:3]
            _open(bags, decrypted(algorithm, value.octets, secret or ""), 0)
        else:
            raise ValueError("a part of it is encrypted for a certificate, not by a password")
    return bags


def _checked_password(mac: Item, content: bytes, password: str | None) -> str | None:
    """Return the password that fits the digest. None and an empty one are often confused, so each stands for both."""
    digest, salt, *rest = sequence(mac, 2)
    algorithm, expected = sequence(digest, 2)[:2]
    kind, *params = sequence(algorithm)
    rounds = rest[0].number if rest else 1
    if not 0 < rounds <= ROUNDS_MAX:
        raise ValueError("its number of iterations makes no sense")
    for secret in (password,) if password else (password, None if password == "" else ""):
        if kind.oid == _PBMAC1:
            derivation, code = sequence(params[0], 2)[:2]
            name, key = hash_of(code), key_of(derivation, secret or "", 0)
        elif kind.oid in _DIGESTS:
            name = _DIGESTS[kind.oid]
            key = derived(name, secret, salt.octets, rounds, MAC, hashlib.new(name).digest_size)
        else:
            raise ValueError(f"its digest is not known here ({kind.oid})")
        if hmac.compare_digest(hmac.digest(key, content, name), expected.octets):
            return secret
    raise WrongPasswordError


def _open(bags: _Bags, content: bytes, depth: int) -> None:
    """Add the bags of a SafeContents."""
    if depth > _DEPTH_MAX:
        raise ValueError("its parts are in each other too deep")
    for bag in sequence(read_item(content), 0):
        kind, value, *attributes = sequence(bag, 2)
        inside = value.items[0]
        name, key_id = _attributes(attributes)
        name = name or str(len(bags.keys) + 1)
        if kind.oid == _KEY_BAG:
            bags.keys.append((name, key_id, None, inside.whole))
        elif kind.oid == _ENCRYPTED_KEY_BAG:
            algorithm, encrypted = sequence(inside, 2)[:2]
            bags.keys.append((name, key_id, algorithm, encrypted.octets))
        elif kind.oid == _CERTIFICATE_BAG:
            fields = sequence(inside, 2)
            if fields[0].oid == _X509:
                bags.certificates.append((fields[1].items[0].octets, key_id))
        elif kind.oid == _NESTED_BAG:
            _open(bags, inside.whole, depth + 1)


def _attributes(found: list[Item]) -> tuple[str, bytes]:
    """Return the friendly name and the local key id; empty if they are missing."""
    name, key_id = "", b""
    for attribute in found[0].items if found else ():
        kind, values = sequence(attribute, 2)[:2]
        if kind.oid == _FRIENDLY_NAME and values.items:
            name = values.items[0].content.decode("utf-16-be", "replace")
        elif kind.oid == _LOCAL_KEY and values.items:
            key_id = values.items[0].octets
    return name, key_id


def _explicit(fields: list[Item], kind: str) -> Item:
    """Return the content of a ContentInfo of this kind."""
    if fields[0].oid != kind:
        raise ValueError("it is signed by a certificate, not protected by a password")
    return fields[1].items[0]
