"""A broker in the process of a test, on a thread of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, final

from artemis_py.client.stomp_connection import LostError, RefusedError, SilentError, StompConnectionError
from artemis_py.errors import ArtemisError, StompError
from artemis_py.testing.clock import Clock
from artemis_py.testing.configuration import LOOPBACK
from artemis_py.testing.engine import Engine
from artemis_py.testing.errors import BrokerDownError, SendError
from artemis_py.testing.queues import QueueView
from artemis_py.testing.state import story_of, why_blocked, why_not_idle

if TYPE_CHECKING:
    from artemis_py.server.server import Server
    from artemis_py.server.turn_client import Client

TIMEOUT_S: Final = 5.0


@final
class ArtemisBroker:
    """A real broker for one test: ``with ArtemisBroker() as artemis:``, or ``async with``.

    It serves STOMP, over TCP and WebSocket, on a free port of the loopback address, in its own thread, so clients that
    block work, too. All methods may be called from any thread. Those that wait do so until the broker is in the wanted
    state, at most ``timeout_s`` s by default.
    """

    def __init__(
        self,
        config: str | os.PathLike[str] | None = None,
        *,
        queues: Mapping[str, Mapping[str, Any]] | Sequence[str] = (),
        persistence: bool | str | os.PathLike[str] = False,
        port: int = 0,
        timeout_s: float = TIMEOUT_S,
        http: bool = False,
    ) -> None:
        """``config`` is a broker.xml or its text; its ports become free ones, its directories those of the test.
        ``queues`` declares queues, with their attributes in Artemis' words. ``persistence`` keeps a journal: in this
        folder, or with True in one that is removed at the end. Without it there are no files. ``http``: have an
        acceptor for HTTP, also where the configuration has none.
        """
        declared = queues if isinstance(queues, Mapping) else {name: {} for name in queues}
        self._engine = Engine(config, declared, persistence, port, timeout_s, http=http)
        self.clock = Clock(self._engine.time, self._engine.pass_time)
        """The broker's clock, which ``advance`` moves on."""

    # ---- start and end ---------------------------------------------------------------------------

    def start(self) -> None:
        """Start the broker; ``with`` does it. Raises ConfigError, and ArtemisError for a port or a journal."""
        self._engine.start()

    def stop(self) -> None:
        """End the broker, its threads and its connections, without waiting for clients; ``with`` does it. May be
        called twice.
        """
        self._engine.stop()

    def __enter__(self) -> ArtemisBroker:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        failure = self._engine.failure
        self.stop()
        if error is None and failure is not None:
            raise BrokerDownError(f"the broker failed during the test: {failure}")

    async def __aenter__(self) -> ArtemisBroker:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.__exit__, kind, error, trace)

    @property
    def is_running(self) -> bool:
        """Does it run? Not before its start, after its end or a crash, or when it has failed."""
        return self._engine.is_running

    # ---- where clients connect -------------------------------------------------------------------

    @property
    def host(self) -> str:
        """The address that it listens on."""
        return LOOPBACK

    @property
    def port(self) -> int:
        """The port for STOMP, over TCP and WebSocket. It stays the same over a restart."""
        return self._engine.port

    @property
    def url(self) -> str:
        """``tcp://127.0.0.1:49152``; with TLS ``ssl://…``."""
        scheme = "ssl" if self._engine.life.acceptor.is_tls else "tcp"
        return f"{scheme}://{self.host}:{self.port}"

    @property
    def ws_url(self) -> str:
        """``ws://127.0.0.1:49152/``, for STOMP over WebSocket on the same port; with TLS ``wss://…``."""
        scheme = "wss" if self._engine.life.acceptor.is_tls else "ws"
        return f"{scheme}://{self.host}:{self.port}/"

    @property
    def http_url(self) -> str | None:
        """Where metrics and the management API are, if there is an acceptor for HTTP; else None."""
        for acceptor, _, port in self._engine.server.ports.bound:
            if "HTTP" in acceptor.protocols:
                return f"{'https' if acceptor.is_tls else 'http'}://{self.host}:{port}/"
        return None

    @property
    def asks_for_logins(self) -> bool:
        """Is security on, so that clients need a user of the configuration?"""
        return self._engine.life.server.config.security_enabled

    # ---- messages and queues ---------------------------------------------------------------------

    def send(
        self,
        address: str,
        body: str | bytes = "",
        headers: Mapping[str, object] | None = None,
        *,
        timeout: float | None = None,
        **more: object,
    ) -> None:
        """Send a message as a client does, and wait until the broker has it: ``send("orders", "two coffees", table=7,
        persistent=True)``. Names that are no names in Python go into ``headers``. Nobody has to log in for it.

        Raises SendError if the broker refuses it, or if its sender must wait (a full address) for longer than
        ``timeout`` s.
        """
        engine = self._engine
        seconds = engine.timeout_s if timeout is None else timeout
        life = engine.life
        is_new = life.sender is None
        sender = engine.thread.run(life.open_sender())
        try:
            if is_new:
                sender.connect(seconds)
            sender.send(address, body, {**(headers or {}), **more}, seconds)
        except (StompConnectionError, StompError) as error:
            engine.thread.call(life.drop_sender)
            raise self._unsent(error, address, seconds) from None

    def _unsent(self, error: ArtemisError, address: str, waited_s: float) -> ArtemisError:
        if isinstance(error, SilentError):
            why = self._engine.look(lambda server: why_blocked(server, address))
            return SendError(
                f"the broker made the sender of a message for {address} wait for more than {waited_s:g} s: {why}"
            )
        if isinstance(error, LostError):
            return BrokerDownError(f"the broker ended while a message was sent: {error}")
        if isinstance(error, RefusedError):
            said = error.frame.body.decode(errors="replace") or error.reason
            return SendError(f"the broker refused the message: {said}")
        return SendError(str(error))

    def queue(self, name: str) -> QueueView:
        """A queue by its name. It need not exist yet."""
        return QueueView(self._engine, name)

    @property
    def queues(self) -> list[str]:
        """The names of all queues."""
        return self._engine.look(lambda server: sorted(server.broker.queues))

    @property
    def connections(self) -> int:
        """Open connections of clients."""
        return self._engine.look(lambda server: len(self._clients(server)))

    def wait_until_idle(self, *, timeout: float | None = None) -> None:
        """Wait until nothing more will happen by itself: no frame waits to be read or written, no message is in
        delivery, and no ready message has a consumer that takes it. Raises NotReachedError with what is left.
        """
        engine = self._engine
        seconds = engine.timeout_s if timeout is None else timeout
        engine.waits.wait(
            lambda: not why_not_idle(engine.server),
            lambda: f"the broker is not idle after {seconds:g} s:\n  " + "\n  ".join(why_not_idle(engine.server)),
            seconds,
            "wait_until_idle",
        )

    @property
    def story(self) -> str:
        """What the broker holds now, in words: its connections, and each queue that is in use. For reports."""
        return self._engine.look(story_of)

    # ---- faults ----------------------------------------------------------------------------------

    def drop_connections(self, *, user: str | None = None, client_id: str | None = None) -> int:
        """Cut the connections of clients, or only those of a user or a client-id. What they held comes back. Returns
        how many there were.
        """

        def drop(server: Server) -> int:
            found = [
                connection
                for connection in self._clients(server)
                if user in (None, connection.session.state.user)
                and client_id in (None, connection.session.state.client_id)
            ]
            for connection in found:
                connection.cut()
            return len(found)

        return self._engine.change(drop)

    @contextmanager
    def disk_full(self) -> Iterator[None]:
        """Within this block the disk is full: what each address does with new messages then is its
        ``disk-full-policy``, and consumers go on. Raises BrokerDownError without persistence, because then there is no
        disk that counts.
        """
        self._engine.fill_disk(is_full=True)
        try:
            yield
        finally:
            self._engine.fill_disk(is_full=False)

    def crash(self) -> None:
        """End the broker as if the power went: clients are cut off, what was not synced is lost, and without
        persistence everything is. ``restart`` starts it again.
        """
        self._engine.crash()

    def restart(self) -> None:
        """Start again on the same port: after a crash, or after an orderly stop now if the broker runs."""
        self._engine.restart()

    def _clients(self, server: Server) -> list[Client]:
        """The connections, without that of the test itself."""
        sender = self._engine.life.sender
        own = None if sender is None else sender.connection
        return [connection for connection in server.stats.connections if connection is not own]

    def __repr__(self) -> str:
        return f"<ArtemisBroker at {self.url}>" if self.is_running else "<ArtemisBroker, not running>"
