"""The clients that are connected now, as the lists of operators tell of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from artemis_py.server.client import Client


@final
class ConnectedClient:
    """What a list tells of a client, read when it is asked for."""

    __slots__ = ("_client",)

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def number(self) -> int:
        """The connection's number."""
        return self._client.session.state.origin

    @property
    def address(self) -> str:
        """Host and port of the client; empty if unknown."""
        return self._client.session.state.address

    @property
    def client_id(self) -> str | None:
        """The header of CONNECT."""
        return self._client.session.state.client_id

    @property
    def user(self) -> str | None:
        """The login of CONNECT."""
        return self._client.session.state.user

    @property
    def version(self) -> str:
        """The version of STOMP."""
        return self._client.session.state.version

    @property
    def state(self) -> str:
        """new, open, blocked, stalled or closing."""
        return self._client.state

    @property
    def subscription_count(self) -> int:
        """How many subscriptions it has."""
        return len(self._client.session.subscriptions.by_key)

    @property
    def held_bytes(self) -> int:
        """What the broker held for it when it was last weighed, in bytes."""
        return sum(self._client.weight)


def connected(clients: Iterable[Client]) -> list[ConnectedClient]:
    """What lists tell of these clients."""
    return [ConnectedClient(client) for client in clients]
