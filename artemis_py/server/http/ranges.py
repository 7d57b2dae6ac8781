"""The header Range of RFC 9110, section 14: one range of bytes. Several ranges, and invalid ones, are ignored."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Final

from artemis_py.server.http.messages import FileBody, Request, Response, text_response

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
