"""The users of a running broker, as operators reach them. Files are read and written in another thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeVar, final

from artemis_py.config.settings import BrokerConfig
from artemis_py.errors import ArtemisError, BrokerError, NotFoundError
from artemis_py.management.lists.field import Row
from artemis_py.management.steps import Step
from artemis_py.security.known_users import KnownUser, files_of_realm, known_users
from artemis_py.security.user_files import changeable_files
from artemis_py.security.users.accounts import Accounts, NoUserError, check_name
from artemis_py.security.users.passwords import hashed
from artemis_py.server.configuration.reading import Stamps, stamps_of
from artemis_py.server.gate import SecurityGate

Value = TypeVar("Value")
_SETTLED_NS: Final = 1_000_000_000
"""A file that changed less than this before it was read may get its next change with the same date."""


class _Read(NamedTuple):
    """Users, the users file that operations change (empty: none), and of which configuration and files they are."""

    users: Sequence[KnownUser]
    changeable: str
    config: BrokerConfig
    stamps: Stamps
    is_settled: bool


def _read_again(config: BrokerConfig, before: _Read | None) -> _Read:
    """In another thread. Raises ArtemisError."""
    stamps = stamps_of(Path(config.file), files_of_realm(config))
    if before is not None and before.is_settled and (before.config is config, before.stamps) == (True, stamps):
        return before
    changeable = changeable_files(config)
    now_ns = time.time_ns()
    is_settled = all(now_ns - stamp[0] > _SETTLED_NS for _, stamp in stamps if isinstance(stamp, tuple))
    place = "" if changeable is None else str(changeable.files.users)
    return _Read(known_users(config), place, config, stamps, is_settled)


@final
class OperatedUsers:
    """The ``Users`` of the operations. ``config`` returns the configuration that is in force; without a ``gate`` nobody
    logs in.
    """

    __slots__ = ("_changeable", "_config", "_gate", "_loop", "_read")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, config: Callable[[], BrokerConfig], gate: SecurityGate | None
    ) -> None:
        self._loop = loop
        self._config = config
        self._gate = gate
        self._changeable = ""
        self._read: _Read | None = None
        """What was read last: consoles ask once a second, and files seldom change."""

    # ---- what there is ---------------------------------------------------------------------------

    def known(self) -> Generator[Step, None, Sequence[KnownUser]]:
        """All that files name. Raises BrokerError."""
        config, before = self._config(), self._read
        read = self._read = yield from self._in_thread(lambda: _read_again(config, before))
        self._changeable = read.changeable
        return read.users

    def is_changeable(self, user: KnownUser) -> bool:
        """Is it in the files that operations change, as they were named when ``known`` was last asked?"""
        return user.origin.file == self._changeable

    def last_login_ms(self, name: str) -> int:
        """When the user was last let in, in epoch ms; 0: not since the start."""
        return 0 if self._gate is None else self._gate.desk.latest.of(name)

    # ---- changes ---------------------------------------------------------------------------------

    def add(self, name: str, password: str, roles: Sequence[str], *, is_plain: bool) -> Generator[Step, None, Row]:
        """Adds a user. Returns where, and whether it counts without a restart. Raises BrokerError."""

        def work(accounts: Accounts) -> None:
            check_name("user", name)
            accounts.add(name, _stored(password, is_plain), roles)

        return (yield from self._change(work))

    def reset(
        self, name: str, password: str | None, roles: Sequence[str] | None, *, is_plain: bool
    ) -> Generator[Step, None, Row]:
        """Changes the password or all roles of a user; None changes nothing. Raises BrokerError."""
        return (
            yield from self._change(
                lambda accounts: accounts.reset(name, None if password is None else _stored(password, is_plain), roles)
            )
        )

    def remove(self, name: str) -> Generator[Step, None, Row]:
        """Removes a user. Raises BrokerError."""
        return (yield from self._change(lambda accounts: accounts.remove(name)))

    def _change(self, work: Callable[[Accounts], None]) -> Generator[Step, None, Row]:
        config = self._config()

        def change() -> Row:
            changeable = changeable_files(config)
            if changeable is None:
                raise BrokerError(
                    "this broker has no users file: its users come from elsewhere; users-file in broker.xml names one"
                )
            work(Accounts(changeable.files))
            return {"file": str(changeable.files.users), "needsRestart": not changeable.reloads}

        done = yield from self._in_thread(change)
        if self._gate is not None:
            desk = self._gate.desk
            desk.forget()
            if desk.on_change is not None:
                desk.on_change()
        return done

    def _in_thread(self, work: Callable[[], Value]) -> Generator[Step, None, Value]:
        future = self._loop.run_in_executor(None, work)
        yield future
        try:
            return future.result()
        except BrokerError:
            raise
        except NoUserError as error:
            raise NotFoundError(str(error)) from None
        except ArtemisError as error:
            raise BrokerError(str(error)) from None


def _stored(password: str, is_plain: bool) -> str:
    return password if is_plain else str(hashed(password))
