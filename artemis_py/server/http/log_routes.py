"""``/log``: the log for readers, with ranges of bytes (RFC 9110, section 14); ``/log/cursors``: how far each is."""

from __future__ import annotations

import asyncio
import errno
import re
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs

from artemis_py.server.http.requests import (
    RETRY_LATER,
    Answer,
    FileBody,
    Request,
    Response,
    json_response,
    parse_json,
    text_response,
)
from artemis_py.server.http.routing import Route
from artemis_py.server.log_cursors import CursorRefusedError, LogCursors
from artemis_py.server.log_view import LogView, NotInLogError
from artemis_py.storage.retention.cursors import CursorError

# ---- ranges ----------------------------------------------------------------------------------------------------------
#
# The header Range of RFC 9110, section 14: one range of bytes. Several ranges, and invalid ones, are ignored.


_RANGE: Final = re.compile(r"bytes\s*=\s*(?P<first>\d{0,19})\s*-\s*(?P<last>\d{0,19})\s*", re.ASCII | re.IGNORECASE)
BYTES: Final = "application/octet-stream"


def requested_range(header: str | None, size_bytes: int) -> tuple[int, int] | None:
    """The start and length of the requested part: the whole if no range is given, None if the range is outside the
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
    """The response with the requested part of an open file of which ``size_bytes`` may be read."""
    body = FileBody(descriptor, 0, size_bytes)
    header = request.headers.get("range")
    requested = requested_range(header, size_bytes)
    if requested is None:
        body.close()
        text = f"there are only {size_bytes} bytes"
        status = HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE
        return text_response(status, text, (("Content-Range", f"bytes */{size_bytes}"),))
    body.offset, body.size_bytes = requested
    ranges = (("Accept-Ranges", "bytes"),)
    if requested == (0, size_bytes) and not _is_range(header):
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


READING_LOG: Final = {"GET": "broker.getLog"}
"""The permission to read the log."""
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


def no_log_routes() -> list[Route]:
    """``/log`` and the paths below it, of a broker without a journal: 404 with the reason."""

    def no_log(_request: Request) -> Response:
        return text_response(HTTPStatus.NOT_FOUND, "this broker keeps no log: persistence-enabled is false")

    paths = ("/log", "/log/{part}", "/log/{part}/{name}", "/log/{part}/{name}/{file}")
    return [Route(path, {"GET": no_log}, READING_LOG) for path in paths]


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
        sent = parse_qs(request.query).get("after_lsn", ["-1"])[-1]
        if sent != "-1" and not _is_number(sent):
            return text_response(HTTPStatus.BAD_REQUEST, f"after_lsn must be a number, not {sent!r}")
        build = self._view.listing(self._broker_name, self._now_ms(), int(sent))
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


# ---- cursor routes ---------------------------------------------------------------------------------------------------
#
# The routes of cursors in the log, which say how far each reader has read.


Durably = Callable[[int, Callable[[], Response]], "asyncio.Future[Response]"]


def cursor_routes(cursors: LogCursors, durably: Durably) -> list[Route]:
    """``/log/cursors`` and ``/log/cursors/NAME``. ``durably`` responds when everything up to an lsn survives a
    crash.
    """
    routes = _CursorRoutes(cursors, durably)
    one = {"GET": routes.get, "PUT": routes.put, "DELETE": routes.drop}
    operations = {"GET": "broker.getLogCursor", "PUT": "broker.setLogCursor", "DELETE": "broker.removeLogCursor"}
    return [
        Route("/log/cursors", {"GET": routes.all}, {"GET": "broker.listLogCursors"}),
        Route("/log/cursors/{name}", one, operations),
    ]


class _CursorRoutes:
    def __init__(self, cursors: LogCursors, durably: Durably) -> None:
        self._cursors = cursors
        self._durably = durably

    def all(self, _request: Request) -> Response:
        return json_response(HTTPStatus.OK, {"cursors": [view.fields() for view in self._cursors.all()]})

    def get(self, request: Request) -> Response:
        view = self._cursors.get(request.parameters["name"])
        return _missing(request) if view is None else json_response(HTTPStatus.OK, view.fields())

    def put(self, request: Request) -> Answer:
        name = request.parameters["name"]
        is_new = not self._cursors.is_set(name)
        try:
            lsn = self._cursors.put(name, parse_json(request.body))
        except ValueError as error:
            return text_response(HTTPStatus.BAD_REQUEST, f"the request body is not valid JSON: {error}")
        except CursorError as error:
            return text_response(HTTPStatus.BAD_REQUEST, str(error))
        except CursorRefusedError as error:
            return text_response(HTTPStatus.CONFLICT, str(error))
        view = self._cursors.get(name)
        assert view is not None
        fields = view.fields()
        return self._durably(lsn, lambda: json_response(HTTPStatus.CREATED if is_new else HTTPStatus.OK, fields))

    def drop(self, request: Request) -> Answer:
        name = request.parameters["name"]
        view = self._cursors.get(name)
        lsn = self._cursors.drop(name)
        if view is None or lsn is None:
            return _missing(request)
        fields = view.fields()
        return self._durably(lsn, lambda: json_response(HTTPStatus.OK, fields))


def _missing(request: Request) -> Response:
    return text_response(HTTPStatus.NOT_FOUND, f"there is no cursor {request.parameters['name'][:128]!r}")
