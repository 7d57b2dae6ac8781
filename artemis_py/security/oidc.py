"""Logs in with an OpenID provider such as Keycloak: a client sends the provider's token as its password, and people get
one in their browser (authorization code with PKCE). What the provider is and which keys it has, it says itself (OpenID
Connect Discovery 1.0).
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, final
from urllib.error import HTTPError
from urllib.parse import quote_plus, urlencode, urlsplit
from urllib.request import Request

from artemis_py.errors import ArtemisError, BadRequestError, CredentialsRefusedError, NotYetError
from artemis_py.security.identity import Credentials, Identity, WebLogin, options_of
from artemis_py.security.tokens import (
    ANY_USER,
    MALFORMED,
    PUBLIC,
    RETRY_S,
    TOKEN_CHARACTERS_MAX,
    FetchedKeys,
    KeySourceError,
    WebSource,
    claim,
    is_signed,
    keys_of,
    leeway_s,
    roles_in,
    safe_url,
    unverified,
)

ACCESS_TOKEN: Final = "access_token"
ID_TOKEN: Final = "id_token"
_METADATA_LIFETIME_S: Final = 3600.0
_SHOWN_MAX: Final = 200
_VALUES_SHOWN: Final = 20
_GIVEN_MAX: Final = 8192
_VERIFIER: Final = re.compile(r"[A-Za-z0-9._~-]{43,128}")
"""RFC 7636, 4.1."""
_NO_BEARER: Final = frozenset({"ID", "Refresh", "Offline", "Logout"})
"""What Keycloak writes into ``typ`` of tokens that are for something else."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OidcOptions:
    """The options of an ``OidcAuthenticator``, texts as in broker.xml:

    - ``issuer``: the provider's URL, as its tokens have it in ``iss``; below it is /.well-known/openid-configuration.
    - ``client_id``: the console's name at the provider, and ``client_secret`` its secret if it has one.
    - ``name``: what the console's button says; else the provider's host.
    - ``scope`` ("openid profile"): what the console asks for.
    - ``redirect_uri``: the console's URL as the provider knows it; else the one that the browser sees.
    - ``token`` ("access_token"): which of the provider's tokens counts; ``id_token`` if the other is no JWT.
    - ``audience``: what ``aud`` must contain; without it a token must be made for ``client_id``.
    - ``user_claim`` ("sub"): a name, or a path with dots.
    - ``roles_claim`` ("roles"): several of these, with commas in between; see ``roles_in``.
    - ``role_mapping``: ``ROLE=OTHER``, with commas in between: roles of the claim that have another name here.
    - ``leeway`` (30): by how many seconds the clocks may differ.
    - ``ca_file``: the certificates to trust.
    """

    issuer: str
    client_id: str
    client_secret: str = ""
    name: str = ""
    scope: str = "openid profile"
    redirect_uri: str = ""
    token: str = ACCESS_TOKEN
    audience: str = ""
    user_claim: str = "sub"
    roles_claim: str = "roles"
    role_mapping: str = ""
    leeway: str = "30"
    ca_file: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What a provider says of itself: the URLs of its endpoints; empty if it has none."""

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    end_session_endpoint: str
    has_fragments: bool
    """May the code come behind the # of a URL, which no server sees and no log contains?"""
    has_basic: bool
    """May a secret be sent in the header Authorization?"""


@final
class Provider:
    """An OpenID provider. What it says of itself is fetched when it is first needed, and again after an hour; while
    that fails, what it said before counts.
    """

    __slots__ = ("_clock_s", "_due_s", "_lock", "_metadata", "_web", "issuer", "keys")

    def __init__(self, issuer: str, ca_file: str | None = None, clock_s: Callable[[], float] = time.monotonic) -> None:
        """Raises KeySourceError for a URL that is not safe, and for certificates that cannot be read."""
        self.issuer: Final = safe_url(issuer, "the provider (option issuer)")
        self.keys: Final = FetchedKeys(issuer, self._fetch_keys, clock_s)
        self._web: Final = WebSource(ca_file)
        self._clock_s: Final = clock_s
        self._lock: Final = threading.Lock()
        self._metadata: Metadata | None = None
        self._due_s = float("-inf")

    def metadata(self) -> Metadata:
        """What it says of itself. Blocks. Raises KeySourceError if it could never be fetched."""
        with self._lock:
            known = self._metadata
            if known is not None and self._clock_s() < self._due_s:
                return known
            try:
                found = self._metadata = self._fetch_metadata()
            except KeySourceError:
                if known is None:
                    raise
                self._due_s = self._clock_s() + RETRY_S
                return known
            self._due_s = self._clock_s() + _METADATA_LIFETIME_S
            return found

    def _fetch_metadata(self) -> Metadata:
        url = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
        content = self._web.get(url, "what the provider says of itself")
        try:
            told = json.loads(content)
            issuer = told["issuer"]
            endpoints = {
                name: told.get(name, "") if name == "end_session_endpoint" else told[name]
                for name in ("authorization_endpoint", "token_endpoint", "jwks_uri", "end_session_endpoint")
            }
            modes, methods = told.get("response_modes_supported"), told.get("token_endpoint_auth_methods_supported")
            if not all(isinstance(endpoint, str) for endpoint in endpoints.values()):
                raise ValueError
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise KeySourceError(
                f"there is no OpenID provider at {url}: the document is not as Discovery says"
            ) from None
        if issuer != self.issuer:
            raise KeySourceError(
                f"the provider at {url} is the issuer {_shown(issuer)}, not {self.issuer!r}: write its own name into "
                "the option issuer"
            )
        for name, endpoint in endpoints.items():
            if endpoint:
                safe_url(endpoint, f"{name} of the provider")
        return Metadata(
            **endpoints,
            has_fragments=isinstance(modes, list) and "fragment" in modes,
            has_basic=not isinstance(methods, list) or "client_secret_basic" in methods,
        )

    def _fetch_keys(self) -> Mapping[str | None, Any]:
        url = self.metadata().jwks_uri
        return keys_of(self._web.get(url, "the keys"), url)

    def tokens(self, form: Mapping[str, str], client_id: str, secret: str) -> dict[str, Any]:
        """What its token endpoint answers (RFC 6749, 3.2). Blocks. Raises CredentialsRefusedError with its reason, and
        KeySourceError if it cannot be asked.
        """
        metadata = self.metadata()
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        sent = {**form, "client_id": client_id}
        if secret and metadata.has_basic:
            pair = f"{quote_plus(client_id)}:{quote_plus(secret)}"  # RFC 6749, 2.3.1
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        elif secret:
            sent["client_secret"] = secret
        request = Request(metadata.token_endpoint, urlencode(sent).encode(), headers, method="POST")
        try:
            told = json.loads(self._web.fetch(request, "the token endpoint"))
        except HTTPError as refused:
            raise _refusal(refused, self.issuer) from None
        except (ValueError, RecursionError):
            told = None
        if not isinstance(told, dict):
            raise KeySourceError(f"the token endpoint {metadata.token_endpoint} does not answer with tokens")
        return told


def _refusal(refused: HTTPError, issuer: str) -> ArtemisError:
    """The provider's words, if it has any (RFC 6749, 5.2)."""
    with refused:
        try:
            told = json.loads(refused.read(_GIVEN_MAX))
            code, more = str(told["error"]), str(told.get("error_description") or "")
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            code, more = "", ""
    if code and refused.code < 500:
        return CredentialsRefusedError(
            f"the provider {issuer} refuses it: {_plain(': '.join(filter(None, (code, more))))}"
        )
    return KeySourceError(f"the token endpoint of {issuer} answers with the status {refused.code}")


def _plain(text: str) -> str:
    """A short text without what would break a line."""
    return "".join(character if character.isprintable() else "?" for character in text[:_SHOWN_MAX])


def _shown(value: object) -> str:
    return _plain(repr(value))


@final
class OidcAuthenticator(WebLogin):
    """An ``Authenticator`` with ``OidcOptions``, and where people log in.

    The tokens of the provider that count are those of one kind, for this audience, and signed with a public key. The
    login ends with the token. A password that is no token is not this authenticator's.
    """

    def __init__(self, **options: str) -> None:
        """Read the options; nothing is fetched. Raises ArtemisError for an option that does not exist, is
        missing, or makes no sense.
        """
        given = options_of(OidcOptions, options)
        if not given.issuer or not given.client_id:
            raise ArtemisError("issuer and client-id must not be empty")
        if given.token not in (ACCESS_TOKEN, ID_TOKEN):
            raise ArtemisError(f"token must be {ACCESS_TOKEN} or {ID_TOKEN}, not {given.token!r}")
        if "openid" not in given.scope.split():
            raise ArtemisError(f"scope must contain openid: {given.scope!r}")
        if given.redirect_uri:
            safe_url(given.redirect_uri, "the console (option redirect-uri)")
        self.name = given.name or urlsplit(given.issuer).netloc
        self.now_s: Callable[[], float] = time.time
        """The date in seconds."""
        self.provider: Final = Provider(given.issuer, given.ca_file or None)
        self._given: Final = given
        self._leeway_s: Final = leeway_s(given.leeway)
        self._roles_claims: Final = [each.strip() for each in given.roles_claim.split(",") if each.strip()]
        self._role_mapping: Final = _mapping(given.role_mapping)

    @property
    def fetched_keys(self) -> tuple[FetchedKeys, ...]:
        """Those of the provider."""
        return (self.provider.keys,)

    # ---- tokens ----------------------------------------------------------------------------------

    def authenticate(self, credentials: Credentials) -> Identity | None:
        """Return who the token names, None for what is no token. Raises CredentialsRefusedError for one that does not
        count, NotYetError while keys are fetched, and KeySourceError if they cannot be.
        """
        token = credentials.password
        if token is None or len(token) > TOKEN_CHARACTERS_MAX or token.count(".") != 2:
            return None
        try:
            claims = self._claims(token)
        except MALFORMED:
            return None
        kind = claims.get("typ")
        is_of_id = "at_hash" in claims or (
            "nonce" in claims and kind != "Bearer"
        )  # Keycloak's old access tokens have one
        if self._given.token == ACCESS_TOKEN and (kind in _NO_BEARER or is_of_id):
            raise CredentialsRefusedError("the token is not an access token; the option token says which one counts")
        if "cnf" in claims:  # RFC 8705, 3: it counts only with a proof
            raise CredentialsRefusedError(
                "the token is bound to a key of its client (cnf), which cannot be checked here"
            )
        self._check_audience(claims)
        user = claim(claims, self._given.user_claim)
        if not isinstance(user, str) or not user:
            raise CredentialsRefusedError(
                f"the token has no claim {self._given.user_claim}, which names the user (option user-claim)"
            )
        if credentials.user not in (None, "", ANY_USER, user):
            raise CredentialsRefusedError(f"the token is not one of the user {_shown(credentials.user)}")
        roles = frozenset[str]().union(*(roles_in(claim(claims, path)) for path in self._roles_claims))
        names = frozenset(self._role_mapping.get(role, role) for role in roles)
        return Identity(user, names, int((claims["exp"] + self._leeway_s) * 1000), self._why(roles))

    def _claims(self, token: str) -> dict[str, Any]:
        """What a token says that this provider has signed, and that is good now. Raises as ``authenticate``, or one of
        ``MALFORMED``.
        """
        header, claims = unverified(token)
        algorithm, key_id, issuer = header.get("alg"), header.get("kid"), claims.get("iss")
        if issuer != self.provider.issuer:
            raise CredentialsRefusedError(
                f"the token is of the issuer {_shown(issuer)}, not {self.provider.issuer!r}", is_foreign=True
            )
        if algorithm not in PUBLIC or "crit" in header or not isinstance(key_id, str | None):
            raise CredentialsRefusedError(f"tokens with the algorithm {_shown(algorithm)} are not accepted")
        key = self.provider.keys.key_for(key_id)
        if key is None:
            raise CredentialsRefusedError(f"the provider has no key {_shown(key_id)}, with which the token is signed")
        if not is_signed(token, key, algorithm):
            raise CredentialsRefusedError("the token was not signed by its issuer")
        self._check_dates(claims)
        return claims

    def _check_dates(self, claims: Mapping[str, Any]) -> None:
        now_s, dates = self.now_s(), {name: claims[name] for name in ("exp", "nbf", "iat") if name in claims}
        for name, date in dates.items():
            if isinstance(date, bool) or not isinstance(date, int | float) or not math.isfinite(date):
                raise CredentialsRefusedError(f"the token's {name} is not a date")
        if "exp" not in dates:
            raise CredentialsRefusedError("the token has no exp: nobody says when it ends")
        if now_s >= dates["exp"] + self._leeway_s:
            raise CredentialsRefusedError(f"the token expired at {_date(dates['exp'])}")
        for name in ("nbf", "iat"):
            if dates.get(name, 0) > now_s + self._leeway_s:
                raise CredentialsRefusedError(
                    f"the token counts from {_date(dates[name])} on: the clocks of provider and broker differ"
                )

    def _check_audience(self, claims: Mapping[str, Any]) -> None:
        found, given = _texts(claims.get("aud")), self._given
        if given.audience:
            if given.audience not in found:
                raise CredentialsRefusedError(
                    f"the token is for the audience {_listed(found)}, not {given.audience!r} (option audience)"
                )
        elif given.client_id not in found and given.client_id not in (claims.get("azp"), claims.get("client_id")):
            raise CredentialsRefusedError(
                f"the token is for the audience {_listed(found)}, and not made for the client {given.client_id!r}; the "
                "option audience names another one"
            )

    def _why(self, roles: frozenset[str]) -> str:
        paths = " and ".join(self._roles_claims)
        return paths and (
            f"the token's {paths} gives the roles {_listed(sorted(roles))}, of which "
            '<role-mapping from="VALUE" to="ROLE"/> in security-settings makes others'
        )

    # ---- people ----------------------------------------------------------------------------------

    def begin(self, given: Mapping[str, str]) -> dict[str, Any]:
        """See WebLogin: ``redirectUri``, ``state``, ``nonce`` and ``verifier`` make the URL of an authorization
        request (RFC 6749, 4.1.1), which has only the digest of the verifier (RFC 7636, 4.3).
        """
        _demand(given, "redirectUri", "state", "nonce", "verifier")
        redirect = self._given.redirect_uri
        if redirect and urlsplit(redirect)[:2] != urlsplit(given["redirectUri"])[:2]:
            raise CredentialsRefusedError(
                f"{self.name} sends its users to the console at {redirect}: open it there (option redirect-uri)"
            )
        metadata = self.provider.metadata()
        parameters = {
            "response_type": "code",
            "client_id": self._given.client_id,
            "scope": self._given.scope,
            "redirect_uri": redirect or given["redirectUri"],
            "state": given["state"],
            "nonce": given["nonce"],
            "code_challenge": _challenge(given["verifier"]),
            "code_challenge_method": "S256",
        }
        if metadata.has_fragments:
            parameters["response_mode"] = "fragment"
        return {"url": _with_query(metadata.authorization_endpoint, parameters)}

    def redeem(self, given: Mapping[str, str]) -> dict[str, Any]:
        """See WebLogin: ``redirectUri``, with ``code``, ``issuer`` (empty if the provider did not send it with the
        code), ``verifier`` and ``nonce``, or with ``refreshToken``.
        """
        _demand(given, "redirectUri")
        if "refreshToken" in given:
            form = {"grant_type": "refresh_token", "refresh_token": given["refreshToken"]}
        else:
            form = self._code_form(given)
        told = self.provider.tokens(form, self._given.client_id, self._given.client_secret)
        if "refreshToken" not in given:
            self._check_nonce(told.get("id_token"), given["nonce"])
        bearer = told.get(self._given.token)
        if not isinstance(bearer, str) or bearer.count(".") != 2:
            raise CredentialsRefusedError(
                f"the provider sends no {self._given.token} that is a JWT; the option token names another one, and the "
                "provider may need another scope or audience"
            )
        identity = self._patiently(lambda: self.authenticate(Credentials(None, bearer)))
        if identity is None:
            raise CredentialsRefusedError(f"the provider's {self._given.token} cannot be read")
        return {
            "user": identity.user,
            "token": bearer,
            "lasts_ms": max(0, identity.expires_ms - self._leeway_s * 1000 - int(self.now_s() * 1000)),
            "refreshToken": _text(told.get("refresh_token")),
            "logout": self._logout(_text(told.get("id_token")), given["redirectUri"]),
        }

    def _code_form(self, given: Mapping[str, str]) -> dict[str, str]:
        _demand(given, "code", "verifier", "nonce")
        if given.get("issuer") not in (None, "", self.provider.issuer):  # RFC 9207, 2.4
            raise CredentialsRefusedError(
                f"the code is of the issuer {_shown(given['issuer'])}, not {self.provider.issuer!r}"
            )
        return {
            "grant_type": "authorization_code",
            "code": given["code"],
            "code_verifier": given["verifier"],
            "redirect_uri": self._given.redirect_uri or given["redirectUri"],
        }

    def _check_nonce(self, token: object, nonce: str) -> None:
        """OpenID Connect Core 1.0, 3.1.3.7: the ID token belongs to this login, and to no other."""
        if not isinstance(token, str):
            raise CredentialsRefusedError("the provider sends no ID token; scope must contain openid")
        try:
            claims = self._patiently(lambda: self._claims(token))
        except MALFORMED:
            raise CredentialsRefusedError("the provider's ID token cannot be read") from None
        if self._given.client_id not in _texts(claims.get("aud")):
            raise CredentialsRefusedError("the provider's ID token is for another client")
        if claims.get("nonce") != nonce:
            raise CredentialsRefusedError("the provider's ID token is of another login: its nonce is not this page's")

    def _patiently(self, ask: Callable[[], Any]) -> Any:
        """The answer, after the keys have been fetched."""
        try:
            return ask()
        except NotYetError:
            self.provider.keys.settle()
            return ask()

    def _logout(self, id_token: str | None, redirect: str) -> str | None:
        """Where a page ends the login at the provider (OpenID Connect RP-Initiated Logout 1.0). The hint saves a
        question; where it could serve to log in, it is in no URL.
        """
        endpoint = self.provider.metadata().end_session_endpoint
        if not endpoint:
            return None
        hint = {} if id_token is None or self._logs_in(id_token) else {"id_token_hint": id_token}
        redirect = self._given.redirect_uri or redirect
        return _with_query(endpoint, {"client_id": self._given.client_id, "post_logout_redirect_uri": redirect, **hint})

    def _logs_in(self, token: str) -> bool:
        """Would this token do as a password?"""
        try:
            return self.authenticate(Credentials(None, token)) is not None
        except CredentialsRefusedError:
            return False
        except ArtemisError:
            return True  # nobody knows


def _mapping(text: str) -> dict[str, str]:
    """The roles of ``role_mapping``. Raises ArtemisError."""
    found: dict[str, str] = {}
    for each in filter(None, map(str.strip, text.split(","))):
        outside, _, inside = (part.strip() for part in each.rpartition("="))
        if not outside or not inside:
            raise ArtemisError(f"role-mapping must be ROLE=OTHER, with commas in between: {each!r}")
        found[outside] = inside
    return found


def _demand(given: Mapping[str, str], *names: str) -> None:
    lacking = [name for name in names if not given.get(name)]
    if lacking:
        raise BadRequestError(f"the request lacks {', '.join(lacking)}")
    long = [name for name, text in given.items() if len(text) > _GIVEN_MAX]
    if long:
        raise BadRequestError(f"{long[0]} is longer than {_GIVEN_MAX} characters")


def _challenge(verifier: str) -> str:
    """RFC 7636, 4.2. Raises BadRequestError for a verifier that could be guessed."""
    if _VERIFIER.fullmatch(verifier) is None:
        raise BadRequestError("the verifier must have 43 to 128 letters, digits and -._~")
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


def _with_query(url: str, parameters: Mapping[str, str]) -> str:
    """The URL of an endpoint, which may have a query itself."""
    return f"{url}{'&' if '?' in url else '?'}{urlencode(parameters)}"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: object) -> list[str]:
    """``aud``: a text or a list of texts."""
    found = value if isinstance(value, list) else [value]
    return [each for each in found if isinstance(each, str)]


def _listed(values: list[str]) -> str:
    shown = ", ".join(_shown(value) for value in values[:_VALUES_SHOWN])
    more = len(values) - _VALUES_SHOWN
    return (f"{shown} and {more} more" if more > 0 else shown) or "none"


def _date(date_s: float) -> str:
    try:
        return datetime.fromtimestamp(date_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, OSError, ValueError):
        return f"{date_s:.0f} s"
