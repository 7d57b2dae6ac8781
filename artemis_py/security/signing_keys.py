"""Where the keys come from that tokens are checked with: a file, or a set of keys in a file or at a URL."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final, Protocol, final
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

import jwt
from cryptography.hazmat.primitives.serialization import load_der_public_key, load_pem_public_key

from artemis_py.config.tables.acceptor import is_loopback
from artemis_py.errors import AuthenticatorError
from artemis_py.security.certificate import certificate_of, der_of
from artemis_py.security.users.reloaded import ReloadedFile

LIFETIME_S: Final = 300.0
"""After this time the keys at a URL are fetched again."""
RETRY_S: Final = 10.0
"""They are not fetched more often, whatever keys the tokens of strangers name."""
TIMEOUT_S: Final = 5.0
_SET_BYTES_MAX: Final = 1 << 20


class KeySourceError(AuthenticatorError):
    """Keys cannot be read or fetched; the text names the file or the URL, and never a key."""


class KeySource(Protocol):
    """Keys by their id. ``files`` are those they come from."""

    @property
    def files(self) -> tuple[ReloadedFile[Any], ...]:
        """The files of the keys."""

    def key_for(self, key_id: str | None) -> Any:
        """The key with this id (None: the token names none), or None. Raises KeySourceError."""


@final
@dataclass(frozen=True, slots=True)
class _Keys:
    """Keys by their id, None for one that has to do for any."""

    by_id: Mapping[str | None, Any] = field(repr=False)
    flaws: Mapping[str, str] = field(default_factory=dict)


@final
class KeyFile:
    """One key in a file: a public key or certificate as PEM, or a secret of at least ``secret_bytes_min`` bytes. It is
    read again when it changes; see ``ReloadedFile``. Raises AuthenticatorError if it could never be read.
    """

    __slots__ = ("_secret_bytes_min", "files")

    def __init__(self, path: Path, *, secret_bytes_min: int = 0) -> None:
        self._secret_bytes_min: Final = secret_bytes_min
        self.files: Final = (ReloadedFile[_Keys](path, self._parse, worse=_cut),)
        self.key_for(None)

    def key_for(self, key_id: str | None) -> Any:
        """The key, whatever its id."""
        return self.files[0].value().by_id[None]

    def _parse(self, content: bytes) -> _Keys:
        if self._secret_bytes_min:
            secret = content.rstrip(b"\r\n")
            if len(secret) < self._secret_bytes_min:
                raise KeySourceError(
                    f"the secret is too short: {len(secret)} bytes, at least {self._secret_bytes_min} are needed"
                )
            return _Keys({None: secret})
        try:
            if b"BEGIN CERTIFICATE" in content:
                key = certificate_of(der_of(content[content.index(b"-----BEGIN") :])).key
                return _Keys({None: load_der_public_key(key)})
            return _Keys({None: load_pem_public_key(content)})
        except ValueError:
            raise KeySourceError("it has no public key in PEM (BEGIN PUBLIC KEY or CERTIFICATE)") from None


def _cut(before: _Keys, now: _Keys) -> str:
    old, new = before.by_id[None], now.by_id[None]
    if isinstance(old, bytes) and old != new and old.startswith(new):
        return "the secret is the beginning of the one in force, so it may have been cut"
    return ""


@final
class SetFile:
    """A JSON Web Key Set in a file, which is read again when it changes; see ``ReloadedFile``."""

    __slots__ = ("files",)

    def __init__(self, path: Path) -> None:
        self.files: Final = (ReloadedFile[_Keys](path, lambda content: _Keys(keys_of(content, str(path)))),)
        self.key_for(None)

    def key_for(self, key_id: str | None) -> Any:
        """The key with this id, or the only one if none is named."""
        return self.files[0].value().by_id.get(key_id)


class _NoRedirect(HTTPRedirectHandler):
    """Keys come from where the configuration says, and from nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        return None


@final
class SetUrl:
    """A JSON Web Key Set at a URL. It is fetched at the first token, and again when it is old or does not have a key,
    by one thread at a time; meanwhile, and when that fails, the others use the keys that were fetched before.
    """

    __slots__ = ("_clock_s", "_failure", "_keys", "_lock", "_opener", "_tried_s", "_url", "fetched", "files")

    def __init__(self, url: str, ca_file: str | None = None, clock_s: Callable[[], float] = time.monotonic) -> None:
        parts = urlsplit(url)
        host = parts.hostname or ""
        if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
            raise KeySourceError(f"keys must be fetched over https, except from this machine: {host or url!r}")
        try:
            context = ssl.create_default_context(cafile=ca_file)
        except OSError as error:
            raise KeySourceError(
                f"{ca_file} has no certificates that can be trusted: {error.strerror or error}"
            ) from None
        self._url: Final = url
        self.files: Final = ()
        self._clock_s: Final = clock_s
        self._opener: Final = build_opener(_NoRedirect, HTTPSHandler(context=context))
        self._lock: Final = threading.Lock()
        self._keys: dict[str | None, Any] | None = None
        self._tried_s = float("-inf")
        self._failure = ""
        self.fetched = 0
        """How often the keys were fetched."""

    def key_for(self, key_id: str | None) -> Any:
        """The key with this id, or the only one if none is named. Raises KeySourceError if it is unknown and the keys
        cannot be fetched.
        """
        keys = self._keys
        key = None if keys is None else keys.get(key_id)
        since_s = self._clock_s() - self._tried_s
        if since_s >= (LIFETIME_S if key is not None else RETRY_S):
            self._refresh(may_wait=key is None)
            key = None if self._keys is None else self._keys.get(key_id)
        if key is None and self._failure:
            raise KeySourceError(self._failure)
        return key

    def _refresh(self, *, may_wait: bool) -> None:
        """Fetch the keys, unless another thread does; then wait for it, or go on with the old ones."""
        tried_s = self._tried_s
        if not self._lock.acquire(blocking=may_wait):
            return
        try:
            if self._tried_s == tried_s:
                self._fetch()
                self._tried_s = self._clock_s()
        finally:
            self._lock.release()

    def _fetch(self) -> None:
        self.fetched += 1
        try:
            with self._opener.open(Request(self._url), timeout=TIMEOUT_S) as answer:
                content = answer.read(_SET_BYTES_MAX + 1)
            self._keys = keys_of(content, self._url)
            self._failure = ""
        except KeySourceError as error:
            self._failure = str(error)
        except (URLError, OSError, HTTPException) as error:
            self._failure = f"the keys at {self._url} cannot be fetched: {getattr(error, 'reason', error)}"


def keys_of(content: bytes, place: str) -> dict[str | None, Any]:
    """The keys of a JSON Web Key Set by id, with None for the only one. Raises KeySourceError. Keys for encryption,
    secrets and unknown kinds are left out.
    """
    if len(content) > _SET_BYTES_MAX:
        raise KeySourceError(f"the key set at {place} is larger than {_SET_BYTES_MAX} bytes")
    try:
        listed = json.loads(content)["keys"]
        found = [each for each in listed if each.get("use", "sig") == "sig" and each.get("kty") != "oct"]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise KeySourceError(f"there is no JSON Web Key Set at {place}") from None
    keys: dict[str | None, Any] = {}
    for each in found:
        try:
            key = jwt.PyJWK(each)
        except (jwt.PyJWTError, ValueError, TypeError, KeyError):
            continue
        keys.setdefault(key.key_id, key)
    if len(found) == 1 and keys:
        keys.setdefault(None, next(iter(keys.values())))
    if not keys:
        raise KeySourceError(f"the key set at {place} has no key for signatures")
    return keys
