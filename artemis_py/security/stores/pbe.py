"""Decryption by a password, of keys and certificates in key stores: PBES2 (RFC 8018), and the older way of PKCS12 (RFC
7292, appendix B) with its ciphers.
"""

from __future__ import annotations

import hashlib
from typing import Final

from artemis_py.security.der import INTEGER, SEQUENCE, Item, sequence


class WrongPasswordError(ValueError):
    """The password does not fit what it is to open."""


ROUNDS_MAX: Final = 10_000_000
"""More would take minutes."""
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
_KEY, _START, MAC = 1, 2, 3
"""What a password is made into."""


def decrypted(algorithm: Item, data: bytes, password: str) -> bytes:
    """Return what was encrypted with an AlgorithmIdentifier. Raises ValueError, which may mean a wrong password."""
    kind, *params = sequence(algorithm)
    if kind.oid == _PBES2:
        derivation, scheme = sequence(params[0] if params else kind, 2)[:2]
        cipher, start = sequence(scheme, 2)[:2]
        if cipher.oid not in _CIPHERS:
            raise ValueError(f"it is encrypted in a way that is not known here ({cipher.oid})")
        name, size = _CIPHERS[cipher.oid]
        return decrypted_cbc(name, key_of(derivation, password, size), start.octets, data)
    if kind.oid not in _OLD_CIPHERS or not params:
        raise ValueError(f"it is encrypted in a way that is not known here ({kind.oid})")
    name, key_bytes, start_bytes = _OLD_CIPHERS[kind.oid]
    salt, rounds = sequence(params[0], 2)[:2]
    key = derived("sha1", password, salt.octets, _checked(rounds), _KEY, key_bytes)
    if name == "RC4":
        return _rc4(key, data)
    return decrypted_cbc(name, key, derived("sha1", password, salt.octets, _checked(rounds), _START, start_bytes), data)


def key_of(derivation: Item, password: str, size: int) -> bytes:
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
    return hashlib.pbkdf2_hmac(hash_of(rest[0] if rest else None), secret, salt, _checked(fields[1]), size)


def hash_of(algorithm: Item | None) -> str:
    """Return the name of the hash of an HMAC; without one it is SHA-1. Raises ValueError."""
    if algorithm is None or algorithm.tag != SEQUENCE:
        return "sha1"
    oid = sequence(algorithm)[0].oid
    if oid not in _HASHES:
        raise ValueError(f"it uses a hash that is not known here ({oid})")
    return _HASHES[oid]


def derived(hash_name: str, password: str | None, salt: bytes, rounds: int, purpose: int, size: int) -> bytes:
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
        raise WrongPasswordError("the password is wrong")
    return plain[:-count]


def _checked(rounds: Item) -> int:
    if not 0 < rounds.number <= ROUNDS_MAX:
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
