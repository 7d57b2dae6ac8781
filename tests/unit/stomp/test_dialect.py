"""What a SEND's headers come to: the quick way and the careful way agree, and every header is where it belongs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.message import escape_header
from artemis_py.stomp.wire.frames import Refused
from tests.kit.broker_frames import comparable, only_send, parser

ALL = ("1.0", "1.1", "1.2")


def test_each_target_is_another_destination() -> None:
    """A route is remembered by it: what goes elsewhere must not share one."""
    blocks = (
        b"destination:/queue//temp-queue/x\n",
        b"destination:/temp-queue/x\n",
        b"destination:/temp-queue/x\ndestination-type:ANYCAST\n",
        b"destination:/temp-queue/x\ndestination-type:MULTICAST\n",
        b"destination:/topic//temp-queue/x\n",
    )
    assert len({only_send("1.2", block).shape.target for block in blocks}) == len(blocks)
    same = {only_send("1.2", b"destination:/queue/x\n" + line).shape.target for line in (b"", b"priority:9\n")}
    assert len(same) == 1


@pytest.mark.parametrize("version", ALL)
def test_where_headers_go(version: str) -> None:
    send = only_send(
        version,
        b"destination:/queue/a\ncontent-length:0\nreceipt:r\ntransaction:t\npriority:7\npersistent:true\nexpires:99\n"
        b"AMQ_SCHEDULED_TIME:5\nAMQ_SCHEDULED_DELAY:6\n_AMQ_DUPL_ID:d\nfoo:bar\ncontent-type:text/plain\n"
        b"message-id:forged\nsubscription:forged\nack:forged\nredelivered:true\ntimestamp:1\ndelivery-count:9\n"
        b"_ART_HOPS:16\n",
    )
    shape = send.shape
    assert (send.receipt, send.transaction, send.content_length, send.quick) == ("r", "t", 0, False)
    assert (shape.address, shape.queue, shape.routing_type) == ("a", None, "ANYCAST")
    assert (shape.priority, shape.persistent, shape.expires_ms) == (7, True, 99)
    assert (shape.due_ms, shape.due_delay_ms, shape.duplicate_id) == (5, 6, "d")
    assert send.head.sized
    assert send.head.properties == {
        "destination": "/queue/a",
        "destination-type": "ANYCAST",
        "priority": "7",
        "persistent": "true",
        "_AMQ_DUPL_ID": "d",
        "AMQ_SCHEDULED_TIME": "5",
        "AMQ_SCHEDULED_DELAY": "6",
        "foo": "bar",
        "content-type": "text/plain",
    }


@pytest.mark.parametrize("version", ALL)
def test_a_plain_send_is_quick(version: str) -> None:
    send = only_send(version, b"destination:/queue/a\nfoo:bar\n")
    assert send.quick
    assert not send.head.sized
    assert send.head.properties["priority"] == "4"
    assert send.head.properties["persistent"] == "false"


@pytest.mark.parametrize(
    "header",
    ["transaction:t", "expires:1", "AMQ_SCHEDULED_DELAY:1", "_AMQ_DUPL_ID:x"],
)
def test_what_is_not_quick(header: str) -> None:
    assert not only_send("1.2", f"destination:/queue/a\n{header}\n".encode()).quick


@pytest.mark.parametrize(
    ("destination", "address", "queue", "routing_type"),
    [
        ("/queue/a", "a", None, "ANYCAST"),
        ("/topic/a.b", "a.b", None, "MULTICAST"),
        ("a", "a", None, None),
        ("/queue/a::q", "a", "q", "ANYCAST"),
        ("a::q", "a", "q", None),
        ("::q", "", "q", None),
        ("a::", "a", "", None),
        ("/queues/a", "/queues/a", None, None),
    ],
)
def test_destinations(destination: str, address: str, queue: str | None, routing_type: str | None) -> None:
    shape = only_send("1.0", f"destination:{destination}\n".encode()).shape
    assert (shape.address, shape.queue, shape.routing_type) == (address, queue, routing_type)
    assert shape.destination == destination


def test_the_longest_prefix_counts() -> None:
    prefixes = {"anycastPrefix": "jms.,jms.queue.", "multicastPrefix": "jms.topic."}
    for destination, expected in (
        ("jms.queue.a", ("a", "ANYCAST")),
        ("jms.topic.a", ("a", "MULTICAST")),
        ("jms.a", ("a", "ANYCAST")),
        ("a", ("a", None)),
    ):
        shape = only_send("1.2", f"destination:{destination}\n".encode(), **prefixes).shape
        assert (shape.address, shape.routing_type) == expected


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize(
    "header",
    [
        "priority:10",
        "priority:-1",
        "priority:x",
        "priority:",
        "priority:1.5",
        "priority:٤",
        "expires:soon",
        "expires:" + "9" * 30,
        "AMQ_SCHEDULED_TIME:x",
        "AMQ_SCHEDULED_DELAY:x",
        "destination-type:queue",
        "destination-type:",
    ],
)
def test_values_that_mean_nothing(version: str, header: str) -> None:
    """The frame is refused; the next one is read."""
    one = parser(version)
    frames = one.feed(f"SEND\ndestination:x\n{header}\nreceipt:r\n\nbody\0SEND\ndestination:x\n\nnext\0".encode())
    assert one.error is None
    assert [body for _, body in frames] == [b"body", b"next"]
    refused = frames[0][0]
    assert isinstance(refused, Refused)
    assert refused.receipt == "r"
    assert refused.reason
    assert not refused.incomplete


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize("header", ["", "destination:\n"])
def test_without_a_destination(version: str, header: str) -> None:
    refused = parser(version).feed(f"SEND\n{header}receipt:r\n\nbody\0".encode())[0][0]
    assert isinstance(refused, Refused)
    assert refused.incomplete


def test_a_negative_delay_means_none() -> None:
    assert only_send("1.2", b"destination:x\nAMQ_SCHEDULED_DELAY:-5\n").shape.due_delay_ms == 0


def test_default_persistent() -> None:
    assert only_send("1.2", b"destination:x\n", defaultPersistent="true").shape.persistent
    assert not only_send("1.2", b"destination:x\npersistent:false\n", defaultPersistent="true").shape.persistent
    assert not only_send("1.2", b"destination:x\n").shape.persistent


names = st.sampled_from(
    ["foo", "bar", "destination-type", "priority", "persistent", "receipt", "transaction", "content-length", "reply-to",
     "message-id", "timestamp", "expires", "_AMQ_DUPL_ID", "JMSXGroupID", "x y"]
)  # fmt: skip
values = st.sampled_from(["", "1", "0", "true", "false", "ANYCAST", "a b", " a", "/queue/z", "text", "-3"])


@given(version=st.sampled_from(ALL), lines=st.lists(st.tuples(names, values), max_size=8), place=st.integers(0, 8))
def test_both_ways_agree(version: str, lines: list[tuple[str, str]], place: int) -> None:
    """CR LF line ends make the dialect take the careful way; the frame must be the same."""
    headers = list(lines)
    headers.insert(place, ("destination", "/queue/a"))
    block = ["SEND", *(f"{name}:{value}" for name, value in headers), ""]
    quick = parser(version)
    careful = parser(version)
    careful_frames = careful.feed("\r\n".join([*block, ""]).encode() + b"\0")
    quick_frames = quick.feed("\n".join([*block, ""]).encode() + b"\0")
    assert str(quick.error) == str(careful.error)
    assert [comparable(*each) for each in quick_frames] == [comparable(*each) for each in careful_frames]


@given(
    headers=st.lists(
        st.tuples(st.text(min_size=1, max_size=6), st.text(max_size=8)).filter(lambda pair: "\0" not in "".join(pair)),
        max_size=5,
    )
)
def test_user_headers_survive(headers: list[tuple[str, str]]) -> None:
    """Any text in names and values comes through a 1.2 frame unchanged."""
    chosen = [(f"u-{name}", value) for name, value in headers]
    lines = "".join(f"{escape_header(name)}:{escape_header(value)}\n" for name, value in chosen)
    send = only_send("1.2", b"destination:x\n" + lines.encode())
    assert [pair for pair in send.head.headers() if pair[0].startswith("u-")] == chosen
