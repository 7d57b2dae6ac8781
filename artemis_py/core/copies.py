"""Dead and expired messages whose copies belong on another address."""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from artemis_py.core.reference.reference import QueueReference
from artemis_py.message import Message
from artemis_py.records import RecordLog

TIME_LIMIT: Final = "time_limit"
FORCED_EXPIRE: Final = "forced_expire"
"""Why a message expired, in the words of AMPS (row A-28, tests/queues/rows.py)."""
SENT_BY_OPERATOR: Final = "sent_by_operator"
"""Why a message is dead that an operator has sent to the dead letters."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Copies:
    """Queues note messages here when they die or expire, and the broker makes the copies later in the turn.

    From the first note to ``close`` the log writes one group, so the end of an original and its copy survive together
    or not at all.
    """

    def __init__(self, log: RecordLog) -> None:
        self.dead: list[tuple[QueueReference, Message, str]] = []
        self.expired: list[tuple[QueueReference, Message, str]] = []
        """Each with the reason that its copy names."""
        self.is_open = False
        """Is there a group to end?"""
        self._log = log

    def note_dead(self, queue: QueueReference, message: Message, reason: str) -> None:
        """The message failed for the last time: a copy belongs on the dead-letter address."""
        self._open()
        self.dead.append((queue, message, reason))

    def note_expired(self, queue: QueueReference, message: Message) -> None:
        """The message expired: a copy belongs on the expiry address."""
        self._open()
        self.expired.append((queue, message, TIME_LIMIT))

    def note_forced(self, queue: QueueReference, message: Message) -> None:
        """A consumer had the message expire: a copy belongs on the expiry address."""
        self._open()
        self.expired.append((queue, message, FORCED_EXPIRE))

    def join(self) -> None:
        """What is recorded next belongs to the group: an operator moves messages, and their copies are published at
        once.
        """
        self._open()

    def _open(self) -> None:
        if not self.is_open:
            self.is_open = True
            self._log.begin_group()

    def close(self) -> None:
        """All copies are made: end the group."""
        if self.is_open:
            self.is_open = False
            self._log.end_group()
