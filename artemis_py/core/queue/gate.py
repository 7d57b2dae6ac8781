"""Whether the next entry may leave the queue now."""

from __future__ import annotations

from sys import maxsize

from artemis_py.core.queue_reference import QueueAddress


class Gate:
    """Holds dispatch back while the queue or its address (``home``) is paused, and until enough consumers are attached
    (``consumers-before-dispatch``).

    Once open it stays open until the last consumer leaves. ``delay-before-dispatch`` opens it that many ms after the
    first consumer attached; -1 waits for the number of consumers.

    With ``backlog_max`` it closes while so many messages are in delivery, or sent at most once and not acknowledged
    (AMPS' MaxBacklog).
    """

    __slots__ = (
        "_home", "backlog_max", "consumers_min", "counts", "delay_ms", "failed_step", "is_held", "late_count",
        "opens_at_ms", "paused", "started", "unconfirmed_count",
    )  # fmt: skip

    def __init__(
        self, consumers_min: int = 0, delay_ms: int = -1, backlog_max: int = maxsize, home: QueueAddress | None = None
    ) -> None:
        self._home = home
        self.backlog_max = backlog_max
        self.counts = backlog_max < maxsize
        """Does it matter how many messages are in delivery?"""
        self.consumers_min = consumers_min
        self.delay_ms = delay_ms
        self.paused = False
        self.failed_step = ""
        """The step whose failure paused the queue; empty: none did."""
        self.is_held = False
        """Are entries being moved, so that nothing is dispatched?"""
        self.late_count = 0
        """How many entries arrived meanwhile. A full queue has not been trimmed for them yet."""
        self.started = consumers_min <= 0
        self.opens_at_ms = 0
        """The steady time, in ms, at which the delay ends; 0 when none runs."""
        self.unconfirmed_count = 0
        """Messages that have left the queue for good, and that their consumers have not acknowledged."""

    @property
    def is_open(self) -> bool:
        """May the queue dispatch? Asked for each message, so it does not call ``is_paused``."""
        return self.started and not (self.paused or (self._home is not None and self._home.paused))  # as is_paused

    @property
    def is_paused(self) -> bool:
        """Did an operator pause the queue, or its address?"""
        return self.paused or (self._home is not None and self._home.paused)

    def lets_out(self, delivering_count: int) -> bool:
        """May one more entry leave, with so many messages in delivery?"""
        return delivering_count + self.unconfirmed_count < self.backlog_max

    def consumer_joined(self, consumer_count: int, steady_ms: int) -> None:
        """A consumer attached; ``consumer_count`` includes it."""
        if self.started:
            return
        if consumer_count >= self.consumers_min:
            self.started = True
            self.opens_at_ms = 0
        elif self.delay_ms >= 0 and not self.opens_at_ms:
            self.opens_at_ms = steady_ms + self.delay_ms

    def set_delay(self, delay_ms: int) -> None:
        """Another delay counts, also for a gate that waits: from when its first consumer attached."""
        if self.opens_at_ms:
            self.opens_at_ms = 0 if delay_ms < 0 else self.opens_at_ms - self.delay_ms + delay_ms
        self.delay_ms = delay_ms

    def close_again(self) -> None:
        """Close until enough consumers are attached. The next one that attaches is counted."""
        self.started = self.consumers_min <= 0

    def consumer_left(self, consumer_count: int) -> None:
        """A consumer left; ``consumer_count`` remain."""
        if consumer_count == 0 and self.consumers_min > 0:
            self.started = False
            self.opens_at_ms = 0

    def tick(self, steady_ms: int) -> bool:
        """Open when the delay has ended. Returns True when that happened just now."""
        if self.opens_at_ms and steady_ms >= self.opens_at_ms:
            self.started = True
            self.opens_at_ms = 0
            return True
        return False
