"""The host names and web pages by which an acceptor may be used.

A web page may let its own host name resolve to the broker's address ("DNS rebinding"): a browser on the broker's
machine then takes the broker's responses for the page's own and lets the page read them. Such a request has the page's
name in ``Host``, so that header is checked. IP addresses are not names, and no one else controls ``localhost``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from ipaddress import ip_address
from typing import Final, final

from artemis_py.server.http.cors import Cors
from artemis_py.server.http.requests import Request

Pages = Callable[[str], bool]
"""May web pages of an origin use something?"""
ANY: Final = "*"
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
        return name in self._names or ANY in self._names or _is_number(name)

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
        return not self._origins.isdisjoint((_split(authority)[0], ANY))

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
