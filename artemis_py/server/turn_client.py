"""What turns need of a connection, and what the broker holds for it in memory."""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple, final

from mypy_extensions import mypyc_attr

from artemis_py.server.client_socket import ClientSocket, Intake
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


@mypyc_attr(allow_interpreted_subclasses=True)
class Recipient(asyncio.BufferedProtocol):
    """Whoever gets output at the end of a turn, and is checked at the times it asks for (``ConnectionWatches``): a
    connection, or a client of HTTP that takes messages.

    It and ``Client`` are classes and no protocols, as the turns ask them for each message: compiled code asks a class
    directly.
    """

    __slots__ = ("is_dirty", "socket")

    socket: ClientSocket
    is_dirty: bool
    """Is it to be flushed at the end of the turn?"""

    @property
    def peer(self) -> str:
        """The client's address as host:port; empty if unknown."""
        raise NotImplementedError

    @property
    def origin(self) -> int:
        """Its number, which nobody else has or had."""
        raise NotImplementedError

    def flush(self, durable_lsn: int, now_ms: int) -> bool:
        """Write what is durable, and close when the session is over and everything is written. Returns whether
        something waits for a record that is not yet durable.
        """
        raise NotImplementedError

    def check(self, now_ms: int) -> None:
        """A watched time has come."""
        raise NotImplementedError

    def disconnect(self, reason: str, now_ms: int) -> None:
        """The broker needs the memory, or the consumer is too slow: end the session with an ERROR."""
        raise NotImplementedError

    def fail(self, now_ms: int) -> None:
        """A step failed: the connection ends now."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class Client(Recipient):
    """One client with its session, as the server's parts see it. ``Connection`` is the one that has a real socket.

    A part that lists clients keeps what it knows of each in the client's own fields, where a look-up costs nothing.
    """

    __slots__ = ("credit", "in_line", "intake", "period", "session", "weight")

    session: Session
    intake: Intake
    """What takes its bytes: the session itself, or a protocol that carries the session's frames."""
    in_line: bool
    """Does it wait for its turn, with input? ``credit`` and ``period`` belong to the input scheduler."""
    credit: int
    period: int
    weight: Weight
    """What the broker held for it when it was last weighed."""

    @property
    def origin(self) -> int:
        return self.session.state.origin

    @property
    def state(self) -> str:
        """For the metrics: new, open, blocked, stalled or closing."""
        raise NotImplementedError

    def eof_received(self) -> bool:
        """The client sends no more; its frames are still processed and answered."""
        raise NotImplementedError

    def poll(self, wait_ns: int) -> bool:
        """Poll for bytes for ``wait_ns`` nanoseconds, bypassing the event loop; True if some arrived."""
        raise NotImplementedError

    def read(self, now_ms: int, stop_at: int) -> bool:
        """Process input until the turn's budget is down to ``stop_at``; True if there is more."""
        raise NotImplementedError

    def unblock(self, now_ms: int, stop_at: int) -> None:
        """Continue if the client's wait is over."""
        raise NotImplementedError

    def weigh(self) -> None:
        """Measure what the broker holds for the client, and report a change."""
        raise NotImplementedError

    def dismiss(self, reason: str, now_ms: int) -> None:
        """End the session with an ERROR, behind what is on its way to the client."""
        raise NotImplementedError

    def lost(self, now_ms: int) -> None:
        """The socket is gone: the session ends."""
        raise NotImplementedError

    def shut(self, now_ms: int) -> None:
        """The broker stops: the session ends, and the socket closes after sending everything written."""
        raise NotImplementedError

    def cut(self) -> None:
        """Close without waiting for unwritten output."""
        raise NotImplementedError
