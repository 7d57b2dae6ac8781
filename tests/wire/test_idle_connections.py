"""A connection that does nothing has no tables of its own: a broker may hold very many such connections."""

from __future__ import annotations

from artemis_py.stomp.session.session import Session
from tests.kit.in_process import Client, InProcessBroker, configuration

CONNECT = b"CONNECT\naccept-version:1.2\nhost:x\n\n\0"
SUBSCRIBE = b"SUBSCRIBE\nid:1\ndestination:/queue/q\n\n\0"
BEGIN = b"BEGIN\ntransaction:t\n\n\0"


def connected(broker: InProcessBroker, name: str) -> Client:
    client = broker.client(name)
    client.send(CONNECT)
    return client


def session_of(client: Client) -> Session:
    return client.connection.session


def test_idle_connections_share_what_is_empty() -> None:
    broker = InProcessBroker(configuration())
    one, other = (session_of(connected(broker, name)) for name in ("one", "other"))
    assert one.subscriptions.by_key is other.subscriptions.by_key
    assert one.subscriptions.by_consumer is other.subscriptions.by_consumer
    assert one.transactions.by_name is other.transactions.by_name
    assert one.out.segments is other.out.segments
    assert one.heartbeat.beats is other.heartbeat.beats


def test_what_one_connection_begins_is_not_in_the_tables_of_another() -> None:
    broker = InProcessBroker(configuration())
    busy, idle = connected(broker, "busy"), connected(broker, "idle")
    busy.send(SUBSCRIBE + BEGIN)
    busy.transport.client_reads = False
    session_of(busy).out.parts(9).append(b"waits")
    own = session_of(busy)
    assert (len(own.subscriptions.by_key), len(own.subscriptions.by_consumer), len(own.transactions.by_name)) == (
        1,
        1,
        1,
    )
    for session in (session_of(idle), session_of(connected(broker, "late"))):
        assert not session.subscriptions.by_key
        assert not session.subscriptions.by_consumer
        assert not session.transactions.by_name
        assert not session.out


def test_the_tables_of_a_connection_that_ends_are_empty() -> None:
    broker = InProcessBroker(configuration())
    busy = connected(broker, "busy")
    session = session_of(busy)
    busy.send(SUBSCRIBE + BEGIN)
    busy.drop()
    assert not session.subscriptions.by_key
    assert not session.transactions.by_name
    assert not session.out
    late = connected(broker, "late")
    late.send(SUBSCRIBE + BEGIN)
    assert list(session_of(late).subscriptions.by_key) == ["1"]
    assert list(session_of(late).transactions.by_name) == ["t"]
