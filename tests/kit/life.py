"""A broker with a journal on a disk in memory, its clients by name, and its life after a restart."""

from __future__ import annotations

import random
from typing import Any

from artemis_py.storage.format.log_events import Published
from artemis_py.storage.format.reader import events_of
from artemis_py.storage.journal.settings import JournalSettings
from tests.kit.bench import ONE_AT_A_TIME, declared
from tests.kit.crash.incarnation import Incarnation
from tests.kit.crash.opening import SimStore
from tests.kit.crash.projection import Projection
from tests.kit.crash.retained import Archive
from tests.kit.disk import SimDisk
from tests.kit.frames import ServerFrame
from tests.kit.in_process import configuration
from tests.kit.named_clients import NamedClients


class Life(NamedClients):
    """A broker with a journal on a disk in memory, which is begun again on what the one before left. ``archive`` gets
    the segments that retire, where the log is retained; ``instead`` is XML below ``core`` in place of the queue ``q``.
    A message is persistent unless a header says otherwise.
    """

    address = "/queue/q"
    """Where messages go."""

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
        self.broker.drain()
        self.replays: Any = self.broker.replays
        super().__init__(self.broker.broker, lambda _: self.broker.client(), self.broker.drain, cut)

    def again(self, attributes: str | None = None) -> Life:
        """The next life."""
        self.broker.drain()
        own = self.attributes if attributes is None else attributes
        return Life(own, self.disk, *self._declared, self.declared_core, self.archive, self.instead, cut=self.cut)

    def advance(self, duration_ms: int) -> None:
        """Let time pass."""
        self.broker.advance(duration_ms)
        self.rest()

    # ---- messages --------------------------------------------------------------------------------

    def send(self, *bodies: str, headers: tuple[str, ...] = (), to: str = "", by: str = "producer") -> None:
        """Messages of one client, each alone."""
        for body in bodies:
            self.write(by, "SEND", f"destination:{to or self.address}", *headers, "persistent:true", body=body)

    def read(self, name: str = "", count_max: int = 1000, *, of: str = "q") -> list[str]:
        """What comes one by one, each acknowledged but the last of ``count_max``, and those that need it not. A client
        without a name has gone afterwards.
        """
        reader = name or f"reader {len(self.broker.clients)}"
        self.subscribe(reader, ONE_AT_A_TIME, to=of)
        bodies: list[str] = []
        waiting: list[ServerFrame] = []
        while len(bodies) < count_max and (waiting := [*waiting, *self.messages(reader)]):
            frame = waiting.pop(0)
            bodies.append(frame.body.decode())
            if len(bodies) < count_max and frame.header("ack"):
                self.settle(reader, frame)
        if not name:
            self.lose(reader)
        return bodies

    def replay(self, name: str, bookmark: str, *headers: str, of: str = "destination:/queue/q", id: str = "1") -> None:
        """A client subscribes with a bookmark."""
        self.write(name, "SUBSCRIBE", f"id:{id}", of, f"bookmark:{bookmark}", *headers)

    def text(self, name: str) -> str:
        """The bodies of the messages that a client got since it was asked last, one behind the other."""
        return "".join(self.got(name))

    def take(self, queue: str, count: int = 1000, *, name: str = "taker") -> list[str]:
        """What a client gets of a queue and acknowledges, one by one."""
        self.subscribe(name, ONE_AT_A_TIME, to=f"{self.queue(queue).address.name}::{queue}")
        bodies = self.one_by_one(name, count)
        self.leave(name)
        self.frames(name)
        return bodies

    # ---- the log ---------------------------------------------------------------------------------

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
