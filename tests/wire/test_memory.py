"""A client cannot make the broker hold more than the acceptor allows, however it tries."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from tests.kit.in_process import InProcessBroker, configuration

pytestmark = pytest.mark.wire

LIMITS = "maxHeaderBytes=20000;maxHeaderLineBytes=5000;maxHeaders=500;maxBodyBytes=100000;maxUnsentBytes=2000000"
CHUNK_BYTES = 50_000
CHUNKS = 30
HELD_BYTES_MAX = 1_000_000


def peak_bytes(work: Callable[[], object]) -> int:
    """The most memory that ``work`` held at once, beyond what there was before it."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
@pytest.mark.parametrize(
    ("start", "unit"),
    [
        pytest.param(b"", b"x", id="a command without end"),
        pytest.param(b"SEND\n", b"a:b\n", id="headers without end"),
        pytest.param(b"SEND\na:", b"x", id="a line without end"),
        pytest.param(b"SEND\ndestination:/queue/x\n\n", b"x", id="a body without end"),
        pytest.param(b"SEND\ndestination:/queue/x\ncontent-length:99999999999\n\n", b"x", id="an announced long body"),
        pytest.param(b"", b"\n", id="line feeds"),
    ],
)
def test_check_28_endless_input_is_not_kept(version: str, start: bytes, unit: bytes) -> None:
    world = InProcessBroker(configuration("", LIMITS))
    client = world.client("a").greet(version=version)
    chunk = unit * (CHUNK_BYTES // len(unit))
    client.send(start)
    assert peak_bytes(lambda: [client.send(chunk) for _ in range(CHUNKS)]) < HELD_BYTES_MAX
    if unit != b"\n":
        frames = client.collect()
        assert [frame.command for frame in frames] == ["ERROR"]
        assert client.is_closed


def test_check_28_errors_that_nobody_reads() -> None:
    """1.0 goes on after an ERROR: a client that provokes them and never reads is given up."""
    world = InProcessBroker(configuration("", LIMITS.replace("maxUnsentBytes=2000000", "maxUnsentBytes=500000")))
    client = world.client("a").greet(version="1.0")
    client.stall()
    rubbish = b"NONSENSE\n\n\0" * 1000
    assert peak_bytes(lambda: [client.send(rubbish) for _ in range(40)]) < 1_500_000
    assert client.is_closed


def test_check_28_a_blocked_sender_is_not_read() -> None:
    """What a blocked sender goes on writing stays in its own socket."""
    settings = "<max-size-messages>1</max-size-messages><address-full-policy>BLOCK</address-full-policy>"
    core = f'<address-settings><address-setting match="q">{settings}</address-setting></address-settings>'
    world = InProcessBroker(configuration(core))
    client = world.client("a").greet()
    frame = b"SEND\ndestination:/queue/q\n\n" + b"x" * 1000 + b"\0"
    client.send(frame * 5000)
    assert client.connection.session.blocked_by is not None
    assert len(client.unread) > 5000 * len(frame) - 3 * 65536
    assert world.queue("q").message_count == 1


def test_check_28_a_lost_sender_is_not_waited_for() -> None:
    settings = "<max-size-messages>1</max-size-messages><address-full-policy>BLOCK</address-full-policy>"
    core = f'<address-settings><address-setting match="q">{settings}</address-setting></address-settings>'
    world = InProcessBroker(configuration(core))
    client = world.client("a").greet()
    client.send(b"SEND\ndestination:/queue/q\n\nx\0" * 3)
    assert list(world.turns.input.blocked) == [client.connection]
    client.drop()
    world.advance(1000)
    assert list(world.turns.input.blocked) == []
    assert not world.stats.connections


def test_check_28_a_subscriber_that_does_not_read() -> None:
    """Its messages wait on the queue, in one piece, and are not rendered for it."""
    world = InProcessBroker(configuration())
    producer = world.client("p").greet()
    consumer = world.client("c").greet()
    consumer.send(b"SUBSCRIBE\nid:1\ndestination:/queue/q\n\n\0")
    consumer.stall()
    frame = b"SEND\ndestination:/queue/q\n\n" + b"x" * 10_000 + b"\0"
    for _ in range(50):
        producer.send(frame * 20)
    assert consumer.transport.get_write_buffer_size() < 1_500_000
    assert world.queue("q").message_count > 800
    consumer.read_again()
    assert len(consumer.collect()) == 1000
    assert world.queue("q").message_count == 0
