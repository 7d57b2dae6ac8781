"""One message for hundreds of queues, in turns of few units: its sender waits, and nobody else does."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from artemis_py.core.publish.publish import Publisher
from artemis_py.core.queue.arrivals import Arrivals
from artemis_py.server import turns
from tests.kit.core import breaking
from tests.kit.in_process import InProcessBroker, configuration

COUNT = 300
DIVERT = """<diverts><divert name="d"><address>source</address><forwarding-address>t</forwarding-address></divert>
</diverts>"""

pytestmark = pytest.mark.parametrize("turns_of_any_size", ["whole turns"], indirect=True)


@pytest.fixture
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> InProcessBroker:
    """A topic with hundreds of subscriptions, each with a consumer, and turns that cannot serve so many. A test may add
    to the core.
    """
    monkeypatch.setattr(turns, "TURN_UNITS", 100)
    world = InProcessBroker(configuration(getattr(request, "param", ""), "maxSubscriptions=1000"))
    for name in ("sender", "other", "readers"):
        world.client(name).greet()
    for number in range(COUNT):
        world.client("readers").frame("SUBSCRIBE", f"id:{number}", "destination:/topic/t")
    return world


def _frames(world: InProcessBroker, name: str) -> list[tuple[str, str]]:
    return [(frame.command, frame.header("receipt-id") or frame.body.decode()) for frame in world.client(name).heard()]


def _reached(world: InProcessBroker) -> int:
    return sum(queue.contents.counters.added for queue in world.broker.queues.values() if queue.address.name == "t")


@pytest.mark.interpreted
@pytest.mark.parametrize("headers", [(), ("persistent:true",), ("expires:9999999999999",)])
def test_the_receipt_comes_when_all_have_it_and_others_are_served(
    world: InProcessBroker, headers: tuple[str, ...]
) -> None:
    world.together = True
    world.client("sender").frame("SEND", "destination:/topic/t", *headers, "receipt:r", body="x")
    world.client("sender").frame("SEND", "destination:/queue/later", body="y")
    world.turns.run()
    assert _reached(world) < COUNT
    assert "later" not in world.broker.queues
    world.client("other").frame("SEND", "destination:/queue/mine", "receipt:o", body="z")
    world.turns.run()
    assert _frames(world, "other") == [("RECEIPT", "o")]
    assert _reached(world) < COUNT
    assert _frames(world, "sender") == []
    world.together = False
    world.settle()
    assert _frames(world, "sender") == [("RECEIPT", "r")]
    assert _frames(world, "readers") == [("MESSAGE", "x")] * COUNT
    assert "later" in world.broker.queues


@pytest.mark.interpreted
def test_messages_come_in_runs_again_when_a_large_one_is_in_its_places(world: InProcessBroker) -> None:
    world.client("sender").frame("SEND", "destination:/topic/t", body="x")
    world.settle()
    for number in range(COUNT):
        world.client("readers").send(f"UNSUBSCRIBE\nid:{number}\n\n\0".encode())
    with patch.object(Publisher, "publish", autospec=True, side_effect=Publisher.publish) as asked:
        world.client("sender").send(b"SEND\ndestination:/topic/t\n\ny\0" * 8)
        world.settle()
    assert [len(call.args[1].messages) for call in asked.call_args_list] == [8]


@pytest.mark.interpreted
def test_a_commit_is_confirmed_when_all_have_it(world: InProcessBroker) -> None:
    frames = "BEGIN\ntransaction:1\n\n\0"
    frames += "".join(f"SEND\ndestination:/topic/t\ntransaction:1\n\n{number}\0" for number in range(5))
    world.client("sender").send(frames.encode())
    world.together = True
    world.client("sender").send(b"COMMIT\ntransaction:1\nreceipt:c\n\n\0")
    world.turns.run()
    assert 0 <= _reached(world) < 5 * COUNT
    assert _frames(world, "sender") == []
    world.together = False
    world.settle()
    assert _frames(world, "sender") == [("RECEIPT", "c")]
    got = [body for _, body in _frames(world, "readers")]
    assert sorted(got) == sorted([str(number) for number in range(5)] * COUNT)


def test_two_senders_take_turns_and_each_keeps_its_order(world: InProcessBroker) -> None:
    world.together = True
    for name in ("sender", "other"):
        for number in range(4):
            world.client(name).frame("SEND", "destination:/topic/t", f"receipt:{number}", body=f"{name}{number}")
    world.together = False
    world.settle()
    for name in ("sender", "other"):
        assert _frames(world, name) == [("RECEIPT", str(number)) for number in range(4)]
    got = [body for _, body in _frames(world, "readers")]
    assert len(got) == 8 * COUNT
    sent = [f"{name}{number}" for name in ("sender", "other") for number in range(4)]
    assert {body: got.count(body) for body in got} == dict.fromkeys(sent, COUNT)
    for name in ("sender", "other"):
        first = [got.index(f"{name}{number}") for number in range(4)]
        assert first == sorted(first)


@pytest.mark.interpreted
@pytest.mark.parametrize("world", [DIVERT], indirect=True, ids=["divert"])
def test_what_a_divert_copies_is_waited_for(world: InProcessBroker) -> None:
    world.together = True
    world.client("sender").frame("SEND", "destination:/topic/source", "receipt:r", body="x")
    world.client("sender").frame("SEND", "destination:/queue/later", body="y")
    world.turns.run()
    assert _reached(world) < COUNT
    assert "later" not in world.broker.queues
    world.together = False
    world.settle()
    assert _reached(world) == COUNT
    assert "later" in world.broker.queues


def test_a_sender_that_leaves_has_published_all_the_same(world: InProcessBroker) -> None:
    world.together = True
    world.client("sender").frame("SEND", "destination:/topic/t", body="x")
    world.turns.run()
    world.client("sender").drop()
    world.together = False
    world.settle()
    assert _frames(world, "readers") == [("MESSAGE", "x")] * COUNT
    assert not world.broker.agenda


@pytest.mark.interpreted
def test_an_internal_error_is_told_to_the_sender(world: InProcessBroker) -> None:
    queue = next(queue for queue in world.broker.queues.values() if queue.address.name == "t")
    breaks = breaking(Arrivals.arrive, lambda arrivals, *_: arrivals is queue.arrivals, ValueError)
    with patch.object(Arrivals, "arrive", breaks):
        world.client("sender").frame("SEND", "destination:/topic/t", "persistent:true", "receipt:r", body="x")
    ((command, _),) = _frames(world, "sender")
    assert command == "ERROR"
    assert _frames(world, "readers") == [("MESSAGE", "x")] * (COUNT - 1)
