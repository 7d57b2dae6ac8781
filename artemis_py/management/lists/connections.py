"""What a list tells of a connection. The server knows connections, and makes one of these of each."""

from __future__ import annotations

from typing import Final, Protocol

from artemis_py.management.lists.field import NUMBER, TEXT, Field, Kind


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
