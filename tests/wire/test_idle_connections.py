"""A connection that does nothing has no tables of its own: a broker may hold very many such connections."""

from __future__ import annotations

from tests.kit.in_process import InProcessBroker, configuration

CONNECT = b"CONNECT\naccept-version:1.2\nhost:x\n\n\0"
SUBSCRIBE = b"SUBSCRIBE\nid:1\ndestination:/queue/q\n\n\0"
BEGIN = b"BEGIN\ntransaction:t\n\n\0"


def test_idle_connections_share_what_is_empty() -> None:
    broker = InProcessBroker(configuration())
    one, other = (broker.client(name).greet().connection.session for name in ("one", "other"))
    assert one.subscriptions.by_key is other.subscriptions.by_key
    assert one.subscriptions.by_consumer is other.subscriptions.by_consumer
    assert one.transactions.by_name is other.transactions.by_name
    assert one.out.segments is other.out.segments
    assert one.heartbeat.beats is other.heartbeat.beats


def test_what_one_connection_begins_is_not_in_the_tables_of_another() -> None:
    broker = InProcessBroker(configuration())
    busy, idle = broker.client("busy").greet(), broker.client("idle").greet()
    busy.send(SUBSCRIBE + BEGIN)
    busy.transport.client_reads = False
    busy.connection.session.out.parts(9).append(b"waits")
    own = busy.connection.session
    assert (len(own.subscriptions.by_key), len(own.subscriptions.by_consumer), len(own.transactions.by_name)) == (
        1,
        1,
        1,
    )
    for session in (idle.connection.session, broker.client("late").greet().connection.session):
        assert not session.subscriptions.by_key
        assert not session.subscriptions.by_consumer
        assert not session.transactions.by_name
        assert not session.out


def test_the_tables_of_a_connection_that_ends_are_empty() -> None:
    broker = InProcessBroker(configuration())
    busy = broker.client("busy").greet()
    session = busy.connection.session
    busy.send(SUBSCRIBE + BEGIN)
    busy.drop()
    assert not session.subscriptions.by_key
    assert not session.transactions.by_name
    assert not session.out
    late = broker.client("late").greet()
    late.send(SUBSCRIBE + BEGIN)
    assert list(late.connection.session.subscriptions.by_key) == ["1"]
    assert list(late.connection.session.transactions.by_name) == ["t"]
