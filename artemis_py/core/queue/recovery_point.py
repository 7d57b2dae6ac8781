"""From where in the log a queue begins, and how far it has got: ``recovery-point`` (AMPS, "Startup and Recovery for
Queues").

While a queue is filled from the log, it takes no persistent message that is published: it finds it in the log, behind
everything else. So what comes from the past stands before what comes now, and nothing comes twice. Finally a few
messages are on their way to the disk; these it has noted, and takes from memory.
"""

from __future__ import annotations

from typing import Any, Final, final

from artemis_py.config.tables.queue_settings import CREATION, EPOCH, RecoveryPoint, default_point, recovery_point_of
from artemis_py.message import Message

_NOTED_MAX: Final = 4096
_NOTED_BYTES_MAX: Final = 4 << 20
"""A queue that notes more than this is not near the end of the log."""


@final
class Recovery:
    """``written`` is the attribute of the queue, empty where there is none; ``point`` is what it means. The queue
    was made behind ``created_lsn``; -1: nobody knows.

    While it is filled, the queue has everything up to ``after_lsn`` that it is to have; -1: it is not being filled.
    With ``from_ms``, it wants only what was published then or later (epoch milliseconds; -1: no such bound).
    """

    __slots__ = ("_noted_bytes", "after_lsn", "created_lsn", "from_ms", "is_again", "noted", "point", "written")

    def __init__(self, written: str, *, is_view: bool, has_past: bool) -> None:
        self.written = written
        self.point = written.strip() or default_point(is_view=is_view, has_past=has_past)
        self.created_lsn = -1
        self.after_lsn = -1
        self.from_ms = -1
        self.is_again = False
        """Has the queue been there before, so that it may have messages that the log has, too?"""
        self.noted: dict[int, Message] | None = None
        """By id, the messages that the queue was to get since somebody wants to know; None: nobody does."""
        self._noted_bytes = 0

    @property
    def is_filling(self) -> bool:
        """Is the queue being filled?"""
        return self.after_lsn >= 0

    def begin(self, last_lsn: int) -> None:
        """The queue is new, behind this lsn."""
        self.created_lsn = last_lsn
        self._go_to(recovery_point_of(self.point), last_lsn)

    def resume(self, fields: dict[str, Any], last_lsn: int) -> None:
        """The queue was there before a restart; ``fields`` are those that it had. If its recovery point was changed, it
        begins there again.
        """
        self.created_lsn = int(fields.get("created", -1))
        was_point = str(fields.get("point", default_point(is_view=False, has_past=False)))
        if self.written != fields.get("written", "") and self.point != was_point:
            self.is_again = True
            self._go_to(recovery_point_of(self.point), last_lsn)
            return
        if self.written == fields.get("written", ""):
            self.point = was_point  # a default that is another one now is no change
        self.after_lsn = int(fields.get("after", -1))
        self.from_ms = int(fields.get("from_ms", -1))
        self.is_again = bool(fields.get("again"))

    def _go_to(self, point: RecoveryPoint, last_lsn: int) -> None:
        self.from_ms = point.from_ms
        if point.word == EPOCH or point.from_ms >= 0:
            self.after_lsn = 0
        elif point.word == CREATION:
            self.after_lsn = self.created_lsn if self.created_lsn < last_lsn else -1
        else:
            self.after_lsn = point.lsn if point.lsn < last_lsn else -1

    def finish(self) -> None:
        """The queue has everything, and takes what is published from now on."""
        self.after_lsn = self.from_ms = -1
        self.is_again = False
        self.noted = None

    def fields(self) -> dict[str, Any]:
        """What a restart must know."""
        fields: dict[str, Any] = {"written": self.written, "point": self.point, "created": self.created_lsn}
        if self.is_filling:
            fields["after"] = self.after_lsn
            if self.from_ms >= 0:
                fields["from_ms"] = self.from_ms
            if self.is_again:
                fields["again"] = True
        return fields

    def note(self, message: Message) -> None:
        """A message is on its way to the queue, and will be found in the log."""
        noted = self.noted
        if noted is None or message.id in noted:
            return
        if not noted:
            self._noted_bytes = 0
        self._noted_bytes += message.memory_bytes
        if len(noted) >= _NOTED_MAX or self._noted_bytes > _NOTED_BYTES_MAX:
            self.noted = None
        else:
            noted[message.id] = message
