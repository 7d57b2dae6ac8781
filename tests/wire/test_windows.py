"""``consumer-window-size`` counts the bytes of MESSAGE frames exactly."""

from __future__ import annotations

import pytest

from tests.kit.in_process import InProcessBroker, configuration

pytestmark = pytest.mark.wire

BODIES = ["a", "bb" * 40, "c" * 700, "d", "e" * 33]


def subscribed(version: str, window: int) -> InProcessBroker:
    """A broker with all bodies on a queue, and a consumer of it."""
    world = InProcessBroker(configuration())
    for name in "pc":
        world.client(name).greet(version=version)
    for body in BODIES:
        world.client("p").frame("SEND", "destination:/queue/q", "foo:bar", body=body)
    ack = ("ack:client-individual", f"consumer-window-size:{window}")
    world.client("c").frame("SUBSCRIBE", "id:1", "destination:/queue/q", *ack)
    return world


def frame_sizes(version: str) -> list[int]:
    """How long the frames of the bodies are that the first consumer of a new broker gets."""
    world = subscribed(version, 0)
    sizes: list[int] = []
    for _ in BODIES:
        sizes.append(len(world.client("c").transport.taken))
        world.client("c").frame("ACK", *world.client("c").collect().pop().names(version))
    return sizes


@pytest.mark.parametrize("version", ["1.1", "1.2"])
@pytest.mark.parametrize("count", range(1, len(BODIES)))
@pytest.mark.parametrize("short", [0, 1])
def test_a_window_is_exact(version: str, count: int, short: int) -> None:
    """A window of exactly N frames takes N; with one byte more, the next frame, too (it may be overdrawn once)."""
    sizes = frame_sizes(version)
    assert len(set(sizes)) > 2
    world = subscribed(version, sum(sizes[:count]) + short)
    assert [frame.body.decode() for frame in world.client("c").collect()] == BODIES[: count + short]
    assert world.queue("q").contents.delivering_count == count + short


def test_an_ack_gives_its_bytes_back() -> None:
    """The first frame's bytes are not enough for a second long one to be outstanding; after the ACK they are."""
    sizes = frame_sizes("1.2")
    world = subscribed("1.2", sizes[0] + sizes[1] + sizes[2])
    frames = world.client("c").heard()
    assert len(frames) == 3
    world.client("c").frame("ACK", *frames[0].names("1.2"))
    assert [frame.body.decode() for frame in world.client("c").collect()] == BODIES[3:4]
