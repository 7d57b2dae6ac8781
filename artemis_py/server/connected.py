"""The clients that are connected now, as the lists of operators tell of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import final

from artemis_py.config.settings import AcceptorConfig
from artemis_py.core.queue.works import QueueWork
from artemis_py.core.transaction import Transaction
from artemis_py.errors import ArtemisError, BrokerError, StorageError
from artemis_py.server.client import Client
from artemis_py.server.transports import shown_address
from artemis_py.server.turns import Turns
from artemis_py.stomp.session.producers import Producer


@final
class ConnectedClient:
    """What a list tells of a client, read when it is asked for, and what an operator does to it, inside a turn."""

    __slots__ = ("_client", "_turns")

    def __init__(self, client: Client, turns: Turns) -> None:
        self._client = client
        self._turns = turns

    @property
    def number(self) -> int:
        """The connection's number."""
        return self._client.session.state.origin

    @property
    def address(self) -> str:
        """Host and port of the client; empty if unknown."""
        return self._client.session.state.address

    @property
    def acceptor(self) -> AcceptorConfig:
        """The acceptor that it came to."""
        return self._client.session.service.acceptor

    @property
    def local_address(self) -> str:
        """Host and port of the broker that it uses; empty if unknown."""
        transport = self._client.socket.transport
        return "" if transport is None else shown_address(transport.get_extra_info("sockname"))

    @property
    def begun_ms(self) -> int:
        """When it connected, in epoch ms."""
        return self._client.session.state.begun_ms

    @property
    def session(self) -> str:
        """The name of its session."""
        return self._client.session.state.name

    @property
    def is_open(self) -> bool:
        """Has it a session: is its CONNECT accepted, and is it not closing?"""
        return self._client.session.is_open

    @property
    def producers(self) -> Sequence[Producer]:
        """To which addresses it has sent lately."""
        return list(self._client.session.producers.by_address.values())

    @property
    def transactions(self) -> Sequence[tuple[str, Transaction]]:
        """Its open transactions, with their names."""
        return list(self._client.session.transactions.by_name.items())

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

    # ---- what an operator does -------------------------------------------------------------------

    def end(self, why: str) -> None:
        """Closes the connection with an ERROR."""
        self._client.cut_off(why, self._turns.isolation.turn_ms)

    def end_consumer(self, consumer_id: int, why: str) -> bool:
        """Ends one of its consumers, and tells it by an ERROR. False: it has none of this number."""
        client, isolation = self._client, self._turns.isolation
        session = client.session
        subscription = session.subscriptions.by_consumer.get(consumer_id)
        if subscription is None or not session.is_open:
            return False
        try:
            session.subscriptions.lose(subscription, isolation.turn_ms)
            session.refuse(why, None, syntax=False)
            self._turns.output.mark_dirty(client)
        except Exception as error:
            isolation.cut_off(client, "end", error)
        return True

    def roll_back(self, name: str) -> Sequence[QueueWork]:
        """Rolls one of its transactions back. Returns what is not finished. Raises BrokerError."""
        try:
            return self._client.session.transactions.roll_back(name, self._turns.isolation.turn_ms)
        except ArtemisError as error:
            raise _refusal(error) from None
        finally:
            self._client.weigh()

    def prepare(self, name: str) -> bool:
        """Evaluates selectors that a commit needs; False: not all yet. Raises BrokerError."""
        try:
            return self._client.session.transactions.is_asked(name)
        except ArtemisError as error:
            raise _refusal(error) from None

    def commit(self, name: str) -> Sequence[QueueWork]:
        """Commits what one of its transactions has so far. Returns what is not finished. Raises BrokerError."""
        try:
            return self._client.session.transactions.commit_now(name, self._turns.isolation.turn_ms)
        except ArtemisError as error:
            raise _refusal(error) from None
        finally:
            self._client.weigh()


def connected(clients: Iterable[Client], turns: Turns) -> list[ConnectedClient]:
    """What lists tell of these clients."""
    return [ConnectedClient(client, turns) for client in clients]


def client_of(clients: Iterable[Client], number: int, turns: Turns) -> ConnectedClient | None:
    """The client with this number, or None."""
    client = next((one for one in clients if one.session.state.origin == number), None)
    return None if client is None else ConnectedClient(client, turns)


def _refusal(error: ArtemisError) -> ArtemisError:
    """The error that an operator is told: what would be wrong with a client's frame is a state of the broker here."""
    return error if isinstance(error, BrokerError | StorageError) else BrokerError(str(error))
