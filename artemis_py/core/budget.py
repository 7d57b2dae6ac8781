"""What one turn may still do, so that every turn ends.

Work is counted in units, not in seconds: the core reads no clock, and a count is the same on every machine. A unit is
about a microsecond of compiled work: one entry moved, one look of a selector, one frame.
"""

from __future__ import annotations

from sys import maxsize
from typing import Final, final

_PIECES: Final = 16
_PIECE_UNITS_MIN: Final = 8
TURN_UNITS: Final = 10_000
"""What a turn of the server may spend, in units: about 10 ms compiled. A step that has begun is finished, so a turn may
take a little more. See ``Agenda`` for work that is larger than a turn.
"""

WORK_PARTS: Final = 8
"""Work that is larger than a turn takes one in so many of a turn's units, so that nobody waits long for their turn. It
goes on in the next turn, which follows at once.
"""

OVERDRAFT_UNITS: Final = 2_000
"""How far work that cannot wait for the next turn may overdraw, in units, all of it together. For example, a full queue
offers its entries to consumers before it refuses or drops anything.
"""

SLICE_MAX: Final = 512
"""How many entries go into one record of the log, or are looked at before the budget is checked again."""


@final
class Budget:
    """Counts down. A loop over something that clients can make long spends as it goes, stops when the budget is spent,
    and goes on in a later turn. Without ``refill`` there is no limit (tests, recovery).
    """

    __slots__ = ("left", "turn_units")

    def __init__(self) -> None:
        self.left = maxsize
        self.turn_units = maxsize

    def must_put_off(self, units: int) -> bool:
        """Must work of ``units``, which can wait, be put off because the budget is overdrawn? Small work need not,
        until too much of it comes together.
        """
        if self.left >= 0:
            return False
        return units > max(self.turn_units // _PIECES, _PIECE_UNITS_MIN) or self.left < -OVERDRAFT_UNITS

    def slice_of(self, units_each: int) -> int:
        """How many things that cost so much each may be done before the budget is checked again: at least one."""
        return min(max(self.left // units_each, 1), SLICE_MAX)

    def refill(self, units: int) -> None:
        """Begin a new turn with this many units."""
        self.left = self.turn_units = units

    def allow(self, parts: int) -> None:
        """Give the next step of the turn at least one in ``parts`` of the turn's units, whatever the steps before it
        took. Clients that send without end must not keep others from getting anything.
        """
        least = self.turn_units // parts
        if self.left < least:
            self.left = least

    def lend(self) -> Budget:
        """The share of this turn's work that may go on in later turns. ``take_back`` ends it."""
        share = Budget()
        share.refill(min(self.left, self.turn_units // WORK_PARTS))
        return share

    def take_back(self, share: Budget) -> None:
        """Count what was spent of a share."""
        self.left -= share.turn_units - share.left

    def spend(self, units: int) -> None:
        """Count work that was done."""
        self.left -= units

    @property
    def is_spent(self) -> bool:
        """Must unfinished work wait for the next turn?"""
        return self.left <= 0
