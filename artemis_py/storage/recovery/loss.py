"""The error of a start that would lose too much."""

from __future__ import annotations

from typing import TYPE_CHECKING

from artemis_py.errors import ArtemisError

if TYPE_CHECKING:
    from artemis_py.storage.recovery.examination import Examined


class LossError(ArtemisError):
    """The losses are too large for a start: journal files, queues, many records, all large bodies, or all pages.
    ``examined`` has the details.
    """

    def __init__(self, examined: Examined) -> None:
        super().__init__("; ".join(examined.losses))
        self.examined = examined
