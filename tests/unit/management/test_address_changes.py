"""What operators create and change of addresses: at once, and after a restart."""

from __future__ import annotations

import pytest

from artemis_py.errors import BadRequestError, BrokerError
from tests.kit.bench import Bench
from tests.kit.life import Life
from tests.unit.management.operated import Operated, operated_bench

TWO_QUEUES = "<address name='news'><multicast><queue name='n1'/><queue name='n2'/></multicast></address>"


# ---- create, update, delete --------------------------------------------------------------------------


def test_an_address_is_there_after_a_restart() -> None:
    life = Life("")
    operated = Operated(life.broker)
    operated.do("createAddress", address="news", routing_types="anycast,MULTICAST")
    operated.do("updateAddress", address="news", routing_types="ANYCAST")
    operated.do("createAddress", address="gone")
    operated.do("deleteAddress", address="gone")
    addresses = life.again().broker.broker.addresses
    assert sorted(addresses) == ["news", "q"]
    assert (addresses["news"].routing_types, addresses["news"].auto_created) == ({"ANYCAST"}, False)


def test_what_is_no_address() -> None:
    _, operated = operated_bench()
    for arguments, error, said in [
        ({"address": "q"}, BrokerError, "Address q already exists"),
        ({"address": "a::b"}, BadRequestError, "'a::b' is not a name of an address"),
        (
            {"address": "n", "routing_types": "ANY"},
            BadRequestError,
            "a routing type is ANYCAST or MULTICAST, not 'ANY'",
        ),
    ]:
        with pytest.raises(error) as caught:
            operated.do("createAddress", **arguments)
        assert said in str(caught.value)


def test_a_routing_type_that_queues_have() -> None:
    one, operated = operated_bench()
    with pytest.raises(BrokerError, match="Address q has anycast queues; delete them first"):
        operated.do("updateAddress", address="q", routing_types="MULTICAST")
    operated.do("updateAddress", address="q", routing_types="ANYCAST,MULTICAST")
    one.send("a")
    assert one.count() == 1


def test_an_address_goes_with_its_queues() -> None:
    one, operated = operated_bench()
    one.subscribe("c")
    one.send("a")
    one.send("b")
    with pytest.raises(BrokerError, match="Address q has 1 queue; delete them first, or set force"):
        operated.do("deleteAddress", address="q")
    assert operated.do("deleteAddress", address="q", force=True) == {"removed": 2, "queues": 1}
    assert [frame.command for frame in one.frames("c")][-1] == "ERROR"
    assert not one.world.broker.addresses
    assert not one.world.broker.queues


def test_an_address_with_a_divert_stays() -> None:
    divert = (
        "<diverts><divert name='d'><address>q</address><forwarding-address>r</forwarding-address></divert></diverts>"
    )
    one = Bench(core="<addresses><address name='q'><anycast/></address></addresses>" + divert)
    operated = Operated(one.world)
    with pytest.raises(BrokerError, match="Address q has the divert d; destroy that first"):
        operated.do("deleteAddress", address="q", force=True)
    (row,) = operated.do("listDiverts")
    assert (row["name"], row["address"], row["forwardingAddress"], row["exclusive"]) == ("d", "q", "r", False)


def test_many_queues_go_in_steps() -> None:
    one, operated = operated_bench()
    for number in range(100):
        operated.do("createQueue", name=f"m{number}", address="many", routing_type="MULTICAST")
    assert operated.do("deleteAddress", address="many", force=True) == {"removed": 0, "queues": 100}
    assert operated.steps >= 5
    assert "many" not in one.world.broker.addresses


# ---- pause and block ---------------------------------------------------------------------------------


def test_a_paused_address() -> None:
    """Its queues take messages and deliver nothing, also one that comes later."""
    one, operated = operated_bench(more=TWO_QUEUES)
    one.subscribe("c1", to="news::n1")
    operated.do("queue.pause", queue="n2")
    operated.do("address.pause", address="news")
    operated.do("createQueue", name="n3", address="news", routing_type="MULTICAST")
    one.subscribe("c2", to="news::n2")
    one.subscribe("c3", to="news::n3")
    one.write("producer", "SEND", "destination:/topic/news", body="a")
    assert [one.got(name) for name in ("c1", "c2", "c3")] == [[], [], []]
    rows = {row["name"]: (row["paused"], row["persistedPause"]) for row in operated.do("listQueues")}
    assert rows == {"q": (False, False), "n1": (True, False), "n2": (True, True), "n3": (True, False)}
    operated.do("address.resume", address="news")
    assert [one.got(name) for name in ("c1", "c2", "c3")] == [["a"], [], ["a"]]
    operated.do("queue.resume", queue="n2")
    assert one.got("c2") == ["a"]


@pytest.mark.parametrize("name", ["q", "new"])
def test_an_address_is_paused_after_a_restart(name: str) -> None:
    """A declared one, and one that an operator created; and resumed after another one."""
    life = Life("")
    operated = Operated(life.broker)
    if name == "new":
        operated.do("createAddress", address=name)
    operated.do("address.pause", address=name)
    operated.do("address.block", address=name)
    life = life.again()
    operated = Operated(life.broker)
    row = operated.do("address.getAttributes", address=name)
    assert (row["paused"], row["blocked"], row["autoCreated"]) == (True, False, False)
    operated.do("address.resume", address=name)
    assert not life.again().broker.broker.addresses[name].paused


def test_a_blocked_address() -> None:
    """Senders wait, also with a COMMIT, and with what they send to a queue by its full name."""
    one, operated = operated_bench()
    operated.do("address.block", address="q")
    one.write("s1", "SEND", "destination:/queue/q", "receipt:r", body="a")
    one.write("s2", "SEND", "destination:/queue/q::q", "receipt:r", body="b")
    one.write("s3", "BEGIN", "transaction:t")
    one.write("s3", "SEND", "destination:/queue/q", "transaction:t", body="c")
    one.write("s3", "COMMIT", "transaction:t", "receipt:r")
    assert [one.frames(name) for name in ("s1", "s2", "s3")] == [[], [], []]
    assert one.count() == 0
    one.subscribe("c")
    operated.do("address.unblock", address="q")
    assert sorted(one.got("c")) == ["a", "b", "c"]
    assert [frame.command for name in ("s1", "s2", "s3") for frame in one.frames(name)] == ["RECEIPT"] * 3


def test_an_address_is_purged() -> None:
    one, operated = operated_bench(more=TWO_QUEUES)
    for body in "ab":
        one.write("producer", "SEND", "destination:/topic/news", body=body)
    one.send("stays")
    assert operated.do("address.purge", address="news") == {"removed": 4, "inDelivery": 0}
    assert (one.count("n1"), one.count("n2"), one.count()) == (0, 0, 1)
