"""TLS of a broker's acceptors: their files, their handshakes, and certificates that expire soon."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from artemis_py.config.settings import AcceptorConfig, BrokerConfig
from artemis_py.core.memory import Holdings
from artemis_py.log_codes import TLS
from artemis_py.server.failures import RateLimitedLog
from artemis_py.server.proxy_protocol import Proxied
from artemis_py.terminal_output import warn

if TYPE_CHECKING:
    from artemis_py.server.tls.connection import TlsAcceptor
    from artemis_py.server.tls.context import Loaded, TlsFiles
    from artemis_py.server.tls.handshakes import Handshakes

Connect = Callable[[Proxied | None], asyncio.BaseProtocol]
HANDSHAKE_S: Final = 10.0
"""How long a handshake may take where ``sslHandshakeTimeout`` says nothing and ``handshakeTimeout`` is 0."""
WARN_BEFORE_S: Final = 14 * 86_400
"""How long before its end a certificate shows in ``/health``."""


@final
class TlsAcceptors:
    """For the event loop's thread; files are read in other threads, except at the start. What TLS needs is imported
    with the first acceptor that speaks it, and not before.
    """

    def __init__(
        self, config: BrokerConfig, loop: asyncio.AbstractEventLoop, limited_log: RateLimitedLog, holdings: Holdings
    ) -> None:
        self.opened: list[TlsAcceptor] = []
        self._config = config
        self._loop = loop
        self._limited_log = limited_log
        self._holdings = holdings
        self._handshakes: Handshakes | None = None
        """None until an acceptor speaks TLS."""
        self._loaded: dict[str, tuple[TlsFiles, Loaded]] = {}
        self._reloads: list[_Reload] = []
        self._watching: asyncio.Task[None] | None = None

    def load(self, acceptor: AcceptorConfig) -> None:
        """Read an acceptor's files before its port is opened, if it speaks TLS. Raises TlsError."""
        if not acceptor.is_tls:
            return
        from artemis_py.server.tls.context import TlsFiles

        import_module("artemis_py.server.tls.connection")  # with what it needs: in this thread, so that no turn waits

        files = TlsFiles(self._config, acceptor)
        loaded = files.load()
        complaint = loaded.complaint(time.time())
        if complaint is not None:
            origin = acceptor.origin
            warn(f"warning: {complaint}", TLS, acceptor=acceptor.name, file=origin.file, line=str(origin.line))
        self._loaded[acceptor.name] = files, loaded

    def around(self, acceptor: AcceptorConfig, connect: Connect) -> Connect:
        """Return what makes the protocols of an acceptor's sockets. ``connect`` makes those of its clients: with TLS,
        after the handshake.
        """
        if not acceptor.is_tls:
            return connect
        from artemis_py.server.tls.connection import TlsAcceptor, TlsConnection
        from artemis_py.server.tls.handshakes import Handshakes

        files, loaded = self._loaded.pop(acceptor.name)
        if self._handshakes is None:
            self._handshakes = Handshakes(self._loop)
        limit_s = _handshake_s(acceptor)
        opened = TlsAcceptor(
            acceptor.name, self._loop, loaded, connect, self._handshakes, limit_s, self._limited_log, self._holdings
        )
        self.opened.append(opened)
        if acceptor.bool_param("sslAutoReload"):
            self._reloads.append(_Reload(files, opened, self._limited_log))
        return partial(TlsConnection, opened)

    def drop(self, acceptor: AcceptorConfig) -> None:
        """An acceptor is closed: its files are checked no longer. Its handshakes end by themselves."""
        self.opened[:] = [opened for opened in self.opened if opened.name != acceptor.name]
        self._reloads = [reload for reload in self._reloads if reload.name != acceptor.name]

    def watch(self) -> None:
        """Check the files of acceptors with ``sslAutoReload`` from now on."""
        period_ms = self._config.configuration_file_refresh_period
        if self._reloads and period_ms > 0 and self._watching is None:
            self._watching = self._loop.create_task(self._check_every(period_ms / 1000))

    async def _check_every(self, period_s: float) -> None:
        while True:
            await asyncio.sleep(period_s)
            for reload in list(self._reloads):
                try:
                    await reload.check()
                except Exception as error:  # the others are still checked, and this one the next time
                    self._limited_log.write(
                        f"warning: the files of an acceptor cannot be looked at: {error!r}",
                        code=TLS,
                        acceptor=reload.name,
                    )

    def warnings(self) -> list[str]:
        """What an operator must fix, of certificates: for ``/health``."""
        found = []
        now_s = time.time()
        for acceptor in self.opened:
            left_s = acceptor.loaded.expires_s - now_s
            if left_s <= 0:
                found.append(f"acceptor {acceptor.name}: the certificate has expired: {acceptor.loaded.shown_expiry}")
            elif left_s < WARN_BEFORE_S:
                found.append(f"acceptor {acceptor.name}: the certificate expires {acceptor.loaded.shown_expiry}")
            if acceptor.reload_failure is not None:
                found.append(f"acceptor {acceptor.name}: a changed file is not used: {acceptor.reload_failure}")
        return found

    @property
    def handshakes_under_way(self) -> int:
        """How many connections have not completed their handshake."""
        return 0 if self._handshakes is None else len(self._handshakes)

    def end_oldest_handshake(self) -> bool:
        """Close one of those under way; False if there is none."""
        reason = "file descriptors are short, and others need this one"
        return self._handshakes is not None and self._handshakes.end_oldest(reason)

    def stop(self) -> None:
        """Close connections whose handshake is under way, and read no more files."""
        if self._watching is not None:
            self._watching.cancel()
        if self._handshakes is not None:
            self._handshakes.stop()


def _handshake_s(acceptor: AcceptorConfig) -> float:
    """How long a handshake may take; 0: no limit."""
    if acceptor.text_param("sslHandshakeTimeout") is not None:
        return float(acceptor.int_param("sslHandshakeTimeout"))
    return acceptor.int_param("handshakeTimeout") / 1000 or HANDSHAKE_S


# ---- sslAutoReload ---------------------------------------------------------------------------------------------------
#
# New connections get what the files of an acceptor hold now, and a broken file changes nothing.


@final
class _Reload:
    """Watches the files of one acceptor. It waits for the disk without stopping the event loop."""

    def __init__(self, files: TlsFiles, acceptor: TlsAcceptor, limited_log: RateLimitedLog) -> None:
        self._files = files
        self._acceptor = acceptor
        self._limited_log = limited_log
        self._stamps = _stamps(files.paths)

    @property
    def name(self) -> str:
        """The name of the acceptor."""
        return self._acceptor.name

    async def check(self) -> None:
        """Load the files and use what they hold, if they have changed."""
        from artemis_py.server.tls.context import TlsError

        stamps = await asyncio.to_thread(_stamps, self._files.paths)
        if stamps == self._stamps:
            return
        paths = self._files.paths
        try:
            loaded = await asyncio.to_thread(self._files.load)
            now_s = time.time()
            complaint = loaded.complaint(now_s)
            # A certificate that nobody would accept is no progress over one that is.
            if complaint is not None and self._acceptor.loaded.complaint(now_s) is None:
                raise TlsError(self._files.acceptor, complaint)
            self._use(loaded)
        except TlsError as error:
            self._keep(error.reason)
        # What changes while the files are read is found by the next check.
        self._stamps = stamps if self._files.paths == paths else await asyncio.to_thread(_stamps, self._files.paths)

    def _use(self, loaded: Loaded) -> None:
        acceptor = self._acceptor
        acceptor.reload_failure = None
        acceptor.reloads += 1
        acceptor.loaded = loaded
        line = f"new connections get the certificate {loaded.shown}"
        self._limited_log.write(line, code=TLS, acceptor=acceptor.name)

    def _keep(self, reason: str) -> None:
        acceptor = self._acceptor
        acceptor.reload_failure = reason
        self._limited_log.write(
            "warning: a changed file is not used, and new connections still get the certificate loaded before: "
            f"{reason}",
            code=TLS,
            acceptor=acceptor.name,
        )


def _stamps(paths: Sequence[Path]) -> list[object]:
    """The stamps of the files, which change with them."""
    found: list[object] = []
    for path in paths:
        try:
            stat = path.stat()
            found.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
        except OSError as error:
            found.append(error.errno)
    return found
