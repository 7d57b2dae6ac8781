"""What runs a broker in a test's process: its thread, its lives, its disk and its time."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

from artemis_py.client.stomp_connection import StompConnection
from artemis_py.config.problems import Problems
from artemis_py.errors import ArtemisError, StorageError
from artemis_py.security.client_login import ClientLogin
from artemis_py.security.realms import open_realms
from artemis_py.server.connection import Connection, StompAcceptor
from artemis_py.server.descriptors import Descriptors
from artemis_py.server.server import Environment, Server
from artemis_py.stomp.service import StompService, Traffic
from artemis_py.storage.recovery.accept_journal import LossError
from artemis_py.testing.clock import MovedLoop, MovedTime, let_pass
from artemis_py.testing.configuration import configuration_of, stomp_acceptor, text_of
from artemis_py.testing.disk import MachineDisk
from artemis_py.testing.errors import BrokerDownError, NotReachedError, WouldBlockError

if TYPE_CHECKING:
    from artemis_py.config.settings import AcceptorConfig, BrokerConfig

Value = TypeVar("Value")

_NS_PER_MS: Final = 1_000_000
_ENDED: Final = "the broker does not run: it was not started, or has been stopped"
_CRASHED: Final = "the broker does not run: it has crashed; call restart()"
_numbers: Final = itertools.count(1)


@final
class Sender:
    """The test's own sender: a session like any client's, over a pair of sockets, for which nobody has to log in.
    ``connection`` is its end at the broker.
    """

    def __init__(self, connection: Connection, own_end: socket.socket) -> None:
        self.connection = connection
        self._lock = threading.Lock()
        self._stomp = StompConnection(own_end, "the test's sender", 0.0, beats_ms=(0, 0))

    def connect(self, timeout_s: float) -> None:
        """Begin the session. Raises StompConnectionError."""
        self._stomp.timeout_s = timeout_s
        self._stomp.log_in("localhost", ClientLogin())

    def send(self, address: str, body: str | bytes, headers: Mapping[str, object], timeout_s: float) -> None:
        """Send a message, and wait until the broker has it: a persistent one is on the disk. Raises
        StompConnectionError, and StompError for what STOMP cannot carry.
        """
        lines, data = _lines(address, body, headers)
        with self._lock:
            self._stomp.timeout_s = timeout_s
            self._stomp.ask("SEND", lines, data)

    def close(self) -> None:
        """End the session."""
        self._stomp.close()


def _lines(address: str, body: str | bytes, headers: Mapping[str, object]) -> tuple[list[tuple[str, str]], bytes]:
    """Headers and body of a SEND. Text has no content-length, by which Artemis tells text messages from bytes
    messages.
    """
    data = body.encode() if isinstance(body, str) else bytes(body)
    lines = [("destination", address)]
    if not isinstance(body, str):
        lines.append(("content-length", str(len(data))))
    return lines + [(name, text_of(value)) for name, value in headers.items()], data


async def open_sender(server: Server, acceptor: AcceptorConfig) -> Sender:
    """Make a connection of the test, on the loop of the broker. ``acceptor``: whose prefixes and limits it has."""
    turns = server.turns
    service = StompService(
        server.broker, acceptor, Traffic(), server.ports.temporaries, turns.large, wake=turns.schedule
    )
    stomp_acceptor = StompAcceptor(turns, service, -1, 0)
    brokers_end, own_end = socket.socketpair()
    brokers_end.setblocking(False)
    _, connection = await asyncio.get_running_loop().connect_accepted_socket(stomp_acceptor.connect, brokers_end)
    assert isinstance(connection, Connection)
    return Sender(connection, own_end)


@final
class Life:
    """One life of a broker, from its start to its stop or its crash: a server that listens. All of it belongs to the
    thread of the loop.
    """

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
        for acceptor in self.server.ports.http.acceptors:
            acceptor.stop()
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


@final
class Engine:
    """Starts, crashes and ends a broker. Thread, disk, time and port outlive a crash; ``stop`` ends all of it.

    ``persistence`` is the folder of the journal, True for one that is removed at the end, or False. ``timeout_s`` is
    how long waits last that name no time of their own.
    """

    def __init__(
        self,
        config: str | os.PathLike[str] | None,
        queues: Mapping[str, Mapping[str, Any]],
        persistence: bool | str | os.PathLike[str],
        port: int,
        timeout_s: float,
        *,
        http: bool = False,
    ) -> None:
        self.timeout_s = timeout_s
        self._http = http
        self.time = MovedTime()
        self.port = port
        """The port for STOMP; 0 before the first start."""
        self._config = config
        self._queues = queues
        self._persistence = persistence
        self._own_folder: Path | None = None
        self._disk = MachineDisk()
        self._thread: LoopThread | None = None
        self._waits: Waits | None = None
        self._life: Life | None = None

    # ---- lives -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the broker. Raises ConfigError; BrokerDownError if it runs; ArtemisError for a port or a journal."""
        if self._life is not None:
            raise BrokerDownError("the broker runs already")
        config = configuration_of(
            self._config,
            self._queues,
            folder=self._folder(),
            persistence=self._persistence is not False,
            port=self.port,
            http=self._http,
        )
        if self._thread is None:
            self._thread = LoopThread(MovedLoop(self.time), f"artemis_py test broker {next(_numbers)}")
            self._waits = Waits(self._thread)
        assert self._waits is not None
        try:
            self._life = self._thread.run(begin_life(config, self.time, self._disk, self._waits))
        except BaseException:
            self.stop()
            raise
        self.port = self._life.port(self._life.acceptor)

    def _folder(self) -> Path:
        """Where the broker's files would be. Only persistence creates it now."""
        if isinstance(self._persistence, str | os.PathLike):
            return Path(self._persistence)
        if self._persistence and self._own_folder is None:
            self._own_folder = Path(tempfile.mkdtemp(prefix="artemis-py-test-"))
        return self._own_folder or Path(tempfile.gettempdir()) / f"artemis-py-test-{os.getpid()}"

    def stop(self) -> None:
        """End everything, without waiting for clients. May be called twice."""
        thread, waits, life = self._thread, self._waits, self._life
        self._thread = self._waits = self._life = None
        try:
            if thread is not None:
                try:
                    if waits is not None:
                        thread.call(waits.end)
                    if life is not None:
                        thread.run(life.stop())
                finally:
                    thread.end()
        finally:
            if self._own_folder is not None:
                shutil.rmtree(self._own_folder, ignore_errors=True)
                self._own_folder = None

    def crash(self) -> None:
        """End this life as if the power went."""
        life, thread = self.life, self.thread
        self._disk.is_off = True
        self._life = None
        thread.run(life.crash())
        self._disk.lose_unsynced()

    def restart(self) -> None:
        """Begin another life, after an orderly end of this one."""
        life, thread = self._life, self._thread
        if life is not None and thread is not None:
            self._life = None
            thread.run(life.stop())
            self._disk.settle()
        self.start()

    # ---- the broker that runs --------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        """Does the broker run? Not before its start, after its end or a crash, or when it has failed."""
        return self._life is not None and self._life.server.failure is None

    @property
    def failure(self) -> ArtemisError | None:
        """Why the broker has failed; None if it has not."""
        return None if self._life is None else self._life.server.failure

    @property
    def life(self) -> Life:
        """The life that it has now. Raises BrokerDownError."""
        life = self._life
        if life is None:
            raise BrokerDownError(_ENDED if self._thread is None else _CRASHED)
        return life

    @property
    def server(self) -> Server:
        """The server, for its own thread. Raises BrokerDownError."""
        return self.life.server

    @property
    def thread(self) -> LoopThread:
        """Its thread. Raises BrokerDownError."""
        if self._thread is None:
            raise BrokerDownError(_ENDED)
        return self._thread

    @property
    def waits(self) -> Waits:
        """What threads wait for. Raises BrokerDownError."""
        if self._waits is None:
            raise BrokerDownError(_ENDED)
        return self._waits

    def look(self, question: Callable[[Server], Value]) -> Value:
        """Ask the server something, in its thread. Raises BrokerDownError."""
        server = self.server
        return self.thread.call(lambda: question(server))

    def change(self, change: Callable[[Server], Value]) -> Value:
        """As ``look``, and a turn carries out what was changed."""

        def run(server: Server) -> Value:
            result = change(server)
            server.turns.schedule()
            return result

        return self.look(run)

    def pass_time(self, span_ms: int, silent: bool) -> None:
        """What ``clock.advance`` does."""
        if self._life is None:
            self.time.ahead_ns += span_ms * _NS_PER_MS
        else:
            self.thread.run(let_pass(self.server, self.time, span_ms, silent=silent))

    def fill_disk(self, *, is_full: bool) -> None:
        """Let the disk be full from now on, or no more. Raises BrokerDownError without a journal: then there is no disk
        that counts.
        """
        if self._persistence is False:
            raise BrokerDownError("without persistence the broker writes nothing to a disk; use persistence=True")
        self._disk.is_full = is_full
        if self.is_running:
            self.change(lambda server: server.disk_watch.check())


# ---- thread ----------------------------------------------------------------------------------------------------------
#
# A thread with an event loop of its own, and calls into it from other threads.


CALL_S: Final = 30.0
"""Within this time the loop answers. It never waits for a client, so only a machine that stands still takes longer."""


@final
class LoopThread:
    """Runs an event loop from now until ``end``. The thread is a daemon: it does not keep the process alive."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self.loop = loop
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def call(self, function: Callable[[], Value]) -> Value:
        """Call a function in the loop's thread; returns what it returns, and raises what it raises."""
        if threading.current_thread() is self._thread:
            return function()
        future: Future[Value] = Future()

        def run() -> None:
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)

        self._tell(run)
        return self._answer(future)

    def run(self, coroutine: Coroutine[Any, Any, Value]) -> Value:
        """Run a coroutine on the loop, and return its result."""
        try:
            return self._answer(asyncio.run_coroutine_threadsafe(coroutine, self.loop))
        except RuntimeError:
            coroutine.close()
            raise

    def _tell(self, call: Callable[[], None]) -> None:
        try:
            self.loop.call_soon_threadsafe(call)
        except RuntimeError:  # the loop is closed
            raise BrokerDownError("the broker of this test has ended; start a new one") from None

    def _answer(self, future: Future[Value]) -> Value:
        try:
            return future.result(CALL_S)
        except TimeoutError:
            if future.done():
                raise  # it was the call that raised it
            raise BrokerDownError(
                f"the thread {self._thread.name!r} of the broker has not answered for {CALL_S:g} s"
            ) from None

    def end(self) -> None:
        """Stop the loop, end its tasks and threads, and close it. Raises BrokerDownError if it does not end."""
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(CALL_S)
        if self._thread.is_alive():
            raise BrokerDownError(f"the thread {self._thread.name!r} of the broker does not end")

    def _run(self) -> None:
        loop = self.loop
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            if tasks:
                loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            asyncio.set_event_loop(None)
            loop.close()


def is_on_a_loop() -> bool:
    """Does an event loop run in the caller's thread?"""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


# ---- waits -----------------------------------------------------------------------------------------------------------
#
# Conditions are looked at after each turn of the broker, never by the clock.


@final
class Waits:
    """The conditions that threads wait for now. All conditions are asked in the thread of the loop."""

    def __init__(self, thread: LoopThread) -> None:
        self._thread = thread
        self._waiting: dict[Future[None], Callable[[], bool]] = {}

    @property
    def count(self) -> int:
        """How many threads wait."""
        return len(self._waiting)

    def end(self) -> None:
        """There is no broker any more: nothing that is waited for will happen."""
        while self._waiting:
            future, _ = self._waiting.popitem()
            future.set_exception(BrokerDownError("the broker was stopped while this waited for it"))

    def look(self) -> None:
        """Something may have changed: wake those whose condition holds."""
        for future, condition in list(self._waiting.items()):
            self._ask(future, condition)

    def _ask(self, future: Future[None], condition: Callable[[], bool]) -> None:
        try:
            if not condition():
                return
        except BaseException as error:
            self._waiting.pop(future, None)
            future.set_exception(error)
            return
        self._waiting.pop(future, None)
        future.set_result(None)

    def wait(self, condition: Callable[[], bool], explain: Callable[[], str], timeout_s: float, call: str) -> None:
        """Wait until the condition holds. Raises NotReachedError with the explanation, which is made in the thread of
        the loop, and WouldBlockError on an event loop, where ``call`` is what the caller wrote.
        """
        future: Future[None] = Future()

        def begin() -> None:
            self._waiting[future] = condition
            self._ask(future, condition)

        self._thread.call(begin)
        may_block = not is_on_a_loop()
        try:
            future.result(timeout_s if may_block else 0)
            return
        except TimeoutError:
            if future.done() and future.exception() is not None:
                raise  # it was the condition that raised it
        reached, why = self._thread.call(lambda: self._give_up(future, explain))
        if reached:
            return
        if not may_block and timeout_s > 0:
            raise WouldBlockError(
                f"{call}() has to wait, and would block the event loop of its caller, with all clients on it: "
                f"write  await asyncio.to_thread({call}, …)\n{why}"
            )
        raise NotReachedError(why)

    def _give_up(self, future: Future[None], explain: Callable[[], str]) -> tuple[bool, str]:
        """Wait no longer, unless the condition holds by now. Returns whether it does, else the explanation."""
        if self._waiting.pop(future, None) is None:
            return True, ""
        return False, explain()
