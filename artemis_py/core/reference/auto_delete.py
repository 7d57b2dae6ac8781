"""What a queue says itself of its deletion when nobody uses it any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class AutoDelete:
    """``auto-delete``, ``auto-delete-delay`` (ms) and ``auto-delete-message-count`` (-1: any number) of a queue. What
    is None, the address-settings say.
    """

    is_wanted: bool | None = None
    delay_ms: int | None = None
    messages_max: int | None = None

    @property
    def says_nothing(self) -> bool:
        """Do the address-settings say everything?"""
        return self.is_wanted is None and self.delay_ms is None and self.messages_max is None

    def fields(self) -> list[bool | int | None]:
        """What a restart must know."""
        return [self.is_wanted, self.delay_ms, self.messages_max]
