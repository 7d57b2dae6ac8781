"""From the headers and the query of an HTTP request to the headers of a message.

Nothing of a request becomes a header of the message unless a rule here says so: a proxy adds headers of its own, and
those of the login are nobody's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import parse_qs

from artemis_py.errors import BadRequestError
from artemis_py.server.http.requests import Request, parse_json
from artemis_py.stomp.wire.dialect import passes_through

PREFIX: Final = "artemis-"
"""``Artemis-NAME: value`` gives the message the header ``NAME``: in lower case, unless the broker knows it."""
BATCHED: Final = "application/cloudevents-batch"
STRUCTURED: Final = "application/cloudevents+json"
STRUCTURED_BYTES_MAX: Final = 262144
"""A structured event is read, and reading takes time."""
DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
_QUERY_FIELDS_MAX: Final = 100
_SHOWN_MAX: Final = 100
_KNOWN: Final = {
    name.lower(): name
    for name in (
        "persistent", "priority", "expires", "correlation-id", "reply-to", "destination-type", "type", DUPLICATE_ID,
        "AMQ_SCHEDULED_TIME", "AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_CRON", "AMQ_SCHEDULED_PERIOD",
        "AMQ_SCHEDULED_REPEAT", "JMSXGroupID", "_AMQ_GROUP_ID", "JMSXGroupSeq",
    )
}  # fmt: skip
"""Headers that mean something, by their names in lower case: names in HTTP have no case."""
ARGUMENTS: Final[dict[str, tuple[str, str]]] = {
    "persistent": ("persistent", "true (the default) or false: does the message survive a crash?"),
    "priority": ("priority", "0 to 9; 4 is the default"),
    "expires": ("expires", "when the message expires, in epoch ms"),
    "correlation-id": ("correlation-id", "what an answer will name"),
    "reply-to": ("reply-to", "where an answer goes"),
    "at": ("AMQ_SCHEDULED_TIME", "when the message is delivered, in epoch ms"),
    "delay": ("AMQ_SCHEDULED_DELAY", "after how many ms it is delivered"),
    "group": ("JMSXGroupID", "the message group"),
    "routing-type": ("destination-type", "ANYCAST or MULTICAST; else the address decides"),
    "duplicate-id": (DUPLICATE_ID, "a message with an id that the address has had is confirmed and dropped"),
}
"""The arguments of the query, with the header that each becomes and what it means."""
HEADER_ARGUMENT: Final = "header"
KEEP_ARGUMENT: Final = "keep"
_TEMPORARY: Final = "/temp-"
_SAME: Final = frozenset({"content-type", "traceparent", "tracestate"})
_EVENT_NEEDS: Final = ("id", "source", "specversion", "type")
_EVENT_NAME: Final = re.compile(r"[a-z0-9]{1,100}")


def headers_of(request: Request, address: str) -> list[tuple[str, str]]:
    """The headers of the message that a request publishes to an address. Raises BadRequestError."""
    found: dict[str, str] = {"destination": address, "persistent": "true"}
    query = query_of(request)
    keeps = [pattern.lower() for pattern in query.pop(KEEP_ARGUMENT, ())]
    for name, value in request.headers.items():
        kept = _kept(name, keeps)
        if kept is not None:
            found[kept] = value
    content_type = request.headers.get("content-type", "").lower()
    if content_type.startswith(BATCHED):
        raise BadRequestError(f"a batch of CloudEvents ({BATCHED}) is not divided here; publish each event by itself")
    if content_type.startswith(STRUCTURED):
        found.update(_of_event(request))
    found.update(_of_query(query))
    _add_duplicate_id(found, request.headers)
    for name in ("destination", "reply-to"):
        if found.get(name, "").startswith(_TEMPORARY):
            raise BadRequestError(f"{_TEMPORARY}… belongs to a connection of STOMP, and {name} cannot be one here")
    found["content-length"] = str(size_of(request))
    return list(found.items())


def size_of(request: Request) -> int:
    """How many bytes the body has."""
    return sum(map(len, request.parts)) if request.parts else len(request.body)


def query_of(request: Request) -> dict[str, list[str]]:
    """The query's arguments. Raises BadRequestError."""
    try:
        return parse_qs(request.query, keep_blank_values=True, errors="strict", max_num_fields=_QUERY_FIELDS_MAX)
    except ValueError:
        raise BadRequestError(f"the query is not UTF-8, or has more than {_QUERY_FIELDS_MAX} arguments") from None


def _kept(name: str, keeps: Sequence[str]) -> str | None:
    """The name that a header of HTTP has in the message; None if it is not for the message."""
    if name in _SAME or name.startswith("ce-"):
        return name
    if name.startswith("x-debezium-"):
        return name.upper()
    if name.startswith(PREFIX):
        return _checked(_KNOWN.get(name[len(PREFIX) :], name[len(PREFIX) :]))
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
        if argument == HEADER_ARGUMENT:
            for text in values:
                name, colon, value = text.partition(":")
                if not colon or not name:
                    raise BadRequestError(f"header is NAME:VALUE, and {text[:_SHOWN_MAX]!r} is not")
                yield _checked(_KNOWN.get(name.lower(), name)), value.strip()
            continue
        row = ARGUMENTS.get(argument)
        if row is None:
            names = ", ".join((*ARGUMENTS, HEADER_ARGUMENT, KEEP_ARGUMENT))
            raise BadRequestError(f"there is no argument {argument[:_SHOWN_MAX]!r}; there are {names}")
        if len(values) > 1:
            raise BadRequestError(f"{argument} was given {len(values)} times")
        yield row[0], values[0]


def _of_event(request: Request) -> Iterator[tuple[str, str]]:
    """The attributes of a structured event, as headers of binary mode."""
    size_bytes = size_of(request)
    if size_bytes > STRUCTURED_BYTES_MAX:
        raise BadRequestError(
            f"a structured CloudEvent may have {STRUCTURED_BYTES_MAX} bytes, and this one has {size_bytes}; send it in "
            "binary mode, with its attributes as headers ce-…"
        )
    try:
        event = parse_json(b"".join(request.parts) or request.body)
    except ValueError as error:
        raise BadRequestError(f"the body is not JSON, as {STRUCTURED} says: {error}") from None
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
    if DUPLICATE_ID in found:
        return
    key = sent.get("idempotency-key", "").strip('"')
    if found.get("ce-id"):
        found[DUPLICATE_ID] = f"{found.get('ce-source', '')} {found['ce-id']}".strip()
    elif key:
        found[DUPLICATE_ID] = key
