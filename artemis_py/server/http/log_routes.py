"""The routes of the log for readers, with ranges of bytes (RFC 9110, section 14)."""

from __future__ import annotations

import asyncio
import errno
import re
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs

from artemis_py.server.http.messages import RETRY_LATER, Answer, FileBody, Request, Response, text_response
from artemis_py.server.http.routes import READING_LOG
from artemis_py.server.http.routing import Route
from artemis_py.server.log_view import LogView, NotInLogError

# ---- ranges ----------------------------------------------------------------------------------------------------------
#
# The header Range of RFC 9110, section 14: one range of bytes. Several ranges, and invalid ones, are ignored.


_RANGE: Final = re.compile(r"bytes\s*=\s*(?P<first>\d{0,19})\s*-\s*(?P<last>\d{0,19})\s*", re.ASCII | re.IGNORECASE)
BYTES: Final = "application/octet-stream"


def wanted_range(header: str | None, size_bytes: int) -> tuple[int, int] | None:
    """The start and length of the wanted part: the whole if no range is given, None if the range is outside the
    file.
    """
    match = _RANGE.fullmatch(header or "")
    if match is None or not (match["first"] or match["last"]):
        return 0, size_bytes
    if not match["first"]:
        count = min(int(match["last"]), size_bytes)
        return (size_bytes - count, count) if count else None
    first = int(match["first"])
    last = min(int(match["last"]), size_bytes - 1) if match["last"] else size_bytes - 1
    if match["last"] and int(match["last"]) < first:
        return 0, size_bytes
    return (first, last + 1 - first) if first < size_bytes else None


def file_response(request: Request, descriptor: int, size_bytes: int) -> Response:
    """The response with the wanted part of an open file of which ``size_bytes`` may be read."""
    body = FileBody(descriptor, 0, size_bytes)
    header = request.headers.get("range")
    wanted = wanted_range(header, size_bytes)
    if wanted is None:
        body.close()
        text = f"there are only {size_bytes} bytes"
        status = HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE
        return text_response(status, text, (("Content-Range", f"bytes */{size_bytes}"),))
    body.offset, body.size_bytes = wanted
    ranges = (("Accept-Ranges", "bytes"),)
    if wanted == (0, size_bytes) and not _is_range(header):
        return Response(HTTPStatus.OK, BYTES, body, ranges)
    shown = f"bytes {body.offset}-{body.offset + body.size_bytes - 1}/{size_bytes}"
    return Response(HTTPStatus.PARTIAL_CONTENT, BYTES, body, (*ranges, ("Content-Range", shown)))


def _is_range(header: str | None) -> bool:
    """Was a valid range asked for? Then the response says so, even if it is the whole."""
    match = _RANGE.fullmatch(header or "")
    if match is None or not (match["first"] or match["last"]):
        return False
    return not (match["first"] and match["last"]) or int(match["first"]) <= int(match["last"])


# ---- log routes ------------------------------------------------------------------------------------------------------
#
# The routes of the log: its segments, their bytes, and large bodies.


InThread = Callable[[Callable[[], Response]], "asyncio.Future[Response]"]
_SHORT: Final = "file descriptors are short, and the rest is kept for storage; try again later, or raise the limit"


def log_routes(
    view: LogView,
    broker_name: str,
    now_ms: Callable[[], int],
    in_thread: InThread,
    may_open: Callable[[], bool] = lambda: True,
) -> list[Route]:
    """``/log`` and the paths below it. ``in_thread`` lets another thread make a response, because it reads files.
    ``may_open`` says whether there are descriptors for another file besides those that storage may need.
    """
    files = _LogFiles(view, broker_name, now_ms, partial(_made, in_thread, may_open))
    return [
        Route("/log", {"GET": files.listing}, READING_LOG),
        Route("/log/segments/{number}", {"GET": files.segment}, READING_LOG),
        Route("/log/segments/{number}/places", {"GET": files.places}, READING_LOG),
        Route("/log/bodies/{number}", {"GET": files.body}, READING_LOG),
    ]


class _LogFiles:
    def __init__(
        self,
        view: LogView,
        broker_name: str,
        now_ms: Callable[[], int],
        made: Callable[[Callable[[], Response]], Answer],
    ) -> None:
        self._view = view
        self._broker_name = broker_name
        self._now_ms = now_ms
        self._made = made

    def listing(self, request: Request) -> Answer:
        given = parse_qs(request.query).get("after_lsn", ["-1"])[-1]
        if given != "-1" and not _is_number(given):
            return text_response(HTTPStatus.BAD_REQUEST, f"after_lsn must be a number, not {given!r}")
        build = self._view.listing(self._broker_name, self._now_ms(), int(given))
        return self._made(lambda: Response(HTTPStatus.OK, "application/json", iter(build())))

    def segment(self, request: Request) -> Answer:
        number = request.parameters["number"]
        if not _is_number(number):
            return text_response(HTTPStatus.NOT_FOUND, f"{number!r} is not a segment number")
        try:
            opening = self._view.opening(int(number))
        except NotInLogError as error:
            return _refusal(error)
        return self._made(partial(_sent, request, opening))

    def places(self, request: Request) -> Answer:
        number = request.parameters["number"]
        if not _is_number(number):
            return text_response(HTTPStatus.NOT_FOUND, f"{number!r} is not a segment number")
        return self._made(partial(_sent, request, self._view.opening_places(int(number))))

    def body(self, request: Request) -> Answer:
        number = request.parameters["number"]
        if not _is_number(number):
            return text_response(HTTPStatus.NOT_FOUND, f"{number!r} is not the number of a body")
        return self._made(partial(_sent, request, partial(self._view.open_body, int(number))))


def _made(in_thread: InThread, may_open: Callable[[], bool], make: Callable[[], Response]) -> Answer:
    """The response that ``make`` makes of a file in another thread, or that none can be opened now."""

    def made() -> Response:
        try:
            return make()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                return text_response(HTTPStatus.SERVICE_UNAVAILABLE, _SHORT, RETRY_LATER)
            raise

    if not may_open():
        return text_response(HTTPStatus.SERVICE_UNAVAILABLE, _SHORT, RETRY_LATER)
    return in_thread(made)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 20


def _sent(request: Request, opening: Callable[[], tuple[int, int]]) -> Response:
    """Runs in another thread."""
    try:
        return file_response(request, *opening())
    except NotInLogError as error:
        return _refusal(error)


def _refusal(error: NotInLogError) -> Response:
    return text_response(HTTPStatus.GONE if error.is_gone else HTTPStatus.NOT_FOUND, str(error))
