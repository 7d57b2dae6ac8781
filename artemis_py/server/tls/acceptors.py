"""TLS of acceptors, and the reload of their files (``sslAutoReload``)."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final, final

import aiofiles.os

from artemis_py.config.settings import AcceptorConfig, BrokerConfig
from artemis_py.core.memory import Holdings
from artemis_py.log_codes import TLS
from artemis_py.server.failures import Complaints
from artemis_py.server.tls.context import Loaded, TlsError, TlsFiles, shown_date
from artemis_py.server.tls.handshakes import Handshakes
from artemis_py.server.tls.link import TlsLink
from artemis_py.server.tls.site import HANDSHAKE_S, TlsSite
from artemis_py.shown import warn

# ---- reload ----------------------------------------------------------------------------------------------------------
#
# ``sslAutoReload``: new connections get what the files hold now, and a broken file changes nothing.


@final
class Reload:
    """Watches the files of one acceptor. It waits for the disk without stopping the event loop."""

    def __init__(self, files: TlsFiles, site: TlsSite, complaints: Complaints) -> None:
        self._files = files
        self._site = site
        self._complaints = complaints
        self._stamps = [_stamp_now(path) for path in files.paths]

    @property
    def name(self) -> str:
        """The name of the acceptor."""
        return self._site.name

    async def look(self) -> None:
        """Load the files and use what they hold, if they have changed."""
        stamps = await _stamps(self._files.paths)
        if stamps == self._stamps:
            return
        paths = self._files.paths
        try:
            self._use(self._checked(await asyncio.to_thread(self._files.load)))
        except TlsError as error:
            self._keep(error)
        # What changes while the files are read is found by the next look.
        self._stamps = stamps if self._files.paths == paths else await _stamps(self._files.paths)

    def _checked(self, loaded: Loaded) -> Loaded:
        """A certificate that nobody would accept is no progress over one that is."""
        now_s = time.time()
        complaint = loaded.complaint(now_s)
        if complaint is not None and self._site.loaded.complaint(now_s) is None:
            raise TlsError(self._files.acceptor, complaint)
        return loaded

    def _use(self, loaded: Loaded) -> None:
        site = self._site
        site.reload_failure = None
        site.reloads += 1
        site.loaded = loaded
        line = f"new connections get the certificate {loaded.shown}"
        self._complaints.tell(line, code=TLS, acceptor=site.name)

    def _keep(self, error: TlsError) -> None:
        site = self._site
        site.reload_failure = error.reason
        self._complaints.tell(
            "warning: a changed file is not used, and new connections still get the certificate loaded before: "
            f"{error.reason}",
            code=TLS,
            acceptor=site.name,
        )


async def _stamps(paths: Iterable[Path]) -> list[object]:
    """What tells whether files have changed since."""
    found: list[object] = []
    for path in paths:
        try:
            found.append(_stamp(await aiofiles.os.stat(path)))
        except OSError as error:
            found.append(error.errno)
    return found


def _stamp_now(path: Path) -> object:
    try:
        return _stamp(path.stat())
    except OSError as error:
        return error.errno


def _stamp(found: os.stat_result) -> object:
    return found.st_mtime_ns, found.st_size, found.st_ino


# ---- acceptors -------------------------------------------------------------------------------------------------------
#
# TLS of a broker: the sites of its acceptors, their handshakes, and what becomes of their files.


WARN_BEFORE_S: Final = 14 * 86_400
"""How long before its end a certificate shows in ``/health``."""


@final
class TlsAcceptors:
    """For the event loop's thread; files are read in other threads, except at the start."""

    def __init__(
        self, config: BrokerConfig, loop: asyncio.AbstractEventLoop, complaints: Complaints, holdings: Holdings
    ) -> None:
        self.sites: list[TlsSite] = []
        self._config = config
        self._loop = loop
        self._complaints = complaints
        self._holdings = holdings
        self._handshakes = Handshakes(loop)
        self._loaded: dict[str, tuple[TlsFiles, Loaded]] = {}
        self._reloads: list[Reload] = []
        self._watching: asyncio.Task[None] | None = None

    def load(self, acceptor: AcceptorConfig) -> None:
        """Read an acceptor's files before its port is opened. Raises TlsError."""
        files = TlsFiles(self._config, acceptor)
        loaded = files.load()
        complaint = loaded.complaint(time.time())
        if complaint is not None:
            origin = acceptor.origin
            warn(f"warning: {complaint}", TLS, acceptor=acceptor.name, file=origin.file, line=str(origin.line))
        self._loaded[acceptor.name] = files, loaded

    def serve(
        self, acceptor: AcceptorConfig, connect: Callable[[], asyncio.BaseProtocol]
    ) -> Callable[[], asyncio.BaseProtocol]:
        """Return what makes the protocols of sockets. ``connect`` makes those of clients after the handshake."""
        files, loaded = self._loaded.pop(acceptor.name)
        limit_s = _handshake_s(acceptor)
        site = TlsSite(
            acceptor.name, self._loop, loaded, connect, self._handshakes, limit_s, self._complaints, self._holdings
        )
        self.sites.append(site)
        if acceptor.bool_param("sslAutoReload"):
            self._reloads.append(Reload(files, site, self._complaints))
        return partial(TlsLink, site)

    def drop(self, name: str) -> None:
        """An acceptor is closed: its files are looked at no longer. Its handshakes end by themselves."""
        self.sites[:] = [site for site in self.sites if site.name != name]
        self._reloads = [reload for reload in self._reloads if reload.name != name]

    def watch(self) -> None:
        """Look at the files of acceptors with ``sslAutoReload`` from now on."""
        period_ms = self._config.configuration_file_refresh_period
        if self._reloads and period_ms > 0 and self._watching is None:
            self._watching = self._loop.create_task(self._look_every(period_ms / 1000))

    async def _look_every(self, period_s: float) -> None:
        while True:
            await asyncio.sleep(period_s)
            for reload in list(self._reloads):
                try:
                    await reload.look()
                except Exception as error:  # the others are still looked after, and this one the next time
                    self._complaints.tell(
                        f"warning: the files of an acceptor cannot be looked at: {error!r}",
                        code=TLS,
                        acceptor=reload.name,
                    )

    def warnings(self) -> list[str]:
        """What an operator must see to, of certificates: for ``/health``."""
        found = []
        now_s = time.time()
        for site in self.sites:
            left_s = site.loaded.expires_s - now_s
            if left_s <= 0:
                found.append(f"acceptor {site.name}: the certificate has expired: {shown_date(site.loaded.expires_s)}")
            elif left_s < WARN_BEFORE_S:
                found.append(f"acceptor {site.name}: the certificate expires {shown_date(site.loaded.expires_s)}")
            if site.reload_failure is not None:
                found.append(f"acceptor {site.name}: a changed file is not used: {site.reload_failure}")
        return found

    @property
    def handshakes_under_way(self) -> int:
        """How many connections have not completed their handshake."""
        return len(self._handshakes)

    def end_oldest_handshake(self) -> bool:
        """Close one of those under way; False if there is none."""
        return self._handshakes.end_oldest("file descriptors are short, and others need this one")

    def stop(self) -> None:
        """Close connections whose handshake is under way, and read no more files."""
        if self._watching is not None:
            self._watching.cancel()
        self._handshakes.stop()


def _handshake_s(acceptor: AcceptorConfig) -> float:
    """How long a handshake may take; 0: no limit."""
    if acceptor.text_param("sslHandshakeTimeout") is not None:
        return float(acceptor.int_param("sslHandshakeTimeout"))
    return acceptor.int_param("handshakeTimeout") / 1000 or HANDSHAKE_S
