"""``/api/events``: what happens in the broker, as server-sent events, until the client leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, Final, final
from urllib.parse import parse_qs

from artemis_py.errors import BadRequestError, LimitError, NotAllowedError, NotFoundError
from artemis_py.management.managed import Managed
from artemis_py.management.notifications import SENTENCES
from artemis_py.management.operation import VIEW, Guard
from artemis_py.server.events.server_sent_events import LISTENERS_MAX, Hub, Listener, as_json, event
from artemis_py.server.events.watched_lists import ListWatches, Topic, topic_of
from artemis_py.server.http.requests import Request, Response, json_response
from artemis_py.server.http.routing import Route
from artemis_py.version import VERSION

PATH: Final = "/api/events"
TOPICS_MAX: Final = 16
"""How much one client may watch."""
_PERMISSION: Final = "broker.getEvents"
_FIELDS_MAX: Final = 100
_LATER: Final = (("Retry-After", "5"),)


def event_routes(managed: Managed, hub: Hub, watches: ListWatches, guard_of: Callable[[Request], Guard]) -> list[Route]:
    """The route of events. ``guard_of`` says what the user of a request may do."""
    events = _Events(managed, hub, watches, guard_of)
    return [Route(PATH, {"GET": events.listen}, checks_itself=True, still_may=events.may)]


@final
class _Events:
    def __init__(self, managed: Managed, hub: Hub, watches: ListWatches, guard_of: Callable[[Request], Guard]) -> None:
        self._managed = managed
        self._hub = hub
        self._watches = watches
        self._guard_of = guard_of

    def may(self, request: Request) -> bool:
        """Has the user the permission for everything that the request asks for?"""
        guard = self._guard_of(request)
        _, topics = _asked(request)
        return all(guard.may(VIEW, one) for one in (_PERMISSION, *[topic.permission for topic in topics]))

    def listen(self, request: Request) -> Response:
        """Begin a stream of events, which lasts until the client disconnects."""
        guard = self._guard_of(request)
        try:
            guard.demand(VIEW, _PERMISSION)
            types, topics = _asked(request)
            for topic in topics:
                guard.demand(VIEW, topic.permission)
            self._watches.check(topics)
        except NotAllowedError as error:
            return json_response(HTTPStatus.FORBIDDEN, {"error": str(error)})
        except NotFoundError as error:
            return json_response(HTTPStatus.NOT_FOUND, {"error": str(error)})
        except BadRequestError as error:
            return json_response(HTTPStatus.BAD_REQUEST, {"error": str(error)})
        except LimitError as error:
            return _later(str(error))
        if len(self._hub.listeners) >= LISTENERS_MAX:
            return _later(f"{LISTENERS_MAX} clients listen to events, the most that may; try again later")
        expires_ms = 0 if request.identity is None else request.identity.expires_ms
        listener = Listener(types, self._left, self._hub.count, expires_ms)
        if request.method == "GET":
            hello: dict[str, Any] = {"broker": self._managed.name, "version": VERSION, "now": self._hub.date_ms()}
            listener.put(event("hello", as_json(hello)))
            self._hub.join(listener, request.headers.get("last-event-id", ""))
            self._watches.join(listener, topics)
        return Response(HTTPStatus.OK, "text/event-stream", listener, (("X-Accel-Buffering", "no"),))

    def _left(self, listener: Listener) -> None:
        self._hub.leave(listener)
        self._watches.leave(listener)


def _asked(request: Request) -> tuple[frozenset[str], Sequence[Topic]]:
    """The types of notifications, and what to watch. Raises BadRequestError and NotFoundError."""
    try:
        sent = parse_qs(request.query, errors="strict", max_num_fields=_FIELDS_MAX)
    except ValueError:
        raise BadRequestError(f"the query is not UTF-8, or has more than {_FIELDS_MAX} arguments") from None
    for name in sent:
        if name not in ("type", "watch"):
            raise BadRequestError(f"events have no argument {name[:100]!r}; they have type and watch")
    types = frozenset(one.strip() for text in sent.get("type", ()) for one in text.split(","))
    for type in types:
        if type not in SENTENCES:
            raise BadRequestError(
                f"there are no notifications of type {type[:100]!r}; there are {', '.join(SENTENCES)}"
            )
    texts = list(dict.fromkeys(sent.get("watch", ())))
    if len(texts) > TOPICS_MAX:
        raise BadRequestError(f"one client may watch {TOPICS_MAX} things, not {len(texts)}")
    return types, [topic_of(text) for text in texts]


def _later(why: str) -> Response:
    response = json_response(HTTPStatus.SERVICE_UNAVAILABLE, {"error": why})
    return Response(response.status, response.content_type, response.body, _LATER)
