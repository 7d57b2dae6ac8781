"""The broker of a pair while it waits for the lock of the directory that both share.

It has no STOMP port: a client that tries it is refused at once, and tries the other. Its HTTP port says who works, with
status 503 for everything but health and metrics. A primary takes the lock whenever it is free. A backup takes it only
when the owner died, or was stopped with failover-on-shutdown, and no primary waits. Where there is a journal, but no
word of how its broker ended, a lock that is free counts as that of one that died.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Final, final

from artemis_py.config.settings import BrokerConfig, SharedStoreConfig
from artemis_py.core.memory import Holdings
from artemis_py.errors import ArtemisError
from artemis_py.message import Account
from artemis_py.metrics.exposition import escape_label
from artemis_py.security.identity import Authenticator
from artemis_py.server.descriptors import raise_limit
from artemis_py.server.failures import Faults, RateLimitedLog
from artemis_py.server.http.monitoring_routes import health_routes
from artemis_py.server.http.ports import HttpPorts
from artemis_py.server.http.requests import RETRY_LATER, Request, Response, json_response
from artemis_py.server.http.routing import Route
from artemis_py.server.journal_store import lock_journal
from artemis_py.server.ports import Bound, Held, bind, place_of
from artemis_py.server.security import security_of
from artemis_py.server.stats import ServerStats
from artemis_py.server.tls.acceptors import TlsAcceptors
from artemis_py.storage.disk.disk import LockedError
from artemis_py.storage.disk.lock import (
    ACTIVE,
    LOCK_NAME,
    STOPPED,
    UNUSED,
    DirectoryLock,
    Owner,
    WaitingPrimary,
    owner_of,
    primary_waits,
)
from artemis_py.storage.format.names import segment_number

_TRY_EVERY_S: Final = 0.05
_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_METRICS: Final = """\
# HELP artemis_active 1 while the broker is started
# TYPE artemis_active gauge
artemis_active{{broker="{name}"}} 0
"""


@final
class Candidate:
    """Tries to get the lock of a shared store. After a try without success ``waits_for`` says for what it waits, and
    ``active`` which broker works meanwhile; None: it names none, or none works.
    """

    def __init__(self, config: BrokerConfig, part: SharedStoreConfig) -> None:
        self._config = config
        self._part = part
        self._directory = Path(config.journal_directory)
        self._waiting = WaitingPrimary(self._directory)
        self.waits_for = "the lock"
        self.active: Owner | None = None

    def take(self) -> DirectoryLock | None:
        """The lock, or None for now. Raises DiskError if the directory of a primary cannot be used."""
        return self._take_as_backup() if self._part.is_backup else self._take_as_primary()

    def _take_as_primary(self) -> DirectoryLock | None:
        try:
            lock = lock_journal(self._config)
        except LockedError:
            with suppress(OSError):
                self._waiting.show()
            self._waits_for_owner()
            return None
        self._waiting.withdraw()
        return lock

    def _take_as_backup(self) -> DirectoryLock | None:
        """Whatever is wrong with the directory, a backup waits until it is right: it may not be mounted yet."""
        owner = owner_of(self._directory)
        why_not = self._why_not(UNUSED if owner is None else owner.state)
        if why_not:
            self._waits(why_not)
            return None
        if primary_waits(self._directory):
            self._waits(f"the primary that is about to take over {self._directory}")
            return None
        try:
            lock = lock_journal(self._config)
        except LockedError:
            self._waits_for_owner()
            return None
        except ArtemisError as error:
            self._waits(f"a directory that can be used: {error}")
            return None
        self._waits(self._why_not(lock.state))  # it may have been stopped just now
        if self.waits_for:
            lock.release()
            return None
        if lock.state != ACTIVE:
            lock.notes.append(
                f"warning: {self._directory / LOCK_NAME} did not say how the last broker ended, but there is a "
                "journal, and nobody has the lock: this backup takes over"
            )
        return lock

    def _why_not(self, state: str) -> str:
        """For what a backup waits in a store of this state; empty if it takes over."""
        directory = self._directory
        if state == ACTIVE:
            return ""
        if state == STOPPED:
            return f"a primary: the broker in {directory} was stopped, and is to be started again"
        try:
            with os.scandir(directory) as found:
                has_journal = any(segment_number(one.name) is not None for one in found)
        except FileNotFoundError:
            return f"the directory {directory}: mount it, or put it back, or start a primary there for the first time"
        except OSError as error:
            return f"a directory that can be used: {directory}: {error.strerror or error}"
        return "" if has_journal else f"the first start of a primary in {directory}, where no journal is"

    def _waits_for_owner(self) -> None:
        owner = owner_of(self._directory)
        who = "another broker" if owner is None else owner.shown
        self._waits(f"the lock of {who} in {self._directory}", owner)

    def _waits(self, waits_for: str, active: Owner | None = None) -> None:
        self.waits_for, self.active = waits_for, active

    def give_up(self) -> None:
        """It waits no longer."""
        self._waiting.withdraw()


@final
class Standby:
    """Waits, and serves health, metrics and word of who works meanwhile. ``opened`` gets each port, ``tell`` that for
    which it waits, whenever it changes.
    """

    def __init__(
        self,
        config: BrokerConfig,
        part: SharedStoreConfig,
        loop: asyncio.AbstractEventLoop,
        authenticator: Authenticator | None,
        tell: Callable[[str], None],
        opened: Callable[[Bound], None],
    ) -> None:
        self._config = config
        self._loop = loop
        self._opened = opened
        self._tell = tell
        self._told = ""
        self._candidate = Candidate(config, part)
        limited_log, holdings = RateLimitedLog(), Holdings(Account())
        self._limited_log = limited_log
        stats = ServerStats(Faults(limited_log))
        security = security_of(config, authenticator, loop, stats, limited_log)
        self._stop_logins = None if security is None else security.logins.stop
        self._tls = TlsAcceptors(config, loop, limited_log, holdings)
        stats.tls_opened = self._tls.opened
        self._http = HttpPorts(config, loop, stats, holdings, limited_log, raise_limit(), security)
        self._http.routes = [
            *health_routes(self._why_not_ready, self._tls.warnings),
            *_metrics(config.name),
            self._of_the_active_one(),
        ]

    def _why_not_ready(self) -> str:
        return f"stand-by: waits for {self._candidate.waits_for}"

    def _of_the_active_one(self) -> Route:
        """What only a broker that works has: 503, and who that is, for those who may log in there."""

        def elsewhere(_request: Request) -> Response:
            active = self._candidate.active
            told = {"error": self._why_not_ready(), "active": None if active is None else active.shown}
            return replace(json_response(HTTPStatus.SERVICE_UNAVAILABLE, told), headers=RETRY_LATER)

        return Route("/*", dict.fromkeys(_METHODS, elsewhere), checks_itself=True, takes_messages=True)

    async def wait(self, stopping: asyncio.Event) -> DirectoryLock | None:
        """The lock; None if the process is to stop. Raises LockedError after journal-lock-acquisition-timeout, and
        other errors for a directory, a port or a key that cannot be used.
        """
        try:
            return await self._wait(stopping)
        finally:
            self._candidate.give_up()
            self._limited_log.end()
            if self._stop_logins is not None:
                self._stop_logins()
            self._tls.stop()

    async def _wait(self, stopping: asyncio.Event) -> DirectoryLock | None:
        limit_ms = self._config.journal_lock_acquisition_timeout
        until = self._loop.time() + limit_ms / 1000
        stop = self._loop.create_task(stopping.wait())
        try:
            while not stopping.is_set():
                lock = await self._loop.run_in_executor(None, self._candidate.take)  # a network file system may hang
                if lock is not None:
                    return lock
                if limit_ms >= 0 and self._loop.time() >= until:
                    raise LockedError(f"after {limit_ms} ms it still waits for {self._candidate.waits_for}")
                self._open_or_tell()
                self._limited_log.write_held()
                await asyncio.wait([stop], timeout=_TRY_EVERY_S)
        finally:
            stop.cancel()
        return None

    def _open_or_tell(self) -> None:
        """It has to wait: open HTTP, once, and say for what it waits, whenever that changes."""
        if not self._told:
            for acceptor in self._config.acceptors:
                if acceptor.is_opened:
                    self._tls.load(acceptor)  # what is wrong with a key is told now, not when it is too late
                if acceptor.is_opened and "STOMP" not in acceptor.protocols:
                    bound = bind(acceptor)
                    self._http.serve(acceptor, bound, self._tls)
                    self._opened((acceptor, *place_of(bound)))
            self._http.tick()
        if self._told != self._candidate.waits_for:
            self._told = self._candidate.waits_for
            self._tell(self._told)

    def give_up_sockets(self) -> list[Held]:
        """The sockets of HTTP, for the broker that is about to work: clients wait in them."""
        return self._http.give_up()

    def close(self) -> None:
        """It waits no longer, and nobody takes over its sockets."""
        self._http.close()


def _metrics(name: str) -> list[Route]:
    """A broker that waits has one series."""
    text = _METRICS.format(name=escape_label(name)).encode()

    def metrics(_request: Request) -> Response:
        return Response(HTTPStatus.OK, _CONTENT_TYPE, text)

    operations = {"GET": "broker.getMetrics"}
    return [Route(path, {"GET": metrics}, operations, is_open=True) for path in ("/metrics", "/metrics/")]


class FailbackWatch:
    """Has a backup that took over look for a primary that waits, and calls ``found`` once."""

    def __init__(self, config: BrokerConfig, loop: asyncio.AbstractEventLoop, found: Callable[[], None]) -> None:
        self._primary_waits = partial(primary_waits, Path(config.journal_directory))
        self._loop = loop
        self._found = found
        self._is_checking = False

    def check(self) -> None:
        """Check once, in a thread; does nothing while the last check goes on."""
        if not self._is_checking:
            self._is_checking = True
            self._loop.run_in_executor(None, self._primary_waits).add_done_callback(self._checked)

    def _checked(self, answer: asyncio.Future[bool]) -> None:
        self._is_checking = False
        if not answer.cancelled() and answer.exception() is None and answer.result():
            self._is_checking = True  # found: check no more
            self._found()
