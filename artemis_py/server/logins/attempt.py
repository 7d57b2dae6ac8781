"""A verification that somebody waits for, and the line in which it waits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple, final

from artemis_py.security.identity import Credentials
from artemis_py.security.login import Login


class Waiter(NamedTuple):
    """A client that waits for an attempt; ``peer`` is its address, ``network`` the one it counts for."""

    login: Login
    wake: Callable[[], None]
    peer: str
    network: str
    is_question: bool = False
    """Has it only asked whether it must log in?"""


@final
class Attempt:
    """Credentials to be verified once for all who gave the same."""

    __slots__ = ("credentials", "digest", "network", "waiters")

    def __init__(self, credentials: Credentials, digest: bytes, waiter: Waiter) -> None:
        self.credentials = credentials
        self.digest = digest
        self.network = waiter.network
        """In whose line it waits."""
        self.waiters = [waiter]

    @property
    def is_wanted(self) -> bool:
        """Does anybody still wait for it?"""
        return any(not waiter.login.is_given_up for waiter in self.waiters)


@final
class Lines:
    """Attempts that wait for a thread. Networks take turns, so many logins of one do not keep others waiting."""

    __slots__ = ("_count", "_lines")

    def __init__(self) -> None:
        self._lines: dict[str, deque[Attempt]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def length_of(self, network: str) -> int:
        """How many attempts of a network wait."""
        line = self._lines.get(network)
        return 0 if line is None else len(line)

    def add(self, attempt: Attempt) -> None:
        """Wait at the end of its network's line."""
        self._lines.setdefault(attempt.network, deque()).append(attempt)
        self._count += 1

    def pop(self) -> Attempt:
        """The next attempt; there must be one."""
        network = next(iter(self._lines))
        line = self._lines.pop(network)
        attempt = line.popleft()
        if line:
            self._lines[network] = line
        self._count -= 1
        return attempt
