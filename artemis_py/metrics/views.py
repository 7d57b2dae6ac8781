"""What the metrics read of the server, which is on a higher floor, so they cannot import it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from artemis_py.histogram import Histogram


class LogCursor(Protocol):
    """A cursor in the log."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def lsn(self) -> int:
        """The reader has everything up to it."""


class LogCursorView(Protocol):
    """A cursor in the log and its current state."""

    @property
    def cursor(self) -> LogCursor:
        """The cursor itself."""

    @property
    def holds(self) -> bool:
        """Does it still hold files back?"""

    @property
    def lag_bytes(self) -> int:
        """Approximate bytes of the log not yet read."""

    @property
    def idle_ms(self) -> int:
        """How long ago it was moved."""


class PermissionChecks(Protocol):
    """Permission checks by result."""

    @property
    def success(self) -> int:
        """How often somebody was allowed to do something."""

    @property
    def failure(self) -> int:
        """How often not."""


class TlsView(Protocol):
    """An acceptor that speaks TLS."""

    @property
    def name(self) -> str:
        """The acceptor's name."""

    @property
    def expires_s(self) -> float:
        """When its certificate expires, in seconds since 1970."""

    @property
    def is_stale(self) -> bool:
        """Has a file changed that could not be used?"""

    @property
    def reloads(self) -> int:
        """How often changed files were loaded."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Handshakes, by result."""


class ConfigurationView(Protocol):
    """The configuration file of the broker."""

    @property
    def is_valid(self) -> bool:
        """Is the file as it is now in force?"""

    @property
    def read_ms(self) -> int:
        """When what is in force was read, in epoch ms."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Reloads by result."""

    @property
    def pending(self) -> Sequence[object]:
        """What only a restart brings into force."""


class ServerView(Protocol):
    """The counters of the connections and turns. All ``*_total`` and the frames and bytes only grow."""

    @property
    def connections_open(self) -> int:
        """Open connections."""

    @property
    def connections_total(self) -> int:
        """Connections since the start."""

    @property
    def sessions_open(self) -> int:
        """Open sessions; a connection has one for itself and one per transaction."""

    @property
    def sessions_total(self) -> int:
        """Sessions since the start."""

    @property
    def frames_in(self) -> Mapping[str, int]:
        """Frames received, by command."""

    @property
    def frames_out(self) -> Mapping[str, int]:
        """Frames sent, by command."""

    @property
    def bytes_in(self) -> int:
        """Bytes read from sockets."""

    @property
    def bytes_out(self) -> int:
        """Bytes written to sockets."""

    @property
    def turn_ns_sum(self) -> int:
        """Time spent in turns."""

    @property
    def turn_ns_max(self) -> int:
        """The longest turn."""

    @property
    def turn_buckets(self) -> Sequence[int]:
        """Turns by duration: one count per bound, and one for longer turns."""

    @property
    def connection_faults(self) -> Mapping[str, int]:
        """Connections closed because one of their steps failed, by step."""

    @property
    def permission_checks(self) -> PermissionChecks:
        """Permission checks since the start; none while security is off."""

    @property
    def clock_steps(self) -> Mapping[str, int]:
        """How often the wall clock was set by a second or more, by direction."""

    @property
    def delays(self) -> Histogram:
        """From the arrival of a message to its delivery, of one message a turn."""

    @property
    def sync_times(self) -> Histogram | None:
        """How long it took to write and sync each batch of the journal; None without one."""

    def blocked_ns(self) -> int:
        """How long senders have waited for room, all together."""

    def blocked_senders(self) -> Mapping[str, int]:
        """Connections that wait now, by the reason's word (docs/why.md)."""

    def authentication_counts(self) -> Mapping[str, int]:
        """Logins by result."""

    def login_refusals(self) -> Mapping[str, int]:
        """Logins refused, and connections closed before a login or because it ended, by reason."""

    def login_counts(self) -> Mapping[str, int]:
        """Logins verified since the start, and those that wait now."""

    def journal_counts(self) -> Mapping[str, int]:
        """Records, batches and files."""

    def large_counts(self) -> Mapping[str, int]:
        """Figures of large bodies."""

    def resource_counts(self) -> Mapping[str, int]:
        """The reserves of disk space and descriptors, and whether they are in use."""

    def log_counts(self) -> Mapping[str, int]:
        """Figures of the retained log."""

    def configuration_figures(self) -> ConfigurationView | None:
        """The state of the configuration file; None for a broker without one."""

    def tls_acceptors(self) -> Sequence[TlsView]:
        """The acceptors that speak TLS."""

    def bridge_counts(self) -> Mapping[str, Mapping[str, int]]:
        """The figures of each bridge, by its name."""

    def log_cursors(self) -> Sequence[LogCursorView]:
        """The cursors in the log."""

    def connections_by_state(self) -> Mapping[str, int]:
        """Open connections, by state of their protocol."""
