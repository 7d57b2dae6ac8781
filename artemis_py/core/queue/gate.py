"""May the next entry leave now?"""

from __future__ import annotations


class Gate:
    """Holds dispatch back while the queue is paused, and until enough consumers came
    (``consumers-before-dispatch``).

    Once open it stays open while any consumer is attached; with none left it closes again. ``delay-before-dispatch``
    opens it that many milliseconds after the first consumer came; -1 waits for the number.
    """

    __slots__ = ("consumers_min", "delay_ms", "opens_at_ms", "paused", "started")

    def __init__(self, consumers_min: int = 0, delay_ms: int = -1) -> None:
        self.consumers_min = consumers_min
        self.delay_ms = delay_ms
        self.paused = False
        self.started = consumers_min <= 0
        self.opens_at_ms = 0
        """The steady time at which the delay is over; 0 when no delay runs."""

    @property
    def is_open(self) -> bool:
        """May the queue dispatch?"""
        return self.started and not self.paused

    def consumer_came(self, consumer_count: int, steady_ms: int) -> None:
        """A consumer attached; ``consumer_count`` includes it."""
        if self.started:
            return
        if consumer_count >= self.consumers_min:
            self.started = True
            self.opens_at_ms = 0
        elif self.delay_ms >= 0 and not self.opens_at_ms:
            self.opens_at_ms = steady_ms + self.delay_ms

    def close_again(self) -> None:
        """Wait for enough consumers again, before the next that comes is counted."""
        self.started = self.consumers_min <= 0

    def consumer_left(self, consumer_count: int) -> None:
        """A consumer left; ``consumer_count`` remain."""
        if consumer_count == 0 and self.consumers_min > 0:
            self.started = False
            self.opens_at_ms = 0

    def tick(self, steady_ms: int) -> bool:
        """Open when the delay is over; True when that happened just now."""
        if self.opens_at_ms and steady_ms >= self.opens_at_ms:
            self.started = True
            self.opens_at_ms = 0
            return True
        return False
