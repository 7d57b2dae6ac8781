"""What somebody may do with beans: the permissions that HTTP asks for, too."""

from __future__ import annotations

from typing import Protocol


class Guard(Protocol):
    """The rights of whoever asks. Addresses are without the prefix: ``queue.orders.pause``."""

    def may(self, right: str, address: str) -> bool:
        """Is it permitted?"""

    def demand(self, right: str, address: str) -> None:
        """Raises NotAllowedError if it is not."""


class Open:
    """Everybody may do everything: nobody logs in."""

    def may(self, right: str, address: str) -> bool:
        """Yes."""
        return True

    def demand(self, right: str, address: str) -> None:
        """Nothing is refused."""
