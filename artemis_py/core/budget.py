"""What one turn may still do, so that a turn ends.

Work is counted in units, not in seconds: the core knows no clock, and a count is the same on every machine. One unit is
about a microsecond of compiled work: one entry moved, one look of a selector, one frame.
"""

from __future__ import annotations

from sys import maxsize
from typing import Final, final

_PIECES: Final = 16
_PIECE_UNITS_MIN: Final = 8
TURN_UNITS: Final = 10_000
"""What a turn of the server may spend: about 10 ms compiled. A step that has begun ends, so a turn may take a little
more; see ``Agenda`` for work that is larger than a turn.
"""

OVERDRAFT_UNITS: Final = 2_000
"""How far what must not wait for the next turn may overdraw, all of it together: a full queue offers what it has to
consumers before it refuses or gives up anything.
"""


@final
class Budget:
    """Counts down. Whoever loops over something that clients can make long spends as he goes, stops when it is spent,
    and goes on in a later turn. Without ``refill`` there is no limit (tests, recovery).
    """

    __slots__ = ("_turn_units", "left")

    def __init__(self) -> None:
        self.left = maxsize
        self._turn_units = maxsize

    def must_put_off(self, units: int) -> bool:
        """With the budget overdrawn, must something that costs so many units, and that can wait, wait for later turns?
        What is small need not, as long as not too much of it comes together.
        """
        if self.left >= 0:
            return False
        return units > max(self._turn_units // _PIECES, _PIECE_UNITS_MIN) or self.left < -OVERDRAFT_UNITS

    def refill(self, units: int) -> None:
        """A new turn begins."""
        self.left = self._turn_units = units

    def allow(self, parts: int) -> None:
        """Let the step of the turn that comes now have one in ``parts`` of a turn's units at least, whatever the steps
        before it took: clients that send without end must not keep others from getting anything.
        """
        least = self._turn_units // parts
        if self.left < least:
            self.left = least

    def spend(self, units: int) -> None:
        """Count work that was done."""
        self.left -= units

    @property
    def is_spent(self) -> bool:
        """Must what is not done yet wait for the next turn?"""
        return self.left <= 0
