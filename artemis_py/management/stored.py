"""What operations see of the broker's files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from artemis_py.management.lists.places import Space


class Stored(Protocol):
    """The journal, and the disks that the broker writes to."""

    @property
    def node_id(self) -> str:
        """The id of the log, which stays with the files."""

    def figures(self) -> Mapping[str, int]:
        """Figures of the journal and of the retained log, by name."""

    def spaces(self) -> Sequence[Space]:
        """The directories, with the room that they have. Raises BrokerError if the system does not say."""

    def compact(self) -> None:
        """Begin to compact all journal files but the one that is written to."""

    @property
    def is_compacting(self) -> bool:
        """Is that not done yet?"""
