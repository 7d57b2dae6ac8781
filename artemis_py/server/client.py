"""What a turn, and whatever it asks, needs of a connection."""

from __future__ import annotations

from typing import Protocol

from artemis_py.server.client_socket import ClientSocket
from artemis_py.server.weight import Weight
from artemis_py.stomp.session.session import Session


class Client(Protocol):
    """One client with its session, as the server's parts see it. ``Connection`` is the one that has a real socket.

    Whoever keeps clients in a list writes what it must know of each on the client itself, where that costs nothing.
    """

    session: Session
    socket: ClientSocket
    is_dirty: bool
    """Is it to be flushed at the end of the turn?"""
    in_line: bool
    """Does it wait for its turn, with input? ``credit`` and ``period`` are what the rota knows of it."""
    credit: int
    period: int
    weight: Weight
    """What it makes the broker hold, as it was weighed last."""

    @property
    def peer(self) -> str:
        """The client's address as host:port; empty where nobody knows."""

    @property
    def state(self) -> str:
        """For the metrics: new, open, blocked, stalled or closing."""

    def poll(self, wait_ns: int) -> bool:
        """Look for bytes past the event loop for ``wait_ns`` nanoseconds; True when some came."""

    def read(self, now_ms: int, stop_at: int) -> bool:
        """Carry out what arrived until the turn's budget is down to ``stop_at``; True when there is more."""

    def unblock(self, now_ms: int, stop_at: int) -> None:
        """Go on if what the client waits for is there."""

    def flush(self, durable_lsn: int, now_ms: int) -> None:
        """Write what may leave, and close when the session is over and everything is written."""

    def weigh(self) -> None:
        """Find out what the client makes the broker hold, and tell if that has changed."""

    def look(self, now_ms: int) -> None:
        """A time has come that was watched."""

    def cut_off(self, reason: str, now_ms: int) -> None:
        """The broker needs the memory: end the session with an ERROR."""

    def fail(self, now_ms: int) -> None:
        """A step broke off: the connection ends now."""

    def lost(self, now_ms: int) -> None:
        """The socket is gone: the session ends."""

    def shut(self, now_ms: int) -> None:
        """The broker stops: the session ends, and the socket closes when everything written has left."""

    def cut(self) -> None:
        """Close without waiting for what is not written."""
