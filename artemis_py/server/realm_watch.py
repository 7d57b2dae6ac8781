"""Ends what outlives a login that no longer holds, sessions of the console and long answers: the files that name users
are watched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from pathlib import Path
from typing import Final, final

from artemis_py.config.settings import BrokerConfig
from artemis_py.errors import ArtemisError
from artemis_py.security.authenticator import Authenticator
from artemis_py.security.known_users import files_of_realm, known_users
from artemis_py.security.users.reloaded import files_of
from artemis_py.server.configuration.reading import stamp_of
from artemis_py.server.configuration.watch import ConfigurationWatch
from artemis_py.server.gate import SecurityGate

_PERIOD_S: Final = 5.0
"""How often to look where the system has no events."""
_Marks = Mapping[str, frozenset[object]]
"""What the files say of each user. Two that are equal mean the same login."""


@final
class RealmWatch:
    """For the event loop's thread. ``config`` returns the configuration that is in force; ``ended`` hears of the users
    whose logins have changed; ``say`` gets lines for people.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        config: Callable[[], BrokerConfig],
        gate: SecurityGate,
        ended: Callable[[Set[str]], object],
        say: Callable[[str], None],
    ) -> None:
        self._loop = loop
        self._config = config
        self._gate = gate
        self._ended = ended
        self._say = say
        self._watch: ConfigurationWatch | None = None
        self._marks: _Marks | None = None
        self._look: asyncio.Task[None] | None = None
        self._is_due = False
        self._is_read = asyncio.Event()

    async def begin(self) -> None:
        """Watch from now on. Returns when the files were read, before anybody logs in: who is changed later is found
        by what they said then.
        """
        self._watch = ConfigurationWatch(self._loop, Path(self._config().file), _PERIOD_S, self.look_soon)
        self.look_soon()
        await self._is_read.wait()

    def look_soon(self) -> None:
        """The files may have changed, or others count now."""
        if self._watch is None:
            return
        self._is_due = True
        if self._look is None:
            self._look = self._loop.create_task(self._look_while_due(self._watch))
            self._look.add_done_callback(lambda _: self._is_read.set())  # also if that failed: a start must not wait

    def end(self) -> None:
        """Watch no longer."""
        if self._watch is not None:
            self._watch.end()
        if self._look is not None:
            self._look.cancel()

    async def _look_while_due(self, watch: ConfigurationWatch) -> None:
        is_first = not self._is_read.is_set()
        while self._is_due:
            self._is_due = False
            stamps = watch.stamps()
            files: list[str] = []
            marks = self._marks
            with suppress(ArtemisError):  # who was known stays known until the files make sense again
                config, realms = self._config(), self._gate.desk.authenticator
                files, found = await self._loop.run_in_executor(None, _read, config, realms)
                marks = marks if found is None else found
            if is_first:
                self._marks = marks
                self._is_read.set()
                await watch.begin(files, stamps)
                is_first, self._is_due = False, True  # what has changed until they were watched
            else:
                watch.note(files or [name for name, _ in stamps], stamps)
            self._compare(marks)
        self._look = None

    def _compare(self, marks: _Marks | None) -> None:
        before, self._marks = self._marks, marks
        if before is None or marks is None:
            return
        changed = {user for user in {*before, *marks} if before.get(user) != marks.get(user)}
        if not changed:
            return
        self._gate.desk.forget()
        self._ended(changed)
        count = self._gate.sessions.end_of(changed)
        if count:
            self._say(f"sessions of the console that ended because their login has changed: {count}")


def _read(config: BrokerConfig, realms: Authenticator) -> tuple[list[str], _Marks | None]:
    """In another thread. None: a file as it is now is not in force, or has changed meanwhile, of which the watch tells.
    Raises ArtemisError.
    """
    files = files_of_realm(config)
    before = [stamp_of(file) for file in files]
    if [file for file in files_of(realms) if file.look()]:
        return files, None
    found: dict[str, set[object]] = {}
    for user in known_users(config):
        found.setdefault(user.name, set()).add((user.origin.file, user.login, user.roles, user.mark))
    if before != [stamp_of(file) for file in files]:
        return files, None
    return files, {name: frozenset(marks) for name, marks in found.items()}
