"""Passwords as a users file keeps them: plain, or hashed as ``ENC(iterations:salt:hash)``.

The hash is Artemis' (``DefaultSensitiveStringCodec``, one-way): PBKDF2 with HMAC-SHA1 over the password in UTF-8.
Iterations and lengths are read from the text, so Artemis reads what is written here with more iterations than its own
1,024.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from typing import ClassVar, Final, final

ITERATIONS: Final = 100_000
"""Of a hash written here. A login that verifies one costs about a tenth of a second of one processor."""
_SALT_BYTES: Final = 32
_HASH_BYTES: Final = 64
_BLOCK_BYTES: Final = 20
"""PBKDF2 works for each block of HMAC-SHA1's length."""
_ITERATIONS_MAX: Final = 2**31 - 1
_HEX: Final = re.compile(r"[0-9A-Fa-f]{2,}")
EMPTY: Final = "the password is empty"
_PREFIX: Final = "ENC("
_SUFFIX: Final = ")"


@final
@dataclass(frozen=True, slots=True)
class PlainPassword:
    """A password as it was written."""

    text: str = field(repr=False)

    work: ClassVar[int] = 0

    def verify(self, password: str) -> bool:
        """Is this the password? Takes the same time wherever they differ. An empty one never is."""
        return hmac.compare_digest(_digest(self.text), _digest(password)) and bool(self.text)


@final
@dataclass(frozen=True, slots=True)
class HashedPassword:
    """A password that can be verified but not read."""

    iterations: int
    salt: bytes = field(repr=False)
    hash: bytes = field(repr=False)

    @property
    def work(self) -> int:
        """What a verification costs, in iterations of one block."""
        return self.iterations * -(-len(self.hash) // _BLOCK_BYTES)

    def verify(self, password: str) -> bool:
        """Is this the password? Costs ``work``, outside of Python's lock."""
        found = _pbkdf2(password, self.salt, self.iterations, len(self.hash))
        return hmac.compare_digest(found, self.hash)

    def __str__(self) -> str:
        return f"{_PREFIX}{self.iterations}:{self.salt.hex().upper()}:{self.hash.hex().upper()}{_SUFFIX}"


@final
@dataclass(frozen=True, slots=True)
class UnreadablePassword:
    """A text that is no password: nobody can log in with it. ``reason`` does not quote it. ``is_broken``: something is
    missing, which nobody writes on purpose.
    """

    reason: str
    is_broken: bool = False

    work: ClassVar[int] = 0

    def verify(self, password: str) -> bool:
        """Never."""
        del password
        return False


StoredPassword = PlainPassword | HashedPassword | UnreadablePassword


def stored_password(text: str) -> StoredPassword:
    """Return what the value of a users file means. What begins as a hash, with ``ENC(`` or a part of it, must be a
    whole one; nobody logs in with an empty password.
    """
    if not text:
        return UnreadablePassword(EMPTY, is_broken=True)
    if _PREFIX.startswith(text) or (text.startswith(_PREFIX) and not text.endswith(_SUFFIX)):
        return UnreadablePassword("a hash begins here that is not whole: its ) is missing", is_broken=True)
    if not text.startswith(_PREFIX):
        return PlainPassword(text)
    parts = text[len(_PREFIX) : -len(_SUFFIX)].split(":")
    if len(parts) > 1 and parts[1].isdigit() and not parts[0].isdigit():
        return UnreadablePassword("it is a SCRAM entry, which only AMQP uses")
    if len(parts) < 3:
        return UnreadablePassword("a hash is ENC(iterations:salt:hash)", is_broken=True)
    iterations, salt, digest = parts[:3]
    if not (iterations.isascii() and iterations.isdigit() and 0 < int(iterations[:20]) <= _ITERATIONS_MAX):
        return UnreadablePassword("its iterations are not a number from 1 to 2147483647", is_broken=True)
    if not _HEX.fullmatch(salt) or not _HEX.fullmatch(digest):
        return UnreadablePassword("its salt and hash are not hexadecimal", is_broken=True)
    return HashedPassword(int(iterations), _from_hex(salt), _from_hex(digest))


def hashed(password: str, iterations: int = ITERATIONS) -> HashedPassword:
    """Return a hash of the password with a new salt."""
    salt = secrets.token_bytes(_SALT_BYTES)
    return HashedPassword(iterations, salt, _pbkdf2(password, salt, iterations, _HASH_BYTES))


def spend(work: int) -> None:
    """Take as long as a verification that costs ``work``."""
    if work > 0:
        _pbkdf2("", b"nobody", work, _BLOCK_BYTES)


def _pbkdf2(password: str, salt: bytes, iterations: int, length: int) -> bytes:
    return hashlib.pbkdf2_hmac("sha1", _utf8(password), salt, iterations, length)


def _digest(password: str) -> bytes:
    """Equal lengths for a comparison that tells nothing, not even the length."""
    return hashlib.sha256(_utf8(password)).digest()


def _utf8(password: str) -> bytes:
    return password.encode("utf-8", "replace")


def _from_hex(text: str) -> bytes:
    """As Artemis reads it: an odd digit at the end does not count."""
    return bytes.fromhex(text[: len(text) // 2 * 2])
