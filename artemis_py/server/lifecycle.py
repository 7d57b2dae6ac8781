"""The process of a broker: configuration, signals, its turn in a pair, and an orderly end."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from artemis_py.config.codes import kind_of, told
from artemis_py.config.problems import WARNING, Problems
from artemis_py.config.reader import load
from artemis_py.config.settings import BrokerConfig, SharedStoreConfig
from artemis_py.errors import ArtemisError, ConfigError
from artemis_py.log_codes import FAILED, LISTENING, READY, STANDBY, STOPPED, STOPPING, STORAGE
from artemis_py.security.authenticator import Authenticator
from artemis_py.server.collector import Collector
from artemis_py.server.configuration.reading import Source
from artemis_py.server.faults import TurnError
from artemis_py.server.malloc import keep_freed_memory
from artemis_py.server.notify import Notifier
from artemis_py.server.operational import write_to_stderr
from artemis_py.server.ports import Bound, console_url, shown_port
from artemis_py.server.server import Server, Taken
from artemis_py.server.stop_signals import SIGNALS, StopSignals
from artemis_py.shown import begin_log, say, warn
from artemis_py.storage.disk.disk import DiskError, LockedError, NoSpaceError
from artemis_py.storage.disk.lock import DirectoryLock
from artemis_py.storage.format.codec import CodecError
from artemis_py.storage.recovery.loss import LossError

if TYPE_CHECKING:
    from artemis_py.security.users.first_user import FirstUser

EXIT_LOSS: Final = 4
"""The journal lacks files, queues or many records, and the broker was not told to start without them."""
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
    if accept_loss and config.persistence_enabled and config.shared_store is None:
        _accept_losses(config, None)
    keep_freed_memory()
    write_to_stderr()
    loop = asyncio.new_event_loop()
    try:
        source = Source(path, properties, silenced, strict)
        return loop.run_until_complete(_Life(config, loop, authenticator, source, accept_loss=accept_loss).run())
    finally:
        _close(loop)


def _open_logins(config: BrokerConfig, problems: Problems) -> Authenticator:
    from artemis_py.security.realms import open_realms
    from artemis_py.security.users.first_user import make_first_user

    first = make_first_user(config)
    if first is not None:
        _tell_of_first_user(first)
    return open_realms(config, problems)


def _tell_of_first_user(first: FirstUser) -> None:
    """On standard output, which is not the log. Nothing else ever shows the password."""
    from artemis_py.security.users.first_user import NEW_PASSWORD

    say()
    if first.password:
        say(f"  first user: {first.user}    password: {first.password}    (shown only now; {first.file} has its hash)")
        say(f"  to choose another password: artemis-py user reset {first.user}")
    else:
        say(f"  first user: {first.user}, with the password in {NEW_PASSWORD}; {first.file} has its hash")
    say()
    sys.stdout.flush()


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """Ignore signals from now on, in whichever thread they come. A closing loop would restore their default action, so
    that a late signal kills the process, and an orderly stop does not look like one; or the signal is told to a socket
    that is closed, with a traceback.
    """
    for number in (*SIGNALS, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.set_wakeup_fd(-1)
    getattr(loop, "_signal_handlers", {}).clear()  # else closing it sets the default action
    loop.close()


def _accept_losses(config: BrokerConfig, lock: DirectoryLock | None) -> None:
    from artemis_py.server.repair import accept_losses

    for line in accept_losses(config, lock):
        warn(line, STORAGE)


class _Life:
    """What a process does: it waits for its turn if it is one of a pair, and works until it is told to stop."""

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
        self._collector = Collector(loop)
        self._notifier = Notifier()
        self._notifier.watch(loop)
        for notice in config.notices:
            warn(f"{kind_of(notice)}: {notice}")

    async def run(self) -> int:
        """Returns the exit code."""
        part = self._config.shared_store
        if part is None:
            return await self._work(Taken(progress=self._tell_of_progress))
        while True:
            code = await self._stand_by(part)
            if code != GAVE_BACK or self._signals.has_come or not part.restart_backup:
                return 0 if code == GAVE_BACK else code
            self._signals.stopping.clear()
            self._collector.rest()

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
        return await self._work(Taken(lock, standby.give_up_sockets(), self._tell_of_progress))

    def _tell_of_progress(self, done: int, total: int) -> None:
        self._notifier.progress(f"has read {done} of {total} journal files")

    def _tell_of_waiting(self, waits_for: str) -> None:
        self._notifier.ready(f"stand-by: waits for {waits_for}")
        warn(f"broker {self._config.name} is a stand-by: it waits for {waits_for}", STANDBY)
        begin_log()

    def _tell_of_stop(self, *, gives_back: bool) -> None:
        if gives_back:
            warn("stopping: a primary waits for the lock", STOPPING)
            self._notifier.status("gives the lock to a primary")
        else:
            warn("stopping", STOPPING)
            self._notifier.stopping("stopping", max(self._config.graceful_shutdown_timeout, 0))

    async def _work(self, taken: Taken) -> int:
        config, signals = self._config, self._signals
        try:
            server = Server(config, self._loop, signals.stopping, self._authenticator, taken=taken, source=self._source)
        except LossError as error:
            from artemis_py.storage.recovery.findings import loss_lines

            for line in loss_lines(error.examined, config.journal_directory):
                warn(line, FAILED)
            return EXIT_LOSS
        except (DiskError, LockedError, CodecError) as error:
            warn(f"the journal cannot be opened: {error}", FAILED)
            return 1
        try:
            await server.listen()
        except ArtemisError as error:  # a port or a key
            warn(error, FAILED)
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
    warn(shown_port(bound), LISTENING)


def _report(config: BrokerConfig, server: Server) -> str:
    """Print at start what was recovered, and where the broker listens; returns its state."""
    for line in server.store.report:
        warn(line, STORAGE)
    for bound in server.ports.bound:
        _tell_of_port(bound)
    for bound in server.ports.bound:
        if "HTTP" in bound[0].protocols:
            warn(f"console: {console_url(bound)}", LISTENING)
    is_open = any("STOMP" in acceptor.protocols for acceptor, _, _ in server.ports.bound)
    state = "ready" if is_open else "up, but no port is open for STOMP, so no client can connect"
    counts = f"{len(server.broker.addresses)} addresses, {len(server.broker.queues)} queues"
    warn(f"broker {config.name} is {state}: {counts}", READY)
    begin_log()
    return f"{state}: {counts}"
