"""What a sorted order sorts by: the text of a header, or the value of an expression. A rank is a text; the lower comes
first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final, final

from artemis_py.message import HeaderName, Message
from artemis_py.selector import Expression

_KEYLESS: Final = ""
_KEYED: Final = "\0"
VALUE_MAX: Final = 2**64 - 1
"""The largest value of an expression."""
_REVERSED: Final = str.maketrans("0123456789abcdef", "fedcba9876543210")
_DIGITS_MAX: Final = 16
_ZERO: Final = ord("0")


def utf16_order(text: str) -> str:
    """A text that sorts, by characters, as the UTF-16 units of ``text`` do. That is how Java compares strings."""
    if text.isascii() or max(text) <= "\uffff":
        return text
    units = text.encode("utf-16-be", "surrogatepass")
    return "".join(chr(units[index] << 8 | units[index + 1]) for index in range(0, len(units), 2))


class Rank(ABC):
    """Ranks messages. A rank depends on the message alone, so a restart finds the same."""

    __slots__ = ()

    @property
    def expression(self) -> Expression | None:
        """What is evaluated; None when a look at the message is enough."""
        return None

    @property
    @abstractmethod
    def decides_who_goes(self) -> bool:
        """Does a ring give up the message of the last rank? Otherwise it gives up the oldest one."""

    @abstractmethod
    def rank_of(self, message: Message) -> str:
        """The rank of a message."""


@final
class HeaderRank(Rank):
    """By the text of one header, as Java compares texts. Messages without the header come first; an empty text comes
    behind no text at all (Qpid's sorted queue, rows Q-09 to Q-12, tests/queues/rows.py).
    """

    __slots__ = ("_key",)

    def __init__(self, key: str) -> None:
        self._key = HeaderName(key)

    @property
    def decides_who_goes(self) -> bool:
        return False  # only a priority queue has another rule than age

    def rank_of(self, message: Message) -> str:
        key = message.head.first(self._key)
        return _KEYLESS if key is None else _KEYED + utf16_order(key)


@final
class ValueRank(Rank):
    """By the value of an expression, the largest first (AMPS' Priority, row A-49, tests/queues/rows.py). Values are
    whole numbers from 0 to ``VALUE_MAX``.
    """

    __slots__ = ("_expression",)

    def __init__(self, expression: Expression) -> None:
        self._expression = expression

    @property
    def expression(self) -> Expression | None:
        return self._expression

    @property
    def decides_who_goes(self) -> bool:
        return True

    def value_of(self, message: Message) -> int:
        """A message's value: fractions are cut off, what is too large is ``VALUE_MAX``, and what is negative or no
        number is 0.
        """
        value = self._expression.value(message.lookup)
        if value is None or not value > 0:  # no NaN is
            return 0
        return VALUE_MAX if value >= VALUE_MAX else int(value)

    def rank_of(self, message: Message) -> str:
        digits = f"{self.value_of(message):x}"  # a rank begins with what tells small values apart (see ``start_of``)
        return chr(_ZERO + _DIGITS_MAX - len(digits)) + digits.translate(_REVERSED)
