"""Logs in with JWT bearer tokens: the password is a signed token that says who somebody is, with which roles, and until
when (RFC 7519). And where the keys come from that tokens are checked with: a file, or a set of keys in a file or at a
URL.
"""

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
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from cryptography.hazmat.primitives.serialization import load_der_public_key, load_pem_public_key

from artemis_py.config.tables.acceptor import is_loopback
from artemis_py.errors import ArtemisError, AuthenticatorError, NotYetError
from artemis_py.log_codes import REALM
from artemis_py.security.certificate import certificate_of, der_of
from artemis_py.security.identity import Credentials, Identity, options_of
from artemis_py.security.users.reloaded import ReloadedFile
from artemis_py.terminal_output import warn

try:
    import jwt
except ImportError:
    raise ImportError(
        "tokens need the library PyJWT; in a checkout of the broker: pip install '.[jwt]' (or with the path of its "
        "wheel instead of the dot)"
    ) from None

PUBLIC: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
SECRET: Final = ("HS256", "HS384", "HS512")
_PUBLIC_DEFAULT: Final = "RS256,ES256"
_SECRET_DEFAULT: Final = "HS256"
TOKEN_CHARACTERS_MAX: Final = 16384
_LEEWAY_S_MAX: Final = 300
_SECRET_BYTES_MIN: Final = 32
ANY_USER: Final = "token"
"""The user that stands for whoever the token names."""
MALFORMED: Final = (jwt.PyJWTError, ValueError, TypeError, KeyError, OverflowError, RecursionError)
"""What malformed tokens of strangers raise."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JwtOptions:
    """The options of a ``JwtAuthenticator``, texts as in broker.xml:

    - exactly one of ``key_file`` (a public key as PEM), ``secret_file`` (a secret that the issuer shares, at least 32
      bytes), ``jwks_file`` and ``jwks_url`` (a JSON Web Key Set, RFC 7517). Files are read again when they change, and
      a URL after five minutes or for a key that is new; it must be https unless it is on this machine, and ``ca_file``
      has the certificates to trust.
    - ``issuer`` and ``audience``: what ``iss`` must be and ``aud`` must contain; both are required.
    - ``algorithms``, separated by commas: RS256 and ES256, or HS256 with a secret.
    - ``user_claim`` ("sub") and ``roles_claim`` ("roles"): a name, or a path with dots such as ``realm_access.roles``.
      Roles are a list, or a text with blanks in between such as ``scope``.
    - ``leeway`` (30): by how many seconds the clocks may differ.
    """

    issuer: str
    audience: str
    key_file: str = ""
    secret_file: str = ""
    jwks_file: str = ""
    jwks_url: str = ""
    ca_file: str = ""
    algorithms: str = ""
    user_claim: str = "sub"
    roles_claim: str = "roles"
    leeway: str = "30"


@final
class JwtAuthenticator:
    """An ``Authenticator`` with ``JwtOptions``.

    A token must have ``exp``; the login ends then. The user that the client names must be missing, "token", or the one
    in the token. A password that is no token is not this authenticator's: nobody logs in with it here.
    """

    __slots__ = ("_algorithms", "_audience", "_issuer", "_keys", "_leeway_s", "_roles_claim", "_user_claim")

    def __init__(self, **options: str) -> None:
        """Read the options, and the keys if they are in a file. Raises ArtemisError for an option that does not
        exist, is missing, or makes no sense.
        """
        given = options_of(JwtOptions, options)
        if not given.issuer or not given.audience:
            raise ArtemisError("issuer and audience must not be empty")
        self._issuer: Final = given.issuer
        self._audience: Final = given.audience
        self._user_claim: Final = given.user_claim
        self._roles_claim: Final = given.roles_claim
        self._leeway_s: Final = leeway_s(given.leeway)
        self._algorithms: Final = _algorithms(given.algorithms, is_secret=bool(given.secret_file))
        self._keys: Final = _key_source(given)

    @property
    def files(self) -> tuple[ReloadedFile[Any], ...]:
        """The files with its keys."""
        return self._keys.files

    @property
    def fetched_keys(self) -> tuple[FetchedKeys, ...]:
        """Its keys, if they are at a URL."""
        return (self._keys,) if isinstance(self._keys, FetchedKeys) else ()

    def authenticate(self, credentials: Credentials) -> Identity | None:
        """Return who the token names, None if the token is not good. Raises AuthenticatorError if the keys cannot be
        read.
        """
        token = credentials.password
        if token is None or len(token) > TOKEN_CHARACTERS_MAX or token.count(".") != 2:
            return None
        try:
            claims = self._claims(token)
        except MALFORMED:
            return None
        if claims is None:
            return None
        user = claim(claims, self._user_claim)
        if not isinstance(user, str) or not user or credentials.user not in (None, "", ANY_USER, user):
            return None
        expires_ms = (int(claims["exp"]) + self._leeway_s) * 1000
        return Identity(user, roles_in(claim(claims, self._roles_claim)), expires_ms)

    def _claims(self, token: str) -> dict[str, Any] | None:
        header = jwt.get_unverified_header(token)
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm not in self._algorithms or "crit" in header or not isinstance(key_id, str | None):
            return None
        key = self._keys.key_for(key_id)
        if key is None:
            return None
        claims: dict[str, Any] = jwt.decode(
            token,
            key=key,
            algorithms=[algorithm],
            issuer=self._issuer,
            audience=self._audience,
            leeway=self._leeway_s,
            options={"require": ["exp", "iss", "aud"]},
        )
        return claims


def unverified(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and the claims of a token, which anybody may have written. Raises one of ``MALFORMED``."""
    found = jwt.decode_complete(token, options={"verify_signature": False})
    return found["header"], found["payload"]


def is_signed(token: str, key: Any, algorithm: str) -> bool:
    """Did the owner of this key sign the token? Raises one of ``MALFORMED``."""
    try:
        jwt.PyJWS().decode(token, key=key, algorithms=[algorithm])
    except jwt.InvalidSignatureError:
        return False
    return True


def claim(claims: Mapping[str, Any], name: str) -> Any:
    """The value of a claim with this name, or at this path with dots; None if there is none. Names of claims may
    contain dots themselves, so the name comes first.
    """
    found: Any = claims
    if name in claims:
        return claims[name]
    for part in name.split("."):
        if not isinstance(found, Mapping) or part not in found:
            return None
        found = found[part]
    return found


def roles_in(value: Any) -> frozenset[str]:
    """The roles in a claim: a list of texts, or one text with blanks in between. Anything else has none."""
    if isinstance(value, str):
        return frozenset(value.split())
    if isinstance(value, list):
        return frozenset(each for each in value if isinstance(each, str) and each)
    return frozenset()


def leeway_s(text: str) -> int:
    """The option ``leeway``. Raises ArtemisError."""
    if not (text.isascii() and text.isdigit()) or int(text) > _LEEWAY_S_MAX:
        raise ArtemisError(f"leeway must be a number of seconds up to {_LEEWAY_S_MAX}, not {text!r}")
    return int(text)


def _algorithms(text: str, *, is_secret: bool) -> frozenset[str]:
    """A public key must never serve as a shared secret, so only algorithms of one kind go with a key."""
    known = SECRET if is_secret else PUBLIC
    names = [name.strip() for name in (text or (_SECRET_DEFAULT if is_secret else _PUBLIC_DEFAULT)).split(",")]
    for name in names:
        if name not in known:
            kind = "a secret" if is_secret else "public keys"
            raise ArtemisError(f"algorithm {name} does not go with {kind}; allowed: {', '.join(known)}")
    return frozenset(names)


def _key_source(given: JwtOptions) -> KeySource:
    named = [each for each in (given.key_file, given.secret_file, given.jwks_file, given.jwks_url) if each]
    if len(named) != 1:
        raise ArtemisError("exactly one of key-file, secret-file, jwks-file and jwks-url must be given")
    if given.jwks_url:
        url, web = safe_url(given.jwks_url, "the keys"), WebSource(given.ca_file or None)
        return FetchedKeys(given.issuer, lambda: keys_of(web.get(url, "the keys"), url))
    if given.jwks_file:
        return SetFile(Path(given.jwks_file))
    return KeyFile(Path(named[0]), secret_bytes_min=_SECRET_BYTES_MIN if given.secret_file else 0)


# ---- keys ------------------------------------------------------------------------------------------------------------

LIFETIME_S: Final = 300.0
"""After this time the keys at a URL are fetched again."""
RETRY_S: Final = 10.0
"""They are not fetched more often, whatever keys the tokens of strangers name."""
TIMEOUT_S: Final = 5.0
_DOCUMENT_BYTES_MAX: Final = 1 << 20


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


def safe_url(url: str, what: str) -> str:
    """The URL, if nobody on the way can change what is there: it is https, or on this machine. ``what`` is there, for
    the error. Raises KeySourceError.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        raise KeySourceError(f"{what}: {url!r} is not a URL") from None
    if not host or (parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host))):
        raise KeySourceError(f"{what} must be at an https URL, except on this machine: {host or url!r}")
    return url


@final
class WebSource:
    """Fetches small documents from an issuer of tokens. ``ca_file`` has the certificates to trust, those of the system
    without one. Raises KeySourceError.
    """

    __slots__ = ("_opener",)

    def __init__(self, ca_file: str | None = None) -> None:
        try:
            context = ssl.create_default_context(cafile=ca_file)
        except OSError as error:
            raise KeySourceError(
                f"{ca_file} has no certificates that can be trusted: {error.strerror or error}"
            ) from None
        self._opener: Final = build_opener(_NoRedirect, HTTPSHandler(context=context))

    def fetch(self, request: Request, what: str) -> bytes:
        """The document. Blocks for a few seconds at most. Raises KeySourceError, and HTTPError where the issuer
        refuses; ``what`` says in the error what was asked for.
        """
        until_s = time.monotonic() + 2 * TIMEOUT_S
        content = b""
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as answer:
                while piece := answer.read1(65536):
                    content += piece
                    if len(content) > _DOCUMENT_BYTES_MAX:
                        raise KeySourceError(
                            f"{what} at {request.full_url} cannot be used: larger than {_DOCUMENT_BYTES_MAX} bytes"
                        )
                    if time.monotonic() > until_s:  # it sends, but never to an end
                        raise KeySourceError(f"{what} at {request.full_url} cannot be fetched: it takes too long")
        except HTTPError:
            raise
        except (URLError, OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise KeySourceError(f"{what} at {request.full_url} cannot be fetched: {reason}") from None
        return content

    def get(self, url: str, what: str) -> bytes:
        """As ``fetch``; that the issuer refuses is a KeySourceError, too."""
        try:
            return self.fetch(Request(url, headers={"Accept": "application/json"}), what)
        except HTTPError as refused:
            refused.close()
            raise KeySourceError(f"{what} at {url} cannot be fetched: {refused}") from None


@final
class FetchedKeys:
    """The keys that ``fetch`` gets from an issuer: at the first token, and again when they are old or lack one.

    A thread of its own fetches them, one at a time: no login waits in a thread for an issuer that hangs. Until they are
    there, and when they cannot be fetched, the ones from before count. ``issuer`` is for the log.
    """

    __slots__ = ("_clock_s", "_fetch", "_is_known", "_keys", "_lock", "_thread", "_tried_s", "complaint", "issuer")

    def __init__(
        self,
        issuer: str,
        fetch: Callable[[], Mapping[str | None, Any]],
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """``fetch`` raises KeySourceError."""
        self.issuer = issuer
        self._fetch: Final = fetch
        self._clock_s: Final = clock_s
        self._lock: Final = threading.Lock()
        self._keys: Mapping[str | None, Any] = {}
        self._is_known = False
        self._tried_s = float("-inf")
        self._thread: threading.Thread | None = None
        self.complaint = ""
        """Why they could not be fetched the last time; empty: they could."""

    @property
    def files(self) -> tuple[ReloadedFile[Any], ...]:
        """None."""
        return ()

    def key_for(self, key_id: str | None) -> Any:
        """The key with this id, or the only one if none is named; None if the issuer has none. Raises NotYetError while
        they are being fetched, and KeySourceError if they cannot be.
        """
        with self._lock:
            key = self._keys.get(key_id)
            since_s = self._clock_s() - self._tried_s
            if self._thread is None and since_s >= (LIFETIME_S if key is not None else RETRY_S):
                self._thread = threading.Thread(target=self._run, name="keys of tokens", daemon=True)
                self._thread.start()
            if key is None and self._thread is not None:
                raise NotYetError(f"the keys of {self.issuer} are being fetched")
            if key is None and self.complaint:
                raise KeySourceError(self.complaint)
            return key

    def settle(self) -> None:
        """Wait until they are fetched, if they are being fetched."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def follow(self, before: FetchedKeys) -> None:
        """This takes the place of another one of the same issuer, at a reload of the configuration: what is known there
        counts here until it is fetched again, at the next token.
        """
        with before._lock:
            keys, complaint, is_known = before._keys, before.complaint, before._is_known
        with self._lock:
            if not self._is_known:
                self._keys, self.complaint, self._is_known = keys, complaint, is_known

    def _run(self) -> None:
        keys: Mapping[str | None, Any] | None = None
        complaint = ""
        try:
            keys = self._fetch()
        except KeySourceError as known:
            complaint = str(known)
        except Exception as fault:  # else nobody would ever fetch them again
            complaint = f"the keys of {self.issuer} cannot be fetched: {type(fault).__name__}"
        with self._lock:
            before, self.complaint = self.complaint, complaint
            if keys is not None:
                self._keys, self._is_known = keys, True
            self._tried_s = self._clock_s()
            self._thread = None
        if complaint and not before:
            kept = "those that were fetched before stay in force" if self._is_known else "tokens cannot be checked"
            warn(f"warning: {complaint}; {kept}", REALM, issuer=self.issuer)
        elif before and not complaint:
            warn("its keys can be fetched again", REALM, issuer=self.issuer)


def keys_of(content: bytes, place: str) -> dict[str | None, Any]:
    """The keys of a JSON Web Key Set by id, with None for the only one. Raises KeySourceError. Keys for encryption,
    secrets and unknown kinds are left out.
    """
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
