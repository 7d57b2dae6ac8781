"""How much memory the process may use, what each connection holds of it, and who is closed at the limit."""

from __future__ import annotations

import logging
import os
from heapq import nlargest
from pathlib import Path
from typing import Final, final

from artemis_py.core.clock import Clock
from artemis_py.core.memory import CONNECTION_BYTES, CONNECTIONS, INPUT, OUTPUT, SETTING, TRANSACTIONS, Holdings
from artemis_py.server.failures import Fail
from artemis_py.server.turn_client import NOTHING, Client, Weight

# ---- memory ----------------------------------------------------------------------------------------------------------
#
# How much memory this process may use; half of it is the default of ``global-max-size`` (Artemis: of the heap), three
# quarters that of ``global-max-held-size``.


_CGROUP_FILES: Final = ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes")
_DESTINATION_BYTES: Final = 4096
"""Approximate size of an address or a queue without messages; docs/reliability.md has the figures."""
_UNKNOWN: Final = 1 << 30


def usable_bytes(root: Path = Path("/")) -> int:
    """The memory of the machine or the container's limit, whichever is less; 1 GiB if neither is known."""
    try:
        limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    except (ValueError, OSError):
        limits = []
    for name in _CGROUP_FILES:
        try:
            text = (root / name).read_text("ascii").strip()
        except OSError:
            continue
        if text.isdigit() and int(text) > 0:
            limits.append(int(text))
    return min(limits, default=_UNKNOWN)


def destinations_max(configured: int | None) -> int:
    """``max-addresses`` or ``max-queues``; None means the default: as many as fit into a quarter of the memory."""
    return usable_bytes() // 4 // _DESTINATION_BYTES if configured is None else configured


def global_max_bytes(configured: int) -> int:
    """``global-max-size``; -1 means its default."""
    return configured if configured > 0 else usable_bytes() // 2


def held_max_bytes(configured: int, messages_max_bytes: int) -> int:
    """``global-max-held-size``; -1 means its default. If ``messages_max_bytes`` (``global-max-size``) is above its own
    default, that leaves a quarter of the memory for everything but messages.
    """
    if configured > 0:
        return configured
    usable = usable_bytes()
    return max(usable - usable // 4, messages_max_bytes + usable // 4)


# ---- memory guard ----------------------------------------------------------------------------------------------------
#
# Measures what the broker holds in memory for each connection, and closes connections when it is too much.


log = logging.getLogger(__name__)

_CHECKED_MAX: Final = 64
_CHECK_EVERY_MS: Final = 10
"""How often some connections are weighed again: their clients may have read since."""
CUT_OFF_BYTES_MIN: Final = 16384
"""A connection with less is not closed: it would not help."""
_CLOSED_MAX: Final = 256
"""Maximum number of connections closed in one turn."""
_SHARE: Final = 16
"""At the limit, connections are closed only if they hold at least one part in this many of it; else they are not the
cause.
"""
_TELL_EVERY_MS: Final = 10_000


@final
class MemoryGuard:
    """Accounts for the memory of connections, and closes some at the limit (``global-max-held-size``).

    At the limit ``Holdings`` refuses new requests. That is enough unless connections pile up unfinished or unread
    frames: then those that hold most are closed, which loses nothing confirmed.
    """

    def __init__(self, holdings: Holdings, clock: Clock) -> None:
        self.holdings = holdings
        self._clock = clock
        self.holders: dict[Client, None] = {}
        """Connections that hold anything, the least recently weighed first."""
        self._checked_ms = 0
        self._told_ms = -_TELL_EVERY_MS
        """The steady time of the last line, in milliseconds."""
        self._untold_count = 0

    def connected(self) -> None:
        """A connection was accepted."""
        self.holdings.move(CONNECTIONS, CONNECTION_BYTES)

    def disconnected(self, connection: Client) -> None:
        """An accepted connection is gone."""
        self.holdings.move(CONNECTIONS, -CONNECTION_BYTES)
        self.weighed(connection, connection.weight, NOTHING)

    def weighed(self, connection: Client, before: Weight, after: Weight) -> None:
        """What a connection holds has changed."""
        move = self.holdings.move
        move(INPUT, after.input_bytes - before.input_bytes)
        move(OUTPUT, after.output_bytes - before.output_bytes)
        move(TRANSACTIONS, after.transaction_bytes - before.transaction_bytes)
        self.holders.pop(connection, None)
        if after != NOTHING:
            self.holders[connection] = None

    def check(self, now_ms: int, fail: Fail) -> None:
        """Once a turn: weigh some connections again from time to time, and close the largest if the broker holds too
        much. ``fail`` ends a connection for which that fails.
        """
        holders = self.holders
        if not holders:
            return
        if abs(now_ms - self._checked_ms) >= _CHECK_EVERY_MS:  # also after the clock was set
            self._checked_ms = now_ms
            self._weigh([connection for connection, _ in zip(holders, range(_CHECKED_MAX), strict=False)], fail)
        if self.holdings.is_full:
            self._close_largest(now_ms, fail)

    def _weigh(self, connections: list[Client], fail: Fail) -> None:
        for connection in connections:
            try:
                connection.weigh()
            except Exception as error:
                fail(connection, "weigh", error)

    def _close_largest(self, now_ms: int, fail: Fail) -> None:
        holdings = self.holdings
        if not self._are_the_cause():  # they hold no more than when they were weighed
            return
        self._weigh(list(self.holders), fail)
        if not self._are_the_cause():
            return
        for connection in nlargest(_CLOSED_MAX, self.holders, key=_unread_bytes):
            if not holdings.is_full or _unread_bytes(connection) < CUT_OFF_BYTES_MIN:
                return
            try:
                self._disconnect(connection, now_ms)
            except Exception as error:
                fail(connection, "weigh", error)

    def _are_the_cause(self) -> bool:
        """Do connections hold enough that closing some helps?"""
        holdings = self.holdings
        return _SHARE * (holdings.of(INPUT) + holdings.of(OUTPUT)) >= holdings.bytes_max

    def _disconnect(self, connection: Client, now_ms: int) -> None:
        holdings = self.holdings
        held_bytes = _unread_bytes(connection)
        reason = (
            f"Connection closed: {held_bytes} bytes wait on it unfinished or unread, and the broker holds "
            f"{holdings.total_bytes} bytes for clients ({SETTING} allows {holdings.bytes_max})"
        )
        holdings.cut_off_count += 1
        self._tell(connection, held_bytes, now_ms)
        connection.disconnect(reason, now_ms)

    def _tell(self, connection: Client, held_bytes: int, now_ms: int) -> None:
        """Write a line only now and then: thousands may be closed at once."""
        steady_ms = self._clock.steady_ms(now_ms)
        if steady_ms - self._told_ms < _TELL_EVERY_MS:
            self._untold_count += 1
            return
        client = connection.session.state
        log.warning(
            "warning: memory held for clients reached %s (%d bytes): closed connection %s of %s, which held %d "
            "bytes unfinished or unread; %d more closed since the last such line",
            SETTING, self.holdings.bytes_max, client.name, client.address or "an unknown client", held_bytes,
            self._untold_count,
        )  # fmt: skip
        self._told_ms = steady_ms
        self._untold_count = 0

    def largest(self, count: int) -> list[Client]:
        """The connections that held most when they were last weighed."""
        return nlargest(count, self.holders, key=lambda connection: sum(connection.weight))


def _unread_bytes(connection: Client) -> int:
    weight = connection.weight
    return weight.input_bytes + weight.output_bytes
