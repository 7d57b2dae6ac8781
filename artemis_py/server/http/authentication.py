"""Who sends a request, whether that is so, and what they may do: logins and permissions of HTTP."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Final, final

from artemis_py.config.tables.acceptor import AcceptorConfig, is_loopback
from artemis_py.errors import NotAllowedError
from artemis_py.management.operation import Guard, Open
from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.login import Login, Logins
from artemis_py.security.rights import Authorizer, Peer
from artemis_py.server import operational_log as audit
from artemis_py.server.http.connection_limit import HttpClient
from artemis_py.server.http.requests import Request, Response, text_response
from artemis_py.server.http.routing import Route
from artemis_py.server.security import Security

# ---- credentials -----------------------------------------------------------------------------------------------------
#
# Who a request says it is: the header Authorization, with Basic (RFC 7617) or Bearer (RFC 6750).


CHALLENGES: Final = (
    ("WWW-Authenticate", 'Basic realm="artemis", charset="UTF-8"'),
    ("WWW-Authenticate", 'Bearer realm="artemis"'),
)
"""The headers of a 401: what a client may answer."""

_SCHEME: Final = re.compile(r"(?P<name>[A-Za-z]+) +(?P<rest>[A-Za-z0-9._~+/-]+=*)")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def credentials_of(authorization: str | None, nobody: Credentials) -> Credentials | None:
    """``nobody`` with the user and password, or the token as the password, of the header's value. Without a header it
    is ``nobody`` itself. None if the header cannot be read.
    """
    if authorization is None:
        return nobody
    found = _SCHEME.fullmatch(authorization.strip())
    if found is None:
        return None
    scheme, encoded = found["name"].lower(), found["rest"]
    if scheme == "bearer":
        return replace(nobody, password=encoded)
    return _pair(encoded, nobody) if scheme == "basic" else None


def _pair(encoded: str, nobody: Credentials) -> Credentials | None:
    try:
        text = base64.b64decode(encoded, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None
    user, colon, password = text.partition(":")
    if not colon or _CONTROL.search(text):
        return None
    return replace(nobody, user=user, password=password)


# ---- authentication --------------------------------------------------------------------------------------------------
#
# Who may use which route of an acceptor: logins and permissions, as Artemis checks its management operations. An
# operation of the broker has the address ``mops.broker.OPERATION`` (``management-rbac-prefix`` is the first word),
# and one of a queue ``mops.queue.NAME.OPERATION``. Reading needs the permission ``view`` there, changing something
# needs ``edit``.


_OPEN: Final = {
    "none": frozenset[str](),
    "health": frozenset({"health"}),
    "metrics": frozenset({"health", "metrics"}),
}
_READING: Final = frozenset({"GET", "HEAD"})
_LATER: Final = (("Retry-After", "5"),)
_UNREADABLE: Final = "the header Authorization cannot be read; write Basic with user:password in Base64, or Bearer"
_NO_LOGIN: Final = "log in with a user and password (Authorization: Basic) or a token (Authorization: Bearer)"


@final
class Authentication:
    """Logins and permissions of one acceptor. ``open_paths`` are the first parts of paths that need no login, such as
    ``metrics``. ``domain`` is the acceptor's ``securityDomain``. With ``checks_names`` the header ``Host`` is checked
    on open paths, too.
    """

    def __init__(
        self,
        logins: Logins,
        authorizer: Authorizer,
        *,
        prefix: str = "mops",
        open_paths: frozenset[str] = frozenset(),
        domain: str | None = None,
        checks_names: bool = False,
        note_refusal: Callable[[Login, str | None, str], None] | None = None,
    ) -> None:
        self.checks_names = checks_names
        self._logins = logins
        self._authorizer = authorizer
        self._prefix = prefix
        self._open_paths = open_paths
        self._domain = domain
        self._note_refusal = note_refusal

    @staticmethod
    def of(
        acceptor: AcceptorConfig,
        prefix: str,
        security: Security,
    ) -> Authentication:
        """Those of an acceptor, as its parameters say."""
        is_near = is_loopback(acceptor.host)
        opened = acceptor.params.get("openWithoutLogin", "metrics" if is_near else "none")
        return Authentication(
            security.logins,
            security.authorizer,
            prefix=prefix,
            open_paths=_OPEN[opened],
            domain=acceptor.params.get("securityDomain"),
            checks_names=is_near,
            note_refusal=security.note_refusal,
        )

    def needs_login(self, route: Route, method: str) -> bool:
        """Does a request need a login? One that no handler would answer needs none."""
        if not route.needs_login or method in route.open_methods or route.handler(method) is None:
            return False
        return route.path.split("/")[1] not in self._open_paths

    def still_allows(self, route: Route, request: Request, identity: Identity) -> bool:
        """May the user still have an answer that is under way? Nothing is counted, and nothing that changes something
        is broken off.
        """
        if route.checks_itself:
            return route.still_may is None or route.still_may(replace(request, identity=identity, user=identity.user))
        operation = route.operation(request.method)
        if operation is None or request.method not in _READING:
            return True
        return self._authorizer.rights_of(identity).may("view", self._address(operation, request))

    def _address(self, operation: str, request: Request) -> str:
        for name, value in request.parameters.items():
            operation = operation.replace(f"{{{name}}}", value)
        return f"{self._prefix}.{operation}"

    def begin_login(
        self,
        request: Request,
        client: HttpClient,
        acceptor: str,
        certificate: bytes | None,
        wake: Callable[[], None],
    ) -> Login | Response:
        """Begin the login of a request; a response if the request cannot even be tried."""
        nobody = Credentials(
            None,
            certificate=certificate,
            domain=self._domain,
            peer=client.peer,
            asks_first=True,
            address=client.address,
            acceptor=acceptor,
        )
        credentials = credentials_of(request.authorization, nobody)
        return _challenge(_UNREADABLE) if credentials is None else self._logins.begin(credentials, wake)

    def answer(
        self, request: Request, route: Route, login: Login, client: HttpClient, acceptor: str, *, has_credentials: bool
    ) -> Response | None:
        """Why the request is refused, or None; the audit log has who lacked a permission. ``has_credentials``: did the
        client send a password, a token or a certificate? Otherwise it is asked for one.
        """
        if login.identity is None and has_credentials and self._note_refusal is not None:
            credentials = credentials_of(request.authorization, Credentials(None))
            self._note_refusal(login, None if credentials is None else credentials.user, client.peer)
        if login.identity is None and login.is_open:
            return text_response(HTTPStatus.SERVICE_UNAVAILABLE, login.refusal, _LATER)
        if login.identity is None:
            return _challenge(login.refusal if has_credentials else _NO_LOGIN)
        if route.checks_itself:
            return None
        operation = route.operation(request.method)
        if operation is None:
            return text_response(HTTPStatus.FORBIDDEN, f"nobody may {request.method} {route.path}")
        permission = "view" if request.method in _READING else "edit"
        address = self._address(operation, request)
        try:
            peer = Peer(client.address, acceptor)
            self._authorizer.rights_of(login.identity, peer).demand(permission, address)
        except NotAllowedError as error:
            if not has_credentials:
                return _challenge(_NO_LOGIN)
            audit.tell_denied(operation, request.parameters, login.identity.user, client.address, str(error))
            advice = self._authorizer.how_to_grant(permission, address, self._prefix, _own_roles(login.identity))
            return text_response(HTTPStatus.FORBIDDEN, _with_advice(error, login.identity, advice))
        return None


def _with_advice(error: NotAllowedError, identity: Identity, advice: str) -> str:
    """What somebody may not do, with which roles, and what to write to grant it."""
    why = f"; {identity.why_these_roles}" if identity.why_these_roles else ""
    return f"{error}{why}; to grant it, {advice}"


def _own_roles(identity: Identity) -> frozenset[str]:
    """The roles that may be advised to be given more rights: not those of a provider, who may give them to anybody."""
    return frozenset() if identity.why_these_roles else identity.roles


def _challenge(reason: str) -> Response:
    return text_response(HTTPStatus.UNAUTHORIZED, reason, CHALLENGES)


# ---- rights of a request ---------------------------------------------------------------------------------------------
#
# What the user of a request may do, for handlers that check permissions themselves.


def guard_of(security: Security | None, prefix: str, request: Request) -> Guard:
    """The rights of the user; None as ``security``: nobody logs in. ``prefix`` is ``management-rbac-prefix``."""
    if security is None:
        return Open()
    if request.identity is None:
        return _NobodyGuard()
    return _UserGuard(security.authorizer, request.identity, Peer(request.address, request.acceptor), prefix)


@final
class _UserGuard:
    """The rights of one user."""

    def __init__(self, authorizer: Authorizer, identity: Identity, peer: Peer, prefix: str) -> None:
        self._authorizer = authorizer
        self._identity = identity
        self._rights = authorizer.rights_of(identity, peer)
        self._prefix = prefix

    def may(self, right: str, address: str) -> bool:
        """Is it permitted?"""
        return self._rights.may(right, f"{self._prefix}.{address}")

    def demand(self, right: str, address: str) -> None:
        """Raises NotAllowedError if it is not."""
        try:
            self._rights.demand(right, f"{self._prefix}.{address}")
        except NotAllowedError as error:
            advice = self._authorizer.how_to_grant(
                right, f"{self._prefix}.{address}", self._prefix, _own_roles(self._identity)
            )
            raise NotAllowedError(_with_advice(error, self._identity, advice)) from None


@final
class _NobodyGuard:
    """Nobody has logged in where users do: nothing is permitted."""

    def may(self, right: str, address: str) -> bool:
        """No."""
        return False

    def demand(self, right: str, address: str) -> None:
        """Raises NotAllowedError."""
        raise NotAllowedError(f"log in to {right} {address}")
