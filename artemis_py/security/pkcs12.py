"""PKCS12 (RFC 7292): keys with their chains, and certificates. Read, never written."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

from artemis_py.security.certificate import chain_from, pem_of
from artemis_py.security.der import INTEGER, SEQUENCE, Item, read_item, sequence
from artemis_py.security.key_store import (
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
_ROUNDS_MAX: Final = 10_000_000
"""More would take minutes."""


class _WrongPasswordError(ValueError):
    """The password does not fit what it is to open."""


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
    except _WrongPasswordError:
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
    except _WrongPasswordError:
        raise wrong_key_password(path) from None
    except (ValueError, IndexError) as error:
        raise StoreError(f"{path} has a key that cannot be read: {error}") from None
    pem = pem_of("PRIVATE KEY", key)
    with_ids = zip(certificates, bags.certificates, strict=True)
    likely_first = [each for each, _ in sorted(with_ids, key=lambda pair: pair[1][1] != key_id)]
    own = own_certificate(path, pem, "", likely_first, how_to_look("PKCS12", [path]))
    others = tuple(each for each in certificates if each is not own)
    return Store("PKCS12", KeyEntry(pem, chain_from(own, others)), others, (path,))


def _decrypted_key(algorithm: Item, value: bytes, password: str) -> bytes:
    """The key in PKCS8. What a wrong password gives rarely looks decrypted, and more rarely like that."""
    key = _decrypted(algorithm, value, password)
    try:
        sequence(read_item(key), 3)
    except (ValueError, IndexError):
        raise _WrongPasswordError from None
    return key


def _bags(data: bytes, password: str | None) -> _Bags:
    """Open everything but the keys. Raises ValueError, IndexError and _WrongPasswordError."""
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
            _open(bags, _decrypted(algorithm, value.octets, secret or ""), 0)
        else:
            raise ValueError("a part of it is encrypted for a certificate, not by a password")
    return bags


def _checked_password(mac: Item, content: bytes, password: str | None) -> str | None:
    """Return the password that fits the digest. None and an empty one are often confused, so each stands for both."""
    digest, salt, *rest = sequence(mac, 2)
    algorithm, expected = sequence(digest, 2)[:2]
    kind, *params = sequence(algorithm)
    rounds = rest[0].number if rest else 1
    if not 0 < rounds <= _ROUNDS_MAX:
        raise ValueError("its number of iterations makes no sense")
    for secret in (password,) if password else (password, None if password == "" else ""):
        if kind.oid == _PBMAC1:
            derivation, code = sequence(params[0], 2)[:2]
            name, key = _hash_of(code), _key_of(derivation, secret or "", 0)
        elif kind.oid in _DIGESTS:
            name = _DIGESTS[kind.oid]
            key = _derived(name, secret, salt.octets, rounds, _MAC, hashlib.new(name).digest_size)
        else:
            raise ValueError(f"its digest is not known here ({kind.oid})")
        if hmac.compare_digest(hmac.digest(key, content, name), expected.octets):
            return secret
    raise _WrongPasswordError


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


# ---- decryption by a password ----------------------------------------------------------------------------------------
#
# Of keys and certificates: PBES2 (RFC 8018), and the older way of PKCS12 (appendix B) with its ciphers.


_HASHES: Final = {
    "1.2.840.113549.2.7": "sha1",
    "1.2.840.113549.2.8": "sha224",
    "1.2.840.113549.2.9": "sha256",
    "1.2.840.113549.2.10": "sha384",
    "1.2.840.113549.2.11": "sha512",
    "1.2.840.113549.2.12": "sha512_224",
    "1.2.840.113549.2.13": "sha512_256",
}
"""By the object identifier of the HMAC."""
_PBES2: Final = "1.2.840.113549.1.5.13"
_PBKDF2: Final = "1.2.840.113549.1.5.12"
_SCRYPT: Final = "1.3.6.1.4.1.11591.4.11"
_CIPHERS: Final = {
    "2.16.840.1.101.3.4.1.2": ("AES", 16),
    "2.16.840.1.101.3.4.1.22": ("AES", 24),
    "2.16.840.1.101.3.4.1.42": ("AES", 32),
    "1.2.840.113549.3.7": ("DES-EDE3", 24),
}
"""Of PBES2: the cipher, in CBC mode, and the bytes of its key."""
_OLD_CIPHERS: Final = {
    "1.2.840.113549.1.12.1.1": ("RC4", 16, 0),
    "1.2.840.113549.1.12.1.2": ("RC4", 5, 0),
    "1.2.840.113549.1.12.1.3": ("DES-EDE3", 24, 8),
    "1.2.840.113549.1.12.1.4": ("DES-EDE3", 16, 8),
    "1.2.840.113549.1.12.1.5": ("RC2", 16, 8),
    "1.2.840.113549.1.12.1.6": ("RC2", 5, 8),
}
"""Of PKCS12: the cipher, the bytes of its key and those of its start."""
_KEY, _START, _MAC = 1, 2, 3
"""What a password is made into."""


def _decrypted(algorithm: Item, data: bytes, password: str) -> bytes:
    """Return what was encrypted with an AlgorithmIdentifier. Raises ValueError, which may mean a wrong password."""
    kind, *params = sequence(algorithm)
    if kind.oid == _PBES2:
        derivation, scheme = sequence(params[0] if params else kind, 2)[:2]
        cipher, start = sequence(scheme, 2)[:2]
        if cipher.oid not in _CIPHERS:
            raise ValueError(f"it is encrypted in a way that is not known here ({cipher.oid})")
        name, size = _CIPHERS[cipher.oid]
        return decrypted_cbc(name, _key_of(derivation, password, size), start.octets, data)
    if kind.oid not in _OLD_CIPHERS or not params:
        raise ValueError(f"it is encrypted in a way that is not known here ({kind.oid})")
    name, key_bytes, start_bytes = _OLD_CIPHERS[kind.oid]
    salt, rounds = sequence(params[0], 2)[:2]
    key = _derived("sha1", password, salt.octets, _checked(rounds), _KEY, key_bytes)
    if name == "RC4":
        return _rc4(key, data)
    return decrypted_cbc(
        name, key, _derived("sha1", password, salt.octets, _checked(rounds), _START, start_bytes), data
    )


def _key_of(derivation: Item, password: str, size: int) -> bytes:
    """Make a key of ``size`` bytes of a password by PBKDF2 or scrypt. Raises ValueError."""
    kind, *params = sequence(derivation, 2)
    fields = sequence(params[0], 2)
    salt, secret = fields[0].octets, password.encode()
    if kind.oid == _SCRYPT and len(fields) >= 4:
        n, r, p = (each.number for each in fields[1:4])
        return hashlib.scrypt(secret, salt=salt, n=n, r=r, p=p, maxmem=1 << 28, dklen=size)
    if kind.oid != _PBKDF2:
        raise ValueError(f"its key is made in a way that is not known here ({kind.oid})")
    rest = fields[2:]
    if rest and rest[0].tag == INTEGER:
        size = rest.pop(0).number
    return hashlib.pbkdf2_hmac(_hash_of(rest[0] if rest else None), secret, salt, _checked(fields[1]), size)


def _hash_of(algorithm: Item | None) -> str:
    """Return the name of the hash of an HMAC; without one it is SHA-1. Raises ValueError."""
    if algorithm is None or algorithm.tag != SEQUENCE:
        return "sha1"
    oid = sequence(algorithm)[0].oid
    if oid not in _HASHES:
        raise ValueError(f"it uses a hash that is not known here ({oid})")
    return _HASHES[oid]


def _derived(hash_name: str, password: str | None, salt: bytes, rounds: int, purpose: int, size: int) -> bytes:
    """Make bytes of a password in the way of PKCS12. None is no password at all, which is not an empty one."""
    block = hashlib.new(hash_name).block_size
    secret = b"" if password is None else password.encode("utf-16-be") + b"\0\0"
    text = bytearray(_filled(salt, block) + _filled(secret, block))
    made = b""
    while len(made) < size:
        digest = hashlib.new(hash_name, bytes((purpose,)) * block + text).digest()
        for _ in range(rounds - 1):
            digest = hashlib.new(hash_name, digest).digest()
        made += digest
        added = int.from_bytes(_filled(digest, block)[:block], "big") + 1
        for at in range(0, len(text), block):
            total = int.from_bytes(text[at : at + block], "big") + added
            text[at : at + block] = total.to_bytes(block + 1, "big")[1:]
    return made[:size]


def decrypted_cbc(name: str, key: bytes, start: bytes, data: bytes) -> bytes:
    """Decrypt by AES, DES-EDE3 (with a key of two or three parts) or RC2 in CBC mode, and remove the padding. Raises
    ValueError.
    """
    size = len(start)
    if not data or len(data) % size:
        raise ValueError("what is encrypted has no whole number of blocks")
    if name == "RC2":
        plain = _rc2_cbc(key, start, data)
    else:
        from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES
        from cryptography.hazmat.primitives.ciphers.modes import CBC

        cipher = AES(key) if name == "AES" else TripleDES(key if len(key) == 24 else key + key[:8])
        opened = Cipher(cipher, CBC(start)).decryptor()
        plain = opened.update(data) + opened.finalize()
    count = plain[-1]
    if not 0 < count <= size or plain[-count:] != bytes((count,)) * count:
        raise _WrongPasswordError("the password is wrong")
    return plain[:-count]


def _checked(rounds: Item) -> int:
    if not 0 < rounds.number <= _ROUNDS_MAX:
        raise ValueError("its number of iterations makes no sense")
    return rounds.number


def _filled(data: bytes, block: int) -> bytes:
    """Repeat data up to a whole number of blocks."""
    size = -(-len(data) // block) * block
    return (data * (size // len(data) + 1))[:size] if data else b""


def _rc4(key: bytes, data: bytes) -> bytes:
    from cryptography.hazmat.decrepit.ciphers.algorithms import ARC4
    from cryptography.hazmat.primitives.ciphers import Cipher

    opened = Cipher(ARC4(key), None).decryptor()
    return opened.update(data) + opened.finalize()


# RC2 (RFC 2268) with a key of 40 bits encrypts the certificates of stores that Java made until version 16, and no
# library at hand has it. These are digits of pi, as the RFC lists them.
_PI: Final = bytes.fromhex(
    "d978f9c419ddb5ed28e9fd794aa0d89dc67e37832b76538e624c6488448bfba2179a59f587b34f1361456d8d09817d32"
    "bd8f40eb86b77b0bf09521225c6b4e82"
    "54d66593ce60b21c7356c014a78cf1dc1275ca1f3bbee4d1423dd430a33cb626"
    "6fbf0eda4669075727f21d9bbc944303f811c7f690ef3ee706c3d52fc8661ed7"
    "08e8eade8052eef784aa72ac354d6a2a961ad2715a1549744b9fd05e0418a4ec"
    "c2e0416e0f51cbcc2491af50a1f47039997c3a8523b8b47afc02365b25559731"
    "2d5dfa98e38a92ae05df2910676cbac9d300e6cfe19ea82c6316013f58e289a9"
    "0d38341bab33ffb0bb480c5fb9b1cd2ec5f3db47e5a59c770aa62068fe7fc1ad"
)


def _rc2_words(key: bytes) -> list[int]:
    """Expand a key whose bits all count."""
    bits = len(key) * 8
    buffer = bytearray(key)
    while len(buffer) < 128:
        buffer.append(_PI[(buffer[-1] + buffer[-len(key)]) & 0xFF])
    count = (bits + 7) // 8
    buffer[128 - count] = _PI[buffer[128 - count] & (0xFF >> (8 * count - bits))]
    for at in range(127 - count, -1, -1):
        buffer[at] = _PI[buffer[at + 1] ^ buffer[at + count]]
    return [buffer[at] | buffer[at + 1] << 8 for at in range(0, 128, 2)]


def _rc2_cbc(key: bytes, start: bytes, data: bytes) -> bytes:
    words, before, plain = _rc2_words(key), start, bytearray()
    for at in range(0, len(data), 8):
        block = data[at : at + 8]
        opened = _rc2_block(words, block)
        plain += bytes(one ^ other for one, other in zip(opened, before, strict=True))
        before = block
    return bytes(plain)


def _rc2_block(words: list[int], block: bytes) -> bytes:
    parts = [block[at] | block[at + 1] << 8 for at in range(0, 8, 2)]
    place = 63
    for rounds in (5, 6, 5):
        for _ in range(rounds):
            for part, turn in ((3, 5), (2, 3), (1, 2), (0, 1)):
                value = parts[part]
                value = (value >> turn | value << (16 - turn)) & 0xFFFF
                one, two, three = parts[part - 1], parts[part - 2], parts[part - 3]
                parts[part] = (value - words[place] - (one & two) - (~one & three)) & 0xFFFF
                place -= 1
        if place >= 0:
            for part in (3, 2, 1, 0):
                parts[part] = (parts[part] - words[parts[part - 1] & 63]) & 0xFFFF
    return b"".join(part.to_bytes(2, "little") for part in parts)
