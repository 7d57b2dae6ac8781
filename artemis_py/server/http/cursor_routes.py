"""The routes of cursors in the log, which say how far each reader has read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus

from artemis_py.server.cursor_desk import CursorDesk, CursorRefusedError
from artemis_py.server.http.json_body import parse_json
from artemis_py.server.http.messages import Answer, Request, Response, json_response, text_response
from artemis_py.server.http.routing import Route
from artemis_py.storage.retention.cursors import CursorError

Durably = Callable[[int, Callable[[], Response]], "asyncio.Future[Response]"]


def cursor_routes(desk: CursorDesk, durably: Durably) -> list[Route]:
    """``/log/cursors`` and ``/log/cursors/NAME``. ``durably`` responds when everything up to an lsn survives a
    crash.
    """
    routes = _CursorRoutes(desk, durably)
    one = {"GET": routes.get, "PUT": routes.put, "DELETE": routes.drop}
    operations = {"GET": "broker.getLogCursor", "PUT": "broker.setLogCursor", "DELETE": "broker.removeLogCursor"}
    return [
        Route("/log/cursors", {"GET": routes.all}, {"GET": "broker.listLogCursors"}),
        Route("/log/cursors/{name}", one, operations),
    ]


class _CursorRoutes:
    def __init__(self, desk: CursorDesk, durably: Durably) -> None:
        self._desk = desk
        self._durably = durably

    def all(self, _request: Request) -> Response:
        return json_response(HTTPStatus.OK, {"cursors": [view.fields() for view in self._desk.all()]})

    def get(self, request: Request) -> Response:
        view = self._desk.get(request.parameters["name"])
        return _missing(request) if view is None else json_response(HTTPStatus.OK, view.fields())

    def put(self, request: Request) -> Answer:
        name = request.parameters["name"]
        is_new = not self._desk.is_set(name)
        try:
            lsn = self._desk.put(name, parse_json(request.body))
        except ValueError as error:
            return text_response(HTTPStatus.BAD_REQUEST, f"the request body is not valid JSON: {error}")
        except CursorError as error:
            return text_response(HTTPStatus.BAD_REQUEST, str(error))
        except CursorRefusedError as error:
            return text_response(HTTPStatus.CONFLICT, str(error))
        view = self._desk.get(name)
        assert view is not None
        fields = view.fields()
        return self._durably(lsn, lambda: json_response(HTTPStatus.CREATED if is_new else HTTPStatus.OK, fields))

    def drop(self, request: Request) -> Answer:
        name = request.parameters["name"]
        view = self._desk.get(name)
        lsn = self._desk.drop(name)
        if view is None or lsn is None:
            return _missing(request)
        fields = view.fields()
        return self._durably(lsn, lambda: json_response(HTTPStatus.OK, fields))


def _missing(request: Request) -> Response:
    return text_response(HTTPStatus.NOT_FOUND, f"there is no cursor {request.parameters['name'][:128]!r}")
