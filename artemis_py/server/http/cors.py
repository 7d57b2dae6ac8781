"""Cross-origin resource sharing (CORS): a browser lets pages of another origin read an answer, and send more than a
form could, only if the answer names that origin.

An origin is named only if ``allowedOrigins`` of the acceptor lists it; there is no ``*``. No answer has
``Access-Control-Allow-Credentials``: a page has to log in by itself, in the header ``Authorization``, and gets nothing
by a certificate or a login that the browser remembers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from http import HTTPStatus
from typing import Final, final

from artemis_py.server.http.requests import Request, Response

_PORTS: Final = {"http": ":80", "https": ":443"}
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
    return text.removesuffix(_PORTS.get(text.partition("://")[0], "\n"))


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
