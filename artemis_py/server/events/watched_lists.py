"""Lists that clients watch over HTTP: each is made once a second, and only what has changed is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, final
from urllib.parse import parse_qs, unquote

from artemis_py.errors import BadRequestError, BrokerError, LimitError, NotFoundError
from artemis_py.management.listing import Row, Selection, Value
from artemis_py.management.managed import Managed, Steps
from artemis_py.management.operation import Operation, arguments_of
from artemis_py.management.table import OPERATIONS
from artemis_py.server.events.server_sent_events import Listener, as_json, event
from artemis_py.server.operator_requests import OperatorRequests

# ---- topic -----------------------------------------------------------------------------------------------------------
#
# What a client wants to watch: the request of a look operation, without ``/api/``.


ROWS_MAX: Final = 200
"""The largest page that can be watched."""
_ROOT: Final = "/api/"
_SHOWN_MAX: Final = 200
_ARGUMENTS_MAX: Final = 50
_WATCHABLE: Final = {one.path[len(_ROOT) :]: one for one in OPERATIONS if one.is_watchable}


@dataclass(frozen=True, slots=True)
class Topic:
    """What is watched. ``text`` is as the client wrote it; ``permission`` is what it takes."""

    text: str
    operation: Operation
    arguments: Mapping[str, Any]
    permission: str


def topic_of(text: str) -> Topic:
    """What a text asks for. Raises NotFoundError and BadRequestError."""
    path, _, query = text.partition("?")
    found = _operation_of(path.split("/"))
    if found is None:
        known = ", ".join(sorted(_WATCHABLE))
        raise NotFoundError(f"there is nothing to watch at {text[:_SHOWN_MAX]!r}; there is {known}")
    operation, parts = found
    try:
        sent: dict[str, Sequence[object]] = {
            **parse_qs(query, keep_blank_values=True, errors="strict", max_num_fields=_ARGUMENTS_MAX),
            **{name: [value] for name, value in parts.items()},
        }
    except ValueError:
        raise BadRequestError(f"{text[:_SHOWN_MAX]!r} has too many arguments, or is not UTF-8") from None
    arguments = arguments_of(operation, sent)
    if operation.lists is not None:
        key = next(iter(operation.lists.fields))
        fields = [name.strip() for name in chain.from_iterable(one.split(",") for one in arguments["fields"])]
        if fields and key not in fields:
            arguments["fields"] = (key, *fields)
        if not 1 <= arguments["size"] <= ROWS_MAX:
            raise BadRequestError(f"size must be 1 to {ROWS_MAX} for a list that is watched, not {arguments['size']}")
    permission = operation.permission
    for name, value in parts.items():
        permission = permission.replace(f"{{{name}}}", value)
    return Topic(text, operation, arguments, permission)


def _operation_of(parts: Sequence[str]) -> tuple[Operation, dict[str, str]] | None:
    for path, operation in _WATCHABLE.items():
        pattern = path.split("/")
        if len(pattern) == len(parts) and all(parts):
            pairs = list(zip(pattern, parts, strict=True))
            if all(wanted.startswith("{") or wanted == part for wanted, part in pairs):
                return operation, {wanted[1:-1]: unquote(part) for wanted, part in pairs if wanted.startswith("{")}
    return None


# ---- watch -----------------------------------------------------------------------------------------------------------
#
# One thing that clients watch: looks at it in steps, and tells what has changed since the last look.


@final
class Watch:
    """All that watch the same share one look and get the same bytes."""

    __slots__ = (
        "_known",
        "_listeners",
        "_managed",
        "_new_listeners",
        "_order",
        "_problem",
        "_said",
        "_warned",
        "is_looking",
        "topic",
    )

    def __init__(self, topic: Topic, managed: Managed) -> None:
        self.topic = topic
        self.is_looking = False
        self._managed = managed
        self._listeners: set[Listener] = set()
        self._new_listeners: set[Listener] = set()
        """Those of them that need a whole state."""
        self._known: dict[Value, Row] = {}
        """The rows of the last look by their keys; of one thing only one, under None."""
        self._order: list[Value] = []
        self._said: dict[str, int] = {}
        """What the last look said of the list as a whole."""
        self._problem = ""
        self._warned: set[Listener] = set()
        """Those that know of the problem."""

    def __len__(self) -> int:
        return len(self._listeners)

    def join(self, listener: Listener) -> None:
        """Somebody watches from now on."""
        self._listeners.add(listener)
        self._new_listeners.add(listener)

    def leave(self, listener: Listener) -> None:
        """Somebody watches no more."""
        self._listeners.discard(listener)
        self._new_listeners.discard(listener)
        self._warned.discard(listener)

    def refresh(self) -> Steps:
        """Read the lists once, as a request of an operator does."""
        try:
            result = yield from self.topic.operation.begin(self._managed, self.topic.arguments)
            if isinstance(result, Selection):
                yield from self._compare_list(result)
            elif isinstance(result, Mapping):  # nobody watches a file
                self._compare_thing({**result})
            self._problem = ""
            self._warned.clear()
        except BrokerError as error:
            self._tell_problem(str(error))
        finally:
            self.is_looking = False
        return {}

    def _compare_list(self, selection: Selection[Any]) -> Steps:
        key = next(iter(selection.kind.fields))
        known: dict[Value, Row] = {}
        changed: list[str] = []
        whole: list[str] | None = [] if self._new_listeners else None
        for rows in selection.rows():
            for row in rows:
                name = row[key]
                known[name] = row
                text = _changes(self._known.get(name), row, key)
                if text:
                    changed.append(text)
                if whole is not None:
                    whole.append(as_json(row))
            yield None
        order, said = list(known), {"count": selection.count}
        pieces = [f'"count": {selection.count}', f'"data": [{", ".join(changed)}]']
        if order != self._order:
            pieces.insert(1, f'"order": {as_json(order)}')
        if changed or order != self._order or said != self._said:
            self._tell_changes(pieces)
        self._known, self._order, self._said = known, order, said
        if whole is not None:
            page = {"key": key, **said, "page": selection.query.page, "size": selection.query.size}
            self._tell_state([as_json(page)[1:-1], f'"data": [{", ".join(whole)}]'])
        return {}

    def _compare_thing(self, row: Row) -> None:
        changes = _changes(self._known.get(None), row, None)
        if changes:
            self._tell_changes([f'"data": {changes}'])
        self._known = {None: row}
        if self._new_listeners:
            self._tell_state([f'"data": {as_json(row)}'])

    # ---- telling ---------------------------------------------------------------------------------

    def _event(self, kind: str, pieces: list[str]) -> bytes:
        about = as_json({"watch": self.topic.text, "at": self._managed.now_ms()})[:-1]
        return event(kind, ", ".join([about, *pieces]) + "}")

    def _tell_changes(self, pieces: list[str]) -> None:
        listeners = self._listeners - self._new_listeners
        if listeners:
            data = self._event("changes", pieces)
            self._new_listeners |= {listener for listener in listeners if not listener.put(data)}

    def _tell_state(self, pieces: list[str]) -> None:
        data = self._event("state", pieces)
        self._new_listeners = {listener for listener in self._new_listeners if not listener.put(data)}

    def _tell_problem(self, why: str) -> None:
        data = self._event("problem", [f'"error": {as_json(why)}'])
        if why != self._problem:
            self._problem = why
            self._warned.clear()
        self._warned |= {listener for listener in self._listeners - self._warned if listener.put(data)}
        self._known, self._order, self._said = {}, [], {}
        self._new_listeners = set(self._listeners)


def _changes(before: Row | None, row: Row, key: str | None) -> str:
    """What is new in a row, as JSON with its key; empty if nothing is."""
    if before is None:
        return as_json(row)
    if before == row:
        return ""
    changed: Mapping[str, Value] = {name: value for name, value in row.items() if before.get(name) != value}
    return as_json(changed if key is None else {key: row[key], **changed})


# ---- watches ---------------------------------------------------------------------------------------------------------
#
# What all clients watch: each thing is looked at once a second, however many watch it.


PERIOD_MS: Final = 1000
WATCHES_MAX: Final = 200
"""So many different things are watched at most."""


@final
class ListWatches:
    """By their topics. ``calls`` looks at them inside turns."""

    def __init__(self, managed: Managed, calls: OperatorRequests) -> None:
        self._managed = managed
        self._calls = calls
        self._by_text: dict[str, Watch] = {}
        self._is_looking = False

    def __len__(self) -> int:
        return len(self._by_text)

    def check(self, topics: Sequence[Topic]) -> None:
        """Raises LimitError if these would be too many."""
        if len(self._by_text.keys() | {topic.text for topic in topics}) > WATCHES_MAX:
            raise LimitError(f"clients watch {len(self._by_text)} different things, and may watch {WATCHES_MAX}")

    def join(self, listener: Listener, topics: Sequence[Topic]) -> None:
        """A client watches these, each from the next look on, which begins now."""
        for topic in topics:
            watch = self._by_text.setdefault(topic.text, Watch(topic, self._managed))
            watch.join(listener)
            self._look(watch)
        if topics and not self._is_looking:
            self._is_looking = True
            self._calls.begin(self._look_regularly(), changes=False)

    def leave(self, listener: Listener) -> None:
        """A client watches no more."""
        for text, watch in list(self._by_text.items()):
            watch.leave(listener)
            if not watch:
                del self._by_text[text]

    def _look_regularly(self) -> Steps:
        """Looks, as long as somebody watches."""
        try:
            while self._by_text:
                yield self._managed.after_ms(PERIOD_MS)
                for watch in self._by_text.values():
                    self._look(watch)
        finally:
            self._is_looking = False
        return {}

    def _look(self, watch: Watch) -> None:
        """Begin a look, unless one is under way."""
        if not watch.is_looking:
            watch.is_looking = True
            self._calls.begin(watch.refresh(), changes=False)
