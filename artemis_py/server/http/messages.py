"""What a route gets and gives, and how much a client may send."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Request:
    """One request. ``path`` and ``query`` are as sent, not percent-decoded; header names are in lower case.

    Of a header that is repeated the values are joined by ``, ``. There is no body: GET and HEAD have none.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Response:
    """One answer. A body of several pieces is taken and sent piece by piece; other work runs between two of them."""

    status: int
    content_type: str
    body: bytes | Iterator[bytes]
    headers: tuple[tuple[str, str], ...] = ()


Handler = Callable[[Request], Response]


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Limits of one acceptor; what goes beyond is refused and the connection closed."""

    head_bytes_max: int = 16 * 1024
    body_bytes_max: int = 64 * 1024
    connections_max: int = 100
    idle_ms_max: int = 60_000


def text_response(status: int, text: str, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """A line of plain text."""
    return Response(status, "text/plain; charset=utf-8", f"{text}\n".encode(), headers)
