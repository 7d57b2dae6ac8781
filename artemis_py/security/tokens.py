"""Logs in with JWT bearer tokens: the password is a signed token that says who somebody is, with which roles, and until
when (RFC 7519).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from artemis_py.errors import ArtemisError
from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.signing_keys import KeyFile, KeySource, SetFile, SetUrl
from artemis_py.security.users.reloaded import ReloadedFile

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
_TOKEN_CHARACTERS_MAX: Final = 16384
_LEEWAY_S_MAX: Final = 300
_SECRET_BYTES_MIN: Final = 32
ANY_USER: Final = "token"
"""The user that stands for whoever the token names."""
_WRONG: Final = (jwt.PyJWTError, ValueError, TypeError, KeyError, OverflowError, RecursionError)
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
        """Read the options, and the keys if they are in a file. Raises TypeError for an option that does not exist or
        is missing, and ArtemisError for one that makes no sense.
        """
        given = JwtOptions(**options)
        if not given.issuer or not given.audience:
            raise ArtemisError("issuer and audience must not be empty")
        self._issuer: Final = given.issuer
        self._audience: Final = given.audience
        self._user_claim: Final = given.user_claim
        self._roles_claim: Final = given.roles_claim
        self._leeway_s: Final = _leeway_s(given.leeway)
        self._algorithms: Final = _algorithms(given.algorithms, is_secret=bool(given.secret_file))
        self._keys: Final = _key_source(given)

    @property
    def files(self) -> tuple[ReloadedFile[Any], ...]:
        """The files with its keys."""
        return self._keys.files

    def authenticate(self, credentials: Credentials) -> Identity | None:
        """Return who the token names, None if the token is not good. Raises AuthenticatorError if the keys cannot be
        read.
        """
        token = credentials.password
        if token is None or len(token) > _TOKEN_CHARACTERS_MAX or token.count(".") != 2:
            return None
        try:
            claims = self._claims(token)
        except _WRONG:
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


def _leeway_s(text: str) -> int:
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
        return SetUrl(given.jwks_url, given.ca_file or None)
    if given.jwks_file:
        return SetFile(Path(given.jwks_file))
    return KeyFile(Path(named[0]), secret_bytes_min=_SECRET_BYTES_MIN if given.secret_file else 0)
