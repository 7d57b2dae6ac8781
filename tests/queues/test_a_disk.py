"""Rows of AMPS (rows.py) about what a queue has in memory and what on disk: ``file-backed-metadata``, and files that
may go.
"""

from __future__ import annotations

import copy
import gc
import re
import tracemalloc
from pathlib import Path

import pytest

from artemis_py.config.tables.queue_settings import FILE_BACKED_DEPTH
from tests.kit.crash.retained import Archive
from tests.kit.disk import SimDisk
from tests.kit.frames import frame
from tests.kit.life import Life
from tests.kit.live_server import Client, LiveServer

pytestmark = pytest.mark.wire

SMALL_PAGES = "<page-size-bytes>2000</page-size-bytes>"
BACKED = "file-backed-metadata='true'"
FEW = f"{BACKED} max-depth-messages='5' lease-period='1s' max-per-subscription-backlog='9' max-deliveries='9'"
OTHER = "<address name='other'><anycast><queue name='other'/></anycast></address>"
AHEAD = "consumer-window-size:-1"
BODY = "x" * 400
COUNT = 60


# ---- what is in memory ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attributes", "most"),
    [
        (BACKED, FILE_BACKED_DEPTH),
        (f"{BACKED} max-depth-messages='7'", 7),
        (f"{BACKED} overflow-policy='FLOW_TO_DISK'", FILE_BACKED_DEPTH),
        (f"{BACKED} overflow-policy='FLOW_TO_DISK' max-depth-messages='7'", 7),
        ("file-backed-metadata='false'", FILE_BACKED_DEPTH + 20),
    ],
)
def test_A_48_the_queue_keeps_its_first_messages_in_memory(attributes: str, most: int) -> None:
    life = Life(attributes)
    client = life.client("client")
    sends = "".join(f"SEND\ndestination:/queue/q\n\n{number}\0" for number in range(FILE_BACKED_DEPTH + 20))
    client.send(sends.encode())
    life.broker.drain()
    queue = life.queue()
    assert queue.message_count == FILE_BACKED_DEPTH + 20
    assert queue.message_count - queue.contents.paged.count == most


def test_A_48_in_bytes_it_has_no_other_limit() -> None:
    life = Life(f"{BACKED} max-depth-bytes='2000'")
    for number in range(10):
        life.send(f"{number}{BODY}")
    queue = life.queue()
    assert (queue.message_count, queue.contents.paged.count) == (10, 6)


def test_A_48_the_order_and_who_holds_what_are_as_without() -> None:
    """A lease that ends sends its message back to its place, before those in pages; a restart keeps the attempt."""
    life = Life(FEW, settings=SMALL_PAGES)
    reader = life.client("reader")
    for number in range(COUNT):
        life.send(str(number))
    life.write(
        "reader", "SUBSCRIBE", "id:1", "destination:/queue/q", "ack:client-individual", AHEAD, "max-backlog:9",
    )  # fmt: skip
    assert [each.body for each in reader.collect()] == [b"%d" % number for number in range(9)]
    reader.collect().clear()
    life.broker.advance(1000)
    again = reader.collect()
    assert [(each.body, each.header("delivery-count")) for each in again] == [(b"%d" % n, "2") for n in range(9)]
    life.write("reader", "ACK", f"id:{again[4].header('ack')}")
    rest = [str(number) for number in range(COUNT) if number != 4]
    life.lose("reader")
    life = life.again()
    assert life.read() == rest


# ---- memory for each message ---------------------------------------------------------------------

MEASURED = ((100, 10_000), (10 * 1024, 2_000))
"""Sizes of bodies, and how many messages of that size. Half of them are leased."""
AT_MOST_BYTES = 200
"""Row A-15: what a message may need whose body is on disk."""
LEASED_BYTES = 700
"""What a leased message may need besides its body: interpreted CPython."""
FIXED_BYTES = 1 << 20
"""What may stay in memory whatever the count: what was written last, and the part of a page that was read last."""


ACCEPTOR = "stompMinLargeMessageSize=-1"
CORE = f"""<addresses><address name='q'><anycast>
<queue name='q' {BACKED} max-depth-messages='10' lease-period='1h' max-per-subscription-backlog='-1'/>
</anycast></address></addresses><address-settings><address-setting match='q'><page-size-bytes>256KiB</page-size-bytes>
<max-read-page-bytes>100MB</max-read-page-bytes></address-setting></address-settings>"""
"""A queue that keeps ten messages in memory."""


def fill(client: Client, count: int, size_bytes: int) -> None:
    """So many messages; all are on disk afterwards."""
    some = frame("SEND", "destination:/queue/q", "persistent:true", body=b"x" * size_bytes) * 99
    last = frame("SEND", "destination:/queue/q", "persistent:true", "receipt:1", body=b"x" * size_bytes)
    for _ in range(count // 100):
        client.send(some + last)
        client.expect(b"receipt-id:1")


def last_ack(holder: Client, count: int) -> str:
    """The header ``ack`` of the last of so many messages. The bodies have no zeros."""
    data, seen = b"", 0
    while seen < count:
        more = holder.expect(b"\0")
        data, seen = data[-20_000:] + more, seen + more.count(b"\0")
    acks: list[bytes] = re.findall(rb"\nack:([^\n]+)\n", data)
    return acks[-1].decode()


def taken_bytes(before: int) -> int:
    """What was allocated since and is needed, besides what may stay whatever the count."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0] - before - FIXED_BYTES


@pytest.mark.parametrize(("size_bytes", "count"), MEASURED)
def test_A_15_a_message_on_disk_needs_little_memory_whatever_its_size(
    tmp_path: Path, size_bytes: int, count: int
) -> None:
    """And a leased one needs its body and little more, which it gives back."""
    stage = LiveServer(tmp_path, ACCEPTOR, CORE)
    queue = stage.broker.queues["q"]
    client, holder = stage.greeted(), stage.greeted()
    fill(client, 100, size_bytes)
    leased = count // 2
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        fill(client, count, size_bytes)
        paged = taken_bytes(before)
        assert queue.contents.paged.count == count + 100 - 10
        subscribe = "id:1", "destination:/queue/q", "ack:client", AHEAD, f"max-backlog:{leased}"
        holder.send(frame("SUBSCRIBE", *subscribe))
        ack = last_ack(holder, leased)
        held = taken_bytes(before)
        assert queue.contents.delivering_count == leased
        holder.send(frame("ACK", f"id:{ack}") + frame("DISCONNECT", "receipt:end"))
        holder.expect(b"receipt-id:end")
        after = taken_bytes(before)
        assert queue.contents.delivering_count == 0
    finally:
        tracemalloc.stop()
        stage.close()
    each = paged // count, held // leased, after // count
    print(f"{size_bytes} bytes: for each in pages, for each leased, and for each after that {each}")
    assert paged <= count * AT_MOST_BYTES
    assert held <= leased * (size_bytes + LEASED_BYTES)
    assert after <= count * AT_MOST_BYTES


# ---- files that may go ---------------------------------------------------------------------------

NOTHING = ()
COPY_OF_BINDINGS = ("journal-bindings.copy",)
INDEXES = (".index",)
DERIVED = (*COPY_OF_BINDINGS, *INDEXES)


@pytest.fixture(scope="module")
def life() -> Life:
    """A broker at its end whose queue has messages in memory and in pages, some settled out of order, some delivered in
    vain; its journal has several segments. The tests begin the next life on copies of its disk.
    """
    life = Life(FEW, settings=SMALL_PAGES, more=OTHER, archive=Archive())
    reader = life.client("reader")
    for number in range(COUNT):
        life.send(f"{number}")
    for _ in range(400):
        life.send(BODY, to="/queue/other")
    life.write(
        "reader", "SUBSCRIBE", "id:1", "destination:/queue/q", "ack:client-individual", AHEAD, "max-backlog:9",
    )  # fmt: skip
    frames = list(reader.collect())
    for place in (1, 7, 3):
        life.write("reader", "ACK", f"id:{frames[place].header('ack')}")
    life.write("reader", "NACK", f"id:{frames[5].header('ack')}")
    life.broker.drain()
    return life


def told(life: Life) -> list[tuple[str, str | None, str | None]]:
    """All that a new life of the broker delivers of the queue, after its counts."""
    queue = life.queue()
    counts = str((queue.message_count, life.count("other")))
    reader = life.client("reader")
    life.subscribe("reader", AHEAD)
    seen: list[tuple[str, str | None, str | None]] = [(counts, None, None)]
    while frames := list(reader.collect()):
        reader.collect().clear()
        for each in frames:
            seen.append((each.body.decode(), each.header("redelivered"), each.header("delivery-count")))
            life.settle("reader", each)
    return seen


def without(life: Life, ends: tuple[str, ...]) -> SimDisk:
    """What the life leaves, without the files whose names end so; there must be some."""
    disk = copy.deepcopy(life.disk)
    for end in ends:
        names = [name for name in disk.names() if name.endswith(end)]
        assert names, f"no file {end}: {sorted(disk.names())}"
        for name in names:
            disk.delete(name)
    return disk


@pytest.fixture(scope="module")
def as_it_was(life: Life) -> list[tuple[str, str | None, str | None]]:
    """What the next life tells when every file is there."""
    return told(Life(FEW, without(life, NOTHING), SMALL_PAGES, OTHER, archive=copy.deepcopy(life.archive)))


@pytest.mark.parametrize("ends", [COPY_OF_BINDINGS, INDEXES, DERIVED], ids="".join)
def test_A_48_A_60_A_62_what_is_derived_may_go(
    life: Life, as_it_was: list[tuple[str, str | None, str | None]], ends: tuple[str, ...]
) -> None:
    """The state is made of journal and pages. The other files only make the way to it shorter."""
    assert len(as_it_was) == 1 + COUNT - 3
    assert as_it_was[0][0] == str((COUNT - 3, 400))
    assert ("5", "true", "1") in as_it_was
    disk = without(life, ends)
    assert told(Life(FEW, disk, SMALL_PAGES, OTHER, archive=copy.deepcopy(life.archive))) == as_it_was


def test_A_60_a_page_is_not_derived(life: Life, as_it_was: list[tuple[str, str | None, str | None]]) -> None:
    """So what the test above finds is no accident: without the pages most of the queue is gone."""
    assert len(told(Life(FEW, without(life, (".page",)), SMALL_PAGES, OTHER, archive=copy.deepcopy(life.archive)))) < 9
