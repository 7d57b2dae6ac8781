"""Requests and responses of HTTP, the limits on both, JSON in them, and requests that may be smuggled."""

from __future__ import annotations

import json
import os
import re
import sys
from abc import ABC, abstractmethod
from asyncio import Future
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, final

from artemis_py.errors import BrokerError
from artemis_py.security.identity import Identity

_DEPTH_MAX: Final = 32
"""How deeply JSON from clients may be nested."""
_TOO_DEEP: Final = f"it is nested more than {_DEPTH_MAX} levels deep"
RETRY_LATER: Final = (("Retry-After", "5"),)
"""For a 503 that may be over soon."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request. ``path`` and ``query`` are as sent, not percent-decoded; header names are in lower case.

    Values of a repeated header are joined by ``, ``. ``parameters`` are the named parts of the path, percent-decoded.
    ``body`` is empty for methods without one.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    parts: Sequence[bytes] = field(default=(), repr=False)
    """Instead of ``body`` one that is larger than requests without a message may have, as it arrived: to join it would
    take time.
    """
    authority: str | None = None
    """The host and port of the target, if it has them (as sent to proxies)."""
    authorization: str | None = field(default=None, repr=False)
    """The header of this name, which ``headers`` lacks: no handler and no message needs to know it."""
    user: str | None = None
    """Who has logged in for it; None where nobody logs in."""
    identity: Identity | None = field(default=None, repr=False)
    """The same with the roles, for handlers that check permissions themselves."""
    address: str = ""
    """The client's address, host:port; empty if unknown."""
    acceptor: str = ""
    """The name of the acceptor that the client came by."""
    is_gone: Callable[[], bool] = field(default=lambda: False, repr=False)
    """Has the client left by now, as far as its socket knows? For an answer that cannot be taken back."""


@final
class FileBody:
    """A part of an open file as the body of a response. Its owner closes it when it is sent or given up. If it has no
    owner left (the client left while the file was being opened), it closes itself.
    """

    __slots__ = ("descriptor", "offset", "size_bytes")

    def __init__(self, descriptor: int, offset: int, size_bytes: int) -> None:
        self.descriptor = descriptor
        self.offset = offset
        self.size_bytes = size_bytes

    def __len__(self) -> int:
        return self.size_bytes

    def close(self) -> None:
        """Close the file."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __del__(self) -> None:
        self.close()


def _nobody() -> None:
    """Nobody sends the stream yet, or any more."""


class Stream(ABC):
    """The body of a response that goes on until the client or the broker ends it. ``wake`` says that there is something
    to send; the connection takes it when the client reads. Only for the event loop's thread.
    """

    def __init__(self) -> None:
        self.wake: Callable[[], None] = _nobody
        """Tells the connection that there is something to take."""
        self.is_over = False
        """Does it end when everything is taken?"""
        self.is_closed = False
        """Is the client gone?"""

    @abstractmethod
    def take(self) -> bytes:
        """What there is, or some of it; empty if there is nothing now."""

    def end(self, why: str) -> None:
        """The broker ends it, and says why to the client if the stream can; nothing else is sent from now on."""
        self.is_over = True
        self.wake()

    def close(self) -> None:
        """The client is gone."""
        self.is_closed = True
        self.wake = _nobody


@dataclass(frozen=True, slots=True)
class Response:
    """One response. A body of several pieces is produced and sent piece by piece, with other work between them. A
    thread sends parts of files. A stream goes on until the client or the broker leaves.
    """

    status: int
    content_type: str
    body: bytes | Iterator[bytes] | FileBody | Stream
    headers: tuple[tuple[str, str], ...] = ()


Answer: TypeAlias = "Response | Future[Response]"
Handler = Callable[[Request], Answer]


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Limits of one acceptor; a request beyond them is refused and the connection closed."""

    head_bytes_max: int = 16 * 1024
    body_bytes_max: int = 64 * 1024
    message_bytes_max: int = 100 * 1024 * 1024
    """The largest body of a request that publishes a message."""
    connections_max: int = 100
    spare_connections: int = 20
    """Additional connections for what is always answered: metrics and health."""
    strangers_per_peer_max: int = 40
    """How many connections of one IP address (IPv6: of one /64) may have no login yet, where users log in."""
    idle_ms_max: int = 60_000
    request_ms_max: int = 10_000
    """How long a request may take from its first byte to its last."""
    file_bytes_per_second_max: int = -1
    """Speed limit for parts of files, over all connections; -1: none."""
    near_bytes_per_second_max: int = -1
    """Speed limit for parts of files to clients on this machine while the broker is busy; -1: none of its own."""


def text_response(status: int, text: str, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """A line of plain text."""
    return Response(status, "text/plain; charset=utf-8", f"{text}\n".encode(), headers)


def json_response(status: int, value: Any) -> Response:
    """A value as JSON."""
    return Response(status, "application/json", json.dumps(value, ensure_ascii=False).encode() + b"\n")


def answered(
    work: Future[Any],
    response: Callable[[Any], Response],
    problem: Callable[[BrokerError], Response] | None = None,
    *,
    gives_up: bool,
) -> Future[Response]:
    """The answer to a request under way: ``response`` makes it of the result, ``problem`` of a BrokerError. With
    ``gives_up``, the work is cancelled when the client leaves.
    """
    answer: Future[Response] = work.get_loop().create_future()

    def pass_on(done: Future[Any]) -> None:
        if answer.done() or done.cancelled():
            return
        failure = done.exception()
        try:
            if failure is None:
                answer.set_result(response(done.result()))
            elif problem is not None and isinstance(failure, BrokerError):
                answer.set_result(problem(failure))
            else:
                answer.set_exception(failure)
        except Exception as error:
            answer.set_exception(error)

    work.add_done_callback(pass_on)
    if gives_up:
        answer.add_done_callback(lambda _: work.cancel())
    return answer


def parse_json(body: bytes) -> object:
    """The value of a client's JSON, within limits, so that the worst it can cause is a refusal. Raises ValueError with
    the reason: not JSON, nested too deeply, or text that is not Unicode.
    """
    try:
        value: object = json.loads(body)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except ValueError:  # Python's message is about Python
        raise ValueError(f"a number has more than {sys.get_int_max_str_digits()} digits") from None
    level = [value]
    for _ in range(_DEPTH_MAX):
        inner: list[object] = []
        for one in level:
            if isinstance(one, dict):
                inner += [*one, *one.values()]
            elif isinstance(one, list):
                inner += one
            elif isinstance(one, str) and not _is_text(one):
                raise ValueError("a string has half of a surrogate pair")
        if not inner:
            return value
        level = inner
    raise ValueError(_TOO_DEEP)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# ---- request smuggling -----------------------------------------------------------------------------------------------
#
# RFC 9112, section 11.2: a proxy or a cache in front may read a request with a doubtful end in another way, and take a
# part of its body for the next request. So such a request is refused, and the connection ends.


HEAD_END: Final = b"\r\n\r\n"
_ODD: Final = re.compile(rb"(?P<cr>\r(?!\n|\Z))|(?P<lf>(?<!\r)\n)|(?P<nul>\0)|(?P<fold>\r\n[ \t])")
_ODDITIES: Final = {
    "cr": "a CR stands alone in the head of the request",
    "lf": "a line of the head ends with LF alone; lines end with CR and LF",
    "nul": "the head of the request has a NUL",
    "fold": "a header goes on in the next line, which HTTP has given up",
}


def oddity_in(head: bytes, start: int = 0) -> str:
    """What is wrong with the lines of a head, or of its beginning, from ``start`` on; empty: nothing."""
    found = _ODD.search(head, start)
    return "" if found is None else _ODDITIES[str(found.lastgroup)]


def doubt_in(head: bytes) -> str:
    """Why it is doubtful where a request with this whole head ends, or for whom it is; empty: it is not."""
    first, *lines = head.removesuffix(HEAD_END).split(b"\r\n")
    _, _, rest = first.partition(b" ")
    target, _, version = rest.rpartition(b" ")
    found: dict[bytes, list[bytes]] = {}
    for line in lines:
        name, _, value = line.partition(b":")
        found.setdefault(name.strip().lower(), []).append(value.strip(b" \t"))
    lengths, codings = found.get(b"content-length", []), found.get(b"transfer-encoding", [])
    hosts = found.get(b"host", [])
    if version not in (b"HTTP/1.1", b"HTTP/1.0"):
        return "the version of HTTP is neither 1.1 nor 1.0"
    for shown, values in (("Content-Length", lengths), ("Transfer-Encoding", codings), ("Host", hosts)):
        if len(values) > 1:
            return f"{shown} is given {len(values)} times; send it once"
    if lengths and codings:
        return "Content-Length and Transfer-Encoding contradict each other; send one of them"
    if lengths and not lengths[0].isdigit():
        return "Content-Length is not one number"
    if codings and version == b"HTTP/1.0":
        return "HTTP/1.0 has no Transfer-Encoding; send Content-Length, or HTTP/1.1"
    _, is_absolute, rest = target.partition(b"://")
    if is_absolute and not target.startswith(b"/") and hosts:
        authority = re.split(rb"[/?]", rest, maxsplit=1)[0]
        if authority.lower() != hosts[0].lower():
            return "the target names another host than the header Host"
    return ""
