"""A broker with a journal on a disk in memory, its clients by name, and its life after a restart."""

from __future__ import annotations

import random
from typing import Any

from artemis_py.storage.format.log_events import Published
from artemis_py.storage.format.reader import events_of
from artemis_py.storage.journal.settings import JournalSettings
from tests.kit.bench import Bench, declared
from tests.kit.crash.incarnation import Incarnation
from tests.kit.crash.opening import SimStore
from tests.kit.crash.projection import Projection
from tests.kit.crash.retained import Archive
from tests.kit.disk import SimDisk
from tests.kit.in_process import configuration


class Life(Bench):
    """A broker with a journal on a disk in memory, which is begun again on what the one before left. ``archive`` gets
    the segments that retire, where the log is retained; ``instead`` is XML below ``core`` in place of the queue ``q``.
    A message is persistent unless a header says otherwise.
    """

    always = ("persistent:true",)

    def __init__(
        self,
        attributes: str = "",
        disk: SimDisk | None = None,
        settings: str = "",
        more: str = "",
        core: str = "",
        archive: Archive | None = None,
        instead: str | None = None,
        *,
        cut: bool = False,
    ) -> None:
        self.attributes = attributes
        self._declared = settings, more
        self.declared_core = core
        """What the next life has there, too."""
        self.instead = instead
        self.disk = disk or SimDisk(random.Random(1))
        self.archive: Any = archive
        config = configuration((declared(attributes, settings, more) if instead is None else instead) + core)
        journal = JournalSettings(
            file_bytes=65536, compact_files_min=0, duplicate_ids_kept=10, retains=archive is not None
        )
        self.broker = Incarnation(config, SimStore(self.disk, journal, archive), Projection(10), 1_000_000)
        self.broker.disk_works = True
        self.broker.drain()
        self.replays: Any = self.broker.replays
        super().__init__(cut=cut, world=self.broker)

    def again(self, attributes: str | None = None) -> Life:
        """The next life."""
        self.broker.drain()
        own = self.attributes if attributes is None else attributes
        return Life(own, self.disk, *self._declared, self.declared_core, self.archive, self.instead, cut=self.cut)

    def replay(self, name: str, bookmark: str, *headers: str, of: str = "destination:/queue/q", id: str = "1") -> None:
        """A client subscribes with a bookmark."""
        self.write(name, "SUBSCRIBE", f"id:{id}", of, f"bookmark:{bookmark}", *headers)

    def offsets(self, address: str = "q") -> list[int]:
        """The lsns of the messages published to an address, as every reader of its files finds them: the column
        ``offset`` of Spark.
        """
        files = self.archive.files(self.disk)
        events = [
            event
            for name in sorted(files)
            if any(files[name])
            for event in events_of(name, files[name], [], is_last=name == max(files))
        ]
        return [
            event.lsn for event in events if isinstance(event, Published) and event.kept.message.head.address == address
        ]
