"""What operators see of clients, and do to them."""

from __future__ import annotations

import pytest

from artemis_py.core.order.entry import PURGED
from artemis_py.errors import BrokerError, NotFoundError
from tests.kit.bench import Bench
from tests.unit.management.operated import operated_bench

# ---- transactions ------------------------------------------------------------------------------------


def _begun(one: Bench) -> None:
    """A client whose transaction sends a and b, and acknowledges x."""
    one.send("x")
    one.subscribe("c")
    (frame,) = one.messages("c")
    one.write("c", "BEGIN", "transaction:t")
    for body in "ab":
        one.write("c", "SEND", "destination:/queue/q", "transaction:t", body=body)
    one.write("c", "ACK", f"id:{frame.header('ack')}", "transaction:t")


def test_an_open_transaction() -> None:
    one, operated = operated_bench()
    _begun(one)
    (row,) = operated.do("listTransactions")
    assert (row["messagesSent"], row["messagesAcknowledged"], row["sessionID"]) == (2, 1, "s2")
    assert (row["id"], row["creationTime"] > 0, row["size"] > 0) == ("s2:t", True, True)


def test_an_operator_rolls_back() -> None:
    """The client is told when it goes on; it may begin another one of this name."""
    one, operated = operated_bench()
    _begun(one)
    assert operated.do("rollbackTransaction", transaction="s2:t") == {"rolledBack": "s2:t"}
    (again,) = one.messages("c")
    assert (again.body, again.header("redelivered"), one.count()) == (b"x", "true", 1)
    assert operated.do("listTransactions") == []
    one.write("c", "BEGIN", "transaction:t")
    one.write("c", "SEND", "destination:/queue/q", "transaction:t", body="c")
    operated.do("rollbackTransaction", transaction="s2:t")
    one.write("c", "COMMIT", "transaction:t")
    (error,) = one.frames("c")
    assert error.header("message") == "No transaction 't' is open, because an operator has rolled it back"


def test_an_operator_commits() -> None:
    one, operated = operated_bench()
    _begun(one)
    assert operated.do("commitTransaction", transaction="s2:t") == {"committed": "s2:t"}
    assert one.got("c") == ["a", "b"]
    assert one.count() == 2
    one.write("c", "ABORT", "transaction:t")
    (error,) = one.frames("c")
    assert error.header("message") == "No transaction 't' is open, because an operator has committed it"


def test_a_commit_without_room() -> None:
    """It stays open, and can be committed later."""
    one, operated = operated_bench("overflow-policy='REJECT' max-depth-messages='2'")
    _begun(one)
    one.send("y")
    for id in ("q", None):
        if id:
            operated.do("address.block", address="q")
        with pytest.raises(BrokerError, match="takes nothing now" if id else "Queue q is full"):
            operated.do("commitTransaction", transaction="s2:t")
        operated.do("address.unblock", address="q")
    one.queue().purge(PURGED, one.world.now_ms)
    operated.do("updateQueue", queue="q", max_depth_messages=9)
    operated.do("commitTransaction", transaction="s2:t")
    assert one.got("c") == ["y", "a", "b"]


def test_a_commit_with_many_selectors_takes_turns() -> None:
    """As that of a client does."""
    queues = "".join(f"<queue name='n{n}'><filter string=\"k LIKE '%{n}%'\"/></queue>" for n in range(40))
    one, operated = operated_bench(more=f"<address name='news'><multicast>{queues}</multicast></address>")
    one.world.turns.units = 200
    one.write("c", "BEGIN", "transaction:t")
    for number in range(50):
        one.write("c", "SEND", "destination:/topic/news", f"k:{number}", "transaction:t", body="x")
    operated.do("commitTransaction", transaction="s1:t")
    assert operated.steps > 1
    assert one.count("n3") == 14


@pytest.mark.parametrize("id", ["s1:u", "s9:t", "t", "", "x1:t", "s-1:t"])
def test_no_such_transaction(id: str) -> None:
    one, operated = operated_bench()
    one.write("c", "BEGIN", "transaction:t")
    for operation in ("rollbackTransaction", "commitTransaction"):
        with pytest.raises(NotFoundError, match="there is no open transaction"):
            operated.do(operation, transaction=id)


# ---- sessions, consumers, connections ----------------------------------------------------------------


def test_sessions_and_producers() -> None:
    one, operated = operated_bench()
    one.send("a")
    one.send("bb", to="/queue/other")
    one.send("c")
    one.subscribe("c")
    rows = operated.do("listSessions")
    shown = [(row["id"], row["consumerCount"], row["producerCount"], row["transactionCount"]) for row in rows]
    assert shown == [("s1", 0, 2, 0), ("s2", 1, 0, 0)]
    rows = operated.do("listProducers")
    assert {row["address"]: row["msgSent"] for row in rows} == {"q": 2, "other": 1}


def test_eight_producers_are_remembered() -> None:
    one, operated = operated_bench()
    for number in range(10):
        one.send("x", to=f"/queue/a{number}")
    one.send("x", to="/queue/a5")
    rows = operated.do("listProducers")
    assert sorted(row["address"] for row in rows) == [f"a{number}" for number in range(2, 10)]
    assert {row["address"]: row["msgSent"] for row in rows}["a5"] == 2


def test_what_a_consumer_had() -> None:
    one, operated = operated_bench()
    one.subscribe("c", "consumer-window-size:-1")
    one.subscribe("auto", to="r", ack="auto")
    (before, auto) = operated.do("listConsumers")
    assert (before["messagesDelivered"], before["lastDeliveredTime"], before["lastAcknowledgedTime"]) == (0, 0, 0)
    assert before["creationTime"] == one.world.now_ms
    one.world.advance(5_000)
    one.send("a")
    one.send("b")
    one.send("x", to="/queue/r")
    first, _ = one.messages("c")
    one.world.advance(1_000)
    one.settle("c", first)
    (after, auto) = operated.do("listConsumers")
    assert (after["messagesDelivered"], after["messagesAcknowledged"], after["messagesInTransit"]) == (2, 1, 1)
    assert after["lastDeliveredTime"] == before["creationTime"] + 5_000
    assert after["lastAcknowledgedTime"] == before["creationTime"] + 6_000
    assert (auto["messagesDelivered"], auto["messagesAcknowledged"]) == (1, 1)


@pytest.mark.parametrize(("version", "stays"), [("1.2", False), ("1.1", True)])
def test_a_consumer_is_closed(version: str, stays: bool) -> None:
    """What it has goes back to its queue as a failed delivery; STOMP 1.2 ends with every ERROR."""
    one, operated = operated_bench()
    client = one.world.client("c")
    client.send(f"CONNECT\naccept-version:{version}\nhost:x\n\n\0".encode())
    client.send(b"SUBSCRIBE\nid:1\ndestination:/queue/q\nack:client\n\n\0")
    client.send(b"SUBSCRIBE\nid:2\ndestination:/queue/r\nack:client\n\n\0")
    one.send("a")
    one.frames("c")
    (row,) = operated.do("listConsumers", where="queue=q")
    operated.do("closeConsumerWithID", consumer=row["id"])
    (error,) = one.frames("c")
    assert error.header("message") == f"An operator has closed the consumer {row['id']}"
    assert client.is_closed is not stays
    assert one.queue().contents.delivering_count == 0
    assert len(operated.do("listConsumers")) == int(stays)
    one.subscribe("d")
    (again,) = one.messages("d")
    assert (again.body, again.header("redelivered")) == (b"a", "true")
    with pytest.raises(NotFoundError, match="there is no consumer"):
        operated.do("closeConsumerWithID", consumer=row["id"])


def test_the_consumers_of_matching_addresses() -> None:
    one, operated = operated_bench()
    for name, to in (("c1", "news.eu"), ("c2", "news.us"), ("c3", "q")):
        one.subscribe(name, to=to)
    assert operated.do("closeConsumerConnectionsForAddress", address="news.*") == {"closed": 2}
    assert [one.world.client(name).is_closed for name in ("c1", "c2", "c3")] == [True, True, False]
    assert operated.do("closeConsumerConnectionsForAddress", address="q") == {"closed": 1}
    assert operated.do("closeConsumerConnectionsForAddress", address="q") == {"closed": 0}


def test_the_clients_of_a_user() -> None:
    one, operated = operated_bench()
    for name, user in (("c1", "ann"), ("c2", "bob"), ("c3", "ann")):
        one.world.client(name).send(f"CONNECT\naccept-version:1.2\nhost:x\nlogin:{user}\n\n\0".encode())
    assert operated.do("closeConnectionsForUser", user_name="ann") == {"closed": 2}
    assert {row["user"]: row["state"] for row in operated.do("listConnections")} == {"ann": "closing", "bob": "open"}


def test_a_session_is_closed() -> None:
    one, operated = operated_bench()
    one.subscribe("c")
    operated.do("closeSessionWithID", session="s1")
    assert [frame.command for frame in one.frames("c")] == ["ERROR"]
    for name in ("s1", "c", "", "s" * 40):
        with pytest.raises(NotFoundError, match="there is no session"):
            operated.do("closeSessionWithID", session=name)
