"""What becomes of the headers and the body of a message on its way to another broker."""

from __future__ import annotations

import pytest

from artemis_py.core.publish.copies import HOPS_HEADER
from artemis_py.server.bridges.connection import BRIDGES_HEADER, BRIDGES_MAX
from tests.kit.bridged import LOG_ID, QUEUES, Bridged, opened


def headers_there(bridged: Bridged, **headers: str) -> dict[str, str]:
    """The headers with which a message arrives there."""
    bridged.send(b"x", to="/queue/orders", **headers)
    (frame,) = bridged.sent()
    return frame.headers


def test_what_a_message_says_of_itself_passes() -> None:
    sent = {
        "persistent": "true", "priority": "7", "correlation-id": "c:1\n2", "type": "t", "content-type": "text/plain",
        "reply-to": "/queue/answers", "colour": "dark red", "JMSXGroupID": "g", "traceparent": "00-ab-cd-01",
        "expires": "4102444800000", "ä": "ö\\n", "empty": "",
    }  # fmt: skip
    got = headers_there(opened(), **sent)
    assert {name: got.get(name) for name in sent} == sent


def test_nothing_of_this_broker_or_this_hop_does() -> None:
    bridged = opened(use_duplicate_detection=False)
    bridged.send(b"x", to="orders", JMSXGroupID="g", persistent="true")
    (frame,) = bridged.sent()
    got = frame.headers
    assert set(got) == {"receipt", "destination", "priority", "persistent", "JMSXGroupID", BRIDGES_HEADER}


@pytest.mark.parametrize(
    ("sent", "setting", "got"),
    [
        ("MULTICAST", "PASS", "MULTICAST"),
        ("ANYCAST", "PASS", "ANYCAST"),
        (None, "PASS", None),
        ("ANYCAST", "STRIP", None),
        (None, "STRIP", None),
        ("ANYCAST", "MULTICAST", "MULTICAST"),
        (None, "ANYCAST", "ANYCAST"),
    ],
)
def test_routing_types(sent: str | None, setting: str, got: str | None) -> None:
    core = QUEUES.replace(
        '<address name="orders"><anycast>', '<address name="orders"><multicast><queue name="m"/></multicast><anycast>'
    )
    bridged = opened(core, routing_type=setting, queue_name="m" if sent == "MULTICAST" else "orders")
    to = {} if sent is None else {"destination-type": sent}
    bridged.send(b"x", to="orders", **to)
    (frame,) = bridged.sent()
    assert frame.headers.get("destination-type") == got


def test_the_destination_is_the_forwarding_address_or_that_of_the_message() -> None:
    assert headers_there(opened())["destination"] == "orders"
    assert headers_there(opened(forwarding_address="/queue/a:b"))["destination"] == "/queue/a:b"


def test_duplicate_detection_names_the_log_the_queue_and_the_message() -> None:
    bridged = opened()
    got = headers_there(bridged, _AMQ_DUPL_ID="of the sender")
    queue = bridged.world.queue("orders")
    assert got["_AMQ_DUPL_ID"] == f"{LOG_ID}-{queue.id}-{got['receipt']}-{bridged.world.loop.clock_ms()}"
    bridged.lose()
    bridged.connect()
    bridged.log_in()
    (again,) = bridged.sent()
    assert again.headers["_AMQ_DUPL_ID"] == got["_AMQ_DUPL_ID"]


def test_without_it_the_senders_own_id_passes() -> None:
    bridged = opened(use_duplicate_detection=False)
    assert headers_there(bridged, _AMQ_DUPL_ID="of the sender")["_AMQ_DUPL_ID"] == "of the sender"


def test_one_message_on_two_queues_has_two_ids() -> None:
    core = """<addresses><address name="a"><multicast><queue name="orders"/><queue name="q2"/></multicast></address>
    </addresses>"""
    ids = set()
    for name in ("orders", "q2"):
        bridged = opened(core, queue_name=name)
        bridged.send(b"x", to="a")
        (frame,) = bridged.sent()
        ids.add(frame.headers["_AMQ_DUPL_ID"])
    assert len(ids) == 2


def test_a_text_stays_a_text_and_bytes_stay_bytes() -> None:
    bridged = opened()
    bridged.sender.send(b"SEND\ndestination:orders\n\ntext\0")
    bridged.sender.send(b"SEND\ndestination:orders\ncontent-length:5\n\nby\0es\0")
    bridged.sender.send(b"SEND\ndestination:orders\ncontent-length:0\n\n\0")
    text, data, empty = bridged.sent()
    assert (text.body, text.headers.get("content-length")) == (b"text", None)
    assert (data.body, data.headers["content-length"]) == (b"by\0es", "5")
    assert (empty.body, empty.headers["content-length"]) == (b"", "0")


def test_a_message_that_was_scheduled_is_not_scheduled_again() -> None:
    bridged = opened()
    bridged.send(b"x", AMQ_SCHEDULED_DELAY="500")
    assert not bridged.sent()
    bridged.world.advance(501)
    (frame,) = bridged.sent()
    assert not [name for name in frame.headers if name.startswith("AMQ_SCHEDULED")]


def test_each_message_has_its_own_headers() -> None:
    bridged = opened()
    bridged.send(b"x", colour="red")
    bridged.send(b"x", colour="red")
    bridged.send(b"x", colour="blue")
    assert [frame.headers["colour"] for frame in bridged.sent()] == ["red", "red", "blue"]


def test_the_hops_of_diverts_are_of_this_broker() -> None:
    ways = "".join(
        f'<divert name="d{source}"><address>{source}</address><forwarding-address>{target}</forwarding-address>'
        "<exclusive>true</exclusive></divert>"
        for source, target in (("a", "b"), ("b", "orders"))
    )
    bridged = opened(f"{QUEUES}<diverts>{ways}</diverts>")
    bridged.send(b"x", to="a")
    consumer = bridged.connection.consumer
    assert consumer is not None
    (entry,) = consumer.held.values()
    assert HOPS_HEADER in entry.message.head.properties
    (frame,) = bridged.sent()
    assert HOPS_HEADER not in frame.headers
    assert frame.headers["_AMQ_ORIG_ADDRESS"] == "b"


def test_a_dead_letter_tells_where_it_is_from() -> None:
    bridged = opened(queue_name="dead")
    sender = bridged.sender
    bridged.send(b"x")
    sender.send(b"SUBSCRIBE\nid:1\ndestination:/queue/orders\nack:client-individual\n\n\0")
    for _ in range(2):
        message = next(each for each in reversed(sender.collect()) if each.command == "MESSAGE")
        sender.send(f"NACK\nid:{message.header('ack')}\n\n\0".encode())
    (frame,) = bridged.sent()
    assert (frame.headers["_AMQ_ORIG_ADDRESS"], frame.headers["_AMQ_ORIG_QUEUE"]) == ("orders", "orders")
    assert frame.headers["destination"] == "dead"
    assert [name for name in frame.headers if name.startswith("_ART")] == [BRIDGES_HEADER]


def test_a_message_names_the_bridges_that_have_forwarded_it() -> None:
    assert headers_there(opened())[BRIDGES_HEADER] == f"b@{LOG_ID}"
    bridged = opened(name="a,b @c")
    got = headers_there(bridged, **{BRIDGES_HEADER: "b@log,x@other"})
    assert got[BRIDGES_HEADER] == f"b@log,x@other,a%2Cb%20%40c@{LOG_ID}"


def test_a_message_that_was_forwarded_too_often_goes_in_a_loop() -> None:
    bridged = opened()
    bridges = [f"x{number}@other" for number in range(BRIDGES_MAX)]
    assert len(headers_there(bridged, **{BRIDGES_HEADER: ",".join(bridges[1:])})[BRIDGES_HEADER].split(",")) == 16
    bridged.send(b"x", **{BRIDGES_HEADER: ",".join(bridges)})
    assert not bridged.sent()
    assert bridged.depth("dead") == 1
