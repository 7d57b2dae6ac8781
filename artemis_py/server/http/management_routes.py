"""The operations over HTTP: one route for each path in their table, downloads of bodies, and their description."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, Final, final
from urllib.parse import parse_qs

from artemis_py.errors import BadRequestError, BrokerError, NotFoundError, RefusedConfigurationError
from artemis_py.management.export_format import piece_line
from artemis_py.management.listing import Selection
from artemis_py.management.managed import Download, InPieces, Lines, Managed, Result
from artemis_py.management.openapi import description_of
from artemis_py.management.operation import EDIT, LINES, Operation, arguments_of
from artemis_py.management.table import OPERATIONS
from artemis_py.message import LargeBody
from artemis_py.server import operational_log as audit
from artemis_py.server.http.requests import Answer, Handler, Request, Response, answered, json_response, parse_json
from artemis_py.server.http.routing import Route
from artemis_py.server.operator_requests import OperatorRequests
from artemis_py.storage.bodies import BodyReader, LargeStore

# ---- downloads -------------------------------------------------------------------------------------------------------
#
# Bodies of messages as downloads. They are what clients have sent, so a browser must never carry them out.


_PIECE_BYTES: Final = 262_144
_BLOCK_BYTES: Final = 65_536
_UNKNOWN: Final = "application/octet-stream"
_TYPE: Final = re.compile(r"[\w!#$&^.+-]{1,80}/[\w!#$&^.+-]{1,80}(?:; ?charset=[\w-]{1,40})?", re.ASCII)
_LINES: Final = "application/jsonl"
_ENDINGS: Final = {"application/json": "json", "text/plain": "txt", "application/xml": "xml", "text/xml": "xml"}


@final
class Downloads:
    """Makes responses of bodies. Large ones are read from ``large``, a piece at a time, by its thread."""

    def __init__(self, large: LargeStore | None) -> None:
        self._large = large

    def response(self, download: Download) -> Response:
        """The body under the content-type that its sender named, or as bytes if that is invalid."""
        named = download.content_type or ""
        content_type = named if _TYPE.fullmatch(named) else _UNKNOWN
        ending = _ENDINGS.get(content_type.partition(";")[0], "bin")
        headers = _harmless(f"{download.name}.{ending}")
        body = download.body
        if isinstance(body, LargeBody):
            headers = (*headers, ("Content-Length", str(body.size_bytes)))
            return Response(HTTPStatus.OK, content_type, self._pieces(body), headers)
        if len(body) <= _PIECE_BYTES:
            return Response(HTTPStatus.OK, content_type, body, headers)
        headers = (*headers, ("Content-Length", str(len(body))))
        return Response(HTTPStatus.OK, content_type, _cut(body), headers)

    def lines(self, lines: Lines) -> Response:
        """The lines, of which no more are made than the client takes."""
        return Response(HTTPStatus.OK, _LINES, self._parts(lines.parts), _harmless(f"{lines.name}.jsonl"))

    def _parts(self, parts: Iterable[bytes | InPieces]) -> Iterator[bytes]:
        """Some lines at a time: to send a piece costs more than to make a line."""
        block: list[bytes] = []
        size_bytes = 0
        for part in parts:
            if isinstance(part, InPieces):
                yield b"".join(block)
                block, size_bytes, body = [], 0, part.body
                for piece in self._pieces(body) if isinstance(body, LargeBody) else _cut(body):
                    yield piece_line(piece) if piece else piece
                continue
            block.append(part)
            size_bytes += len(part)
            if size_bytes >= _BLOCK_BYTES:
                yield b"".join(block)
                block, size_bytes = [], 0
        yield b"".join(block)

    def _pieces(self, body: LargeBody) -> Iterator[bytes]:
        """The pieces in order; an empty one while the next is being read."""
        assert self._large is not None, "a large body has a store"
        pieces, left = BodyReader(self._large, None), body.size_bytes
        while left:
            piece = pieces.next(body)
            if piece is None:
                if pieces.failure is not None:
                    raise BrokerError(f"a body cannot be read: {pieces.failure}")
                piece = b""
            left -= len(piece)
            yield piece


def _harmless(name: str) -> tuple[tuple[str, str], ...]:
    """Headers that have a browser keep it as a file of this name, and never carry it out."""
    return (
        ("Content-Disposition", f'attachment; filename="{name}"'),
        ("Content-Security-Policy", "sandbox"),
    )


def _cut(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), _PIECE_BYTES):
        yield body[start : start + _PIECE_BYTES]


# ---- routes ----------------------------------------------------------------------------------------------------------
#
# One route for each path in the table of operations.


_QUERY_FIELDS_MAX: Final = 100
_STATUSES: Final[tuple[tuple[type[BrokerError], int], ...]] = (
    (BadRequestError, HTTPStatus.BAD_REQUEST),
    (NotFoundError, HTTPStatus.NOT_FOUND),
    (BrokerError, HTTPStatus.CONFLICT),
)


def management_routes(
    managed: Managed, calls: OperatorRequests, large: LargeStore | None, others: Mapping[str, Any] | None = None
) -> list[Route]:
    """One route for each path in the table, and ``/api/openapi.json``, which describes ``others``, too. ``large``
    has the large bodies.
    """
    downloads = Downloads(large)
    by_path: dict[str, dict[str, Operation]] = {}
    for operation in OPERATIONS:
        by_path.setdefault(operation.path, {})[operation.method] = operation
    routes = [_route(path, operations, managed, calls, downloads) for path, operations in by_path.items()]

    def description(_request: Request) -> Response:
        described = description_of(OPERATIONS)
        described["paths"].update(others or {})
        return json_response(HTTPStatus.OK, described)

    return [*routes, Route("/api/openapi.json", {"GET": description}, {"GET": "broker.getOpenApi"})]


def _route(
    path: str, operations: dict[str, Operation], managed: Managed, calls: OperatorRequests, downloads: Downloads
) -> Route:
    handlers: dict[str, Handler] = {
        method: partial(_carry_out, operation, managed, calls, downloads) for method, operation in operations.items()
    }
    permissions = {method: operation.permission for method, operation in operations.items()}
    takes_lines = any(operation.takes_lines for operation in operations.values())
    return Route(path, handlers, permissions, takes_lines=takes_lines)


def _carry_out(
    operation: Operation, managed: Managed, calls: OperatorRequests, downloads: Downloads, request: Request
) -> Answer:
    changes = operation.right == EDIT
    try:
        arguments = arguments_of(operation, _sent(operation, request))
    except BrokerError as error:
        return _problem(error)
    work = calls.begin(operation.begin(managed, arguments), changes=changes)
    if changes:
        work.add_done_callback(partial(_note, operation, arguments, request))
    return answered(work, partial(_response, downloads), _problem, gives_up=not changes)


def _note(operation: Operation, arguments: dict[str, Any], request: Request, work: asyncio.Future[Result]) -> None:
    """Tell the audit log, also when the client has left meanwhile."""
    failure = work.exception()
    masked = operation.masked(arguments)
    said = {one.name: masked[one.name] for one in operation.arguments if arguments[one.name] != one.default}
    outcome = operation.outcome_of(work.result()) if failure is None else str(failure)
    audit.tell(operation.id, said, request.user, request.address, outcome)


def _sent(operation: Operation, request: Request) -> dict[str, Sequence[object]]:
    """What the query, the path and a JSON object in the body say. Raises BadRequestError."""
    try:
        sent = parse_qs(request.query, keep_blank_values=True, errors="strict", max_num_fields=_QUERY_FIELDS_MAX)
    except ValueError:
        raise BadRequestError(f"the query is not UTF-8, or has more than {_QUERY_FIELDS_MAX} arguments") from None
    secret = next((one.name for one in operation.arguments if one.is_secret and one.name in sent), None)
    if secret is not None:
        raise BadRequestError(f"{secret} has no place in a URL, which logs keep: send it in a JSON object as the body")
    return {**sent, **_in_body(operation, request), **{name: [text] for name, text in request.parameters.items()}}


def _in_body(operation: Operation, request: Request) -> dict[str, Sequence[object]]:
    lines = next((one.name for one in operation.arguments if one.type == LINES), None)
    if lines is not None:
        return {lines: request.parts or [request.body]}
    if not request.body:
        return {}
    try:
        value = parse_json(request.body)
    except ValueError as error:
        raise BadRequestError(f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadRequestError("the body must be a JSON object with the arguments by name")
    return {name: one if isinstance(one, list) else [one] for name, one in value.items()}


def _response(downloads: Downloads, result: Result) -> Response:
    if isinstance(result, Download):
        return downloads.response(result)
    if isinstance(result, Lines):
        return downloads.lines(result)
    if isinstance(result, Selection):
        return Response(HTTPStatus.OK, "application/json", _pieces(result))
    return json_response(HTTPStatus.OK, result)


def _pieces(selection: Selection[Any]) -> Iterator[bytes]:
    """A page, some rows at a time."""
    wanted = selection.query
    fields = {"count": selection.count, "page": wanted.page, "size": wanted.size, **selection.extra}
    yield f'{json.dumps(fields)[:-1]}, "data": ['.encode()
    separator = ""
    for rows in selection.rows():
        yield (separator + ", ".join(_as_json(rows))).encode()
        separator = ", "
    yield b"]}\n"


def _as_json(rows: Iterable[Any]) -> Iterator[str]:
    return (json.dumps(row, ensure_ascii=False) for row in rows)


def _problem(error: BrokerError) -> Response:
    status = next(status for type, status in _STATUSES if isinstance(error, type))
    if isinstance(error, RefusedConfigurationError):
        return json_response(status, {"error": str(error), "problems": error.problems})
    return json_response(status, {"error": str(error)})
