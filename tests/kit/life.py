"""A broker with a journal on a disk in memory, and its life after a restart."""

from __future__ import annotations

import random

from artemis_py.storage.journal.settings import JournalSettings
from tests.kit.bench import ONE_AT_A_TIME, declared
from tests.kit.crash.incarnation import Incarnation
from tests.kit.crash.opening import SimStore
from tests.kit.crash.projection import Projection
from tests.kit.crash.retained import Archive
from tests.kit.disk import SimDisk
from tests.kit.in_process import Client, configuration


class Life:
    """A broker with a journal on a disk in memory, which is begun again on what the one before left. ``archive`` gets
    the segments that retire, where the log is retained; ``instead`` is XML below ``core`` in place of the queue ``q``.
    """

    def __init__(
        self,
        attributes: str,
        disk: SimDisk | None = None,
        settings: str = "",
        more: str = "",
        core: str = "",
        archive: Archive | None = None,
        instead: str | None = None,
    ) -> None:
        self.attributes, self.settings, self.more, self.core = attributes, settings, more, core
        self.archive = archive
        self.instead = instead
        self.disk = disk or SimDisk(random.Random(1))
        config = configuration((declared(attributes, settings, more) if instead is None else instead) + core)
        journal = JournalSettings(
            file_bytes=65536, compact_files_min=0, duplicate_ids_kept=10, retains=archive is not None
        )
        self.broker = Incarnation(config, SimStore(self.disk, journal, archive), Projection(10), 1_000_000)
        self.broker.drain()

    def again(self, attributes: str | None = None) -> Life:
        """The next life."""
        self.broker.drain()
        own = self.attributes if attributes is None else attributes
        return Life(own, self.disk, self.settings, self.more, self.core, self.archive, self.instead)

    def client(self) -> Client:
        """A client that has connected."""
        client = self.broker.connect()
        self.write(client, "CONNECT", "accept-version:1.2", "host:x")
        client.collect().clear()
        return client

    def write(self, client: Client, command: str, *headers: str, body: str = "") -> None:
        """One frame, and everything that follows from it."""
        client.send(("\n".join([command, *headers]) + f"\n\n{body}\0").encode())
        self.broker.drain()

    def send(self, client: Client, body: str, *headers: str, to: str = "q") -> None:
        """A persistent message."""
        self.write(client, "SEND", f"destination:/queue/{to}", "persistent:true", *headers, body=body)

    def read(self, client: Client | None = None, count_max: int = 100, *, of: str = "q") -> list[str]:
        """What comes one by one, each acknowledged but the last of ``count_max``, and those that need it not. A client
        that comes for it alone has gone afterwards.
        """
        reader = client or self.client()
        self.write(reader, "SUBSCRIBE", "id:1", f"destination:/queue/{of}", "ack:client-individual", ONE_AT_A_TIME)
        bodies: list[str] = []
        while frames := reader.collect():
            frame = frames.pop(0)
            bodies.append(frame.body.decode())
            if len(bodies) == count_max:
                break
            if frame.header("ack"):
                self.write(reader, "ACK", f"id:{frame.header('ack')}")
        if client is None:
            reader.drop()
            self.broker.drain()
        return bodies
