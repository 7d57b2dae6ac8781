"""What an operator does with many messages of a queue, carried out over as many turns as it takes."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.agenda import Chore
from artemis_py.core.budget import Budget
from artemis_py.core.handling.choice import Choice
from artemis_py.core.handling.deeds import Deed, Outcome
from artemis_py.core.handling.round import DELIVERING, UNHELD, Round, Sight
from artemis_py.core.queue.queue import Queue

UNITS_MAX: Final = 1_000
"""What one change may spend in a turn, whatever else the turn has left."""
HELD_NAMED_MAX: Final = 100
"""So many messages that consumers have are named."""
_REASONS_MAX: Final = 20
_OTHERS: Final = "other reasons"


@final
class Change(Chore):
    """Does something with each of the chosen messages that was on the queue when it began. Those that consumers have
    are left alone, and counted when everything else is done.

    It leaves the agenda (``is_off``) while it waits for the disk, for room in its target, or because it has used up its
    ``allowance`` of messages (None: any number). Whoever began it looks whether it ``may_go_on``, and puts it on the
    agenda again. The queue delivers meanwhile, and no other work on it has to wait.
    """

    def __init__(self, queue: Queue, choice: Choice, deed: Deed, *, allowance: int | None = None) -> None:
        self.queue = queue
        self.deed = deed
        self.done_count = 0
        self.kept: dict[str, int] = {}
        """How many of the chosen messages stayed where they are, by the reason."""
        self.held_count = 0
        self.held_ids: list[int] = []
        """The first of those chosen messages that consumers have."""
        self.stopped_because = ""
        """Why it ended before it had looked at everything; empty: it did not."""
        self.is_over = False
        self.is_off = False
        self.allowance = allowance
        self._choice = choice
        self._round = Round(queue.parts, UNHELD, choice.ids or ())
        self._is_counting_held = False
        self._found_count = 0

    @property
    def looked_count(self) -> int:
        """How many messages it has looked at in this round."""
        return self._round.looked_count

    @property
    def may_go_on(self) -> bool:
        """Is there something that it could do?"""
        if self.allowance is not None and self.allowance <= 0:
            return False
        return not (self._round.is_waiting or self.deed.must_wait)

    def stop(self, reason: str) -> None:
        """End it before it is done. What it has done stands."""
        if not self.is_over:
            self.stopped_because = reason
            self._end()

    def work(self, budget: Budget, now_ms: int) -> bool:
        given = min(budget.left, UNITS_MAX)
        share = Budget()
        share.refill(max(given, 1))
        while not self.is_over and self.may_go_on:
            if self.queue.deleted:
                self.stop("the queue was deleted")
                break
            sight = self._round.next(share)
            if sight is not None:
                self._look_at(sight, share, now_ms)
            elif self._round.is_done:
                self._go_on()
            if share.is_spent:
                break
        budget.spend(max(given, 1) - share.left)
        self.queue.parts.aftermath.run()
        self.is_off = not self.is_over and not self.may_go_on
        return self.is_over or self.is_off

    def recover(self) -> bool:
        self.stop("a step of it failed; see the log of the broker")
        return False

    def _go_on(self) -> None:
        """Everything free was looked at. Count what consumers have; then that is all."""
        if self._is_counting_held or self._has_found_all:
            self._end()
            return
        self._is_counting_held = True
        self._round = Round(self.queue.parts, (DELIVERING,), self._choice.ids or ())

    @property
    def _has_found_all(self) -> bool:
        """Was every message found that was chosen by its number, or as many done as are wanted?"""
        ids, count_max = self._choice.ids, self._choice.count_max
        if count_max is not None and self.done_count >= count_max:
            return True
        return ids is not None and self._found_count >= len(ids)

    def _look_at(self, sight: Sight, share: Budget, now_ms: int) -> None:
        message = sight.message
        if not self._choice.holds(message, share):
            return
        self._found_count += 1
        if self._is_counting_held:
            self.held_count += 1
            if len(self.held_ids) < HELD_NAMED_MAX:
                self.held_ids.append(message.id)
        else:
            self._note(self.deed.do(sight, now_ms), share)
        if self._has_found_all:
            self._end()

    def _note(self, outcome: Outcome, share: Budget) -> None:
        if outcome.is_done:
            share.spend(self.deed.units)
            self.done_count += 1
            if self.allowance is not None:
                self.allowance -= 1
        elif outcome.stops:
            self.stop(outcome.reason)
        elif outcome.reason:
            share.spend(self.deed.units // 2)
            reason = outcome.reason if outcome.reason in self.kept or len(self.kept) < _REASONS_MAX else _OTHERS
            self.kept[reason] = self.kept.get(reason, 0) + 1
        else:
            self._found_count -= 1  # a consumer may have it by now

    def _end(self) -> None:
        self._round.close()
        self.is_over = True
