"""What the metrics read of the server, which stands above them and which they therefore cannot import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


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

    def large_counts(self) -> Mapping[str, int]:
        """Bodies in files of their own."""

    def connections_by_state(self) -> Mapping[str, int]:
        """Connections now, by state of their protocol."""
