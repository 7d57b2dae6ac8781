"""The retained log: segments and bodies that the broker no longer needs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from artemis_py.storage.bodies import FormerBodies
from artemis_py.storage.disk.disk import FileDisk
from artemis_py.storage.format.names import segment_name
from artemis_py.storage.format.records import CodecError
from artemis_py.storage.journal.sidecars import write_survey
from artemis_py.storage.retention.retained_bodies import RetainedBodies
from artemis_py.storage.retention.retention import Holds, Mark, Retention, RetentionSettings, wall_clock_ms

# ---- keeping ---------------------------------------------------------------------------------------------------------
#
# What becomes of files that the broker no longer needs: deleted, or taken over by the retained log.


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """Callables that take over files. Without arguments: the files are deleted."""

    retire_segment: Callable[[str], None] | None = None
    """Takes over a segment, by name, and what is beside it. In the committer's thread."""
    retire_body: Callable[[str], None] | None = None
    """Takes over a large body, by name. In the body writer's thread."""
    regular_tasks: Callable[[], None] | None = None
    """Removes what is too old. In the committer's thread."""
    indexed: Callable[[int], None] | None = None
    """Takes the number of a segment that was closed and has its index beside it. In the committer's thread."""
    mark: Callable[[], Mark | None] | None = None
    """Returns how far the files reach that were taken over. Asked when the journal has no file itself."""
    bodies: FormerBodies | None = None
    """The bodies that ``retire_body`` takes over."""
    body_start_min: int = 1
    """The lowest number of a start whose large bodies cannot be among those that were taken over."""


# ---- retained log ----------------------------------------------------------------------------------------------------
#
# The retained log of a broker as a whole: its segments, its large bodies, and surveys next to segments for readers. A
# segment is in the journal's directory first. It moves to that of retention when the journal no longer needs it.


class RetainedLog:
    """Keeps segments that the journal on ``disk`` no longer needs, and bodies from ``body_disk``. ``holds`` are the
    readers that may prevent a removal. Raises DiskError.
    """

    def __init__(self, disk: FileDisk, body_disk: FileDisk, settings: RetentionSettings, holds: Holds) -> None:
        self._disk = disk
        self._bodies = RetainedBodies(body_disk, body_disk.directory, settings.directory, wall_clock_ms)
        self.retention = Retention(disk, disk.directory, settings, bodies=self._bodies, holds=holds)

    def keeping(self, indexed: Callable[[int], None]) -> Keeping:
        """What takes over files that the broker no longer needs. ``indexed`` gets the number of each segment that can
        be surveyed, in the committer's thread.
        """
        return Keeping(
            retire_segment=self.retention.retire,
            retire_body=self._bodies.retire,
            regular_tasks=self.retention.purge,
            indexed=indexed,
            mark=self.retention.mark,
            bodies=self._bodies,
            body_start_min=self._bodies.start_min,
        )

    def path_of(self, number: int) -> Path | None:
        """Where a segment is, in the journal or retained; None if it was removed. For any thread."""
        path = self._disk.directory / segment_name(number)
        return path if path.exists() else self.retention.path_of(number)

    def put_beside(self, number: int, fields: dict[str, Any], places: bytes) -> None:
        """Write a survey next to a closed segment. Call it in the committer's thread, which alone moves segments. The
        survey is optional: a failure of the disk is ignored.
        """
        if not self._disk.has_room:
            return
        with suppress(OSError, CodecError):
            kept = self.retention.find(number)
            if kept is not None:
                self.retention.put_beside(kept.file.path, fields, places)
            elif (path := self._disk.directory / segment_name(number)).exists():
                write_survey(path, fields, places)
