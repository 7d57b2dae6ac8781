"""The broker to measure, and its dialect."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from artemis_py.client.endpoint import Endpoint
from artemis_py.errors import PerfError

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Target:
    """A broker and the dialect it speaks.

    ``stall_s`` is how long nothing may move before a measurement is given up; ``receipts`` is False for a broker that
    sends none. ``trust`` is a file of certificates that a broker with TLS is checked against; None: no TLS.
    ``over_websocket``: frames are messages of WebSocket.
    """

    host: str
    port: int
    version: str = "1.2"
    login: str | None = None
    passcode: str | None = field(default=None, repr=False)
    queue_prefix: str = "/queue/"
    topic_prefix: str = "/topic/"
    connect_headers: Headers = ()
    subscribe_headers: Headers = ()
    send_headers: Headers = ()
    receipts: bool = True
    stall_s: float = 10.0
    trust: str | None = None
    over_websocket: bool = False

    @property
    def url(self) -> str:
        """``stomp://host:port``, an IPv6 host in brackets; with TLS ``stomp+ssl://host:port``."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'stomp' if self.trust is None else 'stomp+ssl'}://{host}:{self.port}"


def parse_url(url: str) -> Endpoint:
    """Where the broker at ``stomp://host:port`` is, and whether it speaks TLS. Raises PerfError."""
    found, parts = Endpoint.of(url), urlsplit(url)
    if found is None:
        raise PerfError(f"{url!r} is not a URL of a STOMP broker; write stomp://host:port")
    if parts.path not in ("", "/") or parts.query:
        raise PerfError(f"{url!r}: the URL takes only a user, host and port; use the options for headers")
    return found


def parse_header(text: str) -> tuple[str, str]:
    """``name:value`` as a pair; the value may hold further colons. Raises PerfError."""
    name, colon, value = text.partition(":")
    if not colon or not name or any(character in text for character in "\r\n\0"):
        raise PerfError(f"{text!r} is not a header; write name:value")
    return name, value
