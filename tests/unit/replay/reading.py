"""Reads a whole log as replays do, a slice at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from artemis_py.config.matching import WildcardSyntax
from artemis_py.core.replay.replay import Addresses
from artemis_py.replay_log import SLICE_BYTES, AddressChoice, Slice, Spot
from artemis_py.storage.bodies import LargeStore
from artemis_py.storage.disk.disk import FileDisk
from artemis_py.storage.disk.group_commit import Committer
from artemis_py.storage.format.log_events import Published
from artemis_py.storage.format.reader import LogReader
from artemis_py.storage.journal.journal import Journal
from artemis_py.storage.replay import RetainedFiles, RetainedReplayLog
from artemis_py.storage.retention.retention import Retention
from tests.kit.committer import SteppedCommitter

Row = tuple[int, int, int, int]
"""Of a message: lsn, time of its batch, number of its session, its own number."""


ALL = Addresses(("#",), WildcardSyntax())


class Reading:
    """A log and what was said about it. Slices are read at once, unless ``reader`` waits."""

    def __init__(
        self, journal: Journal, directory: Path, retention: Retention, reader: Committer | None = None
    ) -> None:
        self.said: list[str] = []
        self.read_bytes = 0
        self.files = RetainedFiles(directory, retention)
        large = LargeStore(
            FileDisk(directory.with_name("large")), SteppedCommitter(at_once=True), SteppedCommitter(at_once=True)
        )
        reader = reader or SteppedCommitter(at_once=True)
        self.log = RetainedReplayLog(journal, self.files, large, reader, reader, self.said.append)

    def slice(self, spot: Spot, size_bytes: int = SLICE_BYTES, choice: AddressChoice | None = None) -> Slice:
        """What is read at a spot, wholly scanned; read again if its first record is larger than that."""
        self.log.request(spot, choice, size_bytes)
        (part,) = self.log.arrivals()
        while part.scan(1):
            continue
        self.read_bytes += part.size_bytes
        return self.slice(spot, part.bytes_needed, choice) if part.bytes_needed else part

    def rows(
        self,
        size_bytes: int = SLICE_BYTES,
        choice: AddressChoice | None = None,
        spot: Spot | None = None,
        between: Callable[[], None] = lambda: None,
    ) -> list[Row]:
        """Everything from a spot on, or from the beginning. ``between`` is called after each slice."""
        found: list[Row] = []
        spot = spot or self.log.beginning()
        while spot.place < self.log.end():
            part = self.slice(spot, size_bytes, choice)
            assert not part.is_gone, spot.place
            assert not part.failure, part.failure
            for index in part.select(choice or ALL):
                logged = part.get(index)
                assert logged is not None
                message = logged.message
                found.append((message.lsn, logged.time_ms, message.origin, message.id))
            assert part.end.place > spot.place
            spot = part.end
            between()
        return found


def told(folder: Path) -> list[Row]:
    """The same as every other reader of these directories finds it."""
    events = LogReader([folder / "kept", folder / "journal"]).events()
    return [
        (event.lsn, event.time_ms, event.session, event.kept.message.id)
        for event in events
        if isinstance(event, Published)
    ]
