"""What turns need of a connection, and what the broker holds for it in memory."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol, final

from artemis_py.server.socket import ClientSocket, Intake
from artemis_py.stomp.session.session import Session

# ---- weight ----------------------------------------------------------------------------------------------------------
#
# What the broker holds in memory for one connection.


LIGHT_BYTES: Final = 1024
"""This much is included in the base cost of every connection (``CONNECTION_BYTES``), so a sender that waits for a
receipt does not change the account.
"""


@final
class Weight(NamedTuple):
    """What the broker holds for one connection, in bytes: unfinished frames, unread frames, and open transactions."""

    input_bytes: int = 0
    output_bytes: int = 0
    transaction_bytes: int = 0


NOTHING: Final = Weight()


# ---- client ----------------------------------------------------------------------------------------------------------
#
# What a turn and its parts need from a connection.


class Client(Protocol):
    """One client with its session, as the server's parts see it. ``Connection`` is the one that has a real socket.

    A part that lists clients keeps what it knows of each in the client's own fields, where a look-up costs nothing.
    """

    session: Session
    socket: ClientSocket
    intake: Intake
    """What takes its bytes: the session itself, or a protocol that carries the session's frames."""
    is_dirty: bool
    """Is it to be flushed at the end of the turn?"""
    in_line: bool
    """Does it wait for its turn, with input? ``credit`` and ``period`` belong to the input scheduler."""
    credit: int
    period: int
    weight: Weight
    """What the broker held for it when it was last weighed."""

    @property
    def peer(self) -> str:
        """The client's address as host:port; empty if unknown."""

    @property
    def state(self) -> str:
        """For the metrics: new, open, blocked, stalled or closing."""

    def eof_received(self) -> bool:
        """The client sends no more; its frames are still processed and answered."""

    def poll(self, wait_ns: int) -> bool:
        """Poll for bytes for ``wait_ns`` nanoseconds, bypassing the event loop; True if some arrived."""

    def read(self, now_ms: int, stop_at: int) -> bool:
        """Process input until the turn's budget is down to ``stop_at``; True if there is more."""

    def unblock(self, now_ms: int, stop_at: int) -> None:
        """Continue if the client's wait is over."""

    def flush(self, durable_lsn: int, now_ms: int) -> None:
        """Write what is durable, and close when the session is over and everything is written."""

    def weigh(self) -> None:
        """Measure what the broker holds for the client, and report a change."""

    def look(self, now_ms: int) -> None:
        """A watched time has come."""

    def disconnect(self, reason: str, now_ms: int) -> None:
        """The broker needs the memory: end the session with an ERROR."""

    def dismiss(self, reason: str, now_ms: int) -> None:
        """End the session with an ERROR, behind what is on its way to the client."""

    def fail(self, now_ms: int) -> None:
        """A step failed: the connection ends now."""

    def lost(self, now_ms: int) -> None:
        """The socket is gone: the session ends."""

    def shut(self, now_ms: int) -> None:
        """The broker stops: the session ends, and the socket closes after sending everything written."""

    def cut(self) -> None:
        """Close without waiting for unwritten output."""
