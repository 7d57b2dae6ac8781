"""One life of a broker in a test's process: from its start to its stop or its crash."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, final

from artemis_py.config.problems import Problems
from artemis_py.errors import ArtemisError, StorageError
from artemis_py.security.realms import open_realms
from artemis_py.server.descriptors import Descriptors
from artemis_py.server.server import Environment, Server
from artemis_py.storage.recovery.recovery import LossError
from artemis_py.testing.configuration import stomp_acceptor
from artemis_py.testing.sending import Sender, open_sender

if TYPE_CHECKING:
    from artemis_py.config.settings import AcceptorConfig, BrokerConfig
    from artemis_py.testing.disk import MachineDisk
    from artemis_py.testing.moved_time import MovedTime
    from artemis_py.testing.waiting import Waits


@final
class Life:
    """A server that listens. All of it belongs to the thread of the loop."""

    def __init__(self, server: Server, stopping: asyncio.Event) -> None:
        self.server = server
        self.sender: Sender | None = None
        self._end = asyncio.get_running_loop().create_task(self._end_when_failed(stopping))

    async def _end_when_failed(self, stopping: asyncio.Event) -> None:
        """When storage or a turn fails, the process of a broker ends. Here its connections do."""
        await stopping.wait()
        self.server.abandon()

    @property
    def acceptor(self) -> AcceptorConfig:
        """Whom the clients of the test connect to."""
        acceptor = stomp_acceptor([acceptor for acceptor, _, _ in self.server.ports.bound])
        assert acceptor is not None
        return acceptor

    def port(self, acceptor: AcceptorConfig) -> int:
        """Where an acceptor listens."""
        return next(port for bound, _, port in self.server.ports.bound if bound is acceptor)

    async def open_sender(self) -> Sender:
        """The connection of the test itself. The first call makes it."""
        if self.sender is None:
            self.sender = await open_sender(self.server, self.acceptor)
        return self.sender

    def drop_sender(self) -> None:
        """End the connection of the test itself."""
        if self.sender is not None:
            self.sender.close()
            self.sender.connection.cut()
            self.sender = None

    async def stop(self) -> None:
        """End cleanly, without waiting for clients."""
        await self._cut_all()
        if self.server.failure is None:
            await self.server.stop()
        else:
            await self._end_at_once()

    async def crash(self) -> None:
        """End as if the power went."""
        await self._cut_all()
        await self._end_at_once()

    async def _cut_all(self) -> None:
        self._end.cancel()
        self.drop_sender()
        for connection in list(self.server.stats.connections):
            connection.cut()
        for service in self.server.ports.http.services:
            service.stop()
        await asyncio.sleep(0)  # the transports close their sockets

    async def _end_at_once(self) -> None:
        self.server.abandon()
        with suppress(StorageError):
            self.server.release()


async def begin_life(config: BrokerConfig, time: MovedTime, disk: MachineDisk, waits: Waits) -> Life:
    """Start a broker on the running loop. Raises ArtemisError if it cannot start."""
    stopping = asyncio.Event()
    around = Environment(
        wall_ns=time.wall_ns,
        steady_ns=time.steady_ns,
        open_disk=disk.open,
        space_of=disk.space_of,
        descriptors=_as_they_are,
    )
    authenticator = open_realms(config, Problems()) if config.security_enabled else None
    try:
        server = Server(config, asyncio.get_running_loop(), stopping, authenticator, around)
    except LossError as error:
        raise ArtemisError(f"the journal in {config.journal_directory} is damaged: {error}") from error
    try:
        await server.listen()
    except BaseException:
        await server.stop()
        raise
    server.turns.on_end = waits.look
    return Life(server, stopping)


def _as_they_are() -> Descriptors:
    """The limit of the process is the test's business, and stays."""
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Descriptors((1 << 20) if soft == resource.RLIM_INFINITY else min(soft, 1 << 20))
