"""The fields of a connection in lists. The server knows connections, and makes one of these of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from artemis_py.config.settings import AcceptorConfig
from artemis_py.core.tasks import Task
from artemis_py.core.transactions import Transaction
from artemis_py.management.lists.field import EPOCH_MS, NUMBER, TEXT, Field, Kind


class Sender(Protocol):
    """What a client has sent to one address."""

    address: str
    begun_ms: int
    last_ms: int
    sent_count: int
    sent_bytes: int


class Connected(Protocol):
    """A client that is connected now."""

    @property
    def number(self) -> int:
        """The connection's number."""

    @property
    def address(self) -> str:
        """Host and port of the client; empty if unknown."""

    @property
    def client_id(self) -> str | None:
        """The header of CONNECT."""

    @property
    def user(self) -> str | None:
        """The login of CONNECT."""

    @property
    def version(self) -> str:
        """The version of STOMP."""

    @property
    def acceptor(self) -> AcceptorConfig:
        """The acceptor that it came to."""

    @property
    def local_address(self) -> str:
        """Host and port of the broker that it uses; empty if unknown."""

    @property
    def begun_ms(self) -> int:
        """When it connected, in epoch ms."""

    @property
    def session(self) -> str:
        """The name of its session."""

    @property
    def is_open(self) -> bool:
        """Has it a session: is its CONNECT accepted, and is it not closing?"""

    @property
    def producers(self) -> Sequence[Sender]:
        """To which addresses it has sent lately."""

    @property
    def transactions(self) -> Sequence[tuple[str, Transaction]]:
        """Its open transactions, with their names."""

    def end(self, why: str) -> None:
        """Closes the connection with an ERROR."""

    def end_consumer(self, consumer_id: int, why: str) -> bool:
        """Ends one of its consumers, and tells it by an ERROR. False: it has none of this number."""

    def roll_back(self, name: str) -> Sequence[Task]:
        """Rolls one of its transactions back. Returns what is not finished. Raises BrokerError."""

    def prepare(self, name: str) -> bool:
        """Evaluates selectors that a commit needs; False: not all yet. Raises BrokerError."""

    def commit(self, name: str) -> Sequence[Task]:
        """Commits what one of its transactions has so far. Returns what is not finished. Raises BrokerError."""

    @property
    def state(self) -> str:
        """What it does."""

    @property
    def subscription_count(self) -> int:
        """How many subscriptions it has."""

    @property
    def held_bytes(self) -> int:
        """What the broker holds for it, in bytes."""


CONNECTIONS: Final[Kind[Connected]] = Kind(
    "connection",
    "connections",
    [
        Field("connectionID", NUMBER, "The connection's number", lambda it: it.number, is_brief=True),
        Field("remoteAddress", TEXT, "The client's address", lambda it: it.address, is_brief=True),
        Field("clientID", TEXT, "The client-id of its CONNECT", lambda it: it.client_id, is_brief=True),
        Field("user", TEXT, "The login of its CONNECT", lambda it: it.user, is_brief=True),
        Field("localAddress", TEXT, "The broker's own address that it uses", lambda it: it.local_address),
        Field("acceptor", TEXT, "The name of the acceptor that it came to", lambda it: it.acceptor.name),
        Field("creationTime", NUMBER, "When it connected", lambda it: it.begun_ms, EPOCH_MS),
        Field("sessionID", TEXT, "The name of its session", lambda it: it.session),
        Field("sessionCount", NUMBER, "Its sessions: 1, or 0 before its CONNECT", lambda it: int(it.is_open)),
        Field("protocol", TEXT, "STOMP and its version", lambda it: f"STOMP {it.version}"),
        Field(
            "state",
            TEXT,
            "new (no CONNECT yet), open, blocked (its SEND waits for room), stalled (it does not read), or closing",
            lambda it: it.state,
            is_brief=True,
        ),
        Field("subscriptionCount", NUMBER, "Its subscriptions", lambda it: it.subscription_count, is_brief=True),
        Field(
            "heldBytes",
            NUMBER,
            "Memory that the broker holds for it: input, output and transactions",
            lambda it: it.held_bytes,
            "bytes",
            is_brief=True,
        ),
    ],
)
