"""Which messages of a queue an operator means."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from artemis_py.core.budget import Budget
from artemis_py.core.dead_letters import cause_of, comes_from
from artemis_py.message import Head, Message
from artemis_py.selector import Selector

_HEAD_UNITS: Final = 2
"""What it costs to look for a header."""
_PER_MESSAGE: Final = frozenset({"AMQTimestamp", "AMQExpiration", "AMQSize"})


@final
class MessageFilter:
    """Messages by their numbers; or those that a selector matches, and, of dead and expired ones, those that come from
    one queue or address (``origin``) or went for one ``cause``. What is not given chooses nothing out. A change
    ends when it is done with the first ``count_max`` of them (None: with all).
    """

    def __init__(
        self,
        selector: Selector | None = None,
        *,
        ids: Iterable[int] | None = None,
        origin: str | None = None,
        cause: str | None = None,
        count_max: int | None = None,
    ) -> None:
        self.count_max = count_max
        self.ids = None if ids is None else frozenset(ids)
        self._origin = origin
        self._cause = cause
        self._program = None if selector is None else selector.program
        self._head_only = selector is None or not (selector.identifiers & _PER_MESSAGE)
        self._head: Head | None = None
        self._last_match = False

    @property
    def is_all(self) -> bool:
        """Does it mean every message?"""
        return self.ids is None and self._program is None and self._origin is None and self._cause is None

    def matches(self, message: Message, budget: Budget) -> bool:
        """Is the message meant? The answer for a header block is kept for the next message with the same one."""
        if self.ids is not None:
            return message.id in self.ids
        head = message.head
        if self._head_only and head is self._head:
            return self._last_match
        self._head = head
        self._last_match = self._is_meant(message, head, budget)
        return self._last_match

    def _is_meant(self, message: Message, head: Head, budget: Budget) -> bool:
        if self._origin is not None:
            budget.spend(_HEAD_UNITS)
            if not comes_from(head, self._origin):
                return False
        if self._cause is not None:
            budget.spend(_HEAD_UNITS)
            if cause_of(head) != self._cause:
                return False
        program = self._program
        if program is None:
            return True
        budget.spend(program.units + (program.units_per_kb * head.size_bytes >> 10))
        return program.condition(message.lookup) is True
