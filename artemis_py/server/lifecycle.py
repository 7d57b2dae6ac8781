"""The life of the process: start, signals, the service manager, stop, and its exit code."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import socket
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from artemis_py.config.problems import WARNING, Problems, kind_of, told
from artemis_py.config.reader import load
from artemis_py.config.settings import BrokerConfig, SharedStoreConfig
from artemis_py.errors import ArtemisError, ConfigError, UsageError
from artemis_py.log_codes import FAILED, LISTENING, NOTICE, READY, STANDBY, STOPPED, STOPPING, STORAGE
from artemis_py.security.identity import Authenticator
from artemis_py.server.configuration.reading import Source
from artemis_py.server.failures import TurnError
from artemis_py.server.garbage_collector import GarbageCollector
from artemis_py.server.operational_log import write_to_stderr
from artemis_py.server.ports import Bound, console_url, shown_port
from artemis_py.server.server import Server, Takeover
from artemis_py.storage.disk.disk import DiskError, LockedError, NoSpaceError
from artemis_py.storage.disk.lock import DirectoryLock
from artemis_py.storage.format.records import CodecError
from artemis_py.storage.recovery.accept_journal import LossError
from artemis_py.terminal_output import as_called, begin_log, log, many, say, warn

if TYPE_CHECKING:
    from artemis_py.security.users.accounts import FirstUser


# ---- malloc ----------------------------------------------------------------------------------------------------------
#
# Keeps glibc from returning memory after every large block. Reading and joining create blocks above 128 KiB, which
# glibc by default maps and unmaps one by one; the page faults cost more than the parsing. Other C libraries have no
# ``mallopt`` and stay as they are.


_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_TRIM_THRESHOLD_BYTES: Final = 64 << 20
_MMAP_THRESHOLD_BYTES: Final = 16 << 20


def keep_freed_memory() -> bool:
    """Raise the thresholds above which glibc returns memory; False if that is impossible."""
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return bool(mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD_BYTES) and mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES))


# ---- notify ----------------------------------------------------------------------------------------------------------
#
# Tells the supervisor that started the process how it is: systemd's notifications, a datagram each.
# ``$NOTIFY_SOCKET`` names the socket. Without it nothing is sent, and a supervisor that does not listen is no failure
# of the broker. The watchdog is fed by the event loop, so a turn that hangs is noticed.


_EXTEND_US: Final = 60_000_000
"""How long a step of a start or a stop may take, whatever the supervisor's own limit is."""


def _address_of(environ: Mapping[str, str]) -> str | None:
    """The address of the supervisor's socket; None without one, or if it is of an unknown kind."""
    text = environ.get("NOTIFY_SOCKET", "")
    if text.startswith("@"):  # a name that is in no directory
        return "\0" + text[1:]
    return text if text.startswith("/") else None


def _watchdog_s_of(environ: Mapping[str, str]) -> float | None:
    """How often the watchdog must be fed; None if there is none for this process."""
    if environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    text = environ.get("WATCHDOG_USEC", "")
    return int(text) / 1e6 if text.isascii() and text.isdigit() and int(text) > 0 else None


@final
class Notifier:
    """The notifications of one process."""

    def __init__(self) -> None:
        self._address = _address_of(os.environ)
        self._watchdog_s = None if self._address is None else _watchdog_s_of(os.environ)
        self._socket: socket.socket | None = None
        self._is_ready = False

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Feed the watchdog from the event loop from now on, twice as often as it must be."""
        if self._watchdog_s is not None:
            self._send("WATCHDOG=1")
            loop.call_later(self._watchdog_s / 2, self.watch, loop)

    def status(self, text: str) -> None:
        """What the process does now, for ``systemctl status``."""
        self._send(f"STATUS={text}")

    def ready(self, status: str) -> None:
        """The start is over."""
        self._is_ready = True
        self._send("READY=1", f"STATUS={status}")

    def stopping(self, status: str, wait_ms: int = 0) -> None:
        """The stop has begun, and may wait for clients for ``wait_ms``."""
        self._send("STOPPING=1", f"STATUS={status}", f"EXTEND_TIMEOUT_USEC={wait_ms * 1000 + _EXTEND_US}")

    def progress(self, status: str) -> None:
        """A step of something that keeps the event loop busy is done."""
        parts = [f"STATUS={status}"]
        if not self._is_ready:
            parts.append(f"EXTEND_TIMEOUT_USEC={_EXTEND_US}")
        if self._watchdog_s is not None:
            parts.append("WATCHDOG=1")
        self._send(*parts)

    def _send(self, *assignments: str) -> None:
        if self._address is None:
            return
        data = "\n".join(line.replace("\n", " ") for line in assignments).encode("utf-8", "replace")
        with suppress(OSError):
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
                self._socket.setblocking(False)
            self._socket.sendto(data, self._address)

    def close(self) -> None:
        """Send nothing more."""
        self._address = self._watchdog_s = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None


# ---- stop signals ----------------------------------------------------------------------------------------------------
#
# SIGTERM and SIGINT: the first asks for an orderly stop, the next one for one without delay. SIGHUP has the broker
# read its configuration again.


SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@final
class StopSignals:
    """``stopping`` is set when the broker is to stop, also by others; ``hurry`` when it is to wait for nobody."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.stopping = asyncio.Event()
        self.hurry = asyncio.Event()
        self.has_come = False
        """Has a signal come?"""
        for number in SIGNALS:
            _on_signal(loop, number, self._come)
        self.on_hangup: Callable[[], None] | None = None
        """What SIGHUP asks for; None while there is nothing to read again."""
        _on_signal(loop, signal.SIGHUP, self._hang_up)

    def _hang_up(self) -> None:
        if self.on_hangup is not None:
            self.on_hangup()

    def _come(self) -> None:
        if self.has_come:
            self.hurry.set()
        self.has_come = True
        self.stopping.set()


def _on_signal(loop: asyncio.AbstractEventLoop, number: int, call: Callable[[], None]) -> None:
    """Have the loop call ``call`` when a signal comes. The loop is not involved: with its own
    ``add_signal_handler`` it restores the default action when it closes, and a late signal kills the process.
    """

    def on_signal(_number: int, _frame: object) -> None:
        loop.call_soon_threadsafe(call)

    signal.signal(number, on_signal)


# ---- lifecycle -------------------------------------------------------------------------------------------------------
#
# The process of a broker: configuration, signals, its role in a pair, and an orderly end.


EXIT_LOSS: Final = 4
"""The journal lacks files, queues or many records, and no option allows a start without them."""
GAVE_BACK: Final = -1
"""No exit code: a backup has given its directory to a primary, and waits again."""


def run(
    path: Path,
    properties: Sequence[str],
    *,
    silenced: Collection[str] = (),
    strict: bool = False,
    accept_loss: bool = False,
) -> int:
    """Run a broker in the foreground until SIGTERM or SIGINT; returns 0 after an orderly stop, 1 if a port cannot be
    opened, 3 if storage failed, 4 if the journal lacks too much. With ``accept_loss`` it starts anyway. Warnings and
    notes with a code in ``silenced`` are hidden; with ``strict`` the other warnings count as errors.

    Raises ConfigError for a refused configuration, before anything listens.
    """
    config = load(path, properties=properties)
    problems = Problems()
    authenticator = _open_logins(config, problems) if config.security_enabled else None
    notices = told([*config.notices, *problems.in_order(config.file)], silenced)
    if strict and any(notice.severity == WARNING for notice in notices):
        raise ConfigError(notices)
    config = replace(config, notices=tuple(notices))
    begin_log()
    if accept_loss and config.persistence_enabled and config.shared_store is None:
        _accept_losses(config, None)
    keep_freed_memory()
    write_to_stderr()
    loop = _new_loop(os.environ)
    try:
        source = Source(path, properties, silenced, strict)
        return loop.run_until_complete(_Life(config, loop, authenticator, source, accept_loss=accept_loss).run())
    finally:
        _close(loop)


def _new_loop(environ: Mapping[str, str]) -> asyncio.AbstractEventLoop:
    """The loop of uvloop where that is installed (the extra ``uvloop``), else that of asyncio. ``ARTEMIS_PY_LOOP`` may
    ask for one: ``asyncio`` or ``uvloop``. Raises UsageError if it says something else, or what is not installed.
    """
    wanted = environ.get("ARTEMIS_PY_LOOP", "")
    if wanted not in ("", "asyncio", "uvloop"):
        raise UsageError(f"ARTEMIS_PY_LOOP is {wanted!r}; it may be asyncio or uvloop, or not set")
    if wanted != "asyncio":
        try:
            import uvloop
        except ImportError:
            if wanted:
                raise UsageError("ARTEMIS_PY_LOOP is uvloop, which is not installed (pip install uvloop)") from None
        else:
            return uvloop.new_event_loop()
    return asyncio.new_event_loop()


def _open_logins(config: BrokerConfig, problems: Problems) -> Authenticator:
    from artemis_py.security.realms import open_realms
    from artemis_py.security.users.accounts import make_first_user

    first = make_first_user(config)
    if first is not None:
        _tell_of_first_user(first, config.file)
    return open_realms(config, problems)


def _tell_of_first_user(first: FirstUser, file: str) -> None:
    """On standard output, which is not the log. Nothing else ever shows the password."""
    from artemis_py.security.users.accounts import NEW_PASSWORD

    say()
    if first.password:
        say(f"  first user: {first.user}    password: {first.password}    (shown only now; {first.file} has its hash)")
        options = "" if file == "broker.xml" else f" --config {shlex.quote(file)}"
        say(as_called(f"  to choose another password: artemis-py user reset {shlex.quote(first.user)}{options}"))
    else:
        say(f"  first user: {first.user}, with the password in {NEW_PASSWORD}; {first.file} has its hash")
    say()
    sys.stdout.flush()


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """Ignore signals from now on: a late one must not kill the process, since then an orderly stop does not look like
    one, or reach a loop that is closed.
    """
    for number in (*SIGNALS, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    loop.close()


def _accept_losses(config: BrokerConfig, lock: DirectoryLock | None) -> None:
    from artemis_py.server.journal_store import accept_losses

    for line in accept_losses(config, lock):
        warn(line, STORAGE)


class _Life:
    """What a process does: if it is one of a pair it waits for the lock; then it works until it is stopped."""

    def __init__(
        self,
        config: BrokerConfig,
        loop: asyncio.AbstractEventLoop,
        authenticator: Authenticator | None,
        source: Source,
        *,
        accept_loss: bool,
    ) -> None:
        self._config = config
        self._loop = loop
        self._authenticator = authenticator
        self._source = source
        self._accepts_loss = accept_loss
        self._signals = StopSignals(loop)
        self._collector = GarbageCollector(loop)
        self._notifier = Notifier()
        self._notifier.watch(loop)
        for notice in config.notices:
            line = str(notice.line) if notice.line else ""
            warn(f"{kind_of(notice)}: {as_called(notice.text)}", NOTICE, file=notice.file, line=line)

    async def run(self) -> int:
        """Returns the exit code."""
        part = self._config.shared_store
        if part is None:
            return await self._work(Takeover(progress=self._tell_of_progress))
        while True:
            code = await self._stand_by(part)
            if code != GAVE_BACK or self._signals.has_come or not part.restart_backup:
                return 0 if code == GAVE_BACK else code
            self._signals.stopping.clear()
            self._collector.stop()

    async def _stand_by(self, part: SharedStoreConfig) -> int:
        """Wait for the lock, then work."""
        from artemis_py.server.standby import Standby

        standby = Standby(self._config, part, self._loop, self._authenticator, self._tell_of_waiting, _tell_of_port)
        try:
            lock = await standby.wait(self._signals.stopping)
        except ArtemisError as error:
            standby.close()
            warn(error, FAILED)
            return 1
        if lock is None:
            standby.close()
            return 0
        if self._accepts_loss:
            _accept_losses(self._config, lock)
        self._notifier.progress("takes over")
        return await self._work(Takeover(lock, standby.give_up_sockets(), self._tell_of_progress))

    def _tell_of_progress(self, done: int, total: int) -> None:
        self._notifier.progress(f"has read {done} of {total} journal files")

    def _tell_of_waiting(self, waits_for: str) -> None:
        self._notifier.ready(f"stand-by: waits for {waits_for}")
        warn(f"broker {self._config.name} is a stand-by: it waits for {waits_for}", STANDBY)

    def _tell_of_stop(self, *, gives_back: bool) -> None:
        if gives_back:
            warn("stopping: a primary waits for the lock", STOPPING)
            self._notifier.status("gives the lock to a primary")
        else:
            warn("stopping", STOPPING)
            self._notifier.stopping("stopping", max(self._config.graceful_shutdown_timeout, 0))

    async def _work(self, takeover: Takeover) -> int:
        config, signals = self._config, self._signals
        try:
            server = Server(
                config, self._loop, signals.stopping, self._authenticator, takeover=takeover, source=self._source
            )
        except LossError as loss:
            from artemis_py.storage.recovery.damage_report import loss_lines

            first, *more = map(as_called, loss_lines(loss.examined, config.journal_directory, config.file))
            log(first, FAILED, "\n".join(more))
            return EXIT_LOSS
        except (DiskError, LockedError, CodecError) as error:
            warn(f"the journal cannot be opened: {error}", FAILED)
            return 1
        try:
            await server.listen()
        except ArtemisError as refused:  # a port or a key
            warn(refused, FAILED)
            await server.stop()
            return 1
        self._notifier.ready(_report(config, server))
        self._collector.begin()
        server.turns.collector = self._collector
        signals.on_hangup = server.configuration.reload_soon
        await signals.stopping.wait()
        signals.on_hangup = None
        if server.failure is None:
            self._tell_of_stop(gives_back=server.gives_back)
            await server.drain(signals.hurry)
        left = ""
        if server.failure is None:
            left = await server.stop(signals.hurry)
        if server.failure is None:
            warn(f"stopped: {left}", STOPPED)
            return GAVE_BACK if server.gives_back else 0
        self._notifier.stopping(_tell_of_failure(server.failure))
        server.abandon()
        return 3


def _tell_of_failure(failure: ArtemisError) -> str:
    """Returns it in a few words."""
    told = f"{'a turn' if isinstance(failure, TurnError) else 'storage'} failed"
    warn(f"{told} and the broker stops; it confirmed nothing after this: {failure}", FAILED)
    if isinstance(failure, NoSpaceError):
        warn(
            "free space on that file system and start the broker again; without space it also starts, but accepts "
            "only acknowledgements and no messages",
            FAILED,
        )
    return f"{told}: {failure}"


def _tell_of_port(bound: Bound) -> None:
    warn(shown_port(bound), LISTENING, acceptor=bound[0].name)


def _report(config: BrokerConfig, server: Server) -> str:
    """Print at start what was recovered, and where the broker listens; returns its state."""
    for line in server.store.report:
        warn(line, STORAGE)
    for bound in server.ports.bound:
        _tell_of_port(bound)
    for bound in server.ports.bound:
        if "HTTP" in bound[0].protocols:
            warn(f"console: {console_url(bound)}", LISTENING, acceptor=bound[0].name)
    is_open = any("STOMP" in acceptor.protocols for acceptor, _, _ in server.ports.bound)
    state = "ready" if is_open else "up, but no port is open for STOMP, so no client can connect"
    counts = f"{many(len(server.broker.addresses), 'address', 'addresses')}, {many(len(server.broker.queues), 'queue')}"
    warn(f"broker {config.name} is {state}: {counts}", READY)
    return f"{state}: {counts}"
