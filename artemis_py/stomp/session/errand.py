"""Work that a frame starts and one turn does not finish."""

from __future__ import annotations

from typing import final

from artemis_py.core.addresses.spreading import Placing
from artemis_py.core.queue.works import QueueWork
from artemis_py.stomp.requests import Pending
from artemis_py.stomp.session.remainder import Remainder

Unfinished = QueueWork | Placing | Pending
"""Work that was decided on and is not finished."""


@final
class Errand:
    """The unfinished work of one frame. The session's later frames wait for it, and so does the frame's RECEIPT."""

    def __init__(
        self,
        works: list[Unfinished],
        command: str,
        receipt: str | None,
        extra: list[tuple[str, str]] | Remainder | Pending | None,
    ) -> None:
        self._works = works
        self.command = command
        self.receipt = receipt
        self.extra = extra
        """Further headers of the RECEIPT."""
        self.is_answered = False

    @property
    def may_go_on(self) -> bool:
        """Is all of the work finished?"""
        return all(work.done for work in self._works)

    @property
    def has_failed(self) -> bool:
        """Did some of it fail? The log says why."""
        return any(work.failed for work in self._works)
