"""The fields of sessions, of what they send, and of open transactions in lists.

STOMP has one session on a connection, and no producers: a producer here is an address to which a session has sent.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from artemis_py.core.transactions import Transaction
from artemis_py.management.lists.connections import Connected, Sender
from artemis_py.management.lists.field import EPOCH_MS, NUMBER, TEXT, Field, Kind

SESSIONS: Final[Kind[Connected]] = Kind(
    "session",
    "sessions",
    [
        Field("id", TEXT, "The session's name, as CONNECTED tells it", lambda it: it.session, is_brief=True),
        Field("connectionID", NUMBER, "The number of its connection", lambda it: it.number, is_brief=True),
        Field("clientID", TEXT, "The client-id of its CONNECT", lambda it: it.client_id, is_brief=True),
        Field("user", TEXT, "The login of its CONNECT", lambda it: it.user, is_brief=True),
        Field("protocol", TEXT, "STOMP and its version", lambda it: f"STOMP {it.version}"),
        Field("localAddress", TEXT, "The broker's own address that it uses", lambda it: it.local_address),
        Field("remoteAddress", TEXT, "The client's address", lambda it: it.address),
        Field("creationTime", NUMBER, "When its connection was made", lambda it: it.begun_ms, EPOCH_MS),
        Field("consumerCount", NUMBER, "Its subscriptions", lambda it: it.subscription_count, is_brief=True),
        Field(
            "producerCount",
            NUMBER,
            "Addresses to which it has sent, the latest 8",
            lambda it: len(it.producers),
            is_brief=True,
        ),
        Field("transactionCount", NUMBER, "Its open transactions", lambda it: len(it.transactions), is_brief=True),
    ],
)


class Producing(NamedTuple):
    """An address to which a client has sent."""

    client: Connected
    sender: Sender


PRODUCERS: Final[Kind[Producing]] = Kind(
    "producer",
    "producers",
    [
        Field("id", TEXT, "Session and address", lambda it: f"{it.client.session}:{it.sender.address}"),
        Field("address", TEXT, "The address", lambda it: it.sender.address, is_brief=True),
        Field("sessionID", TEXT, "The session that sends", lambda it: it.client.session, is_brief=True),
        Field("connectionID", NUMBER, "The number of its connection", lambda it: it.client.number),
        Field("clientID", TEXT, "The client-id of its CONNECT", lambda it: it.client.client_id, is_brief=True),
        Field("user", TEXT, "The login of its CONNECT", lambda it: it.client.user, is_brief=True),
        Field("protocol", TEXT, "STOMP and its version", lambda it: f"STOMP {it.client.version}"),
        Field("localAddress", TEXT, "The broker's own address that it uses", lambda it: it.client.local_address),
        Field("remoteAddress", TEXT, "The client's address", lambda it: it.client.address),
        Field("creationTime", NUMBER, "When it sent there first", lambda it: it.sender.begun_ms, EPOCH_MS),
        Field(
            "msgSent", NUMBER, "Messages that it sent there", lambda it: it.sender.sent_count, "messages", is_brief=True
        ),
        Field("msgSizeSent", NUMBER, "Their headers and bodies", lambda it: it.sender.sent_bytes, "bytes"),
        Field("lastSentTime", NUMBER, "When it sent there last", lambda it: it.sender.last_ms, EPOCH_MS),
    ],
)


class Opened(NamedTuple):
    """An open transaction of a client."""

    client: Connected
    name: str
    transaction: Transaction

    @property
    def id(self) -> str:
        """Session and name: a client chooses names, so only both together name one transaction."""
        return f"{self.client.session}:{self.name}"


TRANSACTIONS: Final[Kind[Opened]] = Kind(
    "transaction",
    "transactions",
    [
        Field("id", TEXT, "Session and name of the transaction", lambda it: it.id, is_brief=True),
        Field("sessionID", TEXT, "Its session", lambda it: it.client.session),
        Field("connectionID", NUMBER, "The number of its connection", lambda it: it.client.number, is_brief=True),
        Field("clientID", TEXT, "The client-id of its CONNECT", lambda it: it.client.client_id, is_brief=True),
        Field("user", TEXT, "The login of its CONNECT", lambda it: it.client.user, is_brief=True),
        Field("creationTime", NUMBER, "When it began", lambda it: it.transaction.begun_ms, EPOCH_MS, is_brief=True),
        Field(
            "messagesSent",
            NUMBER,
            "Messages that it publishes with its COMMIT",
            lambda it: len(it.transaction.sends),
            "messages",
            is_brief=True,
        ),
        Field(
            "messagesAcknowledged",
            NUMBER,
            "Messages that it acknowledges, refuses or has expire then",
            lambda it: it.transaction.settled_count,
            "messages",
            is_brief=True,
        ),
        Field("size", NUMBER, "What its messages hold in memory", lambda it: it.transaction.size_bytes, "bytes"),
    ],
)
