"""``sslAutoReload``: new connections get what the files of an acceptor hold now, and a broken file changes nothing."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import final

import aiofiles.os

from artemis_py.log_codes import TLS
from artemis_py.server.failures import RateLimitedLog
from artemis_py.server.tls.connection import TlsAcceptor
from artemis_py.server.tls.context import Loaded, TlsError, TlsFiles


@final
class Reload:
    """Watches the files of one acceptor. It waits for the disk without stopping the event loop."""

    def __init__(self, files: TlsFiles, acceptor: TlsAcceptor, limited_log: RateLimitedLog) -> None:
        self._files = files
        self._acceptor = acceptor
        self._limited_log = limited_log
        self._stamps = [_stamp_now(path) for path in files.paths]

    @property
    def name(self) -> str:
        """The name of the acceptor."""
        return self._acceptor.name

    async def check(self) -> None:
        """Load the files and use what they hold, if they have changed."""
        stamps = await _stamps(self._files.paths)
        if stamps == self._stamps:
            return
        paths = self._files.paths
        try:
            self._use(self._checked(await asyncio.to_thread(self._files.load)))
        except TlsError as error:
            self._keep(error)
        # What changes while the files are read is found by the next check.
        self._stamps = stamps if self._files.paths == paths else await _stamps(self._files.paths)

    def _checked(self, loaded: Loaded) -> Loaded:
        """A certificate that nobody would accept is no progress over one that is."""
        now_s = time.time()
        complaint = loaded.complaint(now_s)
        if complaint is not None and self._acceptor.loaded.complaint(now_s) is None:
            raise TlsError(self._files.acceptor, complaint)
        return loaded

    def _use(self, loaded: Loaded) -> None:
        acceptor = self._acceptor
        acceptor.reload_failure = None
        acceptor.reloads += 1
        acceptor.loaded = loaded
        line = f"new connections get the certificate {loaded.shown}"
        self._limited_log.write(line, code=TLS, acceptor=acceptor.name)

    def _keep(self, error: TlsError) -> None:
        acceptor = self._acceptor
        acceptor.reload_failure = error.reason
        self._limited_log.write(
            "warning: a changed file is not used, and new connections still get the certificate loaded before: "
            f"{error.reason}",
            code=TLS,
            acceptor=acceptor.name,
        )


async def _stamps(paths: Iterable[Path]) -> list[object]:
    """The stamps of the files, which change with them."""
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
