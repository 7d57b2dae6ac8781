"""The parts of a stream that consumes a queue, without a broker: sets of bookmarks, what becomes of messages, and what
is said to the broker.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artemis_py.client.endpoint import Endpoint
from artemis_py.client.stomp_connection import LostError
from artemis_py.errors import PipelineError
from artemis_py.spark.consume.batch import Batch, batch_of, key_of, packed, unpacked
from artemis_py.spark.consume.conversation import Conversation, arrival_of, in_portions
from artemis_py.spark.consume.unsettled import Arrival, Unsettled
from artemis_py.spark.log.log import Identity
from artemis_py.spark.read.options import QueueOptions
from artemis_py.spark.tables.reading import Sample
from artemis_py.stomp.client import FrameReader, ServerFrame

JOBS = QueueOptions("jobs", (Endpoint("a", 61613),), None)


def arrival(bookmark: int, size_bytes: int = 10, lease_ends_ms: int = 0) -> Arrival:
    return Arrival(bookmark, bookmark + 1000, 5, size_bytes, lease_ends_ms)


def message(bookmark: int, name: int = 1, more: str = "") -> bytes:
    return (
        f"MESSAGE\nsubscription:{name}\nmessage-id:7-{bookmark + 1000}\nredelivered:false\nJMSXDeliveryCount:1\n"
        f"expires:0\ntimestamp:5\nbookmark:{bookmark}\n{more}body-size:10\nbookmark:99\nsubscription:8\n\n"
    ).encode()


def read(data: bytes) -> ServerFrame:
    """The frame that these bytes are, without its NUL."""
    reader = FrameReader()
    reader.feed(data + b"\0")
    found = reader.pop()
    assert found is not None
    return found


def receipt(number: int, *, ready: int | None = 0, kept: str = "") -> bytes:
    tells = "" if ready is None else f"kept:{kept}\nready:{ready}\n"
    return f"RECEIPT\nreceipt-id:{number}\n{tells}\n".encode()


# ---- bookmarks -----------------------------------------------------------------------------------


@given(st.sets(st.integers(1, 1 << 40), max_size=300))
def test_bookmarks_come_back(bookmarks: set[int]) -> None:
    assert unpacked(packed(sorted(bookmarks))) == sorted(bookmarks)


@pytest.mark.parametrize(("bookmarks", "text"), [((), ""), ((7,), "7"), ((1204, 1205, 1206, 1207, 1212), "1204,1*3,5")])
def test_bookmarks_are_short(bookmarks: tuple[int, ...], text: str) -> None:
    assert packed(bookmarks) == text


def test_many_bookmarks_are_small() -> None:
    assert len(packed(range(5, 3_000_005, 3))) < 20
    scattered = sorted(number * 7 + number * number % 11 for number in range(10_000))
    assert packed(scattered).startswith("z")
    assert len(packed(scattered)) < 2_000


@pytest.mark.parametrize("text", ["x", "1,a", "z!", "zAAAA", "1,2*b"])
def test_bookmarks_that_cannot_be_read(text: str) -> None:
    with pytest.raises(PipelineError, match="cannot be read"):
        unpacked(text)


def test_an_offset_comes_back() -> None:
    batch = Batch("jobs", 4, (3, 5, 6), (1,), 9, Sample(3, 1003, 5))
    offset = batch.offset("east", {"id": "x"})
    assert offset["east"] == 9
    assert batch_of(offset, "jobs") == batch
    with pytest.raises(PipelineError, match="of queue jobs"):
        batch_of(offset, "other")


@pytest.mark.parametrize(
    ("known", "log", "said"),
    [
        ("x", Identity("east", "x"), ""),
        ("x", Identity("renamed", "x"), ""),
        ("x", Identity("east", None), ""),
        (None, Identity("east", "x"), ""),
        ("x", Identity("east", "y"), r"broker east \(log id x\), but url leads to east \(log id y\)"),
        ("x", Identity("renamed", "y"), "the first one, whatever it is called now"),
        (None, Identity("renamed", "x"), "call it east as before"),
    ],
)
def test_an_offset_knows_its_log(known: str | None, log: Identity, said: str) -> None:
    """By its id, and by its name where that is unknown."""
    offset = Batch("jobs", 4, (3, 5, 6), (1,), 9, Sample(3, 1003, 5)).offset("east", {"id": known})
    if not said:
        assert key_of(offset, log) == "east"
        return
    with pytest.raises(PipelineError, match=said):
        key_of(offset, log)


# ---- what becomes of messages --------------------------------------------------------------------


def pool_with(*arrivals: Arrival) -> Unsettled:
    pool = Unsettled()
    for one in arrivals:
        pool.arrived(one)
    return pool


def planned(pool: Unsettled, count_max: int = 100, bytes_max: int | None = None, top: int | None = None) -> list[int]:
    return [one.bookmark for one in pool.plan(count_max, bytes_max, top, 1000)]


def test_a_batch_has_the_first_of_the_queue() -> None:
    pool = pool_with(arrival(9), arrival(3), arrival(5))
    assert planned(pool, 2) == [9, 3]
    assert (list(pool.waiting), pool.held_count) == ([5], 3)


def test_bytes_limit_a_batch_that_has_one_message_at_least() -> None:
    pool = pool_with(arrival(1, 50), arrival(2, 10), arrival(3, 10), arrival(4, 10))
    assert planned(pool, bytes_max=20) == [1]
    assert planned(pool, bytes_max=20) == [2, 3]


def test_what_came_after_the_start_of_a_run_waits() -> None:
    pool = pool_with(arrival(1), arrival(8), arrival(2))
    assert pool.count_up_to(5) == 2
    assert planned(pool, top=5) == [1, 2]
    assert list(pool.waiting) == [8]


def test_what_has_lapsed_is_in_no_batch() -> None:
    pool = pool_with(arrival(1, lease_ends_ms=1000), arrival(2, lease_ends_ms=1001))
    assert planned(pool) == [2]
    assert pool.held_count == 1


def test_what_comes_again_is_in_no_other_batch() -> None:
    pool = pool_with(arrival(1), arrival(2))
    planned(pool, 1)
    pool.arrived(arrival(1))
    assert (pool.lapsed_count, planned(pool)) == (1, [2])
    pool.finish([1, 2])
    pool.arrived(arrival(1))
    assert (planned(pool), pool.came_again) == ([], {1})
    pool.settled([1, 2], [2])
    assert (pool.done, pool.came_again) == ({2}, set())
    pool.arrived(arrival(1))
    assert planned(pool) == [1], "a bookmark that was settled is not remembered for ever"


def test_a_lost_connection_does_not_count_as_a_lease_that_ended() -> None:
    pool = pool_with(arrival(1), arrival(2), arrival(3))
    planned(pool, 2)
    pool.lost()
    assert (pool.held_count, list(pool.waiting)) == (0, [])
    pool.arrived(arrival(1))
    assert (pool.lapsed_count, pool.held_count) == (0, 1)


def test_a_batch_of_an_earlier_process() -> None:
    pool = pool_with(arrival(1))
    pool.restore([1, 2])
    pool.arrived(arrival(2))
    pool.arrived(arrival(3))
    assert (list(pool.planned), list(pool.waiting)) == ([1, 2], [3])


def test_a_batch_that_spark_did_not_use() -> None:
    pool = pool_with(arrival(1), arrival(2), arrival(3))
    planned(pool, 2)
    assert pool.finish([]) == 0
    assert planned(pool) == [1, 2, 3]


# ---- what is said --------------------------------------------------------------------------------


def said(talk: Conversation) -> list[bytes]:
    """What the stream has sent since."""
    frames = bytes(talk.out).split(b"\0")[:-1]
    talk.out.clear()
    return frames


def get_ready(talk: Conversation, backlog: int = 10) -> None:
    """Both are: the ACK that asks has receipt 1, the SUBSCRIBE 2."""
    talk.want(backlog)
    talk.begin()
    said(talk)
    talk.take(read(receipt(1, ready=3)))
    talk.take(read(receipt(2, ready=None)))


def test_the_queue_is_asked_before_it_is_subscribed_to() -> None:
    talk = Conversation(QueueOptions("a:b", (), "n > 5 OR m = 1"), Unsettled())
    talk.want(10)
    assert said(talk) == []
    talk.begin()
    ask, subscribe = said(talk)
    assert ask == b"ACK\ndestination:\\c\\ca\\cb\nbookmarks:0\nreceipt:1\n\n"
    assert b"max-backlog:10\nselector:AMQDurable = 'DURABLE' AND (n > 5 OR m = 1)\n" in subscribe
    assert not talk.is_open
    talk.take(read(receipt(1, ready=3)))
    assert talk.is_open
    assert talk.left_count == 3


def test_a_subscription_changes_in_place_and_has_a_new_name_when_it_begins_again() -> None:
    pool = Unsettled()
    talk = Conversation(JOBS, pool)
    get_ready(talk)
    talk.want(20)
    assert b"id:1\n" in (change := said(talk)[0])
    assert b"replace:true\n" in change
    talk.take(read(message(5)))
    talk.want(0)
    assert said(talk) == [b"UNSUBSCRIBE\nid:1\n\n"]
    assert not pool.waiting
    talk.take(read(message(6)))
    talk.want(10)
    assert b"id:2\n" in said(talk)[0]
    talk.take(read(message(7)))
    talk.take(read(message(8, 2)))
    assert list(pool.waiting) == [8], "the others were on their way for a subscription that has ended"


def test_a_queue_is_dry_when_nothing_came_between_two_answers() -> None:
    talk = Conversation(JOBS, Unsettled())
    get_ready(talk)
    for number, comes, is_dry in ((3, True, False), (4, True, False), (5, False, True), (6, True, False)):
        talk.ask()
        if comes:
            talk.take(read(message(number)))
        talk.take(read(receipt(number, ready=0)))
        assert talk.is_dry == is_dry, number
    talk.ask()
    talk.take(read(receipt(7, ready=1)))
    assert not talk.is_dry


def test_acknowledgements_are_forgotten_with_their_connection() -> None:
    talk = Conversation(JOBS, Unsettled())
    get_ready(talk)
    asks = talk.acknowledge(range(5, 5000))
    assert len(said(talk)) == len(asks) == 2
    assert not talk.is_answered(asks)
    life = talk.life
    talk.take(read(receipt(3, kept="5,9")))
    talk.take(read(receipt(4, kept="3000")))
    assert talk.is_answered(asks)
    assert asks[0].kept == {5, 9, 3000}
    again = talk.acknowledge([7])
    talk.lost()
    assert talk.is_answered(again), "nobody will answer"
    assert not talk.is_in(life)
    assert said(talk) == []


def test_a_refusal_may_be_a_passing_one_when_the_queue_has_suited_before() -> None:
    talk = Conversation(JOBS, Unsettled())
    talk.begin()
    with pytest.raises(PipelineError, match="queue jobs: the broker refuses: There is no queue ::jobs; declare it"):
        talk.take(read(b"ERROR\nmessage:There is no queue \\c\\cjobs\n\n"))
    get_ready(talk)
    with pytest.raises(LostError):
        talk.take(read(b"ERROR\nmessage:There is no queue \\c\\cjobs\n\n"))


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (receipt(1, ready=None), "queue jobs: the broker does not tell what is left"),
        (message(5).replace(b"body-size", b"x"), "queue jobs: the broker sends bodies"),
        (message(5).replace(b"bookmark:5\n", b""), "queue jobs: a message has no place in the log"),
    ],
)
def test_what_no_stream_can_use(frame: bytes, said: str) -> None:
    talk = Conversation(JOBS, Unsettled())
    talk.want(10)
    talk.begin()
    with pytest.raises(PipelineError, match=said):
        talk.take(read(frame))


def test_a_message_is_read_from_the_headers_of_the_broker() -> None:
    found = arrival_of(read(message(5, more="lease-expires:2026-05-01T12:00:00.250Z\n")), 1)
    assert found == Arrival(5, 1005, 5, 10, 1_777_636_800_250)
    assert arrival_of(read(message(5)), 2) is None


def test_bookmarks_in_portions() -> None:
    bookmarks = list(range(10**12, 10**12 + 5000))
    portions = list(in_portions(bookmarks))
    assert max(map(len, portions)) < 16_384 - len("bookmarks:")
    assert [int(part) for portion in portions for part in portion.split(",")] == bookmarks
    assert list(in_portions([])) == ["0"]
