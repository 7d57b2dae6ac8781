"""The first so many messages of a queue, and the messages of a queue as Artemis' beans list them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from artemis_py.errors import BadRequestError
from artemis_py.management.artemis.beans import QUEUE
from tests.unit.management.operated import Operated, operated_bench


def bodies(operated: Operated) -> list[str]:
    return [row["BodyPreview"] for row in operated.do("queue.browse", queue="q")]


# ---- so many -----------------------------------------------------------------------------------------


def test_the_first_are_purged_in_the_order_of_the_queue() -> None:
    one, operated = operated_bench()
    one.send("later", "AMQ_SCHEDULED_DELAY:3600000")
    for body in ("a", "b", "c"):
        one.send(body)
    one.send("urgent", "priority:9")
    assert operated.do("queue.removeAllMessages", queue="q", count=2) == {"removed": 2, "inDelivery": 0}
    assert bodies(operated) == ["b", "c", "later"]
    assert operated.do("queue.removeAllMessages", queue="q", count=10) == {"removed": 3, "inDelivery": 0}
    assert operated.do("queue.removeAllMessages", queue="q", count=1) == {"removed": 0, "inDelivery": 0}


def test_what_a_consumer_has_does_not_count() -> None:
    one, operated = operated_bench()
    for body in ("held", "a", "b"):
        one.send(body)
    one.subscribe("c", "activemq.prefetchSize:1")
    assert [frame.body for frame in one.messages("c")] == [b"held"]
    assert operated.do("queue.removeAllMessages", queue="q", count=1) == {"removed": 1, "inDelivery": 0}
    assert bodies(operated) == ["held", "b"]
    assert operated.do("queue.removeAllMessages", queue="q", count=9) == {"removed": 1, "inDelivery": 1}
    one.send("c")
    assert operated.do("queue.removeAllMessages", queue="q") == {"removed": 1, "inDelivery": 1}
    one.send("d")
    assert operated.do("address.purge", address="q") == {"removed": 1, "inDelivery": 1}
    assert bodies(operated) == ["held"]


def test_a_browse_counts_deliveries_as_the_frames_do() -> None:
    """Those that ended without a failure, too: the consumer left."""
    one, operated = operated_bench()
    one.send("a")
    for time in (1, 2, 3):
        one.subscribe(f"c{time}", "activemq.prefetchSize:1")
        (frame,) = one.messages(f"c{time}")
        assert frame.header("JMSXDeliveryCount") == str(time)
        row = operated.do("queue.browse", queue="q")[0]
        assert (row["deliveryCount"], row["redelivered"]) == (time, time > 1)
        one.write(f"c{time}", "UNSUBSCRIBE", "id:1")
        assert operated.do("queue.browse", queue="q")[0]["deliveryCount"] == time


def test_the_first_that_match() -> None:
    one, operated = operated_bench()
    for number in range(6):
        one.send(str(number), f"kind:{'odd' if number % 2 else 'even'}")
    found = operated.do("queue.removeMessages", queue="q", filter="kind = 'even'", count=2)
    assert (found["removed"], found["stoppedBecause"]) == (2, None)
    assert bodies(operated) == ["1", "3", "4", "5"]
    operated.do("createQueue", name="r")
    assert operated.do("queue.moveMessages", queue="q", target="r", count=3)["moved"] == 3
    assert bodies(operated) == ["5"]


@pytest.mark.parametrize("count", [0, -1])
def test_no_count_means_none(count: int) -> None:
    one, operated = operated_bench()
    one.send("a")
    for id, more in (("queue.removeAllMessages", {}), ("queue.removeMessages", {"filter": ""})):
        with pytest.raises(BadRequestError, match=f"count must be 1 or more, not {count}"):
            operated.do(id, queue="q", count=count, **more)
    assert one.count() == 1


def test_the_first_of_those_in_pages() -> None:
    settings = "<max-size-messages>2</max-size-messages><address-full-policy>PAGE</address-full-policy>"
    one, operated = operated_bench(settings=settings)
    for number in range(9):
        one.send(str(number), "persistent:true")
    assert operated.do("queue.removeAllMessages", queue="q", count=5) == {"removed": 5, "inDelivery": 0}
    assert bodies(operated) == ["5", "6", "7", "8"]


# ---- as Artemis lists them ---------------------------------------------------------------------------


def listed(operated: Operated, name: str, *values: Any) -> Any:
    call = operated.prepared(QUEUE, "q", name, *values)
    assert (call.right, call.permission) == ("view", f"queue.q.{name.partition('(')[0]}")
    return operated.carry_out(call.begin()).value


def test_messages_that_wait_and_those_that_are_scheduled() -> None:
    one, operated = operated_bench()
    one.send("a", "region:eu", "persistent:true", "priority:7")
    one.send("b", "content-length:1")
    one.send("later", "AMQ_SCHEDULED_DELAY:3600000")
    first, second = json.loads(listed(operated, "listMessagesAsJSON", ""))
    assert {name: first[name] for name in ("address", "type", "durable", "expiration", "priority", "region")} == {
        "address": "q", "type": 3, "durable": True, "expiration": 0, "priority": 7, "region": "eu",
    }  # fmt: skip
    assert (second["type"], second["durable"]) == (4, False)
    assert first["timestamp"] > 0
    assert first["messageID"] < second["messageID"]
    assert listed(operated, "listMessages(java.lang.String)", "region = 'eu'") == [first]
    assert json.loads(listed(operated, "peekFirstMessageAsJSON")) == first
    (later,) = listed(operated, "listScheduledMessages")
    assert json.loads(listed(operated, "listScheduledMessagesAsJSON")) == [later]
    assert later["messageID"] > second["messageID"]


def test_messages_that_consumers_have() -> None:
    one, operated = operated_bench()
    assert listed(operated, "listDeliveringMessages") == {}
    for body in ("a", "b", "c"):
        one.send(body)
    for name in ("c", "d"):
        one.subscribe(name, "activemq.prefetchSize:1")
        assert len(one.messages(name)) == 1
    consumers = list(one.world.broker.queues["q"].distribution.consumers)
    (third,) = listed(operated, "listMessages(java.lang.String)", "")
    found = listed(operated, "listDeliveringMessages")
    assert {name: len(rows) for name, rows in found.items()} == {f"consumer {each.id}": 1 for each in consumers}
    assert third["messageID"] not in {row["messageID"] for rows in found.values() for row in rows}
    assert json.loads(listed(operated, "listDeliveringMessagesAsJSON")) == [
        {"consumerName": name, "elements": rows} for name, rows in found.items()
    ]


def test_no_more_than_a_page() -> None:
    one, operated = operated_bench(settings="<management-browse-page-size>3</management-browse-page-size>")
    assert listed(operated, "listMessagesAsJSON", None) == "[]"
    assert listed(operated, "peekFirstMessageAsJSON") is None
    for number in range(5):
        one.send(str(number))
    assert len(json.loads(listed(operated, "listMessagesAsJSON", ""))) == 3


def test_a_filter_that_makes_no_sense() -> None:
    _, operated = operated_bench()
    with pytest.raises(Exception, match="the filter makes no sense"):
        listed(operated, "listMessagesAsJSON", "a = ")
