"""The host names and web pages by which an acceptor may be used.

A web page may let its own host name resolve to the broker's address ("DNS rebinding"): a browser on the broker's
machine then takes the broker's responses for the page's own and lets the page read them. Such a request has the page's
name in ``Host``, so that header is checked. IP addresses are not names, and no one else controls ``localhost``.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final, final

from artemis_py.server.http.messages import Request

ANY: Final = "*"
_HTTP_PORT: Final = "80"


@final
class Hosts:
    """``Host`` may contain ``names``, ``localhost`` and ``own``, the acceptor's host, without ports; pages of these
    hosts may read, too. ``*``: any name.
    """

    __slots__ = ("_names", "_origins")

    def __init__(self, names: Iterable[str] = (), own: str = "localhost") -> None:
        self._origins = frozenset(_split(name)[0] for name in names)
        self._names = self._origins | {"localhost", _split(own)[0]}

    def refusal(self, request: Request) -> str | None:
        """Why a request about the log is refused, or None. ``Host`` may be missing (HTTP/1.0), but browsers always send
        it. A host in the target is checked, too.
        """
        for authority in (request.headers.get("host"), request.authority):
            if authority is not None and not self._allows(authority):
                return (
                    f"the host name {authority[:100]!r} may not be used for the log and /memory; use localhost or the "
                    "broker's IP address, or add allowedHosts=NAME to the acceptor's URI"
                )
        origin = request.headers.get("origin")
        if origin is not None and not self._allows_origin(origin, request.headers.get("host", "")):
            return (
                f"web pages of {origin[:100]!r} may not read the broker's log; the acceptor's allowedHosts lists the "
                "hosts that may"
            )
        return None

    def _allows(self, authority: str) -> bool:
        name, _ = _split(authority)
        return name in self._names or ANY in self._names or _is_number(name)

    def _allows_origin(self, origin: str, host: str) -> bool:
        """Pages of the broker's own host and port, and of the listed hosts, are allowed; an IP address may belong to
        anyone.
        """
        scheme, separator, authority = origin.partition("://")
        if not separator:
            return False
        if scheme == "http" and _split(authority) == _split(host):
            return True
        return not self._origins.isdisjoint((_split(authority)[0], ANY))


def _split(authority: str) -> tuple[str, str]:
    """The host in lower case, without brackets and a final dot, and the port, 80 if there is none."""
    text = authority.strip().lower()
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        return host, rest.removeprefix(":") or _HTTP_PORT
    host, _, port = text.partition(":")
    return host.removesuffix("."), port or _HTTP_PORT


def _is_number(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
