"""Ends what outlives a login that no longer holds, sessions of the console and long answers: the files that name users
are watched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Set
from pathlib import Path
from typing import Final, final

from artemis_py.security.authenticator import Authenticator
from artemis_py.security.users.reloaded import files_of, logins_of
from artemis_py.server.configuration.reading import Stamps, stamps_of
from artemis_py.server.configuration.watch import ConfigurationWatch
from artemis_py.server.gate import SecurityGate

_PERIOD_S: Final = 5.0
"""How often to look where the system has no events, and when to look again after a failure."""
_PATIENCE_S: Final = 10.0
_Logins = Mapping[str, frozenset[object]]
"""What lets each user in and gives roles, by what is in force."""


@final
class RealmWatch:
    """For the event loop's thread. ``file`` is that of the configuration; ``ended`` hears of the users whose logins
    have changed; ``say`` gets lines for people; ``patience_s`` is how long a start waits for files that hang.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        file: Path,
        gate: SecurityGate,
        ended: Callable[[Set[str]], object],
        say: Callable[[str], None],
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self._loop = loop
        self._file = file
        self._gate = gate
        self._ended = ended
        self._say = say
        self._patience_s = patience_s
        self._watch: ConfigurationWatch | None = None
        self._is_watching = False
        self._logins: _Logins = {}
        self._look: asyncio.Task[None] | None = None
        self._is_due = False

    async def begin(self) -> None:
        """Read the files and watch them from now on. Returns before anybody logs in: who is changed later is found by
        what they said then.
        """
        realms = self._gate.desk.authenticator
        reading = self._loop.run_in_executor(None, _read, self._file, realms)
        if not (await asyncio.wait([reading], timeout=self._patience_s))[0]:
            files = ", ".join(_paths_of(realms))
            self._say(
                f"warning: files of users were not read within {self._patience_s:g} s: {files}; the broker starts "
                "without them, and reads them as soon as their file system answers"
            )
        self._logins = _logins_in_force(realms)
        self._watch = ConfigurationWatch(self._loop, self._file, _PERIOD_S, self.look_soon)
        self.look_soon()

    def look_soon(self) -> None:
        """The files may have changed, or others count now."""
        if self._watch is None:
            return
        self._is_due = True
        if self._look is None:
            self._look = self._loop.create_task(self._look_while_due(self._watch))

    def end(self) -> None:
        """Watch no longer."""
        if self._watch is not None:
            self._watch.end()
        if self._look is not None:
            self._look.cancel()

    async def _look_while_due(self, watch: ConfigurationWatch) -> None:
        try:
            while self._is_due:
                self._is_due = False
                await self._look_at_files(watch)
        except Exception as error:
            self._loop.call_exception_handler({"message": "files of users could not be watched", "exception": error})
            self._loop.call_later(_PERIOD_S, self.look_soon)
        finally:
            self._look = None

    async def _look_at_files(self, watch: ConfigurationWatch) -> None:
        realms = self._gate.desk.authenticator
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
        self._gate.desk.forget()
        changed = {user for user, known in before.items() if not known <= logins.get(user, frozenset())}
        if not changed:
            return
        self._ended(changed)
        count = self._gate.sessions.end_of(changed)
        if count:
            self._say(f"sessions of the console that ended because their login has changed: {count}")


def _paths_of(realms: Authenticator) -> list[str]:
    return list(dict.fromkeys(str(file.path) for file in files_of(realms)))


def _read(file: Path, realms: Authenticator) -> tuple[Stamps, _Logins]:
    """In another thread, because the files may be on a slow disk. The stamps are those from before they were read."""
    stamps = stamps_of(file, _paths_of(realms))
    for each in files_of(realms):
        each.look()
    return stamps, _logins_in_force(realms)


def _logins_in_force(realms: Authenticator) -> _Logins:
    found: dict[str, set[object]] = {}
    for user, known in logins_of(realms):
        found.setdefault(user, set()).add(known)
    return {user: frozenset(known) for user, known in found.items()}
