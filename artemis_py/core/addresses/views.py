"""Which views get the messages of an address: queues with an ``underlying-address`` that matches it."""

from __future__ import annotations

from typing import Final, final

from artemis_py.config.matching import WildcardSyntax
from artemis_py.config.tables.views import View
from artemis_py.config.wildcards import WildcardIndex
from artemis_py.core.queue.queue import Queue

_NONE: Final[list[Queue]] = []


@final
class Views:
    """Finds views by the words of an address. The cost does not depend on how many views other addresses have."""

    __slots__ = ("_by_pattern", "_index", "syntax")

    def __init__(self, syntax: WildcardSyntax) -> None:
        self.syntax = syntax
        self._index = WildcardIndex(syntax)
        self._by_pattern: dict[str, dict[int, Queue]] = {}

    def add(self, queue: Queue, view: View) -> None:
        """A view was created."""
        for pattern in view.underlying:
            self._index.add(pattern)
            self._by_pattern.setdefault(pattern, {})[queue.id] = queue

    def remove(self, queue: Queue, view: View) -> None:
        """A view was deleted."""
        for pattern in view.underlying:
            queues = self._by_pattern[pattern]
            del queues[queue.id]
            if not queues:
                del self._by_pattern[pattern]
                self._index.remove(pattern)

    def over(self, name: str) -> list[Queue]:
        """The views that get messages sent to this address, each once, the oldest first."""
        by_pattern = self._by_pattern
        if not by_pattern:
            return _NONE
        patterns = self._index.matching(name)
        if not patterns:
            return _NONE
        found: dict[int, Queue] = {}
        for pattern in patterns:
            found.update(by_pattern[pattern])
        return [found[number] for number in sorted(found)]
