"""Takes a message for a request: a real consumer, for one message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from artemis_py.core.consumer import Consumer
from artemis_py.core.memory import CONNECTION_BYTES, CONNECTIONS
from artemis_py.core.order.entry import Entry
from artemis_py.core.queue.queue import Queue
from artemis_py.message import LargeBody
from artemis_py.server.client import Recipient
from artemis_py.server.socket import ClientSocket
from artemis_py.server.turns import Turns
from artemis_py.stomp.session.state import SessionState
from artemis_py.stomp.session.subscription import Subscription
from artemis_py.stomp.session.subscriptions import Subscriptions

# ---- taken -----------------------------------------------------------------------------------------------------------
#
# A message that a client of HTTP has taken, and how it wished for it.


TIMEOUT_S_MAX: Final = 50.0
"""How long a request may wait for a message: idle connections are closed after 60 s."""
LEASE_S: Final = 30.0
LEASE_S_MAX: Final = 43_200.0


@final
@dataclass(frozen=True, slots=True)
class Wish:
    """``timeout_s``: how long to wait for a message. ``lease_s``: how long the client may hold it; then it goes back.
    ``acks_itself``: it counts as acknowledged when it is sent, so that nobody need acknowledge it.
    """

    timeout_s: float = 0.0
    lease_s: float = LEASE_S
    acks_itself: bool = False
    selector: str | None = None


@final
@dataclass(frozen=True, slots=True)
class Taken:
    """The message. ``receipt`` settles it, None if it is acknowledged already. ``lease_s`` is 0 then."""

    queue: str
    receipt: str | None
    lease_s: float
    message_id: int
    timestamp_ms: int
    expires_ms: int
    delivery_count: int
    headers: tuple[tuple[str, str], ...]
    body: bytes | LargeBody


# ---- taker -----------------------------------------------------------------------------------------------------------
#
# One consumer for one message: it belongs to a request, and to the client that holds the message afterwards.


_ID: Final = "taker"
_WINDOW: Final = {"ack": "client-individual", "consumer-window-size": "0", "max-backlog": "1"}
"""Exactly one message."""


@final
class Inbox:
    """What the turns know as the session of a taker: it keeps the message instead of writing a frame."""

    def __init__(self, state: SessionState) -> None:
        self.state = state
        self.out = state.out
        self.subscriptions = Subscriptions(state)
        self.is_closing = False
        self.entry: Entry | None = None
        """The message that came."""

    def write_messages(self, consumer: Consumer) -> None:
        """The consumer got a message."""
        subscription = self.subscriptions.by_consumer.get(consumer.id)
        waiting = consumer.handed or consumer.outbox
        if subscription is not None and waiting:
            self.entry = waiting[0]
            self.subscriptions.write_messages(subscription)


@final
class Taker(Recipient):
    """The owner of the consumer, as the turns know their clients. ``came`` is called in a turn when there is a message
    and what it depends on is durable; ``broke`` when a step of it has failed.
    """

    def __init__(
        self,
        turns: Turns,
        state: SessionState,
        came: Callable[[Taker, Entry], None],
        broke: Callable[[], None],
    ) -> None:
        self.session = Inbox(state)
        self.socket = ClientSocket()
        self.is_dirty = False
        self._broke = broke
        self._turns = turns
        self._came: Callable[[Taker, Entry], None] | None = came
        self._is_open = False
        self.is_given = False
        """Did the client get the message?"""
        state.owner = self

    @property
    def peer(self) -> str:
        """The client's address."""
        return self.session.state.address

    @property
    def subscription(self) -> Subscription | None:
        """The consumer's subscription; None once it is closed."""
        return self.session.subscriptions.by_key.get(_ID)

    def open(self, queue: Queue, selector: str | None, now_ms: int) -> None:
        """Attach the consumer. Raises ArtemisError."""
        headers = {"id": _ID, "destination": f"{queue.address.name}::{queue.name}", **_WINDOW}
        if selector is not None:
            headers["selector"] = selector
        self.session.subscriptions.subscribe(headers, now_ms)
        self._is_open = True
        self._turns.guard.holdings.move(CONNECTIONS, CONNECTION_BYTES)

    def flush(self, durable_lsn: int, now_ms: int) -> bool:
        self.is_dirty = False
        came, entry = self._came, self.session.entry
        if self.session.out.take(durable_lsn) and came is not None and entry is not None:
            self._came = None
            came(self, entry)
        return bool(self.session.out)

    def close(self, now_ms: int) -> None:
        """Detach the consumer. A message that it holds goes back; one that no client got was never delivered. May be
        called twice.
        """
        self._came = None
        if not self._is_open:
            return
        self._is_open = False
        self._turns.guard.holdings.move(CONNECTIONS, -CONNECTION_BYTES)
        self._turns.output.forget(self)
        self._take_back(now_ms)
        failure = self.session.subscriptions.close_all(failed=False, now_ms=now_ms)
        self.session.out.clear()
        self.session.state.owner = None
        if failure is not None:
            raise failure

    def _take_back(self, now_ms: int) -> None:
        entry, subscription = self.session.entry, self.subscription
        if entry is None or subscription is None or self.is_given:
            return
        consumer, queue = subscription.consumer, subscription.queue
        if entry.message.id in consumer.held and not queue.deleted:
            queue.release(consumer, [consumer.let_go(entry.message.id)], failed=False, now_ms=now_ms, sent=False)

    def fail(self, now_ms: int) -> None:
        """A step failed, which is reported."""
        self.close(now_ms)
        self._broke()
