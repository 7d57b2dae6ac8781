"""What the metrics read of the server, which stands above them and which they therefore cannot import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class LogCursor(Protocol):
    """A cursor in the log."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def lsn(self) -> int:
        """Everything up to it was read."""


class LogCursorView(Protocol):
    """A cursor in the log and what it means at this moment."""

    @property
    def cursor(self) -> LogCursor:
        """The cursor itself."""

    @property
    def holds(self) -> bool:
        """Does it still hold files back?"""

    @property
    def lag_bytes(self) -> int:
        """How much of the log is behind it."""

    @property
    def idle_ms(self) -> int:
        """How long ago it was moved."""


class ServerView(Protocol):
    """The counters of the connections and turns. All ``*_total`` and the frames and bytes only grow."""

    @property
    def connections_open(self) -> int:
        """Connections now."""

    @property
    def connections_total(self) -> int:
        """Connections since the start."""

    @property
    def sessions_open(self) -> int:
        """Sessions now; a connection has one for itself and one per transaction."""

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
        """Turns by duration: one count per bound, and one more for what is longer than the last."""

    @property
    def connection_faults(self) -> Mapping[str, int]:
        """Connections that were cut off because a step of theirs broke off, by step."""

    @property
    def clock_steps(self) -> Mapping[str, int]:
        """How often the wall clock was set by a second or more, by direction."""

    def journal_counts(self) -> Mapping[str, int]:
        """Records, batches and files."""

    def large_counts(self) -> Mapping[str, int]:
        """Bodies in files of their own."""

    def resource_counts(self) -> Mapping[str, int]:
        """What is kept in reserve of disks and descriptors, and whether it is in use."""

    def log_counts(self) -> Mapping[str, int]:
        """What is retained of the log."""

    def log_cursors(self) -> Sequence[LogCursorView]:
        """Who has read how far in the log."""

    def connections_by_state(self) -> Mapping[str, int]:
        """Connections now, by state of their protocol."""
