"""The users of a running broker, as operators reach them. Files are read in another thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from typing import final

from artemis_py.config.settings import BrokerConfig
from artemis_py.errors import ArtemisError, BrokerError
from artemis_py.management.steps import Step
from artemis_py.security.known_users import KnownUser, known_users
from artemis_py.security.user_files import user_files_to_change


@final
class OperatedUsers:
    """The ``Users`` of the operations. ``config`` returns the configuration that is in force; ``latest_ms`` says when
    somebody was let in last.
    """

    __slots__ = ("_changeable", "_config", "_latest_ms", "_loop")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, config: Callable[[], BrokerConfig], latest_ms: Callable[[str], int]
    ) -> None:
        self._loop = loop
        self._config = config
        self._latest_ms = latest_ms
        self._changeable = ""

    def known(self) -> Generator[Step, None, Sequence[KnownUser]]:
        """All that files name. Raises BrokerError."""
        config = self._config()
        reading = self._loop.run_in_executor(None, lambda: (known_users(config), user_files_to_change(config)))
        yield reading
        try:
            found, files = reading.result()
        except ArtemisError as error:
            raise BrokerError(f"the users cannot be read: {error}") from None
        self._changeable = str(files.users)
        return found

    def is_changeable(self, user: KnownUser) -> bool:
        """Is it in the files that operations change, as they were named when ``known`` was last asked?"""
        return user.origin.file == self._changeable

    def last_login_ms(self, name: str) -> int:
        """When the user was last let in, in epoch ms; 0: not since the start."""
        return self._latest_ms(name)
