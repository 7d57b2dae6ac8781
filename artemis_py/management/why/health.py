"""What questions ask of the server, which is on a higher floor, so they cannot import it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from artemis_py.core.addresses.address import Address
from artemis_py.core.queue.queue import Queue
from artemis_py.histogram import Histogram
from artemis_py.management.lists.connections import Connected

Awaited = Address | Queue | str
"""What a client waits for: room on an address or queue, or a word of the table of causes."""


class Health(Protocol):
    """The server as it is now. Numbers count since the start."""

    @property
    def turns(self) -> int:
        """How many turns there were."""

    @property
    def turn_ns_max(self) -> int:
        """The longest turn."""

    @property
    def turn_bounds_s(self) -> Sequence[float]:
        """The upper bounds of ``turn_buckets``."""

    @property
    def turn_buckets(self) -> Sequence[int]:
        """Turns by duration: one count for each bound, and one for longer turns."""

    @property
    def sync_times(self) -> Histogram | None:
        """How long it took to make each batch durable, in ns; None if nothing is stored."""

    @property
    def durable_lsn(self) -> int:
        """Everything up to this record survives a crash."""

    @property
    def is_busy(self) -> bool:
        """Do turns take most of the time, so that work which can wait does so?"""

    def headroom_bytes(self) -> int | None:
        """How much may be written until a disk counts as full; None if nothing is stored."""

    def blocked_ns(self) -> int:
        """How long senders have waited for room, all together."""

    def client_of(self, owner: object) -> Connected | None:
        """The client that owns a consumer; None if it is gone."""

    def awaited(self) -> Iterable[tuple[Awaited, int]]:
        """What clients wait for, and how many for each."""

    def awaited_by(self, number: int) -> Awaited | None:
        """What the client with this connection waits for; None: for nothing."""
