"""How the server does, for those who ask why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, final

from artemis_py.histogram import Histogram
from artemis_py.management.lists.connections import Connected
from artemis_py.management.why.vitals import Awaited
from artemis_py.records import Durability
from artemis_py.server.awaited import in_words
from artemis_py.server.connected import ConnectedClient
from artemis_py.server.stats import TURN_BUCKET_BOUNDS_S, ServerStats

if TYPE_CHECKING:
    from artemis_py.server.turns import Turns


@final
class ServerVitals:
    """Reads the counters of a server; ``Vitals`` says what each is."""

    def __init__(
        self,
        stats: ServerStats,
        turns: Turns,
        durability: Durability,
        is_busy: Callable[[], bool],
        headroom_bytes: Callable[[], int | None],
    ) -> None:
        self._stats = stats
        self._turns = turns
        self._durability = durability
        self._is_busy = is_busy
        self.headroom_bytes = headroom_bytes

    @property
    def turns(self) -> int:
        """How many turns there were."""
        return self._stats.turns

    @property
    def turn_ns_max(self) -> int:
        """The longest turn."""
        return self._stats.turn_ns_max

    @property
    def turn_bounds_s(self) -> Sequence[float]:
        """The upper bounds of ``turn_buckets``."""
        return TURN_BUCKET_BOUNDS_S

    @property
    def turn_buckets(self) -> Sequence[int]:
        """Turns by duration."""
        return self._stats.turn_buckets

    @property
    def sync_times(self) -> Histogram | None:
        """How long it took to make each batch durable."""
        return self._stats.sync_times

    @property
    def durable_lsn(self) -> int:
        """Everything up to this record survives a crash."""
        return self._durability.durable_lsn

    @property
    def is_busy(self) -> bool:
        """Do turns take most of the time?"""
        return self._is_busy()

    def blocked_ns(self) -> int:
        """How long senders have waited for room, all together."""
        return self._stats.blocked_ns()

    def client_of(self, owner: object) -> Connected | None:
        """The client that owns a consumer; None if it is gone."""
        return ConnectedClient(owner, self._turns) if owner in self._stats.connections else None

    def awaited(self) -> Iterator[tuple[Awaited, int]]:
        """What clients wait for, and how many for each."""
        blocked = self._stats.blocked
        for thing, count in [] if blocked is None else blocked.counts():
            yield in_words(thing), count

    def awaited_by(self, number: int) -> Awaited | None:
        """What the client with this connection waits for; None: for nothing."""
        blocked = self._stats.blocked
        for client in () if blocked is None else blocked:
            if client.session.state.origin == number:
                thing = client.session.blocked_by
                return None if thing is None else in_words(thing)
        return None
