"""A COMMIT about whose messages many selectors are asked: over several turns, before anything of it happens."""

from __future__ import annotations

import pytest

from artemis_py.message import Message
from tests.wire.in_process import InProcessBroker, configuration

CONNECT = b"CONNECT\naccept-version:1.2\nhost:x\n\n\0"
SELECTORS = 30
SENDS = 20
UNITS = 60


def subscribe(world: InProcessBroker, name: str, selector: str, destination: str = "/topic/t") -> None:
    client = world.client(name)
    client.send(CONNECT)
    client.send(f"SUBSCRIBE\nid:1\ndestination:{destination}\nselector:{selector}\n\n\0".encode())


def kept(world: InProcessBroker, count: int = SENDS, destinations: tuple[str, ...] = ("/topic/t",)) -> None:
    """A transaction with so many messages, to the destinations by turns."""
    sender = world.client("sender")
    sender.send(CONNECT + b"BEGIN\ntransaction:x\n\n\0")
    for number in range(count):
        destination = destinations[number % len(destinations)]
        sender.send(f"SEND\ndestination:{destination}\ntransaction:x\ncolor:red\n\n{number}\0".encode())
    assert [frame.command for frame in sender.collect()] == ["CONNECTED"]


COMMIT = b"COMMIT\ntransaction:x\nreceipt:c\n\n\0"


def bodies(world: InProcessBroker, name: str) -> list[bytes]:
    return [frame.body for frame in world.client(name).collect() if frame.command == "MESSAGE"]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Message]:
    """The messages that selectors look at from here on."""
    messages: list[Message] = []
    lookup = Message.lookup

    def counted(self: Message, name: str) -> str | int | None:
        messages.append(self)
        return lookup(self, name)

    monkeypatch.setattr(Message, "lookup", counted)
    return messages


@pytest.mark.interpreted
def test_selectors_are_asked_over_several_turns_and_each_once(asked: list[Message]) -> None:
    world = InProcessBroker(configuration())
    for number in range(SELECTORS):
        subscribe(world, f"s{number}", f"color <> 'color {number}'")
    kept(world)
    late = world.client("late")
    late.send(CONNECT)
    other = world.client("other")
    other.send(CONNECT)
    world.turns.units = UNITS
    world.together = True
    asked.clear()
    world.client("sender").send(COMMIT)
    other.send(b"SEND\ndestination:/queue/q\nreceipt:o\n\n\0")
    most = turn = 0
    while len(asked) < SENDS * SELECTORS:
        before = len(asked)
        world.turns.run()
        assert len(asked) > before, "each turn asks some"
        most = max(most, len(asked) - before)
        turn += 1
        if turn == 3:
            assert "RECEIPT" in [frame.command for frame in other.collect()], "others have their turns"
            assert not bodies(world, "s0"), "nothing has happened yet"
            late.send(b"SUBSCRIBE\nid:1\ndestination:/topic/t\nselector:color = 'red'\n\n\0")
    assert most <= UNITS
    world.together = False
    world.settle()
    assert len(asked) == SENDS * (SELECTORS + 1), "who came meanwhile was asked, and everybody once"
    expected = [str(number).encode() for number in range(SENDS)]
    assert all(bodies(world, name) == expected for name in ("late", *(f"s{number}" for number in range(SELECTORS))))
    assert world.client("sender").collect()[-1].command == "RECEIPT"


def test_who_subscribes_without_end_keeps_no_commit_waiting() -> None:
    world = InProcessBroker(configuration())
    subscribe(world, "s", "color = 'red'")
    kept(world)
    world.client("busy").send(CONNECT)
    world.turns.units = UNITS
    world.together = True
    world.client("sender").send(COMMIT)
    for number in range(1000):
        selector = f"color <> '{number}'"
        world.client("busy").send(f"SUBSCRIBE\nid:{number}\ndestination:/topic/t\nselector:{selector}\n\n\0".encode())
        world.turns.run()
        if bodies(world, "s"):
            break
    assert len(bodies(world, "s")) == SENDS


def test_queues_that_refuse_are_asked_with_what_is_known() -> None:
    """Of one that is too small nothing comes to any other."""
    world = InProcessBroker(
        configuration(
            "<addresses><address name='t'><multicast>"
            "<queue name='small' overflow-policy='REJECT' max-depth-messages='3'>"
            "<filter string=\"color='red'\"/></queue></multicast></address></addresses>"
        )
    )
    for number in range(SELECTORS):
        subscribe(world, f"s{number}", f"color <> 'color {number}'")
    world.turns.units = UNITS
    kept(world, 4)
    world.client("sender").send(COMMIT)
    (error,) = world.client("sender").collect()[1:]
    assert error.command == "ERROR"
    assert "small" in (error.header("message") or "")
    assert not bodies(world, "s0")
    world.client("sender").collect().clear()


def test_destinations_by_turns() -> None:
    world = InProcessBroker(configuration())
    for place in "tu":
        for number in range(SELECTORS):
            subscribe(world, f"{place}{number}", f"color <> 'color {number}'", f"/topic/{place}")
    world.turns.units = UNITS
    kept(world, SENDS, ("/topic/t", "/topic/u"))
    world.client("sender").send(COMMIT)
    assert bodies(world, "t0") == [str(number).encode() for number in range(0, SENDS, 2)]
    assert bodies(world, f"u{SELECTORS - 1}") == [str(number).encode() for number in range(1, SENDS, 2)]


@pytest.mark.parametrize(("places_max", "command"), [(SENDS * SELECTORS, "RECEIPT"), (SENDS * SELECTORS - 1, "ERROR")])
def test_a_transaction_meets_so_many_queues_only(places_max: int, command: str) -> None:
    world = InProcessBroker(configuration(acceptor=f"maxTransactionPlaces={places_max}"))
    for number in range(SELECTORS):
        subscribe(world, f"s{number}", f"color <> 'color {number}'")
    kept(world)
    world.client("sender").send(COMMIT)
    answer = world.client("sender").collect()[-1]
    assert answer.command == command
    assert len(bodies(world, "s0")) == (SENDS if command == "RECEIPT" else 0)
    if command == "ERROR":
        told = answer.header("message") or ""
        assert f"go to {SENDS * SELECTORS} queues" in told
        assert "maxTransactionPlaces" in told


@pytest.mark.interpreted
def test_copies_for_costly_addresses_end_a_turn(asked: list[Message]) -> None:
    """What a divert copies costs what the selectors at its other end cost."""
    divert = "<divert name='d'><address>orders</address><forwarding-address>t</forwarding-address></divert>"
    world = InProcessBroker(configuration(f"<diverts>{divert}</diverts>"))
    for number in range(SELECTORS):
        subscribe(world, f"s{number}", f"color <> 'color {number}'")
    sender = world.client("sender")
    sender.send(CONNECT)
    world.turns.units = UNITS
    world.together = True
    asked.clear()
    sender.send(b"SEND\ndestination:orders\ndestination-type:MULTICAST\ncolor:red\n\nx\0" * SENDS)
    most = 0
    for _ in range(SENDS):
        before = len(asked)
        world.turns.run()
        most = max(most, len(asked) - before)
    world.together = False
    world.settle()
    assert len(asked) == SENDS * SELECTORS
    assert most <= 4 * SELECTORS
    assert len(bodies(world, "s0")) == SENDS
