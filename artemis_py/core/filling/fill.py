"""One pass over the log for queues that begin in it: which of its messages each of them is to have.

A pass is a replay. What it finds is put on the queues together with how far they have got, in one group of records. So
a crash leaves both or nothing, and nothing comes twice.
"""

from __future__ import annotations

from collections import deque
from typing import Final, final

from artemis_py.config.matching import WildcardSyntax
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.recovery import Recovery
from artemis_py.core.replay.addresses import Addresses
from artemis_py.core.replay.replay import Replay
from artemis_py.logged import Logged
from artemis_py.message import HeaderName, Message
from artemis_py.units import parse_long

_DESTINATION: Final = HeaderName("destination")
_SCHEDULED_TIME: Final = HeaderName("AMQ_SCHEDULED_TIME")
_SCHEDULED_DELAY: Final = HeaderName("AMQ_SCHEDULED_DELAY")


@final
class Pupil:
    """A queue on its way through the log."""

    __slots__ = ("addresses", "coming_bytes", "count", "queue", "recovery")

    def __init__(self, queue: Queue, recovery: Recovery, syntax: WildcardSyntax) -> None:
        self.queue = queue
        self.recovery = recovery
        self.addresses = Addresses(read_by(queue), syntax)
        self.coming_bytes = 0
        """The size of what is recorded for the queue, and is put on it in a moment."""
        self.count = 0
        """How many messages it got from the log since the broker started."""

    def wants(self, logged: Logged, now_ms: int) -> bool:
        """Is the queue to have this message, if it has not got it?"""
        message, queue, recovery = logged.message, self.queue, self.recovery
        if message.lsn <= recovery.after_lsn or logged.time_ms < recovery.from_ms:
            return False
        if not queue.enabled or 0 < message.expires_ms <= now_ms or not self.addresses.wants(message.head.address):
            return False
        return _is_for(message, queue) and (queue.selector is None or queue.selector.matches(message.lookup))


@final
class Fill:
    """``waiting`` is what was found and is not on the queues yet."""

    __slots__ = ("lost_lsn", "mark_lsn", "pupils", "replay", "waiting")

    def __init__(self, pupils: list[Pupil], replay: Replay) -> None:
        self.pupils = pupils
        self.replay = replay
        replay.found = []
        self.waiting: deque[Logged] = deque()
        self.lost_lsn = -1
        """Where the log began when a pass before it could not go on; -1: there was none."""
        self.mark_lsn = -1
        """Its queues note what is published behind this lsn; -1: they do not."""

    def take_found(self) -> None:
        """What the replay has found waits for room now."""
        found = self.replay.found
        if found:
            self.waiting.extend(found)
            found.clear()

    def watch(self, last_lsn: int) -> None:
        """The end of the log is near: let the queues note what is published from now on."""
        self.mark_lsn = last_lsn
        for pupil in self.pupils:
            pupil.recovery.noted = {}

    @property
    def sees_all(self) -> bool:
        """Has none of its queues had too much to note?"""
        return all(pupil.recovery.noted is not None for pupil in self.pupils)

    def drop_deleted(self) -> None:
        """Forget queues that were deleted."""
        if any(pupil.queue.deleted for pupil in self.pupils):
            self.pupils = [pupil for pupil in self.pupils if not pupil.queue.deleted]


def read_by(queue: Queue) -> tuple[str, ...]:
    """The addresses, and wildcards of addresses, whose messages a queue gets."""
    return (queue.address.name,) if queue.view is None else queue.view.underlying


def _is_for(message: Message, queue: Queue) -> bool:
    """Was a message sent to an address as a whole, or to this queue? Some are sent to one queue on it."""
    address, colons, name = (message.head.first(_DESTINATION) or "").partition("::")
    return not colons or name == queue.name or not address.endswith(message.head.address)


def due_ms_of(message: Message, now_ms: int) -> int:
    """When a message falls due that its sender has scheduled (epoch ms); 0 if it is due."""
    when, delay = message.head.first(_SCHEDULED_TIME), message.head.first(_SCHEDULED_DELAY)
    try:
        if when is not None:
            due_ms = parse_long(when.strip(" "))
        else:
            due_ms = 0 if delay is None else message.timestamp_ms + parse_long(delay.strip(" "))
    except ValueError:  # no client could have scheduled it so
        return 0
    return due_ms if due_ms > now_ms else 0
