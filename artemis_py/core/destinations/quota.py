"""Limits on how many addresses and queues clients may create, together and by login, and on the connections of a login.

Addresses and queues that a restart finds count. The broker's own needs are not limited, because messages would be lost:
queues for dead and expired messages (at most one each for an address), and the targets of diverts that broker.xml
names.
"""

from __future__ import annotations

from typing import Final, NoReturn, final

from artemis_py.config.settings import BrokerConfig, UserLimits
from artemis_py.core.events import LIMITED, Events
from artemis_py.errors import LimitError

ANYBODY: Final = "*"
"""Stands for every login without limits of its own. Clients without a login count as one login."""
_UNLIMITED: Final = UserLimits()


@final
class Quota:
    """Counts addresses, queues and connections, and refuses more than the limits allow; -1: no limit. ``by`` is a
    login, empty for a client that gave none, and None for the broker itself.
    """

    __slots__ = ("_connections", "_events", "_limits", "_owners", "_queues", "addresses_max", "queues_max")

    def __init__(self, config: BrokerConfig, events: Events) -> None:
        self.addresses_max = -1 if config.max_addresses is None else config.max_addresses
        self.queues_max = -1 if config.max_queues is None else config.max_queues
        self._limits = config.user_limits
        self._events = events
        self._owners: dict[int, str] = {}
        self._queues: dict[str, int] = {}
        self._connections: dict[str, int] = {}

    def check_address(self, name: str, count: int, by: str | None) -> None:
        """Check whether a client may create an address, when ``count`` exist. Raises LimitError when it may not."""
        if by is not None and 0 <= self.addresses_max <= count:
            self._refuse(
                f"Address {name[:200]} was not created: there are {count} addresses, the limit of max-addresses; let "
                "unused ones be deleted (auto-delete-addresses) or raise max-addresses in broker.xml",
                name,
                "max-addresses",
                by,
            )

    def check_queue(self, name: str, count: int, by: str | None) -> None:
        """Check whether a client may create a queue, when ``count`` exist. Raises LimitError when it may not."""
        if by is None:
            return
        if 0 <= self.queues_max <= count:
            self._refuse(
                f"Queue {name[:200]} was not created: there are {count} queues, the limit of max-queues; "
                "unsubscribe, let unused ones be deleted (auto-delete-queues) or raise max-queues in broker.xml",
                name,
                "max-queues",
                by,
            )
        if not self._limits:
            return
        queues_max = self._limits_of(by).queues_max
        if 0 <= queues_max <= self._queues.get(by, 0):
            self._refuse(
                f"Queue {name[:200]} was not created: {_in_words(by)} {queues_max} queues, the limit of max-queues "
                "in resource-limit-settings; unsubscribe or raise it in broker.xml",
                name,
                "max-queues of the user",
                by,
            )

    def owner_of(self, queue_id: int) -> str | None:
        """The login that created the queue; None when that is not counted."""
        return self._owners.get(queue_id)

    def queue_created(self, queue_id: int, by: str | None) -> None:
        """Count a queue that was created, or that a restart found."""
        if by or (by is not None and ANYBODY in self._limits):
            self._owners[queue_id] = by
            self._queues[by] = self._queues.get(by, 0) + 1

    def queue_deleted(self, queue_id: int) -> None:
        """A queue was deleted."""
        by = self._owners.pop(queue_id, None)
        if by is not None:
            _count_down(self._queues, by)

    def connected(self, by: str) -> None:
        """Count a connection that was accepted. Raises LimitError when its login has as many as it may."""
        if self._limits:
            connections_max = self._limits_of(by).connections_max
            if 0 <= connections_max <= self._connections.get(by, 0):
                self._refuse(
                    f"Connection refused: {_in_words(by)} {connections_max} connections, the limit of "
                    "max-connections in resource-limit-settings; close one or raise it in broker.xml",
                    by,
                    "max-connections of the user",
                    by,
                )
        self._connections[by] = self._connections.get(by, 0) + 1

    def disconnected(self, by: str) -> None:
        """A counted connection has ended."""
        _count_down(self._connections, by)

    def _limits_of(self, by: str) -> UserLimits:
        limits = self._limits.get(by)
        return self._limits.get(ANYBODY, _UNLIMITED) if limits is None else limits

    def _refuse(self, text: str, name: str, limit: str, by: str) -> NoReturn:
        self._events.note(LIMITED, name[:200], {"limit": limit, "login": by[:200]})
        raise LimitError(text)


def _in_words(by: str) -> str:
    return f"user {by[:200]} has" if by else "clients without a login have"


def _count_down(counts: dict[str, int], by: str) -> None:
    counts[by] -= 1
    if not counts[by]:
        del counts[by]
