"""No connection's failure leaves its own step of a turn: a socket that fails at any call costs nobody else anything."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import partial
from unittest.mock import Mock, patch

import pytest

from artemis_py.core.publish.publish import CopyPublisher
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import Task
from artemis_py.errors import StorageError
from artemis_py.record_log import MemoryLog
from artemis_py.server.client_socket import LINGER_MS
from artemis_py.server.failures import LINES_MAX, RateLimitedLog, TurnError
from artemis_py.stomp.session.session import Session
from artemis_py.stomp.session.subscriptions import Subscriptions
from tests.kit.core import breaking
from tests.kit.fake_loop import CALLS, Fails, FaultyTransport
from tests.kit.in_process import Client
from tests.wire.test_large import LargeBodiesBroker

pytestmark = pytest.mark.wire

CORE = """<addresses>
    <address name="q"><anycast><queue name="q"/></anycast></address>
    <address name="busy"><anycast><queue name="busy"/></anycast></address>
    <address name="full"><anycast><queue name="full"/></anycast></address>
    <address name="news"><anycast><queue name="news"/></anycast></address>
  </addresses>
  <address-settings><address-setting match="full">
    <max-size-messages>2</max-size-messages><address-full-policy>BLOCK</address-full-policy>
  </address-setting></address-settings>"""
BEAT_MS = 1000
BODY = b"x" * 400_000


class IsolationWorld(LargeBodiesBroker):
    """Three bystanders beside a victim: one reads, one sends and wants receipts, one has heart-beats."""

    def __init__(self) -> None:
        super().__init__("maxUnsentBytes=300000", core=CORE, limit=100_000)
        self.said: list[str] = []
        self.stats.faults._limited_log = RateLimitedLog(self.said.append)
        self.reader = self.client("reader").greet()
        self.reader.send(b"SUBSCRIBE\nid:1\ndestination:/queue/news\nack:client\nconsumer-window-size:-1\n\n\0")
        self.sender = self.client("sender").greet()
        self.beating = self.client("beating").greet(f"heart-beat:0,{BEAT_MS}")
        self.number = 0

    def check_bystanders(self) -> None:
        """Each of them gets what is its own."""
        for client in (self.reader, self.sender, self.beating):
            client.collect().clear()
        self.number += 1
        beats = self.beating.stream.beats
        self.sender.send(f"SEND\ndestination:/queue/news\nreceipt:r{self.number}\n\nnews {self.number}\0".encode())
        assert [one.header("receipt-id") for one in self.sender.collect()] == [f"r{self.number}"]
        assert [one.body for one in self.reader.collect()] == [f"news {self.number}".encode()]
        self.advance(BEAT_MS)
        self.beating.collect()
        assert self.beating.stream.beats > beats, "no heart-beat"


CONNECT = b"CONNECT\naccept-version:1.2\nhost:x\n\n\0"
BEATING = CONNECT.replace(b"\n\n", b"\nheart-beat:%d,%d\n\n" % (BEAT_MS, BEAT_MS))
SUBSCRIBE = b"SUBSCRIBE\nid:1\ndestination:/queue/%b\nack:auto\nconsumer-window-size:-1\n\n\0"
MINE = b"SEND\ndestination:/queue/q\n\nmine\0"
FOR_FULL = b"SEND\ndestination:/queue/full\n\nmine\0"
DISCONNECT = b"DISCONNECT\n\n\0"
FOR_BUSY = ("sender", b"SEND\ndestination:/queue/busy\n\n" + b"y" * 22_500 + b"\0")
LARGE = ("sender", b"SEND\ndestination:/queue/q\ncontent-length:%d\n\n" % len(BODY) + BODY + b"\0")

Life = list[bytes | tuple[str, bytes] | int | str]
"""What a victim says, what a bystander says, the milliseconds that pass, and what the victim does if it still can."""
LIVES: dict[str, Life] = {
    # CONNECT, SEND, SUBSCRIBE, ACK, heart-beats, DISCONNECT, and the client closes
    "leaves politely": [
        BEATING, SUBSCRIBE.replace(b"auto", b"client") % b"q",
        MINE.replace(b"\n\n", b"\nreceipt:1\n\n") + b"BEGIN\ntransaction:t\n\n\0",
        BEAT_MS, MINE.replace(b"\n\n", b"\ntransaction:t\n\n"), b"DISCONNECT\nreceipt:bye\n\n\0", "close its side",
    ],
    # DISCONNECT without a receipt; the client never closes, the linger time ends it
    "is cut off after DISCONNECT": [CONNECT, SUBSCRIBE % b"q" + MINE + DISCONNECT, 2 * LINGER_MS],
    # heart-beats were agreed on and do not come
    "falls silent": [BEATING, 20 * BEAT_MS],
    # messages for it wait in the socket, it reads once, and then never again: it gets an ERROR and is cut off
    "does not read": [
        CONNECT, SUBSCRIBE % b"busy", "stall", *[FOR_BUSY] * 20, "read", "stall", *[FOR_BUSY] * 20, 3 * LINGER_MS,
    ],
    # one that comes out of a file, piece by piece, to a client that stops and goes on
    "gets a large body": [
        CONNECT, SUBSCRIBE % b"q", "stall", LARGE, "read", "read", "read", BEAT_MS, DISCONNECT, 2 * LINGER_MS,
    ],
    # a sender that a full address holds up, and that goes on when somebody has made room
    "waits for room": [
        CONNECT, *[FOR_FULL] * 4, ("reader", SUBSCRIBE.replace(b"id:1", b"id:2") % b"full"),
        ("reader", b"UNSUBSCRIBE\nid:2\n\n\0"), b"DISCONNECT\nreceipt:bye\n\n\0", "drop",
    ],
}  # fmt: skip


class FaultyClient(Client):
    """A client whose server's end is a ``FaultyTransport``."""

    def __init__(self, world: IsolationWorld, fails: Fails = lambda *_: None) -> None:
        self.calls: list[str] = []
        super().__init__(world, partial(FaultyTransport, fails=fails, calls=self.calls))
        world.clients["victim"] = self


def named(errors: Mapping[str, BaseException]) -> Fails:
    """Fails at every call of these names."""
    return lambda _called, name: errors.get(name)


def live(world: IsolationWorld, victim: FaultyClient, life: Life) -> None:
    """Carry out what the life says."""
    for step in life:
        if isinstance(step, bytes):
            victim.send(step)
        elif isinstance(step, tuple):
            world.client(step[0]).send(step[1])
        elif isinstance(step, int):
            world.advance(step)
        elif step == "stall":
            victim.stall()
        elif not victim.transport.lost:
            {"read": victim.read_again, "drop": victim.drop, "close its side": victim.connection.eof_received}[step]()
            world.settle()


def run(life: Life, fails: Fails = lambda *_: None) -> tuple[IsolationWorld, FaultyClient]:
    """One life of a victim among bystanders, who are looked at afterwards; then the victim counts nowhere, and no list
    has it.
    """
    world = IsolationWorld()
    victim = FaultyClient(world, fails)
    live(world, victim, life)
    victim.transport.taken.clear()  # a frame may have been cut off in its middle
    world.check_bystanders()
    if not victim.transport.lost:
        victim.drop()
    turns, connection = world.turns, victim.connection
    world.advance(10 * LINGER_MS)
    assert world.stats.connections == {one.connection for one in (world.reader, world.sender, world.beating)}
    assert world.acceptance.open_count == 3
    assert world.stats.sessions_open == 3
    lists = (turns.output.dirty, turns.input.scheduler, turns.input.blocked, turns.input.lost)
    assert [list(one) for one in lists] == [[], [], [], []]
    assert connection not in turns.output.waiting
    assert connection not in turns.watches._connections.values()
    assert not connection.session.subscriptions.by_key
    assert not connection.session.transactions.by_name
    taken = [queue.name for queue in world.broker.queues.values() if queue.name != "news" and queue.consumer_count]
    assert not taken, "a consumer of the victim is still there"
    return world, victim


def test_the_lives_use_every_call_of_a_socket() -> None:
    seen: set[str] = set()
    for life in LIVES.values():
        world, victim = run(life)
        assert world.said == []
        seen |= set(victim.calls)
    assert seen == set(CALLS)


@pytest.mark.thirds
@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES)
@pytest.mark.parametrize(
    "error", [OSError(107, "Transport endpoint is not connected"), RuntimeError("a bug")], ids=repr
)
@pytest.mark.parametrize("fails_at", [operator.eq, operator.ge], ids=["at", "since"])
def test_a_socket_that_fails_at_any_call_harms_nobody_else(
    life: Life, error: Exception, fails_at: Callable[[int, int], bool]
) -> None:
    _, healthy = run(life)
    for number in range(len(healthy.calls)):
        world, victim = run(life, lambda called, _: error if fails_at(called, number) else None)  # noqa: B023
        if number >= len(victim.calls):  # tiny turns are of other sizes each time, and need more or fewer calls
            continue
        told = len(world.said) + (victim.calls[number] == "write_eof" and isinstance(error, OSError))
        assert told, f"call {number} ({victim.calls[number]}) failed, and nobody was told"


def test_a_reset_before_the_end_of_the_stream_is_no_news() -> None:
    world, victim = run(LIVES["is cut off after DISCONNECT"], named({"write_eof": OSError(107, "not connected")}))
    assert victim.transport.lost
    assert world.said == []
    assert set(world.stats.faults.counts.values()) == {0}


def test_what_broke_off_is_told_with_who_and_where_and_counted() -> None:
    world, _ = run(LIVES["leaves politely"], named({"write": RuntimeError("bad\n\x1b[31m")}))
    assert world.stats.faults.counts["flush"] == 1
    assert len(world.said) == 1
    assert "connection 10.0.0.7:4711 is closed, its step flush failed: RuntimeError: bad\\n\\x1b[31m" in world.said[0]


def test_lines_are_limited_and_what_was_left_out_is_told() -> None:
    world = IsolationWorld()
    for _ in range(50):
        FaultyClient(world, named({"write": RuntimeError("again")})).send(CONNECT)
    assert world.stats.faults.counts["flush"] == 50
    assert len(world.said) == LINES_MAX
    world.check_bystanders()


# ---- what the session or a queue does not survive ------------------------------------------------
#
# What breaks off raises what elsewhere says that a client wrote nonsense.


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("part", "step"),
    [
        *((Session, step) for step in ("receive", "write_messages", "beat", "unblock", "_leave")),
        (Subscriptions, "make_room_for"),
    ],
)
def test_a_session_that_breaks_off_harms_nobody_else(part: type[Session | Subscriptions], step: str) -> None:
    world = IsolationWorld()
    victim = FaultyClient(world)
    session = victim.connection.session
    parts = (session, session.subscriptions)
    nonsense = breaking(
        getattr(part, step), lambda one, *_: one in parts and session.is_open | (step == "_leave"), ValueError
    )
    with patch.object(part, step, nonsense):
        live(world, victim, LIVES["waits for room" if step == "unblock" else "leaves politely"])
        world.check_bystanders()
    assert sum(world.stats.faults.counts.values())
    assert victim.connection not in world.stats.connections


@pytest.mark.interpreted
def test_what_could_not_be_written_goes_to_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    world = IsolationWorld()
    victim = FaultyClient(world)
    victim.send(CONNECT)
    victim.send(b"SUBSCRIBE\nid:1\ndestination:/queue/q\nack:auto\n\n\0")
    writer = next(iter(victim.connection.session.subscriptions.by_consumer.values())).writer

    monkeypatch.setattr(type(writer), "write", Mock(side_effect=ValueError("broken")))
    world.sender.send(b"SEND\ndestination:/queue/q\n\nmine\0" * 3)
    monkeypatch.undo()
    assert victim.transport.lost
    heir = world.subscribed("heir", "auto")
    assert [one.body for one in heir.collect() if one.command == "MESSAGE"] == [b"mine"] * 3


@pytest.mark.interpreted
@pytest.mark.parametrize("step", ["dispatch", "detach", "expire_due"])
def test_a_queue_that_breaks_off_is_set_aside_and_the_others_go_on(step: str) -> None:
    world = IsolationWorld()
    victim = world.subscribed("victim")
    with patch.object(Queue, step, breaking(getattr(Queue, step), lambda queue, *_: queue.name == "q", ValueError)):
        world.sender.send(b"SEND\ndestination:/queue/q\n\nmine\0")
        victim.drop()
        world.advance(60_000)
        world.check_bystanders()
    assert world.queue("q").gate.paused
    assert world.broker.events.counts["ART-1005"] >= 1
    world.broker.queue_operations.resume("q")
    heir = world.subscribed("heir", "auto")
    assert step == "detach" or [one.body for one in heir.collect() if one.command == "MESSAGE"] == [b"mine"]


@pytest.mark.interpreted
def test_a_copy_that_cannot_be_made_is_told_and_the_rest_of_the_turn_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    world = IsolationWorld()

    monkeypatch.setattr(CopyPublisher, "_copy_expired", Mock(side_effect=ValueError("broken")))
    send = f"SEND\ndestination:/queue/q\nexpires:{world.now_ms + 1000}\n\nmine\0"
    world.sender.send(send.encode() * 3)
    world.advance(60_000)
    assert world.broker.events.counts["ART-1006"] == 3
    world.check_bystanders()
    queue = world.queue("q")
    assert (queue.message_count, queue.gate.paused) == (3, True), "they are on the queue that they had left"


@pytest.mark.interpreted
def test_a_task_that_breaks_off_is_told_and_the_rest_of_the_turn_goes_on() -> None:
    class Breaking(Task):
        work = Mock(side_effect=ValueError("broken"))

    world = IsolationWorld()
    world.broker.agenda.add(Breaking())
    world.check_bystanders()
    assert world.broker.events.counts["ART-1006"] == 1


# ---- what stops the broker -----------------------------------------------------------------------


@pytest.mark.interpreted
@pytest.mark.parametrize("where", [(Session, "receive"), (Queue, "dispatch")], ids=["connection", "queue"])
def test_a_disk_that_fails_in_any_step_stops_the_broker(
    where: tuple[type, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = IsolationWorld()
    failures: list[BaseException] = []
    world.turns.on_failure = failures.append

    monkeypatch.setattr(*where, Mock(side_effect=StorageError("no space")))
    world.sender.send(b"SEND\ndestination:/queue/news\n\nx\0")
    assert [str(one) for one in failures] == ["no space"]
    turns = world.stats.turns
    world.sender.send(b"SEND\ndestination:/queue/news\n\nx\0")
    assert world.stats.turns == turns, "a turn ran after the failure"


@pytest.mark.interpreted
def test_a_turn_that_breaks_off_in_nobodys_step_stops_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    world = IsolationWorld()
    failures: list[BaseException] = []
    world.turns.on_failure = failures.append

    monkeypatch.setattr(MemoryLog, "seal", Mock(side_effect=ZeroDivisionError("seal")))
    world.sender.send(b"SEND\ndestination:/queue/news\n\nx\0")
    assert isinstance(failures[0], TurnError)
    assert "ZeroDivisionError: seal" in str(failures[0])
