"""Bodies in files of their own: in as far as the disk follows, out as far as the client reads, nothing overtakes."""

from __future__ import annotations

import pytest

from artemis_py.record_log import MemoryLog
from artemis_py.server.client_socket import HIGH_BYTES
from artemis_py.server.turns import READ_BYTES_MAX
from artemis_py.storage.bodies import PIECE_BYTES, UNWRITTEN_BYTES_MAX
from tests.kit.disk import Fault
from tests.kit.in_process import Client, DiskLog, InProcessBroker, configuration
from tests.wire.bodies import bodies_on_queues, files_of
from tests.wire.cutting import Cutting, byte_by_byte, whole

pytestmark = pytest.mark.wire

LIMIT = 1000
KIBIBYTE = 1024
BODY = bytes(range(1, 256)) * 4096
"""About a megabyte, without a NUL: four pieces when it is sent."""
CORE = """<addresses><address name="q"><anycast><queue name="q"/></anycast></address></addresses>"""

FULL_POLICY = """<address-settings><address-setting match="#"><disk-full-policy>{}</disk-full-policy></address-setting>
</address-settings>"""


class LargeBodiesBroker(InProcessBroker):
    """A broker for which bodies from a thousand bytes on are large."""

    def __init__(self, acceptor: str = "", log: MemoryLog | None = None, core: str = CORE, limit: int = LIMIT) -> None:
        limits = f"stompMinLargeMessageSize={limit}"
        super().__init__(configuration(core, ";".join(filter(None, (limits, acceptor)))), log=log)

    def subscribed(self, name: str, ack: str = "client", *headers: str, version: str = "1.2") -> Client:
        """A client that reads the queue."""
        client = self.client(name).greet(*headers, version=version)
        lines = f"id:1\ndestination:/queue/q\nack:{ack}\nconsumer-window-size:-1\n"
        client.send(f"SUBSCRIBE\n{lines}\n\0".encode())
        return client

    def fill(self, *, full: bool) -> None:
        """The disk is full, or has room again, as ``DiskWatch`` tells it."""
        self.broker.memory.disk_full = self.large.body_writer.is_full = full
        self.turns.schedule()
        self.settle()


def sent(body: bytes, *headers: str, sized: bool = True) -> bytes:
    """A SEND frame."""
    length = (f"content-length:{len(body)}",) if sized else ()
    lines = "".join(f"{header}\n" for header in ("destination:/queue/q", *headers, *length))
    return f"SEND\n{lines}\n".encode() + body + b"\0"


def summary(client: Client) -> list[str]:
    """Commands, with the receipt or the size of the body."""
    return [f"{one.command} {one.header('receipt-id') or len(one.body)}" for one in client.heard()]


# ---- in and out ----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
@pytest.mark.parametrize("cutting", [whole, byte_by_byte], ids=["whole", "cut"])
@pytest.mark.parametrize("sized", [True, False], ids=["sized", "unsized"])
@pytest.mark.parametrize("size", [LIMIT - 1, LIMIT, LIMIT + 1, PIECE_BYTES, PIECE_BYTES + 1, len(BODY)])
def test_a_body_comes_out_as_it_went_in(version: str, cutting: Cutting, sized: bool, size: int) -> None:
    world = LargeBodiesBroker()
    producer, consumer = world.client("p").greet(version=version), world.subscribed("c", version=version)
    body = BODY[:size]
    for part in cutting(sent(body, "foo:bar", sized=sized)):
        producer.send(part)
    assert len(files_of(world)) == (size >= LIMIT)
    frame = consumer.heard()[0]
    assert frame.body == body
    assert frame.header("foo") == "bar"
    has_length = sized or version != "1.0"
    assert frame.header("content-length") == (str(size) if has_length else None)


def test_a_sized_body_may_have_nuls() -> None:
    world = LargeBodiesBroker()
    producer, consumer = world.client("p").greet(), world.subscribed("c")
    producer.send(sent(bytes(300_000)) + sent(b"\0" * LIMIT))
    assert [frame.body for frame in consumer.heard()] == [bytes(300_000), bytes(LIMIT)]


def test_the_window_counts_what_is_in_files() -> None:
    world = LargeBodiesBroker()
    producer = world.client("p").greet()
    consumer = world.client("c").greet()
    consumer.send(b"SUBSCRIBE\nid:1\ndestination:/queue/q\nack:client\nconsumer-window-size:5000\n\n\0")
    for _ in range(5):
        producer.send(sent(BODY[:3000]))
    assert summary(consumer) == ["MESSAGE 3000", "MESSAGE 3000"]


def test_what_is_in_a_file_is_not_in_memory() -> None:
    world = LargeBodiesBroker()
    producer = world.client("p").greet()
    producer.send(sent(BODY))
    queue = world.queue("q")
    assert queue.contents.counters.size_bytes > len(BODY)
    assert world.broker.memory_bytes < LIMIT


def test_without_a_limit_every_body_is_in_memory() -> None:
    world = InProcessBroker(configuration(CORE, "stompMinLargeMessageSize=-1"))
    world.client("p").greet().send(sent(BODY))
    assert files_of(world) == set()
    assert world.broker.memory_bytes > len(BODY)


# ---- a SEND waits for its file -------------------------------------------------------------------


def test_a_send_and_all_behind_it_wait_for_the_file() -> None:
    world = LargeBodiesBroker()
    producer, other, consumer = world.client("p").greet(), world.client("o").greet(), world.subscribed("c", "auto")
    world.disk_works = False
    producer.send(sent(BODY, "receipt:1") + sent(b"small", "receipt:2"))
    other.send(sent(b"of another", "receipt:3"))
    assert (summary(producer), summary(other), summary(consumer)) == ([], ["RECEIPT 3"], ["MESSAGE 10"])
    assert producer.connection.state == "blocked"
    world.disk_works = True
    world.settle()
    assert summary(producer) == ["RECEIPT 1", "RECEIPT 2"]
    assert summary(consumer) == [f"MESSAGE {len(BODY)}", "MESSAGE 5"]
    assert producer.connection.state == "open"


def test_a_persistent_body_is_synced_before_its_send() -> None:
    world = LargeBodiesBroker()
    producer = world.client("p").greet()
    producer.send(sent(BODY, "persistent:true", "receipt:1"))
    world.disk.crash()
    names = [name for name in world.disk.names() if name.endswith(".body")]
    assert world.disk.read(names[0]) == BODY


def test_a_sender_waits_in_silence_and_is_kept_alive() -> None:
    """Neither side's heart-beats break off because the disk is slow."""
    world = LargeBodiesBroker()
    producer = world.client("p").greet("heart-beat:1000,500")
    world.disk_works = False
    producer.send(sent(BODY, "receipt:1"))
    world.advance(10_000)
    assert summary(producer) == []
    assert not producer.is_closed
    assert producer.stream.beats >= 19
    world.disk_works = True
    world.settle()
    assert summary(producer) == ["RECEIPT 1"]
    world.advance(10_000)
    assert producer.is_closed, "and then it has to show signs of life again"


def test_each_part_of_a_body_is_a_sign_of_life() -> None:
    world = LargeBodiesBroker()
    producer = world.client("p").greet("heart-beat:1000,0")
    frame = sent(BODY, "receipt:1")
    for start in range(0, len(frame), 100_000):
        producer.send(frame[start : start + 100_000])
        world.advance(1500)
    assert summary(producer) == ["RECEIPT 1"]


def test_a_body_that_stops_coming_is_silence() -> None:
    world = LargeBodiesBroker()
    producer = world.client("p").greet("heart-beat:1000,0")
    producer.send(sent(BODY)[:500_000])
    world.advance(10_000)
    assert producer.is_closed
    assert files_of(world) == set()


# ---- a disk that cannot follow -------------------------------------------------------------------


def test_a_sender_is_read_no_faster_than_the_disk_writes() -> None:
    world = LargeBodiesBroker()
    producer = world.client("p").greet()
    world.disk_works = False
    frame = sent(BODY * 10, "receipt:1")
    producer.send(frame)
    read_bytes = len(frame) - len(producer.unread)
    assert UNWRITTEN_BYTES_MAX <= read_bytes < UNWRITTEN_BYTES_MAX + 200_000
    assert not producer.transport.reading
    world.disk_works = True
    world.settle()
    assert summary(producer) == ["RECEIPT 1"]


def test_many_senders_together_wait_for_the_disk() -> None:
    world = LargeBodiesBroker()
    world.disk_works = False
    producers = [world.client(f"p{number}").greet() for number in range(20)]
    for producer in producers:
        producer.send(sent(BODY, "receipt:1"))
    assert world.large.body_writer.unwritten_bytes < UNWRITTEN_BYTES_MAX + 20 * 64 * KIBIBYTE
    small = world.client("small").greet()
    small.send(sent(b"small", "receipt:2"))
    assert summary(small) == ["RECEIPT 2"]
    world.disk_works = True
    world.settle()
    assert [summary(producer) for producer in producers] == [["RECEIPT 1"]] * 20


def test_a_disk_that_fails_ends_everything() -> None:
    """The same rule as for the journal: nothing leaves any more, and one place is told why."""
    world = LargeBodiesBroker()
    failures: list[str] = []
    world.turns.on_failure = lambda failure: failures.append(str(failure))
    producer = world.client("p").greet()
    world.disk.fault = Fault(0, "Input/output error")
    producer.send(sent(BODY, "receipt:1"))
    producer.send(sent(b"small", "receipt:2"))
    assert summary(producer) == []
    assert "Input/output error" in failures[0]


# ---- bodies that do not arrive -------------------------------------------------------------------


@pytest.mark.parametrize("works", [True, False], ids=["idle disk", "slow disk"])
@pytest.mark.parametrize("sized", [True, False], ids=["sized", "unsized"])
def test_a_body_cut_off_by_the_network_leaves_nothing(works: bool, sized: bool) -> None:
    world = LargeBodiesBroker()
    producer = world.client("p").greet()
    world.disk_works = works
    producer.send(sent(BODY, sized=sized)[:700_000])
    producer.drop()
    world.disk_works = True
    world.settle()
    assert files_of(world) == set()
    assert world.queue("q").message_count == 0


def test_a_whole_body_whose_sender_is_gone_is_not_sent() -> None:
    world = LargeBodiesBroker()
    producer = world.client("p").greet()
    world.disk_works = False
    producer.send(sent(BODY))
    producer.drop()
    world.disk_works = True
    world.settle()
    assert (files_of(world), world.queue("q").message_count) == (set(), 0)


def test_a_sender_that_closed_its_side_is_answered() -> None:
    world = LargeBodiesBroker()
    producer = world.client("p").greet()
    world.disk_works = False
    producer.send(sent(BODY, "receipt:1"))
    producer.half_close()
    assert (summary(producer), producer.is_closed) == ([], False)
    world.disk_works = True
    world.settle()
    assert (summary(producer), producer.is_closed) == (["RECEIPT 1"], True)
    assert world.queue("q").message_count == 1


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_a_body_beyond_the_limit_is_refused(version: str) -> None:
    world = LargeBodiesBroker("maxBodyBytes=500000")
    for name, sized in (("sized", True), ("unsized", False)):
        producer = world.client(name).greet(version=version)
        producer.send(sent(BODY, sized=sized))
        frame = producer.heard()[0]
        assert (frame.command, producer.is_closed) == ("ERROR", True)
    assert files_of(world) == set()


def test_a_content_length_that_is_wrong() -> None:
    world = LargeBodiesBroker()
    producer = world.client("p").greet()
    producer.send(sent(BODY)[:-1] + b"x")
    assert [frame.command for frame in producer.heard()] == ["ERROR"]
    assert files_of(world) == set()


@pytest.mark.parametrize("head", ["SEND\n", "ACK\nid:1-1\n"], ids=["no destination", "no SEND"])
def test_large_bodies_of_frames_that_mean_nothing_are_not_kept(head: str) -> None:
    world = LargeBodiesBroker()
    producer = world.client("p").greet(version="1.0")
    producer.send(f"{head}content-length:{len(BODY)}\n\n".encode() + BODY + b"\0" + sent(b"after", "receipt:1"))
    assert [frame.command for frame in producer.heard()] == ["ERROR", "RECEIPT"]
    assert files_of(world) == set()


# ---- out: in order, and no more than the client takes ----------------------------------------------


def test_nothing_overtakes_a_body_that_is_being_sent() -> None:
    world = LargeBodiesBroker()
    consumer = world.subscribed("c", "auto", "heart-beat:0,500")
    producer = world.client("p").greet()
    consumer.stall()
    producer.send(sent(BODY) + sent(b"second"))
    consumer.send(b"BEGIN\ntransaction:t\nreceipt:1\n\n\0")
    world.advance(1100)
    for _ in range(20):
        consumer.read_again()
        consumer.stall()
    consumer.read_again()
    assert summary(consumer) == [f"MESSAGE {len(BODY)}", "RECEIPT 1", "MESSAGE 6"]
    assert consumer.stream.beats == 2


def test_slow_clients_cost_a_piece_each() -> None:
    world = LargeBodiesBroker()
    world.client("p").greet().send(sent(BODY))
    slow = []
    for number in range(10):
        client = world.client(f"c{number}").greet()
        client.stall()
        client.send(b"SUBSCRIBE\nid:1\ndestination:/queue/q\nack:auto\nbrowser:true\n\n\0")
        slow.append(client)
    assert {client.connection.state for client in slow} == {"stalled"}
    for client in slow:
        assert client.transport.get_write_buffer_size() <= HIGH_BYTES + PIECE_BYTES
    for client in slow:
        while client.transport.get_write_buffer_size():
            client.read_again()
        assert summary(client) == [f"MESSAGE {len(BODY)}"]
        assert client.connection.state == "open"


def test_the_limit_of_unread_bytes_is_about_memory() -> None:
    world = LargeBodiesBroker("maxUnsentBytes=500000")
    consumer = world.subscribed("c")
    consumer.stall()
    world.client("p").greet().send(sent(BODY))
    assert not consumer.is_closed
    receipt = b"BEGIN\ntransaction:%d\nreceipt:" + b"x" * 10_000 + b"\n\n\0"
    for number in range(60):
        consumer.send(receipt % number + b"ABORT\ntransaction:%d\n\n\0" % number)
    assert consumer.is_closed, "what waits behind the body is in memory, and it counts"


def test_a_lost_connection_gives_the_message_back() -> None:
    world = LargeBodiesBroker()
    consumer = world.subscribed("c")
    consumer.stall()
    world.client("p").greet().send(sent(BODY))
    consumer.drop()
    frame = world.subscribed("d").heard()[0]
    assert (frame.body, frame.header("redelivered")) == (BODY, "true")


def test_with_ack_auto_a_lost_connection_is_the_end_of_it() -> None:
    world = LargeBodiesBroker()
    consumer = world.subscribed("c", "auto")
    consumer.stall()
    world.client("p").greet().send(sent(BODY))
    assert len(files_of(world)) == 1
    consumer.drop()
    assert (files_of(world), world.queue("q").message_count) == (set(), 0)


def test_a_body_stays_while_somebody_reads_it() -> None:
    """An acknowledgement by one does not cut off another in the middle of the body."""
    world = LargeBodiesBroker()
    browser = world.client("b").greet()
    world.client("p").greet().send(sent(BODY))
    browser.stall()
    browser.send(b"SUBSCRIBE\nid:1\ndestination:/queue/q\nack:auto\nbrowser:true\n\n\0")
    consumer = world.subscribed("c", "auto")
    assert summary(consumer) == [f"MESSAGE {len(BODY)}"]
    assert world.queue("q").message_count == 0
    assert len(files_of(world)) == 1
    browser.read_again()
    assert summary(browser) == [f"MESSAGE {len(BODY)}"]
    assert files_of(world) == set()


def test_a_body_that_cannot_be_read_cuts_its_reader_off(capsys: pytest.CaptureFixture[str]) -> None:
    world = LargeBodiesBroker()
    world.client("p").greet().send(sent(BODY))
    name = next(name for name in world.disk.names() if name.endswith(".transient"))
    del world.disk.files[name].data[500_000:]
    consumer = world.subscribed("c")
    assert consumer.is_closed
    assert consumer.heard() == []
    assert f"{name} ends at byte 500000" in capsys.readouterr().err


# ---- out: the end of a connection ----------------------------------------------------------------


def test_a_disconnect_is_confirmed_behind_the_body() -> None:
    world = LargeBodiesBroker()
    consumer = world.subscribed("c", "auto")
    consumer.stall()
    world.client("p").greet().send(sent(BODY))
    consumer.send(b"DISCONNECT\nreceipt:bye\n\n\0")
    for _ in range(10):
        world.advance(1900)
        consumer.read_again()
        consumer.stall()
    assert summary(consumer) == [f"MESSAGE {len(BODY)}", "RECEIPT bye"]
    assert consumer.is_closed


def test_a_half_closed_reader_gets_the_whole_body() -> None:
    world = LargeBodiesBroker()
    consumer = world.subscribed("c", "auto")
    consumer.stall()
    world.client("p").greet().send(sent(BODY))
    consumer.half_close()
    for _ in range(10):
        consumer.read_again()
        consumer.stall()
    assert summary(consumer) == [f"MESSAGE {len(BODY)}"]
    assert consumer.is_closed


def test_who_is_gone_without_a_word_does_not_hold_a_body_for_ever() -> None:
    world = LargeBodiesBroker()
    consumer = world.subscribed("c", "client", "heart-beat:1000,0")
    consumer.stall()
    world.client("p").greet().send(sent(BODY))
    world.advance(20_000)
    assert consumer.transport.lost
    assert bodies_on_queues(world) == files_of(world)
    assert world.queue("q").contents.order.count == 1


# ---- files go when the log is durable ------------------------------------------------------------


class SlowLog(DiskLog):
    """Numbers what settles messages, too; nothing is durable until the test says so."""

    settled = DiskLog.number


def test_a_file_outlives_its_message_until_the_log_is_durable() -> None:
    """A crash must not bring a message back without its body."""
    log = SlowLog()
    world = LargeBodiesBroker(log=log)
    world.client("p").greet().send(sent(BODY, "persistent:true"))
    log.durable_lsn = 1
    consumer = world.subscribed("c")
    consumer.send(b"ACK\nid:%s\n\n\0" % (consumer.heard()[0].header("ack") or "").encode())
    assert (log.last_lsn, world.queue("q").message_count) == (2, 0)
    assert len(files_of(world)) == 1
    log.durable_lsn = 2
    assert files_of(world) == set()


# ---- a full disk ---------------------------------------------------------------------------------


def test_a_full_disk_makes_the_sender_of_a_large_body_wait() -> None:
    """In the middle of the body, and nothing of it comes to the disk meanwhile but what was read already."""
    world = LargeBodiesBroker(core=CORE + FULL_POLICY.format("BLOCK"))
    world.fill(full=True)
    producer, consumer = world.client("p").greet(), world.subscribed("c")
    producer.send(sent(BODY, "receipt:1"))
    assert producer.connection.state == "blocked"
    assert world.large.body_writer.unwritten_bytes == 0
    assert sum(len(world.disk.read(name)) for name in world.disk.names()) <= READ_BYTES_MAX
    world.fill(full=False)
    assert summary(producer) == ["RECEIPT 1"]
    assert [frame.body for frame in consumer.heard()] == [BODY]


@pytest.mark.parametrize(("policy", "answer"), [("FAIL", "ERROR"), ("DROP", "RECEIPT")])
def test_a_full_disk_takes_no_large_body(policy: str, answer: str) -> None:
    """It is read to its end, and none of it is written."""
    world = LargeBodiesBroker(core=CORE + FULL_POLICY.format(policy))
    world.fill(full=True)
    producer, consumer = world.client("p").greet(), world.subscribed("c")
    producer.send(sent(BODY, "receipt:1"))
    frames = producer.heard()
    assert [frame.command for frame in frames] == [answer]
    assert frames[0].header("receipt-id") == "1"
    assert files_of(world) == set()
    assert consumer.heard() == []
    assert world.broker.addresses["q"].dropped_message_count == (policy == "DROP")
    world.fill(full=False)
    assert world.broker.queues["q"].message_count == 0


def test_a_body_that_found_no_room_is_answered_with_an_error() -> None:
    """And the connection is the only one that notices."""
    world = LargeBodiesBroker()
    world.disk.fault = Fault(0, "No space left on device", verbs=("write",))
    producer, other = world.client("p").greet(), world.client("o").greet()
    producer.send(sent(BODY, "receipt:1"))
    frame = producer.heard()[0]
    assert frame.command == "ERROR"
    assert "No disk space for this body" in frame.text
    assert "No space left on device" in frame.text
    other.send(sent(b"small", "receipt:2"))
    assert summary(other) == ["RECEIPT 2"]
    assert files_of(world) == set()
