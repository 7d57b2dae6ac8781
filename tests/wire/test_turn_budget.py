"""A turn that may spend next to nothing: everything happens a little at a time, and nobody sees another byte of it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from sys import maxsize

import pytest

from artemis_py.core.budget import TURN_UNITS
from tests.kit.in_process import Client, InProcessBroker, configuration
from tests.wire.cutting import whole
from tests.wire.one_turn import ABOUT_ONE_TURN, WHOLE_TURNS_ONLY
from tests.wire.player import play
from tests.wire.test_transcripts import CASES
from tests.wire.transcript import read_transcript

pytestmark = [pytest.mark.wire, WHOLE_TURNS_ONLY]


def recorded(world: InProcessBroker) -> Client:
    """A client of which is kept what is written to it."""
    client = Client(world)
    client.transport.written = bytearray(client.transport.taken)
    return client


def written(world: InProcessBroker) -> dict[str, bytes]:
    """All that its clients were sent."""
    return {name: bytes(client.transport.written or b"") for name, client in world.clients.items()}


ALIKE = [case for case in CASES if isinstance(path := case.values[0], Path) and path.stem not in ABOUT_ONE_TURN]


@pytest.mark.parametrize(("path", "version"), ALIKE)
def test_transcripts_are_the_same_to_the_byte(path: Path, version: str) -> None:
    small, large = (play(read_transcript(path), version, whole, recorded, units).world for units in (1, maxsize))
    assert written(small) == written(large)


def _after_a_burst(units: int) -> tuple[dict[str, bytes], int]:
    """What everybody was sent, in so many turns, when one client writes all at once: runs, receipts, transactions, both
    line ends, errors of version 1.1.
    """
    frames: list[bytes] = []
    for number in range(60):
        color = b"red" if number % 3 else b"green"
        frames += [
            b"SEND\ndestination:/queue/q\n\n%d\0" % number,
            b"SEND\ndestination:/queue/q\n\n%d again\0\n\n\r\n" % number,
            b"SEND\r\ndestination:/topic/t\r\ncolor:%b\r\nreceipt:%d\r\n\r\n%d\0" % (color, number, number),
            b"BEGIN\ntransaction:%d\n\n\0" % number,
            *[b"SEND\ndestination:/queue/q\ntransaction:%d\n\nkept %d\0" % (number, each) for each in range(4)],
            b"COMMIT\ntransaction:%d\nreceipt:commit-%d\n\n\0" % (number, number),
            b"ABORT\ntransaction:%d\nreceipt:refused-%d\n\n\0" % (number, number),
            b"SEND\ndestination:/topic/t\nexpires:9999999999999\ncolor:blue\n\n%d\0" % number,
        ]
    frames += [b"NONSENSE\n\n\0", b"SEND\ndestination:/queue/q\n\nnever\0"]
    world = InProcessBroker(configuration(), connect=recorded)
    world.turns.units = units
    for name in ("sender", "all", "red", "blue", "same"):
        world.client(name).greet(version="1.1")
    world.client("all").send(b"SUBSCRIBE\nid:1\ndestination:/queue/q\n\n\0")
    for name, selector in (("red", b"color='red'"), ("blue", b"color <> 'red'"), ("same", b"color  =  'red'")):
        world.client(name).send(b"SUBSCRIBE\nid:1\ndestination:/topic/t\nselector:%b\n\n\0" % selector)
    turns = world.stats.turns
    world.client("sender").send(b"".join(frames))
    return written(world), world.stats.turns - turns


@pytest.mark.parametrize("units", [1, 7, 40, 400, 4000])
def test_a_burst_is_carried_out_in_slices(units: int) -> None:
    whole, turns_at_once = _after_a_burst(maxsize)
    sliced, turns = _after_a_burst(units)
    assert sliced == whole
    assert turns > turns_at_once
    assert b"NONSENSE" in sliced["sender"]


def test_what_came_before_the_connection_broke_is_carried_out() -> None:
    """However little of it a turn may do."""
    world = InProcessBroker(configuration())
    world.turns.units = 1
    client = world.client("a").greet()
    world.together = True
    client.send(b"SEND\ndestination:/queue/q\n\nx\0" * 50)
    client.drop()
    world.together = False
    world.settle()
    assert world.queue("q").message_count == 50
    assert not world.broker.agenda
    assert client.connection.session.is_closing


def test_who_waits_for_its_turn_is_alive_and_not_blocked() -> None:
    """Its heart-beats are behind what is not carried out yet."""
    world = InProcessBroker(configuration())
    client = world.client("a").greet("heart-beat:1000,0")
    world.turns.units = 1
    world.together = True
    client.send(b"SEND\ndestination:/queue/q\n\nx\0" * 50)
    for _ in range(20):
        world.loop.now_ms += 1500
        world.turns.run()
    assert (client.connection.in_line, client.connection.state, client.transport.reading) == (True, "open", False)
    assert 0 < world.queue("q").message_count < 50
    world.together = False
    world.settle()
    assert world.queue("q").message_count == 50
    assert client.transport.reading
    assert not client.is_closed


def test_the_end_of_the_stream_comes_behind_what_was_sent() -> None:
    world = InProcessBroker(configuration(), connect=recorded)
    world.turns.units = 1
    client = world.client("a").greet()
    world.together = True
    client.send(b"SEND\ndestination:/queue/q\nreceipt:r\n\nx\0" * 50)
    client.half_close()
    world.together = False
    world.settle()
    assert written(world)["a"].count(b"RECEIPT") == 50
    assert client.is_closed


def test_little_is_kept_of_who_sends_more_than_is_carried_out() -> None:
    world = InProcessBroker(configuration())
    world.turns.units = 1
    client = world.client("a").greet()
    world.together = True
    client.send(b"SEND\ndestination:/queue/q\n\nx\0" * 40_000)
    for _ in range(20):
        world.turns.run()
        client.pump()
    assert 40_000 * 28 - len(client.unread) < 3 * 65536


CREATING = {
    "queues": "SEND\ndestination:/queue/{n}\n\nx\0",
    "topics": "SEND\ndestination:/topic/{n}\n\nx\0",
    "subscriptions": "SUBSCRIBE\nid:{n}\ndestination:/topic/t\n\n\0",
}


@pytest.mark.parametrize("kind", CREATING)
def test_who_makes_destinations_pays_for_them(kind: str) -> None:
    """To make one takes as long as to send a few dozen messages, and a turn counts it so."""
    world = InProcessBroker(configuration())
    world.turns.units = 1000
    client = world.client("a").greet()
    world.together = True
    client.send("".join(CREATING[kind].format(n=number) for number in range(200)).encode())
    made: list[int] = []
    for _ in range(100):
        made.append(len(world.broker.addresses) + len(world.broker.queues))
        world.turns.run()
    steps = [after - before for before, after in pairwise(made)]
    assert made[-1] >= 200
    assert max(steps) <= 1000 // 25


@pytest.mark.parametrize("what", ["", "browser:true\n", "grouped"])
def test_looks_with_a_dear_selector_are_paid_for(what: str) -> None:
    """One look at a time: each costs more than a turn has. They all fell into one turn, which lasted seconds."""
    world = InProcessBroker(configuration())
    world.turns.units = TURN_UNITS
    client = world.client("a").greet()
    group = "JMSXGroupID:g\n" if what == "grouped" else ""
    for number in range(20):
        frame = f"SEND\ndestination:/queue/q\n{group}number:{number}\nh:{'x' * 15_000}\n\n\0"
        client.send(frame.encode())
    selector = " OR ".join(["h LIKE '%" + "x" * 44 + "y" + "x" * 44 + "%'"] * 20)
    turns = world.stats.turns
    header = what.replace("grouped", "")
    client.send(f"SUBSCRIBE\nid:1\n{header}destination:/queue/q\nselector:{selector}\n\n\0".encode())
    assert world.stats.turns - turns >= 20
    assert not client.is_closed
