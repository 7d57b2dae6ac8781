"""Notices that a queue delivers nothing because backlogs are used up, or because what has come is not active yet, and
tells the operational log.
"""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.events import HELD_UP
from artemis_py.core.queue.basis import QueueBasis
from artemis_py.core.queue.reasons import Reason, is_full, why_behind, why_full, why_used_up

FIRST_MS: Final = 10_000
"""A queue is held up when it has sent nothing for so long. Consumers that work have full backlogs all the time."""
_LONGEST_MS: Final = 640_000
_LOOKS_MAX: Final = 512
"""How many consumers are looked at in one turn."""
_LOOKS_PER_UNIT: Final = 8


@final
class HoldUp:
    """Of one queue with an attribute of AMPS. A dispatch that ends with entries left sets an alarm, unless one is set.
    When it rings, and nothing was sent for some time, the reason is told; then again after twice the time, up to some
    minutes, until something is sent.
    """

    __slots__ = ("_basis", "_due_ms", "_full", "_gap_ms", "_held", "_place", "_sent_ms", "_takers")

    def __init__(self, basis: QueueBasis) -> None:
        self._basis = basis
        self._sent_ms = 0
        """The steady time at which something was sent to a consumer last."""
        self._due_ms = 0
        """The steady time at which to look; 0 when nobody waits for it."""
        self._gap_ms = FIRST_MS
        """How long to wait after the next look."""
        self._place = 0
        """How many consumers this look has seen."""
        self._takers = 0
        self._full = 0
        self._held = 0
        """Of these: those that are offered messages, those with a full backlog, and what they hold."""

    def note_sent(self) -> None:
        """Entries were sent to a consumer that takes them away."""
        host = self._basis.host
        self._sent_ms = host.clock.steady_ms(host.log.now_ms)
        self._gap_ms = FIRST_MS

    def begin(self, now_ms: int) -> None:
        """A dispatch ends although entries are ready."""
        if not self._due_ms and self._basis.distribution.taker_count:
            self._gap_ms = FIRST_MS
            self._wait(FIRST_MS, now_ms)

    def _wait(self, wait_ms: int, now_ms: int) -> None:
        """Look again after so many ms."""
        basis = self._basis
        self._place = self._takers = self._full = self._held = 0
        self._due_ms = basis.host.clock.steady_ms(now_ms) + wait_ms
        basis.host.timers.note_alarm(now_ms + wait_ms, basis.reference.id)

    def look(self, now_ms: int) -> None:
        """An alarm of the queue rings, perhaps another one."""
        if not self._due_ms:
            return
        basis, contents = self._basis, self._basis.contents
        steady_ms = basis.host.clock.steady_ms(now_ms)
        quiet_ms = steady_ms - self._sent_ms
        if steady_ms < self._due_ms:
            basis.host.timers.note_alarm(now_ms + self._due_ms - steady_ms, basis.reference.id)
        elif not (basis.gate.is_open and contents.has_more):
            self._due_ms = 0  # until a dispatch ends with entries left
        elif quiet_ms < FIRST_MS:
            self._wait(FIRST_MS - quiet_ms, now_ms)
        elif not basis.gate.lets_out(contents.tally.held_count):
            self._tell(why_used_up(basis), quiet_ms, now_ms)
        elif not contents.order.count and (reason := why_behind(basis)) is not None:
            self._tell(reason, quiet_ms, now_ms)
        elif not self._has_counted_all():
            basis.host.timers.note_alarm(now_ms, basis.reference.id)
        elif self._full:
            self._tell(why_full(basis, self._takers, self._full, self._held, now_ms), quiet_ms, now_ms)
        else:
            self._due_ms = 0

    def _has_counted_all(self) -> bool:
        """Count the next consumers with a full backlog. Returns whether all were looked at."""
        distribution = self._basis.distribution
        some = distribution.consumers[self._place : self._place + _LOOKS_MAX]
        self._basis.host.budget.spend(1 + len(some) // _LOOKS_PER_UNIT)
        for consumer in some:
            if not consumer.browses and distribution.is_served(consumer):
                self._takers += 1
                if is_full(consumer):
                    self._full += 1
                    self._held += len(consumer.held)
        self._place += len(some)
        return self._place >= len(distribution.consumers)

    def _tell(self, reason: Reason, quiet_ms: int, now_ms: int) -> None:
        basis = self._basis
        contents = basis.contents
        fields: dict[str, str | int] = {"reason": reason.kind, "quiet_ms": quiet_ms, "ready": contents.order.count}
        if contents.paged.count:
            fields["paged"] = contents.paged.count
        basis.host.note_event(HELD_UP, basis.reference, {**fields, **reason.fields, "why": reason.text})
        self._gap_ms = min(2 * self._gap_ms, _LONGEST_MS)
        self._wait(self._gap_ms, now_ms)
