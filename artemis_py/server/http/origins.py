"""Origins: the host names and web pages by which an acceptor may be used.

A web page may let its own host name resolve to the broker's address ("DNS rebinding"): a browser on the broker's
machine then takes the broker's responses for the page's own and lets the page read them. Such a request has the page's
name in ``Host``, so that header is checked. IP addresses are not names, and no one else controls ``localhost``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final, final

from artemis_py.server.http.requests import Request, Response

Pages = Callable[[str], bool]
"""May web pages of an origin use something?"""
_ANY: Final = "*"
_PORTS: Final = {"http": "80", "https": "443"}
_READING: Final = frozenset({"GET", "HEAD"})
_ELSEWHERE: Final = frozenset({"cross-site", "same-site"})


@final
class Hosts:
    """``Host`` may contain ``names``, ``localhost`` and ``own``, the acceptor's host, without ports; pages of these
    hosts may read, too. ``*``: any name. ``scheme`` is that of the acceptor's URLs. Pages that ``cors`` allows may use
    it, too.
    """

    __slots__ = ("_cors", "_names", "_origins", "_scheme")

    def __init__(
        self, names: Iterable[str] = (), own: str = "localhost", scheme: str = "http", cors: Cors | None = None
    ) -> None:
        self._cors = cors or Cors()
        self._scheme = scheme
        self._origins = frozenset(_split(name)[0] for name in names)
        self._names = self._origins | {"localhost", _split(own)[0]}

    def refusal(self, request: Request, pages: Pages | None = None) -> str | None:
        """Why a request about the log, the memory or an operation is refused, or None. ``Host`` may be missing
        (HTTP/1.0), but browsers always send it. A host in the target is checked, too. ``pages`` may be used, too.
        """
        for authority in (request.headers.get("host"), request.authority):
            if authority is not None and not self._allows(authority):
                shown = authority.rpartition("@")[2][:100]
                return (
                    f"the host name {shown!r} may not be used for the log, /memory and /api; use localhost or the "
                    "broker's IP address, or add allowedHosts=NAME to the acceptor's URI"
                )
        return self.page_refusal(request, pages)

    def page_refusal(self, request: Request, pages: Pages | None = None) -> str | None:
        """Why a request is refused because a web page of somebody else sent it, or None. Browsers say so in ``Origin``,
        or only in ``Sec-Fetch-Site`` (a picture, a script). A link that a person follows is no such request.
        """
        headers = request.headers
        origin = headers.get("origin")
        is_other = origin is not None and not self._allows_origin(origin, headers.get("host", ""))
        if origin is not None and is_other and (pages is None or not pages(origin)):
            return (
                f"web pages of {origin[:100]!r} may not use the broker; the acceptor's allowedOrigins lists those that "
                "may"
            )
        is_page = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        is_link = is_page and request.method in _READING
        if origin is None and headers.get("sec-fetch-site") in _ELSEWHERE and not is_link:
            return "a web page of another site sent this, and such pages may not use the broker"
        return None

    def _allows(self, authority: str) -> bool:
        name, _ = _split(authority)
        return name in self._names or _ANY in self._names or _is_number(name)

    def _allows_origin(self, origin: str, host: str) -> bool:
        """Pages of the broker's own host and port, of the listed hosts, and of the listed origins are allowed; an IP
        address may belong to anyone.
        """
        if self._cors.allows(origin):
            return True
        scheme, separator, authority = origin.partition("://")
        if not separator:
            return False
        if scheme == self._scheme and self._split(authority) == self._split(host):
            return True
        return not self._origins.isdisjoint((_split(authority)[0], _ANY))

    def _split(self, authority: str) -> tuple[str, str]:
        """The host, and the port that counts."""
        host, port = _split(authority)
        return host, port or _PORTS[self._scheme]


def _split(authority: str) -> tuple[str, str]:
    """The host in lower case, without brackets and a final dot, and the port, empty if there is none."""
    text = authority.strip().lower()
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        return host, rest.removeprefix(":")
    host, _, port = text.partition(":")
    return host.removesuffix("."), port


def _is_number(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


# ---- cross-origin resource sharing -----------------------------------------------------------------------------------
#
# CORS: a browser lets pages of another origin read an answer, and send more than a form could, only if the answer names
# that origin.
#
# An origin is named only if ``allowedOrigins`` of the acceptor lists it; there is no ``*``. No answer has
# ``Access-Control-Allow-Credentials``: a page has to log in by itself, in the header ``Authorization``, and gets
# nothing by a certificate or a login that the browser remembers.


_ALLOWED: Final = (
    ("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE"),
    ("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, Last-Event-ID"),
    ("Access-Control-Max-Age", "600"),
)
"""Of a preflight: what a page may send, and for how many seconds a browser need not ask again."""
_READABLE: Final = ("Access-Control-Expose-Headers", "Content-Disposition, Retry-After, WWW-Authenticate")
_VARY: Final = ("Vary", "Origin")
"""A cache must not give the answer for one origin to another, nor to a request without one."""
_NAMES: Final = "Access-Control-Allow-Origin"


def as_browsers_say(origin: str) -> str:
    """An origin as browsers send it: in lower case, without the usual port of its scheme."""
    text = origin.strip().lower()
    port = _PORTS.get(text.partition("://")[0])
    return text if port is None else text.removesuffix(f":{port}")


@final
class Cors:
    """The pages of other origins that may use one acceptor."""

    __slots__ = ("_origins",)

    def __init__(self, origins: Iterable[str] = ()) -> None:
        self._origins = frozenset(map(as_browsers_say, origins))

    def allows(self, origin: str) -> bool:
        """Is it listed?"""
        return origin in self._origins

    def preflight(self, request: Request) -> Response | None:
        """The answer to a browser that asks whether a listed page may send a request; None: it asks nothing."""
        headers = request.headers
        asks = request.method == "OPTIONS" and "access-control-request-method" in headers
        if not asks or not self.allows(headers.get("origin", "")):
            return None
        return Response(HTTPStatus.NO_CONTENT, "text/plain", b"", _ALLOWED)

    def marked(self, response: Response, request: Request | None) -> Response:
        """The answer with the origin that may read it, if the request is of a listed one."""
        if not self._origins:
            return response
        origin = "" if request is None else request.headers.get("origin", "")
        named = any(name == _NAMES for name, _ in response.headers)
        own = ((_NAMES, origin), _READABLE) if self.allows(origin) and not named else ()
        return replace(response, headers=(*response.headers, *own, _VARY))
