"""The server's counters: plain ints that a scrape reads, and the words for what clients wait for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from artemis_py.core.addresses.address import Address
from artemis_py.core.addresses.full_policy import QUEUE_DEPTH, limits_reached
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import Awaited as Thing
from artemis_py.core.tasks import TaskLine
from artemis_py.histogram import Histogram
from artemis_py.management.managed import Awaited
from artemis_py.security.login import LoginCounts
from artemis_py.security.rights import Checks
from artemis_py.server.failures import Faults
from artemis_py.stomp.service import Traffic
from artemis_py.stomp.session.connect import PendingLogin
from artemis_py.stomp.session.state import UnfinishedFrame

if TYPE_CHECKING:
    from artemis_py.metrics.views import ConfigurationView
    from artemis_py.record_log import Durability
    from artemis_py.server.blocked_senders import BlockedSenders
    from artemis_py.server.descriptors import Descriptors
    from artemis_py.server.listener import Listener
    from artemis_py.server.log_cursors import CursorView, LogCursors
    from artemis_py.server.tls.connection import TlsAcceptor
    from artemis_py.server.turn_client import Client
    from artemis_py.storage.bodies import LargeStore
    from artemis_py.storage.disk.space import SpaceReserve


# ---- awaited ---------------------------------------------------------------------------------------------------------
#
# What clients wait for, in the words of docs/why.md.


SPREADING: Final = "spreading"
WORK: Final = "work"
LOGIN: Final = "login"
DISK: Final = "disk-slow"
NOT_BLOCKED: Final = "not-blocked"


def in_words(thing: Thing) -> Awaited:
    """What is awaited: an address or queue as it is, anything else as a word."""
    if isinstance(thing, Address | Queue):
        return thing
    if isinstance(thing, TaskLine):
        return SPREADING
    if isinstance(thing, UnfinishedFrame):
        return WORK
    return LOGIN if isinstance(thing, PendingLogin) else DISK


def word_of(thing: Thing) -> str:
    """The word for why a client waits: of an address, the limit that it has reached."""
    found = in_words(thing)
    if isinstance(found, Address):
        return next(iter(limits_reached(found)), NOT_BLOCKED)
    return QUEUE_DEPTH if isinstance(found, Queue) else found


# ---- stats -----------------------------------------------------------------------------------------------------------
#
# The server's counters: plain ints that a scrape reads.


TURN_BUCKET_BOUNDS_S: Final[tuple[float, ...]] = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0,
)  # fmt: skip
"""Not a tuple of twelve: compiled, one with floats counts as not set before its module is complete."""
_DELAY_BOUNDS_MS: Final = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 60_000, 600_000, 3_600_000)
_BOUNDS_NS: Final = [int(bound * 1e9) for bound in TURN_BUCKET_BOUNDS_S]


class ServerStats:
    """Connections, bytes and turns of one server."""

    def __init__(self, faults: Faults | None = None) -> None:
        self.traffic = Traffic()
        self.clock_steps: dict[str, int] = {"forward": 0, "back": 0}
        """How often the wall clock was set, by direction."""
        self.faults = faults or Faults()
        """Steps of connections that failed."""
        self.permission_checks = Checks()
        self.logins = LoginCounts()
        self.login_file_warnings: Callable[[], list[str]] = list
        """What is wrong with files that say who may log in."""
        self.connections: set[Client] = set()
        self.connections_total = 0
        self.blocked: BlockedSenders | None = None
        """The senders that wait for room."""
        self.delays = Histogram(_DELAY_BOUNDS_MS, 1_000)
        """From the arrival of a message to its delivery, of one message a turn."""
        self.bytes_in = 0
        self.bytes_out = 0
        self.journal: Durability | None = None
        self.large: LargeStore | None = None
        self.cursors: LogCursors | None = None
        self.reserves: tuple[SpaceReserve, ...] = ()
        self.descriptors: Descriptors | None = None
        self.listeners: list[Listener] = []
        self.tls_opened: Sequence[TlsAcceptor] = ()
        self.bridge_counts: Callable[[], Mapping[str, Mapping[str, int]]] = dict
        """The figures of each bridge, by its name."""
        self.configuration: ConfigurationView | None = None
        """What is known of the configuration file."""
        self.turns = 0
        self.turn_ns_sum = 0
        self.turn_ns_max = 0
        self.turn_buckets = [0] * (len(_BOUNDS_NS) + 1)

    @property
    def connections_open(self) -> int:
        """Open STOMP connections."""
        return len(self.connections)

    @property
    def sessions_open(self) -> int:
        """Open sessions: connections with a completed handshake."""
        return self.traffic.sessions_open

    @property
    def sessions_total(self) -> int:
        """Sessions since the start."""
        return self.traffic.sessions_total

    @property
    def frames_in(self) -> dict[str, int]:
        """Frames received, by command."""
        return self.traffic.frames_in

    @property
    def frames_out(self) -> dict[str, int]:
        """Frames sent, by command."""
        return self.traffic.frames_out

    @property
    def connection_faults(self) -> dict[str, int]:
        """Connections closed because one of their steps failed, by step."""
        return self.faults.counts

    def connections_by_state(self) -> dict[str, int]:
        """Connections by state: new (no CONNECT yet), open, blocked (a sender that waits for room), stalled (a client
        that does not read), closing.
        """
        counts = {"new": 0, "open": 0, "blocked": 0, "stalled": 0, "closing": 0}
        for connection in self.connections:
            counts[connection.state] += 1
        return counts

    def blocked_ns(self) -> int:
        """How long senders have waited for room, all together."""
        return 0 if self.blocked is None else self.blocked.spent_ns()

    def blocked_senders(self) -> dict[str, int]:
        """Connections that wait now, by the reason's word."""
        counts: dict[str, int] = {}
        for thing, count in [] if self.blocked is None else self.blocked.counts():
            word = word_of(thing)
            counts[word] = counts.get(word, 0) + count
        return counts

    @property
    def sync_times(self) -> Histogram | None:
        """How long it took to write and sync each batch; None if nothing is stored."""
        return None if self.journal is None else self.journal.sync_times

    def authentication_counts(self) -> dict[str, int]:
        """Logins by result."""
        return self.logins.results()

    def login_refusals(self) -> dict[str, int]:
        """Logins refused, and connections closed before a login or because it ended, by reason."""
        return self.logins.refusals

    def login_counts(self) -> dict[str, int]:
        """Logins verified since the start, and those that wait now."""
        stale = len(self.login_file_warnings())
        return {"verified": self.logins.verified, "waiting": self.logins.waiting, "stale": stale}

    def journal_counts(self) -> dict[str, int]:
        """Figures of the journal: records, batches, syncs, files and bytes."""
        return {} if self.journal is None else self.journal.counts()

    def large_counts(self) -> dict[str, int]:
        """Figures of large bodies."""
        return {} if self.large is None else self.large.counts()

    def resource_counts(self) -> dict[str, int]:
        """The reserves of disk space and descriptors, and whether they are in use."""
        descriptors = self.descriptors
        return {
            "reserve_bytes": sum(room.reserve_bytes for room in self.reserves),
            "reserve_taken_bytes": sum(room.wanted_bytes - room.reserve_bytes for room in self.reserves),
            "is_short": int(any(room.is_short for room in self.reserves)),
            "descriptors_max": 0 if descriptors is None else descriptors.limit,
            "stomp_descriptors_max": 0 if descriptors is None else descriptors.stomp_max,
            "paused": sum(listener.is_paused for listener in self.listeners),
            "pauses": sum(listener.pauses for listener in self.listeners),
        }

    def log_counts(self) -> dict[str, int]:
        """Figures of the retained log."""
        return {} if self.cursors is None else self.cursors.counts()

    def log_cursors(self) -> list[CursorView]:
        """The cursors in the log."""
        return [] if self.cursors is None else self.cursors.all()

    def tls_acceptors(self) -> Sequence[TlsAcceptor]:
        """The acceptors that speak TLS."""
        return self.tls_opened

    def configuration_figures(self) -> ConfigurationView | None:
        """The state of the configuration file; None for a broker without one."""
        return self.configuration

    def turn_took(self, duration_ns: int) -> None:
        """Count one turn."""
        self.turns += 1
        self.turn_ns_sum += duration_ns
        if duration_ns > self.turn_ns_max:
            self.turn_ns_max = duration_ns
        index = 0  # most turns end below the first bound: bisect costs more
        while index < len(_BOUNDS_NS) and _BOUNDS_NS[index] < duration_ns:
            index += 1
        self.turn_buckets[index] += 1
