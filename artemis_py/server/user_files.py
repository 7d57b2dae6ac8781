"""Watches the files that name users. When a login no longer holds, answers and subscriptions that go on for long
end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Set
from pathlib import Path
from typing import Final, final

from artemis_py.security.identity import Authenticator
from artemis_py.security.users.reloaded import files_of, logins_of
from artemis_py.server.configuration.file_watch import FileWatch
from artemis_py.server.configuration.reading import Stamps, stamps_of
from artemis_py.server.security import Security

_PERIOD_S: Final = 5.0
"""How often to look where the system has no events, and when to look again after a failure."""
_PATIENCE_S: Final = 10.0
_Logins = Mapping[str, frozenset[object]]
"""What lets each user in and gives roles, by what is in force."""


@final
class UserFilesWatch:
    """For the event loop's thread. ``file`` is that of the configuration; ``logins_changed`` gets the users whose
    logins have changed; ``say`` writes a line of the log; ``patience_s`` is how long a start waits for files that hang.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        file: Path,
        security: Security,
        logins_changed: Callable[[Set[str]], object],
        say: Callable[[str], None],
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self._loop = loop
        self._file = file
        self._security = security
        self._logins_changed = logins_changed
        self._say = say
        self._patience_s = patience_s
        self._watch: FileWatch | None = None
        self._is_watching = False
        self._logins: _Logins = {}
        self._check: asyncio.Task[None] | None = None
        self._is_due = False

    async def begin(self) -> None:
        """Read the files and watch them from now on. Returns before anybody logs in: who is changed later is found by
        what they said then.
        """
        realms = self._security.logins.authenticator
        reading = self._loop.run_in_executor(None, _read, self._file, realms)
        if not (await asyncio.wait([reading], timeout=self._patience_s))[0]:
            files = ", ".join(_paths_of(realms))
            self._say(
                f"warning: files of users were not read within {self._patience_s:g} s: {files}; the broker starts "
                "without them, and reads them as soon as their file system answers"
            )
        self._logins = _logins_in_force(realms)
        self._watch = FileWatch(self._loop, self._file, _PERIOD_S, self.check_soon)
        self.check_soon()

    def check_soon(self) -> None:
        """The files may have changed, or others count now."""
        if self._watch is None:
            return
        self._is_due = True
        if self._check is None:
            self._check = self._loop.create_task(self._check_while_due(self._watch))

    def end(self) -> None:
        """Watch no longer."""
        if self._watch is not None:
            self._watch.end()
        if self._check is not None:
            self._check.cancel()

    async def _check_while_due(self, watch: FileWatch) -> None:
        try:
            while self._is_due:
                self._is_due = False
                await self._check_files(watch)
        except Exception as error:
            self._loop.call_exception_handler({"message": "files of users could not be watched", "exception": error})
            self._loop.call_later(_PERIOD_S, self.check_soon)
        finally:
            self._check = None

    async def _check_files(self, watch: FileWatch) -> None:
        realms = self._security.logins.authenticator
        stamps, logins = await self._loop.run_in_executor(None, _read, self._file, realms)
        if self._is_watching:
            watch.note(_paths_of(realms), stamps)
        else:
            await watch.begin(_paths_of(realms), stamps)
            self._is_watching = True
        self._compare(logins)

    def _compare(self, logins: _Logins) -> None:
        before, self._logins = self._logins, logins
        if before == logins:
            return
        self._security.logins.forget()
        changed = {user for user, known in before.items() if not known <= logins.get(user, frozenset())}
        if changed:
            self._logins_changed(changed)


def _paths_of(realms: Authenticator) -> list[str]:
    return list(dict.fromkeys(str(file.path) for file in files_of(realms)))


def _read(file: Path, realms: Authenticator) -> tuple[Stamps, _Logins]:
    """In another thread, because the files may be on a slow disk. The stamps are those from before they were read."""
    stamps = stamps_of(file, _paths_of(realms))
    for each in files_of(realms):
        each.check()
    return stamps, _logins_in_force(realms)


def _logins_in_force(realms: Authenticator) -> _Logins:
    found: dict[str, set[object]] = {}
    for user, known in logins_of(realms):
        found.setdefault(user, set()).add(known)
    return {user: frozenset(known) for user, known in found.items()}
