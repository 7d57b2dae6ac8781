"""Results of earlier logins, by a keyed digest of the credentials."""

from __future__ import annotations

import hmac
import secrets
from typing import Final, Generic, TypeVar, final

from artemis_py.security.identity import Credentials

Result = TypeVar("Result")

_ABSENT: Final = 0xFFFFFFFF


@final
class Digests:
    """Digests of credentials under a key that no other process has, so that a look at the memory of a broker shows no
    password, and not even a hash that could be tried offline later.
    """

    __slots__ = ("_key",)

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def of(self, credentials: Credentials) -> bytes:
        """The digest of user, password, certificate and domain. The peer does not count."""
        texts = (credentials.user, credentials.password, credentials.domain)
        parts = [None if text is None else text.encode("utf-8", "surrogatepass") for text in texts]
        parts.append(credentials.certificate)
        message = b"".join([_ABSENT.to_bytes(4) if part is None else len(part).to_bytes(4) + part for part in parts])
        return hmac.digest(self._key, message, "sha256")


@final
class Remembered(Generic[Result]):
    """At most ``entries_max`` results, each for ``lifetime_ms``; the oldest one makes room. Times are steady."""

    __slots__ = ("_entries", "_entries_max", "_lifetime_ms")

    def __init__(self, entries_max: int, lifetime_ms: int) -> None:
        self._entries: dict[bytes, tuple[int, Result]] = {}
        self._entries_max = entries_max
        self._lifetime_ms = lifetime_ms

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, digest: bytes, result: Result, now_ms: int) -> None:
        """Remember a result from now on."""
        entries = self._entries
        entries.pop(digest, None)
        if self._entries_max <= 0 or self._lifetime_ms <= 0:
            return
        if len(entries) >= self._entries_max:
            del entries[next(iter(entries))]
        entries[digest] = (now_ms + self._lifetime_ms, result)

    def get(self, digest: bytes, now_ms: int) -> Result | None:
        """A result that is not too old, or None."""
        found = self._entries.get(digest)
        if found is None:
            return None
        if found[0] <= now_ms:
            del self._entries[digest]
            return None
        return found[1]

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()

    def forget(self, digest: bytes) -> None:
        """Something else is known now."""
        self._entries.pop(digest, None)
