"""The routes of Jolokia, and the web pages that may use it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, Final, final
from urllib.parse import parse_qsl, urlsplit

from artemis_py.config.tables.declarations import WebAccess
from artemis_py.management.artemis.java import JavaError, illegal
from artemis_py.management.jolokia import BULK_MAX, Agent, Answer, JolokiaRequest, Options, of_json, of_path
from artemis_py.management.operation import Guard
from artemis_py.server import operational_log as audit
from artemis_py.server.http.requests import Answer as HttpAnswer
from artemis_py.server.http.requests import Handler, Request, Response, answered, json_response, parse_json
from artemis_py.server.http.routing import Route
from artemis_py.server.operator_requests import OperatorRequests

# ---- origins ---------------------------------------------------------------------------------------------------------
#
# The web pages that may use Jolokia, as ``jolokia-access.xml`` says. ``*`` stands for any text, as in Jolokia, but
# for one place: at the end of a host without a port it stands for a port. Artemis writes ``*://localhost*`` into each
# instance and means its own pages; pages of ``localhost.evil.example`` are others.


_ANY: Final = "*"
_PORT: Final = r"(?::\d{1,5})?"


@final
class Origins:
    """What a ``WebAccess`` lets in."""

    def __init__(self, access: WebAccess) -> None:
        self._access = access
        self._patterns = [_compiled(one) for one in access.origins]

    def allows(self, origin: str) -> bool:
        """May pages of this origin use Jolokia?"""
        return any(pattern.fullmatch(origin.lower()) for pattern in self._patterns)

    def refusal(self, request: Request) -> str | None:
        """Why a request is refused although its ``Origin`` may be right, or None: with ``strict-checking`` each request
        says by which page it was sent.
        """
        headers = request.headers
        if not self._access.is_strict or "origin" in headers:
            return None
        page = headers.get("referer")
        place = self._access.origin
        if page is None:
            return (
                f"strict-checking in {place.file} (line {place.line}) wants the header Origin or Referer in each "
                "request; send that of an allow-origin, or take strict-checking away"
            )
        origin, host = _origin_of(page)
        if host == headers.get("host", "").lower() or self.allows(origin):
            return None
        return f"pages of {origin[:100]!r} may not use Jolokia; allow-origin in {place.file} names those that may"


def _origin_of(page: str) -> tuple[str, str]:
    """The origin of a page, and its host and port."""
    try:
        parts = urlsplit(page)
    except ValueError:
        return "", ""
    return f"{parts.scheme}://{parts.netloc}".lower(), parts.netloc.lower()


def _compiled(pattern: str) -> re.Pattern[str]:
    scheme, separator, authority = pattern.partition("://")
    ends_in_host = separator and len(authority) > 1 and authority.endswith(_ANY) and ":" not in authority
    if ends_in_host:
        return re.compile(_text(f"{scheme}://{authority.removesuffix(_ANY)}") + _PORT)
    return re.compile(_text(pattern))


def _text(pattern: str) -> str:
    return ".*".join(map(re.escape, _parts(pattern)))


def _parts(pattern: str) -> Iterable[str]:
    return pattern.split(_ANY)


# ---- jolokia routes --------------------------------------------------------------------------------------------------
#
# ``/console/jolokia``, ``/jolokia`` and ``/api/jolokia``: Jolokia's protocol, for the tools that speak it.


BASES: Final = ("/console/jolokia", "/jolokia", "/api/jolokia")
_JSON: Final = "application/json"
_TYPES: Final = frozenset({_JSON, "text/plain"})
_PIECE_BYTES: Final = 8 * 1024
_QUERY_FIELDS_MAX: Final = 100
_SENT: Final = frozenset({"authorization", "content-type", "accept", "x-requested-with"})
"""The headers that a page may send."""
_BY_LINK: Final = "java.lang.SecurityException"


def jolokia_routes(
    agent: Agent,
    calls: OperatorRequests,
    guard_of: Callable[[Request], Guard],
    clock_ms: Callable[[], int],
    access: WebAccess | None = None,
) -> list[Route]:
    """The routes. ``guard_of`` says what the user of a request may do, ``clock_ms`` is the date, ``access`` which web
    pages may use them besides those of the acceptor's hosts.
    """
    origins = Origins(access or WebAccess())
    carry_out = partial(_carry_out, agent, calls, guard_of, clock_ms)
    handlers: dict[str, Handler] = {
        "GET": partial(_strictly, origins, partial(carry_out, _from_path)),
        "POST": partial(_strictly, origins, partial(carry_out, _from_body)),
        "OPTIONS": _preflight,
    }
    paths = [path for base in BASES for path in (base, f"{base}/*")]
    return [
        Route(path, handlers, checks_itself=True, open_methods=frozenset({"OPTIONS"}), pages=origins.allows)
        for path in paths
    ]


def _strictly(origins: Origins, answer: Callable[[Request], HttpAnswer], request: Request) -> HttpAnswer:
    reason = origins.refusal(request)
    return answer(request) if reason is None else _problem(HTTPStatus.FORBIDDEN, _BY_LINK, reason)


def _preflight(request: Request) -> Response:
    """A browser asks whether a page of another origin may send a request. It was checked already that it may. Nothing
    that the browser remembers of logins is sent then; the page has to log in itself.
    """
    headers = [*_origin(request), ("Access-Control-Allow-Methods", "GET, POST"), ("Access-Control-Max-Age", "3600")]
    wanted = request.headers.get("access-control-request-headers")
    if wanted is not None:
        named = [name for one in wanted.split(",") if (name := one.strip().lower()) in _SENT]
        headers.append(("Access-Control-Allow-Headers", ", ".join(named)))
    return Response(HTTPStatus.OK, "text/plain", b"", tuple(headers))


_Read = tuple[Sequence[JolokiaRequest | JavaError], bool]
"""Requests, and whether they came as a list."""


def _carry_out(
    agent: Agent,
    calls: OperatorRequests,
    guard_of: Callable[[Request], Guard],
    clock_ms: Callable[[], int],
    read: Callable[[Request, Options], _Read],
    request: Request,
) -> HttpAnswer:
    try:
        query = dict(parse_qsl(request.query, keep_blank_values=True, max_num_fields=_QUERY_FIELDS_MAX))
        options = Options().changed(query)
        requests, is_bulk = read(request, options)
    except ValueError as error:
        return _unreadable(str(error))
    changes = agent.changes(requests)

    def note(id: str, given: Mapping[str, Any], result: str, is_denied: bool) -> None:
        tell = audit.tell_denied if is_denied else audit.tell
        tell(id, given, request.user, request.address, result)

    work = calls.begin(agent.run(requests, guard_of(request), note), changes=changes)
    shape = partial(_response, options, _origin(request), clock_ms, is_bulk=is_bulk)
    return answered(work, shape, gives_up=not changes)


def _from_path(request: Request, options: Options) -> _Read:
    base = next(base for base in BASES if request.path == base or request.path.startswith(f"{base}/"))
    path = request.path[len(base) :].removeprefix("/")
    if not path:
        query = dict(parse_qsl(request.query, keep_blank_values=True))
        path = query.get("p", "").removeprefix("/")
    try:
        return [of_path(path, options)], False
    except JavaError as error:
        return [error], False


def _from_body(request: Request, options: Options) -> _Read:
    """Raises ValueError."""
    sent = parse_json(request.body)
    if not isinstance(sent, list):
        return [_of_json(sent, options)], False
    if len(sent) > BULK_MAX:
        raise ValueError(f"the body has {len(sent)} requests, the limit is {BULK_MAX}; send them in several bodies")
    return [_of_json(one, options) for one in sent], True


def _of_json(sent: object, options: Options) -> JolokiaRequest | JavaError:
    if not isinstance(sent, dict):
        return illegal("a request must be a JSON object")
    try:
        return of_json(sent, options)
    except JavaError as error:
        return error


def _response(
    options: Options,
    headers: tuple[tuple[str, str], ...],
    clock_ms: Callable[[], int],
    answers: list[Answer],
    *,
    is_bulk: bool,
) -> Response:
    type = options.mime_type if options.mime_type in _TYPES else _JSON
    body = _gathered(_pieces(answers, clock_ms() // 1000, is_bulk=is_bulk))
    return Response(HTTPStatus.OK, f"{type}; charset=utf-8", body, headers)


def _pieces(answers: list[Answer], timestamp_s: int, *, is_bulk: bool) -> Iterator[str]:
    if not is_bulk:
        yield from answers[0].pieces(timestamp_s)
        return
    yield "["
    for number, answer in enumerate(answers):
        if number:
            yield ","
        yield from answer.pieces(timestamp_s)
    yield "]"


def _gathered(pieces: Iterator[str]) -> Iterator[bytes]:
    """Small pieces together: each piece of a body costs a round of the event loop."""
    waiting: list[str] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= _PIECE_BYTES:
            yield "".join(waiting).encode()
            waiting, size = [], 0
    yield "".join(waiting).encode()


def _origin(request: Request) -> tuple[tuple[str, str], ...]:
    """A web page whose origin is let in may read the answer."""
    origin = request.headers.get("origin")
    return () if origin is None else (("Access-Control-Allow-Origin", origin), ("Vary", "Origin"))


def _unreadable(reason: str) -> Response:
    return _problem(HTTPStatus.BAD_REQUEST, "java.lang.IllegalArgumentException", f"no request of Jolokia: {reason}")


def _problem(status: int, type: str, reason: str) -> Response:
    return json_response(status, {"error_type": type, "error": f"{type} : {reason}", "status": status})
