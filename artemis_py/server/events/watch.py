"""One thing that clients watch: looks at it in steps, and tells what has changed since the last look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

from artemis_py.errors import BrokerError
from artemis_py.management.lists.field import Row, Value
from artemis_py.management.lists.selection import Selection
from artemis_py.management.managed import Managed, Steps
from artemis_py.server.events.listener import Listener
from artemis_py.server.events.messages import as_json, event
from artemis_py.server.events.topic import Topic


@final
class Watch:
    """All that watch the same share one look and get the same bytes."""

    __slots__ = (
        "_known",
        "_listeners",
        "_managed",
        "_newcomers",
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
        self._newcomers: set[Listener] = set()
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
        self._newcomers.add(listener)

    def leave(self, listener: Listener) -> None:
        """Somebody watches no more."""
        self._listeners.discard(listener)
        self._newcomers.discard(listener)
        self._warned.discard(listener)

    def look(self) -> Steps:
        """One look, as a work that operators ask for."""
        try:
            result = yield from self.topic.operation.begin(self._managed, self.topic.given)
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
        whole: list[str] | None = [] if self._newcomers else None
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
            page = {"key": key, **said, "page": selection.wanted.page, "size": selection.wanted.size}
            self._tell_state([as_json(page)[1:-1], f'"data": [{", ".join(whole)}]'])
        return {}

    def _compare_thing(self, row: Row) -> None:
        changes = _changes(self._known.get(None), row, None)
        if changes:
            self._tell_changes([f'"data": {changes}'])
        self._known = {None: row}
        if self._newcomers:
            self._tell_state([f'"data": {as_json(row)}'])

    # ---- telling ---------------------------------------------------------------------------------

    def _event(self, kind: str, pieces: list[str]) -> bytes:
        about = as_json({"watch": self.topic.text, "at": self._managed.now_ms()})[:-1]
        return event(kind, ", ".join([about, *pieces]) + "}")

    def _tell_changes(self, pieces: list[str]) -> None:
        listeners = self._listeners - self._newcomers
        if listeners:
            told = self._event("changes", pieces)
            self._newcomers |= {listener for listener in listeners if not listener.put(told)}

    def _tell_state(self, pieces: list[str]) -> None:
        told = self._event("state", pieces)
        self._newcomers = {listener for listener in self._newcomers if not listener.put(told)}

    def _tell_problem(self, why: str) -> None:
        told = self._event("problem", [f'"error": {as_json(why)}'])
        if why != self._problem:
            self._problem = why
            self._warned.clear()
        self._warned |= {listener for listener in self._listeners - self._warned if listener.put(told)}
        self._known, self._order, self._said = {}, [], {}
        self._newcomers = set(self._listeners)


def _changes(before: Row | None, row: Row, key: str | None) -> str:
    """What is new in a row, as JSON with its key; empty if nothing is."""
    if before is None:
        return as_json(row)
    if before == row:
        return ""
    changed: Mapping[str, Value] = {name: value for name, value in row.items() if before.get(name) != value}
    return as_json(changed if key is None else {key: row[key], **changed})
