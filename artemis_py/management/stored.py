"""What operations see of the broker's files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from artemis_py.core.tasks import Coming
from artemis_py.management.lists.log import LogCursor
from artemis_py.management.lists.places import Space


class Life(NamedTuple):
    """What was read of a message's life: moments in their order. ``is_whole``: to the end of the log. ``lost`` parts
    of the log could not be read, and ``left_out`` copies were not followed.
    """

    moments: Sequence[Mapping[str, Any]]
    is_whole: bool
    read_lsn: int
    log_began_ms: int
    read_bytes: int
    lost: int
    left_out: int


class ComingLife(Coming, Protocol):
    """A life that is being read."""

    def result(self) -> Life:
        """When it is there. Raises BrokerError."""


class ComingSegments(Coming, Protocol):
    """Segments of the log that are being looked at."""

    def result(self) -> Sequence[dict[str, Any]]:
        """Their indexes, when they are there."""


class ComingCursors(Coming, Protocol):
    """Cursors whose lag is being computed."""

    def result(self) -> Sequence[LogCursor]:
        """Each of them, when they are there."""


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

    def tell_life(self, message: int, after_lsn: int, seconds: float) -> ComingLife:
        """Read the life of a message from the log, outside of turns. It begins after an lsn up to which it was read
        before, or at the beginning (0). Raises BrokerError.
        """

    def read_segments(self) -> ComingSegments:
        """Look at all segments of the log, outside of turns."""

    def read_cursors(self) -> ComingCursors:
        """Look at all cursors in the log, outside of turns."""

    def remove_cursor(self, name: str) -> bool:
        """Remove a cursor. False: no cursor has this name."""
