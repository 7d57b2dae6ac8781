"""Publishes and takes messages with requests: ``/messages/{name}`` and ``/messages/{name}/take``, and the same below
``/api``. GET changes nothing: a picture on any web page sends one.
"""

from __future__ import annotations

import asyncio
import base64
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qs, quote

from artemis_py.errors import BadRequestError, BrokerError, LimitError, NotAllowedError, NotFoundError
from artemis_py.message import LargeBody
from artemis_py.security.rights import Peer
from artemis_py.server.http.requests import (
    Answer,
    FileBody,
    Handler,
    Request,
    Response,
    answered,
    json_response,
    parse_json,
)
from artemis_py.server.http.routing import Route
from artemis_py.server.messages.publish import BusyError, ManagementReply, NotKeptError, TooLargeError
from artemis_py.server.messages.take import (
    LEASE_S,
    LEASE_S_MAX,
    TIMEOUT_S_MAX,
    HttpMessages,
    Requester,
    Taken,
    TakeOptions,
)
from artemis_py.server.operator_requests import OperatorRequests
from artemis_py.server.ports import Ports
from artemis_py.server.security import Security
from artemis_py.server.turns import Turns
from artemis_py.stomp.service import StompService, Traffic
from artemis_py.stomp.wire.dialect import passes_through
from artemis_py.units import parse_decimal

PATHS: Final = ("/messages", "/api/messages")
OpenBody = Callable[[LargeBody], FileBody | bytes]
_LATER: Final = (("Retry-After", "1"),)
_STATUSES: Final[tuple[tuple[type[BrokerError], int], ...]] = (
    (BadRequestError, HTTPStatus.BAD_REQUEST),
    (TooLargeError, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    (NotAllowedError, HTTPStatus.FORBIDDEN),
    (NotFoundError, HTTPStatus.NOT_FOUND),
    (BrokerError, HTTPStatus.CONFLICT),
)
_TOKEN: Final = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_NOT_SHOWN: Final = frozenset({"content-length", "destination", "transfer-encoding", "connection"})
_SAME: Final = ("ce-", "x-debezium-", "traceparent", "tracestate")


def message_routes(messages: HttpMessages, open_body: OpenBody) -> list[Route]:
    """The routes. ``open_body`` opens the file of a large body."""
    routes = []
    for path in PATHS:
        handlers: dict[str, Handler] = {"POST": partial(_publish, messages), "GET": _taking_is_a_post}
        take: dict[str, Handler] = {"POST": partial(_take, messages, open_body)}
        routes += [
            Route(f"{path}/{{name}}", handlers, checks_itself=True, takes_messages=True),
            Route(f"{path}/{{name}}/take", take, checks_itself=True, still_may=partial(_may_take, messages)),
            Route(
                f"{path}/{{name}}/{{receipt}}", {"DELETE": partial(_settle, messages.acknowledge)}, checks_itself=True
            ),
            Route(f"{path}/{{name}}/{{receipt}}/nack", {"POST": partial(_settle, messages.refuse)}, checks_itself=True),
        ]
    return routes


def _publish(messages: HttpMessages, request: Request) -> Answer:
    try:
        headers = _headers_of(request, request.parameters["name"])
    except BrokerError as error:
        return _problem(error)
    work = messages.publish(_requester(request), headers, request.parts or (request.body,))
    return answered(work, _published, _problem, gives_up=False)


def _published(result: dict[str, Any] | ManagementReply) -> Response:
    if not isinstance(result, ManagementReply):
        return json_response(HTTPStatus.OK, result)
    address = json.dumps(result.address, ensure_ascii=False)
    text = f'{{"address": {address}, "result": {result.body[1:-1] or "null"}}}\n'  # an array of one value
    return Response(HTTPStatus.OK, "application/json", text.encode())


def _taking_is_a_post(request: Request) -> Response:
    text = (
        f"GET takes no message: take one with POST {request.path}/take, or look at the queue with GET "
        f"/api/queues/{quote(request.parameters['name'], safe='')}/messages"
    )
    answer = json_response(HTTPStatus.METHOD_NOT_ALLOWED, {"error": text})
    return Response(answer.status, answer.content_type, answer.body, (("Allow", "POST"),))


def _take(messages: HttpMessages, open_body: OpenBody, request: Request) -> Answer:
    try:
        options = _options(request)
    except BrokerError as error:
        return _problem(error)
    work = messages.take(_requester(request), request.parameters["name"], options, request.is_gone)
    as_json = "application/json" in request.headers.get("accept", "")

    def response(taken: Taken | None) -> Response:
        if taken is None:
            return Response(HTTPStatus.NO_CONTENT, "text/plain; charset=utf-8", b"")
        return _as_json(taken) if as_json and isinstance(taken.body, bytes) else _as_it_is(taken, open_body)

    return answered(work, response, _problem, gives_up=True)


def _may_take(messages: HttpMessages, request: Request) -> bool:
    return messages.may_take(_requester(request), request.parameters["name"])


def _settle(settle: Callable[[Requester, str, str], asyncio.Future[Any]], request: Request) -> Answer:
    try:
        work = settle(_requester(request), request.parameters["name"], request.parameters["receipt"])
    except BrokerError as error:
        return _problem(error)
    done = Response(HTTPStatus.NO_CONTENT, "text/plain; charset=utf-8", b"")
    return answered(work, lambda _: done, _problem, gives_up=False)


def _requester(request: Request) -> Requester:
    return Requester(request.identity, Peer(request.address, request.acceptor))


def _options(request: Request) -> TakeOptions:
    query = _query_of(request)
    given = {name: values[-1] for name, values in query.items()}
    unknown = [name for name in given if name not in ("timeout", "lease", "ack", "selector")]
    if unknown:
        raise BadRequestError(f"there is no argument {unknown[0][:100]!r}; there are timeout, lease, ack and selector")
    ack = given.get("ack", "client")
    if ack not in ("client", "auto"):
        raise BadRequestError(f"ack must be client or auto, not {ack[:100]!r}")
    timeout_s = _seconds(given, "timeout", 0.0, TIMEOUT_S_MAX)
    lease_s = _seconds(given, "lease", LEASE_S, LEASE_S_MAX)
    if not lease_s:
        raise BadRequestError("a lease of 0 s is over before the message is sent; ask for at least 1, or for ack=auto")
    return TakeOptions(timeout_s, lease_s, ack == "auto", given.get("selector"))


def _seconds(given: dict[str, str], name: str, default: float, most: float) -> float:
    text = given.get(name)
    if text is None:
        return default
    try:
        value = parse_decimal(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= most:
        raise BadRequestError(f"{name} must be a number of seconds from 0 to {most:g}, not {text[:100]!r}")
    return value


# ---- answers ---------------------------------------------------------------------------------------


def _as_it_is(taken: Taken, open_body: OpenBody) -> Response:
    """The body as it is; the message's headers are headers of HTTP."""
    content_type = "application/octet-stream"
    headers = [
        ("Artemis-Queue", quote(taken.queue, safe="/:. ")),
        ("Artemis-Message-Id", str(taken.message_id)),
        ("Artemis-Timestamp", str(taken.timestamp_ms)),
        ("Artemis-Delivery-Count", str(taken.delivery_count)),
    ]
    if taken.expires_ms:
        headers.append(("Artemis-Expires", str(taken.expires_ms)))
    if taken.receipt is not None:
        headers += [
            ("Artemis-Receipt", taken.receipt),
            ("Artemis-Lease-Seconds", f"{taken.lease_s:g}"),
            ("Location", _place(taken)),
        ]
    own = {name.lower() for name, _ in headers}
    for name, value in taken.headers:
        if f"{_PREFIX}{name.lower()}" in own:
            continue
        if name == "content-type" and _fits(value):
            content_type = value
        elif name.lower() not in _NOT_SHOWN and _TOKEN.issuperset(name) and _fits(value):
            headers.append((name if name.lower().startswith(_SAME) else f"{_PREFIX.title()}{name}", value))
    body = taken.body
    if isinstance(body, LargeBody):
        return Response(HTTPStatus.OK, content_type, open_body(body), tuple(headers))
    return Response(HTTPStatus.OK, content_type, body, tuple(headers))


def _as_json(taken: Taken) -> Response:
    """All of it as one JSON object, with every header under its own name."""
    headers: dict[str, str] = {}
    for name, value in taken.headers:
        headers.setdefault(name, value)
    found: dict[str, Any] = {
        "queue": taken.queue,
        "messageID": taken.message_id,
        "timestamp": taken.timestamp_ms,
        "expiration": taken.expires_ms,
        "deliveryCount": taken.delivery_count,
        "receipt": taken.receipt,
        "leaseSeconds": taken.lease_s,
        "headers": headers,
    }
    assert isinstance(taken.body, bytes)
    try:
        found["body"] = taken.body.decode()
    except UnicodeDecodeError:
        found["bodyBase64"] = base64.b64encode(taken.body).decode()
    location = () if taken.receipt is None else (("Location", _place(taken)),)
    return Response(HTTPStatus.OK, "application/json", json.dumps(found, ensure_ascii=False).encode() + b"\n", location)


def _place(taken: Taken) -> str:
    return f"{PATHS[1]}/{quote(taken.queue, safe='')}/{taken.receipt}"


def _fits(value: str) -> bool:
    """Can a header of HTTP have this value?"""
    return value.isascii() and value.isprintable() and value == value.strip()


def _problem(error: BrokerError) -> Response:
    more = {"routed": False} if isinstance(error, NotKeptError) else {}
    found = json_response(_status(error), {"error": str(error), **more})
    if found.status not in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        return found
    return Response(found.status, found.content_type, found.body, _LATER)


def _status(error: BrokerError) -> int:
    if isinstance(error, NotKeptError):
        return HTTPStatus.TOO_MANY_REQUESTS if error.is_full else HTTPStatus.CONFLICT
    if isinstance(error, BusyError):
        return HTTPStatus.TOO_MANY_REQUESTS if error.is_full else HTTPStatus.SERVICE_UNAVAILABLE
    if isinstance(error, LimitError):
        return HTTPStatus.SERVICE_UNAVAILABLE
    return next(status for kind, status in _STATUSES if isinstance(error, kind))


# ---- opening ---------------------------------------------------------------------------------------------------------
#
# Opens the messages of a broker: its routes, by the rules of its first HTTP acceptor.


def routes_for_messages(
    loop: asyncio.AbstractEventLoop, turns: Turns, calls: OperatorRequests, ports: Ports, security: Security | None
) -> list[Route]:
    """The routes; none where no acceptor serves HTTP. While the broker drains, nothing is delivered here, either."""
    acceptor = next((one for one in turns.broker.config.acceptors if "HTTP" in one.protocols), None)
    if acceptor is None:
        return []
    authorizer = None if security is None else security.authorizer
    service = StompService(turns.broker, acceptor, Traffic(), ports.temporaries, turns.large, authorizer=authorizer)
    service.receiver = ports.receiver
    ports.stomp_services.append(service)

    def open_body(body: LargeBody) -> FileBody | bytes:
        assert turns.large is not None
        past = turns.large.lookup
        descriptor = past.descriptor(body)
        return past.read_retired(body) if descriptor is None else FileBody(descriptor, 0, body.size_bytes)

    return message_routes(HttpMessages(loop, turns, calls, service, authorizer), open_body)


# ---- headers ---------------------------------------------------------------------------------------------------------
#
# From the headers and the query of a request to the headers of a message.
#
# Nothing of a request becomes a header of the message unless a rule here says so: a proxy adds headers of its own, and
# those of the login are nobody's business.


_PREFIX: Final = "artemis-"
"""``Artemis-NAME: value`` gives the message the header ``NAME``: in lower case, unless the broker knows it."""
_BATCHED: Final = "application/cloudevents-batch"
_STRUCTURED: Final = "application/cloudevents+json"
_EVENT_BYTES_MAX: Final = 262144
"""A structured event is read, and reading takes time."""
_DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
_QUERY_FIELDS_MAX: Final = 100
_SHOWN_MAX: Final = 100
_KNOWN: Final = {
    name.lower(): name
    for name in (
        "persistent", "priority", "expires", "correlation-id", "reply-to", "destination-type", "type", _DUPLICATE_ID,
        "AMQ_SCHEDULED_TIME", "AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_CRON", "AMQ_SCHEDULED_PERIOD",
        "AMQ_SCHEDULED_REPEAT", "JMSXGroupID", "_AMQ_GROUP_ID", "JMSXGroupSeq",
    )
}  # fmt: skip
"""Headers that mean something, by their names in lower case: names in HTTP have no case."""
_ARGUMENTS: Final[dict[str, tuple[str, str]]] = {
    "persistent": ("persistent", "true (the default) or false: does the message survive a crash?"),
    "priority": ("priority", "0 to 9; 4 is the default"),
    "expires": ("expires", "when the message expires, in epoch ms"),
    "correlation-id": ("correlation-id", "what an answer will name"),
    "reply-to": ("reply-to", "where an answer goes"),
    "at": ("AMQ_SCHEDULED_TIME", "when the message is delivered, in epoch ms"),
    "delay": ("AMQ_SCHEDULED_DELAY", "after how many ms it is delivered"),
    "group": ("JMSXGroupID", "the message group"),
    "routing-type": ("destination-type", "ANYCAST or MULTICAST; else the address decides"),
    "duplicate-id": (_DUPLICATE_ID, "a message with an id that the address has had is confirmed and dropped"),
}
"""The arguments of the query, with the header that each becomes and what it means."""
_HEADER_ARGUMENT: Final = "header"
_KEEP_ARGUMENT: Final = "keep"
_TEMPORARY: Final = "/temp-"
_EVENT_NEEDS: Final = ("id", "source", "specversion", "type")
_EVENT_NAME: Final = re.compile(r"[a-z0-9]{1,100}")


def _headers_of(request: Request, address: str) -> list[tuple[str, str]]:
    """The headers of the message that a request publishes to an address. Raises BadRequestError."""
    found: dict[str, str] = {"destination": address, "persistent": "true"}
    query = _query_of(request)
    keeps = [pattern.lower() for pattern in query.pop(_KEEP_ARGUMENT, ())]
    for name, value in request.headers.items():
        kept = _kept(name, keeps)
        if kept is not None:
            found[kept] = value
    content_type = request.headers.get("content-type", "").lower()
    if content_type.startswith(_BATCHED):
        raise BadRequestError(f"a batch of CloudEvents ({_BATCHED}) is not divided here; publish each event by itself")
    if content_type.startswith(_STRUCTURED):
        found.update(_of_event(request))
    found.update(_of_query(query))
    _add_duplicate_id(found, request.headers)
    for name in ("destination", "reply-to"):
        if found.get(name, "").startswith(_TEMPORARY):
            raise BadRequestError(f"{_TEMPORARY}… belongs to a connection of STOMP, and {name} cannot be one here")
    found["content-length"] = str(_size_of(request))
    return list(found.items())


def _size_of(request: Request) -> int:
    """How many bytes the body has."""
    return sum(map(len, request.parts)) if request.parts else len(request.body)


def _query_of(request: Request) -> dict[str, list[str]]:
    """The query's arguments. Raises BadRequestError."""
    try:
        return parse_qs(request.query, keep_blank_values=True, errors="strict", max_num_fields=_QUERY_FIELDS_MAX)
    except ValueError:
        raise BadRequestError(f"the query is not UTF-8, or has more than {_QUERY_FIELDS_MAX} arguments") from None


def _kept(name: str, keeps: Sequence[str]) -> str | None:
    """The name that a header of HTTP has in the message; None if it is not for the message."""
    if name in ("content-type", "traceparent", "tracestate") or name.startswith("ce-"):
        return name
    if name.startswith("x-debezium-"):
        return name.upper()
    if name.startswith(_PREFIX):
        return _checked(_KNOWN.get(name[len(_PREFIX) :], name[len(_PREFIX) :]))
    for pattern in keeps:
        if name == pattern or (pattern.endswith("*") and name.startswith(pattern[:-1])):
            return _checked(name)
    return None


def _checked(name: str) -> str:
    if name not in _KNOWN.values() and not passes_through(name):
        raise BadRequestError(f"the header {name[:_SHOWN_MAX]!r} is the broker's own; a message cannot bring it along")
    return name


def _of_query(query: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    for argument, values in query.items():
        if argument == _HEADER_ARGUMENT:
            for text in values:
                name, colon, value = text.partition(":")
                if not colon or not name:
                    raise BadRequestError(f"header is NAME:VALUE, and {text[:_SHOWN_MAX]!r} is not")
                yield _checked(_KNOWN.get(name.lower(), name)), value.strip()
            continue
        row = _ARGUMENTS.get(argument)
        if row is None:
            names = ", ".join((*_ARGUMENTS, _HEADER_ARGUMENT, _KEEP_ARGUMENT))
            raise BadRequestError(f"there is no argument {argument[:_SHOWN_MAX]!r}; there are {names}")
        if len(values) > 1:
            raise BadRequestError(f"{argument} was given {len(values)} times")
        yield row[0], values[0]


def _of_event(request: Request) -> Iterator[tuple[str, str]]:
    """The attributes of a structured event, as headers of binary mode."""
    size_bytes = _size_of(request)
    if size_bytes > _EVENT_BYTES_MAX:
        raise BadRequestError(
            f"a structured CloudEvent may have {_EVENT_BYTES_MAX} bytes, and this one has {size_bytes}; send it in "
            "binary mode, with its attributes as headers ce-…"
        )
    try:
        event = parse_json(b"".join(request.parts) or request.body)
    except ValueError as error:
        raise BadRequestError(f"the body is not JSON, as {_STRUCTURED} says: {error}") from None
    if not isinstance(event, dict):
        raise BadRequestError("a structured CloudEvent is a JSON object")
    missing = [name for name in _EVENT_NEEDS if not isinstance(event.get(name), str) or not event[name]]
    if missing:
        raise BadRequestError(f"a CloudEvent needs {', '.join(_EVENT_NEEDS)}; {missing[0]} is missing, or no text")
    for name, value in event.items():
        if name in ("data", "data_base64", "datacontenttype") or not _EVENT_NAME.fullmatch(name):
            continue
        if isinstance(value, bool):
            yield f"ce-{name}", "true" if value else "false"
        elif isinstance(value, str | int):
            yield f"ce-{name}", str(value)


def _add_duplicate_id(found: dict[str, str], sent: Mapping[str, str]) -> None:
    """An event is known by its source and id together (CloudEvents 1.0, "id"); other requests by their key."""
    if _DUPLICATE_ID in found:
        return
    key = sent.get("idempotency-key", "").strip('"')
    if found.get("ce-id"):
        found[_DUPLICATE_ID] = f"{found.get('ce-source', '')} {found['ce-id']}".strip()
    elif key:
        found[_DUPLICATE_ID] = key


# ---- openapi ---------------------------------------------------------------------------------------------------------
#
# The description of these routes in OpenAPI.


_PROBLEM: Final = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}
_WRONG: Final = {
    "default": {
        "description": "400: it makes no sense; 401: log in; 403: not allowed; 404: it does not exist; 409: not as "
        "things are; 413: too large; 429: the address or a queue is full; 503: the broker has no room. With 429 and "
        "503, Retry-After says when to try again. Nothing was published or taken.",
        **_PROBLEM,
    }
}
_NOT_KEPT: Final = {
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {"error": {"type": "string"}, "routed": {"type": "boolean"}},
                "required": ["error"],
            }
        }
    }
}


def _argument(name: str, sentence: str, place: str = "query", **schema: Any) -> dict[str, Any]:
    return {
        "name": name,
        "in": place,
        "required": place == "path",
        "description": sentence,
        "schema": {"type": "string", **schema},
    }


_NAME: Final = _argument("name", "The address to publish to, or the queue to take from; also address::queue.", "path")
_RECEIPT: Final = _argument("receipt", "What the answer with the message had in Artemis-Receipt.", "path")
_MESSAGE: Final = {
    "type": "object",
    "properties": {
        "queue": {"type": "string"},
        "messageID": {"type": "integer"},
        "timestamp": {"type": "integer", "description": "When it was published, in epoch ms."},
        "expiration": {"type": "integer", "description": "In epoch ms; 0: never."},
        "deliveryCount": {"type": "integer"},
        "receipt": {"type": ["string", "null"], "description": "null: it is acknowledged already."},
        "leaseSeconds": {"type": "number"},
        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        "body": {"type": "string", "description": "If it is UTF-8."},
        "bodyBase64": {"type": "string", "description": "If it is not."},
    },
    "required": [
        "queue",
        "messageID",
        "timestamp",
        "expiration",
        "deliveryCount",
        "receipt",
        "leaseSeconds",
        "headers",
    ],
    "additionalProperties": False,
}
_SENT: Final = {
    "type": "object",
    "properties": {
        "address": {"type": "string"},
        "routed": {
            "type": "boolean",
            "description": "Did a queue or a divert of the address take it? If not, it is at the dead-letter address.",
        },
        "duplicate": {"type": "boolean", "description": "Was it dropped, because its duplicate id was here before?"},
        "queues": {"type": "integer", "description": "On how many queues it is, with those that diverts lead to."},
        "dropped": {"type": "integer", "description": "How many further queues, full and rings, dropped it at once."},
        "messageID": {"type": "integer", "description": "The number of the message; 0: it was a duplicate."},
        "persistent": {"type": "boolean"},
        "size": {"type": "integer", "description": "Of the body, in bytes."},
    },
    "required": ["address", "routed", "duplicate", "queues", "dropped", "messageID", "persistent", "size"],
    "additionalProperties": False,
}
_REPLY: Final = {
    "type": "object",
    "properties": {"address": {"type": "string"}, "result": {"description": "Of the operation, or null."}},
    "required": ["address", "result"],
    "additionalProperties": False,
}
_DONE: Final = {"204": {"description": "Done, and it survives a crash."}, **_WRONG}

OPENAPI_PATHS: Final[dict[str, Any]] = {
    "/api/messages/{name}": {
        "post": {
            "operationId": "publishMessage",
            "summary": "Publish a message. The answer comes when the message survives a crash.",
            "description": "Permission: `send` on the address. The body is the message's. Also at /messages/{name}. "
            "Headers ce-…, X-DEBEZIUM-…, traceparent, tracestate and Content-Type are kept, and Artemis-NAME as NAME.",
            "parameters": [
                _NAME,
                *[_argument(name, f"{sentence}.") for name, (_, sentence) in _ARGUMENTS.items()],
                _argument(_HEADER_ARGUMENT, "NAME:VALUE, any header of the message; may be repeated."),
                _argument(
                    _KEEP_ARGUMENT, "A header of the request that the message keeps; x-github-* for all of them."
                ),
            ],
            "requestBody": {"content": {"*/*": {"schema": {}}}},
            "responses": {
                "200": {
                    "description": "It is on a queue at least, or a repeated message was dropped. At the address of "
                    "management: the operation succeeded.",
                    "content": {"application/json": {"schema": {"oneOf": [_SENT, _REPLY]}}},
                },
                "409": {
                    "description": "No queue took it (routed is false), so it is nowhere; or the operation of a "
                    "management message failed.",
                    **_NOT_KEPT,
                },
                "429": {
                    "description": "The address or a queue is full; also where its policy is DROP, or a ring has "
                    "dropped the message at once (routed is false). Retry-After says when to try again.",
                    **_NOT_KEPT,
                },
                **_WRONG,
            },
        },
    },
    "/api/messages/{name}/take": {
        "post": {
            "operationId": "takeMessage",
            "summary": "Take one message from a queue.",
            "description": "Permission: `consume` on the queue. The body of the answer is the message's. Also at "
            "/messages/{name}/take. With `Accept: application/json` it is JSON, unless the body is a large message.",
            "parameters": [
                _NAME,
                _argument(
                    "timeout", f"How many seconds to wait for a message, at most {TIMEOUT_S_MAX:g}.", default="0"
                ),
                _argument(
                    "lease",
                    f"After how many seconds without a settlement the message goes back, at most {LEASE_S_MAX:g}.",
                    default=f"{LEASE_S:g}",
                ),
                _argument("ack", "auto: it counts as acknowledged when it is sent.", enum=["client", "auto"]),
                _argument("selector", "Take only a message that matches."),
            ],
            "responses": {
                "200": {
                    "description": "The message.",
                    "content": {"application/json": {"schema": _MESSAGE}, "*/*": {"schema": {}}},
                },
                "204": {"description": "There was none in time."},
                **_WRONG,
            },
        },
    },
    "/api/messages/{name}/{receipt}": {
        "delete": {
            "operationId": "acknowledgeMessage",
            "summary": "Acknowledge a message that was taken.",
            "parameters": [_NAME, _RECEIPT],
            "responses": _DONE,
        }
    },
    "/api/messages/{name}/{receipt}/nack": {
        "post": {
            "operationId": "refuseMessage",
            "summary": "Give a message back that was taken. It counts as a failed delivery.",
            "parameters": [_NAME, _RECEIPT],
            "responses": _DONE,
        }
    },
}
"""By path."""
