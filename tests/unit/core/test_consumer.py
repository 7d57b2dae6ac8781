"""A consumer's room and window, and what it wants."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.core.order.entry import Entry
from artemis_py.message import Account, Message
from artemis_py.pending_output import Part
from artemis_py.selector import compile_selector
from artemis_py.stomp.wire.writer import MessageWriter
from tests.kit.core import NOW_MS, counting, entry_of, head_of, lone_consumer


def test_what_goes_up_to_a_message_gives_back_exactly_its_window() -> None:
    """Cumulative acknowledgement, one by one, and leaving: the window is whole again each time."""
    consumer = lone_consumer(window_bytes=100_000)
    entries = [entry_of(id=size, body=b"x" * size) for size in (1, 50, 300, 20)]
    for entry in entries:
        consumer.take(entry)
    assert consumer.let_go_up_to(entries[2].message.id) == entries[:3]
    assert list(consumer.held.values()) == entries[3:]
    with pytest.raises(KeyError):
        consumer.let_go_up_to(entries[0].message.id)
    consumer.let_go(entries[3].message.id)
    assert (consumer.credit_bytes, consumer.held, consumer.weights) == (100_000, {}, {})
    consumer.take(entries[0])
    consumer.let_go_all()
    assert (consumer.credit_bytes, consumer.weights) == (100_000, {})


def test_unlimited_window() -> None:
    """Any number of messages."""
    consumer = lone_consumer()
    for number in range(100):
        assert consumer.has_room
        consumer.take(entry_of(id=number))
    assert len(consumer.held) == len(consumer.outbox) == 100


def test_window_of_zero_is_one_message() -> None:
    """Exactly one that is not settled."""
    consumer = lone_consumer(window_bytes=0)
    consumer.take(entry_of(id=1))
    assert not consumer.has_room
    consumer.let_go(1)
    assert consumer.has_room
    consumer.take(entry_of(id=2))
    assert not consumer.has_room


def test_window_in_bytes_is_overdrawn_by_one() -> None:
    """A message goes out while anything is left of it, and what is settled gives its bytes back."""
    size = entry_of(id=1).message.size_bytes
    consumer = lone_consumer(window_bytes=2 * size - 1)
    consumer.take(entry_of(id=1))
    assert consumer.has_room
    consumer.take(entry_of(id=2))
    assert not consumer.has_room
    consumer.let_go(1)
    assert consumer.has_room
    assert list(consumer.held) == [2]
    assert consumer.credit_bytes == size - 1


def test_settling_on_send_needs_no_window() -> None:
    """ack:auto never stalls: nothing is held."""
    consumer = lone_consumer(settles=True)
    consumer.take(entry_of(id=1))
    assert consumer.has_room
    assert not consumer.held


def test_room_is_overdrawn_by_one() -> None:
    """What the connection takes in a turn."""
    consumer = lone_consumer()
    consumer.room_bytes = 1
    consumer.take(entry_of(id=1))
    assert not consumer.has_room
    assert consumer.credit_bytes > 0


def test_let_go_of_what_is_not_held() -> None:
    """An error for the caller."""
    with pytest.raises(KeyError):
        lone_consumer().let_go(5)


def test_let_go_all_in_the_order_of_delivery() -> None:
    """Everything, and the window is whole again."""
    consumer = lone_consumer(window_bytes=10_000)
    for id in (3, 1, 2):
        consumer.take(entry_of(id=id))
    assert [entry.message.id for entry in consumer.let_go_all()] == [3, 1, 2]
    assert not consumer.held
    assert not consumer.outbox
    assert consumer.credit_bytes == 10_000


@given(
    version=st.sampled_from(["1.0", "1.1", "1.2"]),
    subscription=st.sampled_from(["1", "a:b", "long-subscription-name"]),
    body=st.binary(max_size=300),
    sized=st.booleans(),
    extras=st.booleans(),
    color=st.sampled_from(["red", "a:b\\c"]),
    id=st.integers(1, 10**9),
    expires_ms=st.sampled_from([0, NOW_MS * 1_000_000]),
)
def test_frame_bytes_is_the_size_of_the_frame(
    version: str, subscription: str, body: bytes, sized: bool, extras: bool, color: str, id: int, expires_ms: int
) -> None:
    """A window of N bytes is N bytes of MESSAGE frames."""
    writer = MessageWriter(subscription, 7, version, settles=False)
    writer.amq_message_id = extras
    writer.ingress_timestamp = extras
    head = head_of("a", color=color)
    head.sized = sized
    message = Message(head, body, id, 1_700_000_000_000, expires_ms, Account(), 0)
    parts: list[Part] = []
    writer.write([Entry(message)], parts)
    assert writer.frame_bytes(message) == sum(map(len, parts))


# ---- selectors -----------------------------------------------------------------------------------


@pytest.mark.interpreted
def test_one_verdict_for_a_run_of_equal_heads() -> None:
    """Messages that share a head share the verdict."""
    consumer = lone_consumer(selector=compile_selector("color = 'red'"))
    asked = counting(consumer)
    red, blue = head_of("a", color="red"), head_of("a", color="blue")
    verdicts = [consumer.wants(Message(head, b"", 1, 0, 0, Account(), 0)) for head in (red, red, red, blue, blue, red)]
    assert verdicts == [True, True, True, False, False, True]
    assert asked.call_count == 3


@pytest.mark.parametrize("text", ["AMQSize > 40", "AMQTimestamp > 5", "AMQExpiration > 5"])
def test_what_differs_from_message_to_message_is_always_asked(text: str) -> None:
    """A head says nothing about size, time stamp or expiry."""
    consumer = lone_consumer(selector=compile_selector(text))
    head = head_of("a")
    small = Message(head, b"", 1, 0, 0, Account(), 0)
    large = Message(head, b"x" * 100, 2, 10, 10, Account(), 0)
    assert [consumer.wants(message) for message in (small, large, small)] == [False, True, False]


def test_no_local() -> None:
    """A connection's own messages are not wanted, whatever the selector says."""
    consumer = lone_consumer(no_local=7)
    own = Message(head_of("a"), b"", 1, 0, 0, Account(), 7)
    other = Message(head_of("a"), b"", 2, 0, 0, Account(), 8)
    assert not consumer.wants(own)
    assert consumer.wants(other)
