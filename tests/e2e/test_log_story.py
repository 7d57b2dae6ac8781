"""The retained log tells the whole story: who sent each message, who got it, what became of it and why, also after a
kill.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest

from artemis_py.message import LargeBody
from artemis_py.storage.format.log_events import (
    Attempted,
    Consumer,
    Delivered,
    Published,
    Purged,
    Refused,
    Session,
    Settled,
    Started,
)
from artemis_py.storage.format.reader import LogReader
from artemis_py.storage.format.scan import log_files
from tests.kit.client import StompSocket, connected
from tests.kit.crash.retained import SENDER, Telling
from tests.kit.process import DAYS, STOMP, BrokerProcess, storing

pytestmark = pytest.mark.e2e

CORE = """\
    <journal-file-size>64K</journal-file-size>
    <journal-compact-min-files>2</journal-compact-min-files>
    <journal-compact-percentage>80</journal-compact-percentage>
    <message-expiry-scan-period>20</message-expiry-scan-period>
    <diverts>
      <divert name="moved"><address>door</address><forwarding-address>room</forwarding-address>
        <exclusive>true</exclusive></divert>
    </diverts>
"""
ADDRESSES = """\
      <address name="late"><anycast><queue name="late"/></anycast></address>
      <address name="mayfly"><anycast><queue name="mayfly" purge-on-no-consumers="true"/></anycast></address>
"""
SETTINGS = """\
      <address-setting match="#">
        <dead-letter-address>dead</dead-letter-address>
        <auto-create-dead-letter-resources>true</auto-create-dead-letter-resources>
        <expiry-address>late</expiry-address>
        <max-delivery-attempts>2</max-delivery-attempts>
        <redelivery-delay>0</redelivery-delay>
        <auto-delete-queues>false</auto-delete-queues>
      </address-setting>
      <address-setting match="ring"><default-ring-size>1</default-ring-size></address-setting>
      <address-setting match="narrow">
        <max-size-messages>2</max-size-messages><address-full-policy>DROP</address-full-policy>
      </address-setting>
      <address-setting match="strict">
        <max-size-messages>1</max-size-messages><address-full-policy>FAIL</address-full-policy>
      </address-setting>
      <address-setting match="deep">
        <max-size-messages>3</max-size-messages><page-size-bytes>1K</page-size-bytes>
      </address-setting>
      <address-setting match="deep.news">
        <max-size-messages>2</max-size-messages><page-size-bytes>1K</page-size-bytes>
      </address-setting>
"""


telling = partial(storing, acceptors={"stomp": STOMP}, core=CORE, addresses=ADDRESSES, settings=SETTINGS, kept=DAYS)
"""A broker that keeps its log below a folder."""


def client(broker: BrokerProcess, name: str, version: str = "1.2") -> StompSocket:
    """A client with a login and a client-id of that name."""
    return connected(broker.port, version, login=name, client_id=name)


def send(socket: StompSocket, name: str, destination: str, *bodies: str, **headers: str) -> None:
    """Persistent messages, each confirmed; underscores in names of headers stand for hyphens only where they are not
    part of the name.
    """
    for body in bodies:
        fields = {"destination": destination, "persistent": "true", SENDER: name, **headers}
        socket.ask("SEND", fields, body.encode())


# ---- what the log says ---------------------------------------------------------------------------


class Biographies:
    """What happened to each body, in order and in words, with names instead of numbers."""

    def __init__(self, folder: Path) -> None:
        self.of: dict[str, list[str]] = {}
        self.refused: list[tuple[str, str, str, int]] = []
        self.purged: list[tuple[str, int]] = []
        self.closed: dict[str, str] = {}
        self.starts: set[int] = set()
        self._names = {0: "nobody"}
        self._bodies: dict[int, str] = {}
        log = LogReader([folder / "kept", folder / "journal"])
        for event in log.events():
            match event:
                case Session(session=number):
                    assert event.client.startswith("127.0.0.1:")
                    assert event.protocol in ("STOMP 1.1", "STOMP 1.2")
                    assert event.client_id == event.login
                    self._names[number] = event.login
                case Consumer(consumer=number, session=session):
                    self._names[number] = f"{self._names[session]}/{event.subscription}"
                    if event.closed:
                        self.closed[self._names[number]] = event.closed
                case Published(kept=kept, session=session):
                    assert not isinstance(kept.message.body, LargeBody)
                    self._bodies[kept.message.id] = kept.message.body.decode()
                    paged = " in a page" if event.place else ""
                    self._add((kept.message.id,), f"to {kept.message.head.address} from {self._names[session]}{paged}")
                case Delivered(message_ids=message_ids, consumer=consumer):
                    self._add(message_ids, f"to {self._names[consumer]}")
                case Attempted(message_id=number, consumer=consumer):
                    self._add((number,), f"failure {event.attempts} of {self._names[consumer]}: {event.cause}")
                case Settled(message_ids=message_ids, reason=reason, consumer=consumer):
                    by = f" by {self._names[consumer]}" if consumer else ""
                    self._add(message_ids, f"{reason}{by}")
                case Refused(address=address, policy=policy, session=session, count=count):
                    self.refused.append((address, policy, self._names[session], count))
                case Purged(reason=reason, count=count):
                    self.purged.append((reason, count))
                case Started(name=name, start=start):
                    assert name == "e2e"
                    self.starts.add(start)
        assert log.damages == []

    def _add(self, message_ids: tuple[int, ...], words: str) -> None:
        for number in message_ids:
            self.of.setdefault(self._bodies[number], []).append(words)


def adds_up(folder: Path) -> Telling:
    """The log does not contradict itself, nor what the broker counted; each file tells of all whom it names."""
    files = {file.path.name: file.path.read_bytes() for file in log_files([folder / "kept", folder / "journal"])}
    assert all(any(data) for data in [*files.values()][:-1]), "only the last file may have nothing in it"
    return Telling().read(files)


def fills_segments(broker: BrokerProcess, rounds: int) -> None:
    """Enough traffic that earlier segments are retired."""
    with client(broker, "erin") as erin:
        erin.subscribe("/queue/bulk", id="b", ack="client")
        for number in range(rounds):
            send(erin, "erin", "/queue/bulk", f"bulk {number} " + "x" * 1000)
            erin.acknowledge(erin.message())


def test_every_way_of_giving_a_message_back(tmp_path: Path) -> None:
    """One queue, two consumers, and every way of giving a message back."""
    with telling(tmp_path) as broker, client(broker, "alice") as alice, client(broker, "carol") as carol:
        send(alice, "alice", "/queue/work", "acked", "refused", "dead", "aborted")
        carol.subscribe("/queue/work", id="c")
        messages = {}
        for _ in range(4):
            message = carol.message()
            messages[message.body] = message
        carol.acknowledge(messages[b"acked"])
        carol.ask("NACK", {"id": messages[b"refused"].header("ack")})
        carol.acknowledge(carol.message())
        carol.ask("NACK", {"id": messages[b"dead"].header("ack")})
        carol.ask("NACK", {"id": carol.message().header("ack")})
        carol.ask("BEGIN", {"transaction": "t"})
        carol.ask("ACK", {"id": messages[b"aborted"].header("ack"), "transaction": "t"})
        carol.ask("ABORT", {"transaction": "t"})
        again = carol.message()
        carol.ask("BEGIN", {"transaction": "u"})
        carol.ask(
            "SEND", {"destination": "/queue/out", "persistent": "true", SENDER: "carol", "transaction": "u"}, b"2"
        )
        carol.ask("ACK", {"id": again.header("ack"), "transaction": "u"})
        carol.ask("UNSUBSCRIBE", {"id": "c"})
        carol.ask("COMMIT", {"transaction": "u"})
        carol.ask("DISCONNECT")
    told = Biographies(tmp_path)
    lives = told.of
    got, published = "to carol/c", "to work from alice"
    assert lives["acked"] == [published, got, "acked by carol/c"]
    assert lives["refused"] == [published, got, "failure 1 of carol/c: nacked", got, "acked by carol/c"]
    assert lives["dead"] == [
        published,
        got,
        "failure 1 of carol/c: nacked",
        got,
        "failure 2 of carol/c: nacked",
        "dead by carol/c",
        "to dead from nobody",
    ]
    assert lives["aborted"] == [published, got, "failure 1 of carol/c: aborted", got, "acked by carol/c"]
    assert lives["2"] == ["to out from carol"]
    assert told.closed["carol/c"] == "left"


def test_a_consumer_that_is_lost(tmp_path: Path) -> None:
    """A client that vanishes with a message; another gets it."""
    with (
        telling(tmp_path) as broker,
        client(broker, "alice") as alice,
        client(broker, "dave") as dave,
        client(broker, "carol") as carol,
    ):
        dave.subscribe("/queue/fragile", id="d")
        send(alice, "alice", "/queue/fragile", "dropped")
        dave.message()
        dave.nothing_waits_but_messages()
        dave.reset()
        carol.subscribe("/queue/fragile", id="f", ack="auto")
        assert carol.message().header("redelivered") == "true"
        carol.nothing_waits_but_messages()
    told = Biographies(tmp_path)
    lives = told.of
    assert lives["dropped"] == [
        "to fragile from alice",
        "to dave/d",
        "failure 1 of dave/d: lost",
        "to carol/f",
        "acked by carol/f",
    ]
    assert told.closed["dave/d"] == "lost"


def test_what_overflows(tmp_path: Path) -> None:
    """Addresses that take no more, rings, time limits, duplicates."""
    with telling(tmp_path) as broker:
        with client(broker, "bob") as bob, client(broker, "carol") as carol:
            send(bob, "bob", "/queue/ring", "replaced", "newer")
            send(bob, "bob", "/queue/door", "diverted")
            send(bob, "bob", "/queue/narrow", "n1", "n2", "n3", "n4")
            send(bob, "bob", "/queue/seen", "original", _AMQ_DUPL_ID="one")
            send(bob, "bob", "/queue/seen", "repeated", _AMQ_DUPL_ID="one")
            send(bob, "bob", "/queue/hasty", "expired", expires="1")
            carol.subscribe("/queue/late", id="l")
            carol.acknowledge(carol.message())
            send(bob, "bob", "/queue/strict", "s1")
            bob.send(
                "SEND", {"destination": "/queue/strict", "persistent": "true", SENDER: "bob", "receipt": "r"}, b"s2"
            )
            bob.expect("ERROR")
        with client(broker, "alice", "1.1") as alice:
            alice.ask("BEGIN", {"transaction": "t"})
            for body in (b"s3", b"s4"):
                fields = {"destination": "/queue/strict", "persistent": "true", SENDER: "alice", "transaction": "t"}
                alice.ask("SEND", fields, body)
            alice.send("COMMIT", {"transaction": "t", "receipt": "c"})
            alice.expect("ERROR")
    told = Biographies(tmp_path)
    lives = told.of
    assert lives["replaced"] == ["to ring from bob", "replaced"]
    assert lives["newer"] == ["to ring from bob"]
    assert lives["diverted"] == ["to room from bob"]
    assert lives["n1"] == lives["n2"] == ["to narrow from bob"]
    assert lives["original"] == ["to seen from bob"]
    assert lives["expired"] == [
        "to hasty from bob",
        "expired",
        "to late from nobody",
        "to carol/l",
        "acked by carol/l",
    ]
    assert not {"n3", "n4", "repeated", "s2", "s3", "s4"} & set(lives)
    assert told.refused == [
        ("narrow", "drop", "bob", 1),
        ("narrow", "drop", "bob", 1),
        ("seen", "duplicate", "bob", 1),
        ("strict", "fail", "bob", 1),
        ("strict", "fail", "alice", 2),
    ]


def test_pages(tmp_path: Path) -> None:
    """More than an address holds in memory: some are read, the rest is deleted with its queue."""
    with telling(tmp_path) as broker:
        with client(broker, "bob") as bob, client(broker, "carol") as carol:
            send(bob, "bob", "/queue/deep", *(f"deep {number}" for number in range(8)))
            carol.subscribe("/queue/deep", id="p", ack="client")
            messages = [carol.message() for _ in range(8)]
            carol.acknowledge(messages[5])
            carol.ask("NACK", {"id": messages[7].header("ack")})
            carol.ask("UNSUBSCRIBE", {"id": "p"})
            carol.ask("SUBSCRIBE", {"id": "n", "destination": "/topic/deep.news", "durable-subscription-name": "paper"})
            carol.ask("UNSUBSCRIBE", {"id": "n"})  # by its id alone: its queue stays
        with client(broker, "bob") as bob, client(broker, "carol") as carol:
            send(bob, "bob", "/topic/deep.news", *(f"news {number}" for number in range(40)))
            carol.ask("UNSUBSCRIBE", {"id": "n", "durable-subscription-name": "paper"})
    told = Biographies(tmp_path)
    lives = told.of
    for number in range(8):
        where = "" if number < 3 else " in a page"
        assert lives[f"deep {number}"][:2] == [f"to deep from bob{where}", "to carol/p"]
    assert [lives[f"deep {number}"][2:] for number in range(6)] == [["acked by carol/p"]] * 6
    assert lives["deep 6"][2:] == lives["deep 7"][2:] == ["failure 1 of carol/p: nacked", "to carol/p"]
    assert [lives[f"news {number}"] for number in range(2)] == [["to deep.news from bob", "deleted"]] * 2
    news = [lives[f"news {number}"] for number in range(2, 40)]
    assert all(life[0] == "to deep.news from bob in a page" for life in news)
    assert {reason for reason, _ in told.purged} == {"deleted"}
    assert sum(count for _, count in told.purged) + sum(len(life) == 2 for life in news) == 38


def test_a_queue_that_keeps_nothing_without_a_consumer(tmp_path: Path) -> None:
    """The last consumer leaves a queue that keeps nothing then."""
    with telling(tmp_path) as broker, client(broker, "bob") as bob, client(broker, "carol") as carol:
        carol.subscribe("/queue/mayfly", id="m", consumer_window_size="0")
        send(bob, "bob", "/queue/mayfly", "mayfly 1", "mayfly 2")
        carol.message()
        carol.ask("UNSUBSCRIBE", {"id": "m"})
    lives = Biographies(tmp_path).of
    assert lives["mayfly 1"] == ["to mayfly from bob", "to carol/m", "abandoned"]
    assert lives["mayfly 2"] == ["to mayfly from bob", "abandoned"]


def test_the_story_goes_on_after_a_kill(tmp_path: Path) -> None:
    with telling(tmp_path) as broker:
        fills_segments(broker, 100)
        with client(broker, "frank") as frank, client(broker, "alice") as alice:
            frank.subscribe("/queue/held", id="h")
            send(alice, "alice", "/queue/held", "held")
            frank.message()
            frank.nothing_waits_but_messages()
            broker.kill()
    assert log_files([tmp_path / "kept"]), "no segment was retired"
    before = Biographies(tmp_path)
    assert before.of["held"] == ["to held from alice", "to frank/h"]
    assert adds_up(tmp_path).depths > 2
    with telling(tmp_path) as broker:
        with client(broker, "gina") as gina:
            gina.subscribe("/queue/held", id="g")
            gina.acknowledge(gina.message())
        fills_segments(broker, 100)
    told = Biographies(tmp_path)
    assert told.of["held"] == ["to held from alice", "to frank/h", "to gina/g", "acked by gina/g"]
    for body, life in before.of.items():
        assert told.of[body][: len(life)] == life, body
    assert "frank/h" not in told.closed
    assert len(told.starts) == 2
    assert adds_up(tmp_path).depths > 4


def test_a_journal_that_begins_anew_goes_on_behind_what_is_retained(tmp_path: Path) -> None:
    """With the numbers of records, and of messages."""
    with telling(tmp_path) as broker:
        fills_segments(broker, 100)
    shutil.rmtree(tmp_path / "journal")
    before = [event.lsn for event in LogReader([tmp_path / "kept"]).events()]
    assert before, "no segment was retired"
    with telling(tmp_path) as broker, client(broker, "alice") as alice:
        send(alice, "alice", "/queue/q", "a new beginning")
    events = list(LogReader([tmp_path / "kept", tmp_path / "journal"]).events())
    lsns = [event.lsn for event in events]
    assert lsns == sorted(set(lsns))
    assert lsns[: len(before)] == before
    messages = [event.kept.message for event in events if isinstance(event, Published)]
    assert len({message.id for message in messages}) == len(messages)
    assert messages[-1].body == b"a new beginning"
