"""Qpid's rows about full queues (Q-51 to Q-62 of rows.py), at the wire: frames in, frames out."""

from __future__ import annotations

import pytest

from artemis_py.core.addresses.batch import Batch
from artemis_py.core.order.entry import PURGED
from artemis_py.message import Head, encode_headers
from tests.kit.bench import ONE_AT_A_TIME, Bench
from tests.kit.life import Life
from tests.queues.outcomes import size_of

pytestmark = pytest.mark.wire

RING = "overflow-policy='RING' max-depth-messages='{}'"
STOPS = "overflow-policy='PRODUCER_FLOW_CONTROL' max-depth-messages='{}'"
REJECTS = "overflow-policy='REJECT' max-depth-messages='{}'"
TO_DISK = "overflow-policy='FLOW_TO_DISK' max-depth-messages='{}'"
SMALL_PAGES = "<page-size-bytes>600</page-size-bytes>"


def receipts(bench: Bench, name: str = "producer") -> list[str]:
    """The receipts that came since somebody asked; nothing else may have come."""
    frames = bench.frames(name)
    assert all(frame.command == "RECEIPT" for frame in frames), [frame.text for frame in frames]
    return [str(frame.header("receipt-id")) for frame in frames]


# ---- limits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("limits", ["max-depth-messages='2'", "max-depth-bytes='{}'"])
def test_Q_51_either_limit_counts(limits: str) -> None:
    bench = Bench(f"overflow-policy='REJECT' {limits.format(size_of('x') * 2)}")
    bench.send_all("ab", "receipt:{}")
    assert receipts(bench) == ["a", "b"]
    bench.send("c")
    assert "2 messages" in str(bench.error("producer").header("message"))


def test_Q_51_what_is_in_delivery_or_waits_counts(cut: bool) -> None:
    bench = Bench(REJECTS.format(2), cut=cut)
    bench.send("a")
    bench.subscribe("c")
    bench.send("later", "AMQ_SCHEDULED_DELAY:1000")
    assert bench.got("c") == ["a"]
    bench.send("b")
    bench.error("producer")
    assert bench.count() == 2


@pytest.mark.parametrize("policy", ["", "overflow-policy='NONE'"])
def test_Q_52_without_a_policy_limits_are_not_looked_at(policy: str) -> None:
    bench = Bench(f"{policy} max-depth-messages='2' max-depth-bytes='1'")
    bench.send_all("abcde", "receipt:{}")
    assert (bench.count(), len(receipts(bench))) == (5, 5)


@pytest.mark.parametrize("policy", ["RING", "PRODUCER_FLOW_CONTROL", "FLOW_TO_DISK", "REJECT"])
def test_Q_61_a_negative_limit_is_none(policy: str) -> None:
    bench = Bench(f"overflow-policy='{policy}' max-depth-messages='-1' max-depth-bytes='{size_of('x') * 10}'")
    bench.send_all("abcde", "receipt:{}")
    assert (bench.count(), len(receipts(bench))) == (5, 5)


def test_Q_61_zero_is_a_limit() -> None:
    """Nothing fits."""
    bench = Bench(REJECTS.format(0))
    bench.send("a")
    bench.error("producer")
    bench = Bench(RING.format(0))
    bench.subscribe("c", ack="auto")
    bench.send_all("ab", "receipt:{}")
    assert (bench.count(), len(receipts(bench)), bench.got("c")) == (0, 2, [])


# ---- ring ----------------------------------------------------------------------------------------


def test_Q_53_ring_by_messages(cut: bool) -> None:
    bench = Bench(RING.format(2), cut=cut)
    bench.send_all("123", "receipt:{}")
    assert len(receipts(bench)) == 3
    bench.subscribe("c")
    assert bench.got("c") == ["2", "3"]
    assert (bench.queue().contents.counters.replaced, dict(bench.world.broker.events.counts)["QUE-1005"]) == (1, 1)


def test_Q_53_ring_by_bytes(cut: bool) -> None:
    bench = Bench(f"overflow-policy='RING' max-depth-bytes='{size_of('x') * 3}'", cut=cut)
    bench.send_all("123", "receipt:{}")
    bench.send("4" * (size_of("x") + 1))
    bench.subscribe("c")
    assert bench.got("c") == ["3", "4" * (size_of("x") + 1)]


def test_Q_53_a_message_larger_than_the_ring_stays_alone(cut: bool) -> None:
    """Qpid does not take the newcomer for the victim (row 3.5)."""
    bench = Bench(f"overflow-policy='RING' max-depth-bytes='{size_of('x') * 2}'", cut=cut)
    bench.send_all("12", "receipt:{}")
    bench.send("large" * 100)
    assert bench.count() == 1
    bench.send("3")
    bench.subscribe("c")
    assert bench.got("c") == ["3"]


def test_Q_53_what_is_in_delivery_counts_and_stays(cut: bool) -> None:
    """Qpid's own tests: of m1 in delivery, m2 and m3, with room for two, m2 goes."""
    bench = Bench(RING.format(2), cut=cut)
    bench.send("m1")
    bench.subscribe("c", ONE_AT_A_TIME)
    assert bench.got("c") == ["m1"]
    bench.send("m2")
    bench.send("m3")
    assert bench.count() == 2
    bench.leave("c")
    bench.subscribe("d")
    assert bench.got("d") == ["m1", "m3"]


def test_Q_53_what_comes_back_may_go(cut: bool) -> None:
    """With room for one, m1 in delivery and m2: both stay until m1 comes back; it is the older one."""
    bench = Bench(RING.format(1), cut=cut)
    bench.send("m1")
    bench.subscribe("c", ONE_AT_A_TIME)
    assert bench.got("c") == ["m1"]
    bench.send("m2")
    assert bench.count() == 2
    bench.lose("c")
    assert bench.count() == 1
    bench.subscribe("d")
    assert bench.got("d") == ["m2"]


def test_Q_54_ring_on_a_priority_queue(cut: bool) -> None:
    """The oldest of the lowest priority goes, also when it is the newcomer."""
    bench = Bench(f"{RING.format(3)} priority-levels='10'", cut=cut)
    for body, priority in (("a", 1), ("b", 9), ("c", 9), ("d", 5)):
        bench.send(body, f"priority:{priority}")
    assert bench.count() == 3
    bench.send("e", "priority:0")
    bench.subscribe("c", ONE_AT_A_TIME)
    assert bench.drain("c") == ["b", "c", "d"]


def test_ring_what_stays_does_not_depend_on_how_messages_arrive() -> None:
    """Many at once, or one after the other."""
    messages = [(f"{number} " * (number % 5 + 1), f"priority:{number * 7 % 10}") for number in range(40)]
    left = []
    for at_once in (False, True):
        bench = Bench(f"overflow-policy='RING' max-depth-bytes='{size_of('x') * 4}'")
        bench.send("first")
        if at_once:
            frames = [f"SEND\ndestination:/queue/q\n{priority}\n\n{body}\0" for body, priority in messages]
            bench.world.client("producer").send("".join(frames).encode())
        else:
            for body, priority in messages:
                bench.send(body, priority)
        bench.subscribe("c", ONE_AT_A_TIME)
        left.append(bench.drain("c"))
    assert left[0] == left[1] != []


@pytest.mark.parametrize("restart", [False, True])
def test_ring_over_a_restart(restart: bool) -> None:
    life = Life(RING.format(2))
    for body in "12345":
        life.send(body)
    if restart:
        life = life.again()
    assert life.read() == ["4", "5"]


# ---- producer flow control -----------------------------------------------------------------------


def test_Q_55_the_message_that_breaches_is_taken_the_next_waits(cut: bool) -> None:
    bench = Bench(f"overflow-policy='PRODUCER_FLOW_CONTROL' max-depth-bytes='{size_of('x') * 7 // 2}'", cut=cut)
    bench.send_all("12345", "receipt:{}")
    assert (receipts(bench), bench.count()) == (list("1234"), 4)
    bench.send("6", "receipt:r6")
    bench.write("other", "SEND", "destination:/queue/q", "receipt:other", body="7")
    assert (receipts(bench), receipts(bench, "other"), bench.count()) == ([], [], 4)
    bench.subscribe("c", ONE_AT_A_TIME)
    for body in "1234":
        (frame,) = bench.messages("c")
        assert frame.body.decode() == body
        bench.settle("c", frame)
    assert receipts(bench) + receipts(bench, "other") == ["5", "r6", "other"]


def test_Q_56_senders_go_on_at_the_resume_percentage(cut: bool) -> None:
    """Limit 10: the eleventh message stops the flow, which goes on at 8."""
    bench = Bench(STOPS.format(10), cut=cut)
    bench.send_all("abcdefghijkl", "receipt:{}")
    assert receipts(bench) == list("abcdefghijk")
    bench.subscribe("c", ONE_AT_A_TIME)
    for left in (10, 9):
        (frame,) = bench.messages("c")
        bench.settle("c", frame)
        assert (bench.count(), receipts(bench)) == (left, [])
    (frame,) = bench.messages("c")
    bench.settle("c", frame)
    assert (receipts(bench), bench.count()) == (["l"], 9)
    assert [
        dict(bench.world.broker.events.counts)[code] for code in ("QUE-1003", "QUE-1004", "CHN-1005", "CHN-1006")
    ] == [1, 1, 1, 1]


@pytest.mark.parametrize(("percent", "resumes_at"), [("0", 0), ("100", 10), ("25.5", 3), ("50", 5)])
def test_Q_56_the_percentage_is_a_setting_and_rounds_up(percent: str, resumes_at: int) -> None:
    bench = Bench(f"{STOPS.format(10)} flow-resume-percent='{percent}'")
    bench.send_all("abcdefghijkl", "receipt:{}")
    assert len(receipts(bench)) == 11
    bench.subscribe("c", ONE_AT_A_TIME)
    while bench.count() > resumes_at + 1:
        (frame,) = bench.messages("c")
        bench.settle("c", frame)
        assert receipts(bench) == []
    (frame,) = bench.messages("c")
    bench.settle("c", frame)
    assert receipts(bench) == ["l"]


def test_Q_55_a_consumer_that_takes_at_once_stops_nobody(cut: bool) -> None:
    bench = Bench(STOPS.format(1), cut=cut)
    bench.subscribe("c", ack="auto")
    bench.send_all("abcdef", "receipt:{}")
    assert (len(receipts(bench)), bench.got("c")) == (6, list("abcdef"))


def test_Q_55_a_commit_waits_and_then_is_taken_whole(cut: bool) -> None:
    bench = Bench(STOPS.format(1), cut=cut)
    bench.send_all("ab", "receipt:{}")
    bench.write("p", "BEGIN", "transaction:t")
    for body in "cd":
        bench.write("p", "SEND", "destination:/queue/q", "transaction:t", body=body)
    bench.write("p", "COMMIT", "transaction:t", "receipt:done")
    assert (receipts(bench, "p"), bench.count()) == ([], 2)
    bench.queue().purge(PURGED, bench.world.now_ms)
    bench.world.turns.schedule()
    bench.world.settle()
    assert (receipts(bench, "p"), bench.count()) == (["done"], 2)


def test_Q_55_over_a_restart(cut: bool) -> None:
    """The queue is as deep as it was: the first message after it waits."""
    life = Life(STOPS.format(2))
    producer = life.client("producer")
    for body in "abc":
        life.send(body)
    life = life.again()
    producer = life.client("producer")
    life.send("d", "receipt:r")
    assert producer.collect() == []
    assert life.read() == list("abcd")
    assert [frame.command for frame in producer.collect()] == ["RECEIPT"]


# ---- reject --------------------------------------------------------------------------------------


def test_Q_60_reject(cut: bool) -> None:
    bench = Bench(REJECTS.format(1), cut=cut)
    bench.send("a", "receipt:r1")
    assert receipts(bench) == ["r1"]
    bench.send("b", "receipt:r2")
    frame = bench.error("producer")
    assert (frame.header("receipt-id"), "Queue q is full" in str(frame.header("message"))) == ("r2", True)
    bench.subscribe("c", ONE_AT_A_TIME)
    assert bench.drain("c") == ["a"]
    bench.leave("c")
    bench.send("b", "receipt:r3")
    assert receipts(bench) == ["r3"]


@pytest.mark.parametrize("policy", ["REJECT", "PRODUCER_FLOW_CONTROL"])
def test_a_message_sent_again_is_confirmed_by_a_full_queue(policy: str, cut: bool) -> None:
    """Its sender missed the receipt: the message is there, and no refusal may say otherwise."""
    bench = Bench(f"overflow-policy='{policy}' max-depth-messages='1'", cut=cut)
    for body in "ab"[: 1 if policy == "REJECT" else 2]:
        bench.send(body, f"_AMQ_DUPL_ID:{body}", f"receipt:{body}")
    bench.write("again", "SEND", "destination:/queue/q", "_AMQ_DUPL_ID:a", "receipt:again", body="a")
    assert receipts(bench, "again") == ["again"]
    assert bench.count() == len(receipts(bench))


def test_Q_60_a_newer_value_counts_beside_the_older(cut: bool) -> None:
    """It is refused before it can replace anything (Qpid)."""
    bench = Bench(f"{REJECTS.format(2)} last-value-key='k'", cut=cut)
    for body in ("a1", "b1"):
        bench.send(body, f"k:{body[0]}")
    bench.send("a2", "k:a")
    bench.error("producer")
    assert bench.count() == 2


def test_Q_60_larger_than_the_limit(cut: bool) -> None:
    bench = Bench(f"overflow-policy='REJECT' max-depth-bytes='{size_of('x')}'", cut=cut)
    bench.send("xy")
    bench.error("producer")
    bench.send("x", "receipt:r")
    assert (receipts(bench), bench.count()) == (["r"], 1)


@pytest.mark.parametrize(
    ("limit", "bodies", "says"),
    [
        ("max-depth-messages='2'", ["a"], "has 2 messages"),
        ("max-depth-messages='2'", ["a", "b", "c"], "can never take 3 messages"),
        ("max-depth-bytes='200'", ["long" * 100], "can never take a message of"),
    ],
)
def test_Q_60_the_error_tells_what_to_do(limit: str, bodies: list[str], says: str, cut: bool) -> None:
    """Wait for consumers, where that helps; what is beyond the limit by itself will never fit."""
    bench = Bench(f"overflow-policy='REJECT' {limit}", cut=cut)
    for body in "12":
        bench.send(body)
    bench.write("p", "BEGIN", "transaction:t")
    for body in bodies:
        bench.write("p", "SEND", "destination:/queue/q", "transaction:t", body=body)
    bench.write("p", "COMMIT", "transaction:t")
    told = bench.error("p").body.decode()
    assert says in told
    assert ("send less at once" if "never" in says else "retry when consumers have taken some") in told
    if len(bodies) == 1:
        bench.send(bodies[0])
        assert says in bench.error("producer").body.decode()


SHARED = """<address name="both"><multicast><queue name="wide"/>
<queue name="narrow" overflow-policy="REJECT" max-depth-messages="1"><filter string="k IS NOT NULL"/></queue>
</multicast></address>"""


def test_Q_60_one_refusal_is_one_for_all_queues(cut: bool) -> None:
    bench = Bench(more=SHARED, cut=cut)
    bench.write("p", "SEND", "destination:/topic/both", "k:1", body="a")
    bench.write("p", "SEND", "destination:/topic/both", body="not for the narrow one")
    bench.write("p", "SEND", "destination:/topic/both", "k:1", "receipt:r", body="b")
    bench.error("p")
    assert (bench.count("wide"), bench.count("narrow")) == (2, 1)
    assert dict(bench.world.broker.events.counts)["ART-1002"] == 1


def test_Q_60_in_a_transaction_the_commit_is_refused(cut: bool) -> None:
    bench = Bench(REJECTS.format(2), more="<address name='o'><anycast><queue name='o'/></anycast></address>", cut=cut)
    bench.write("p", "BEGIN", "transaction:t")
    bench.write("p", "SEND", "destination:/queue/o", "transaction:t", body="other")
    for body in "abc":
        bench.write("p", "SEND", "destination:/queue/q", "transaction:t", body=body)
    assert bench.frames("p") == []
    bench.write("p", "COMMIT", "transaction:t", "receipt:r")
    assert bench.error("p").header("receipt-id") == "r"
    assert (bench.count(), bench.count("o")) == (0, 0)


def test_Q_60_an_anycast_address_passes_over_a_full_queue(cut: bool) -> None:
    two = """<address name="two"><anycast><queue name="small" overflow-policy="REJECT" max-depth-messages="1"/>
    <queue name="large"/></anycast></address>"""
    bench = Bench(more=two, cut=cut)
    for body in "abcd":
        bench.send(body, to="/queue/two")
    assert (bench.count("small"), bench.count("large")) == (1, 3)


def test_Q_60_a_consumer_that_takes_at_once_is_asked_first(cut: bool) -> None:
    bench = Bench(REJECTS.format(1), cut=cut)
    bench.subscribe("c", ack="auto")
    bench.send_all("abcdef", "receipt:{}", "persistent:true")
    assert (len(receipts(bench)), bench.got("c")) == (6, list("abcdef"))


@pytest.mark.parametrize("policy", ["REJECT", "PRODUCER_FLOW_CONTROL", "RING"])
@pytest.mark.parametrize("limit", ["max-depth-messages='1'", "max-depth-bytes='{}'"])
def test_Q_55_Q_60_many_at_once_for_a_consumer_that_takes_at_once(policy: str, limit: str) -> None:
    """What it has taken does not count, although it is not written yet."""
    limit = limit.format(size_of("a", "persistent:true"))
    bench = Bench(f"overflow-policy='{policy}' {limit}")
    bench.subscribe("c", ack="auto")
    bench.send("a", "persistent:true")
    for _ in range(2):
        bench.world.client("producer").send(b"SEND\ndestination:/queue/q\npersistent:true\n\na\0" * 6)
    assert bench.frames("producer") == []
    assert bench.got("c") == ["a"] * 13
    assert (bench.count(), bench.queue().contents.size_bytes) == (0, 0)


def test_ring_by_bytes_takes_a_batch_of_several_priorities_one_by_one() -> None:
    """p5 goes for p9 before p1 comes, and p1 finds room; all at once p1 and p5 would go."""
    bench = Bench()
    sizes = {
        priority: size_of("x" * length, f"priority:{priority}") for priority, length in ((5, 50), (9, 60), (1, 30))
    }
    bench = Bench(f"overflow-policy='RING' max-depth-bytes='{sizes[9] + sizes[1]}'")
    broker = bench.world.broker
    route = broker.resolver.route("q", None, "ANYCAST")
    messages = []
    for priority, length in ((5, 50), (9, 60), (1, 30)):
        block = encode_headers([("destination", "/queue/q"), ("priority", str(priority)), ("persistent", "false")])
        filler = sizes[priority] - len(block) - length
        body = b"x" * (length + filler)
        messages.append(broker.message(route, Head(block, "q", priority=priority), body, bench.world.now_ms))
    size_bytes = sum(message.size_bytes for message in messages)
    broker.publisher.publish(Batch(route, messages, size_bytes, bench.world.now_ms, plain=True))
    assert [entry.message.head.priority for entry in bench.queue().contents.order] == [9, 1]


def test_ring_what_stands_in_pages_is_not_given_up() -> None:
    """Not when it comes into memory either: only so much of it is brought in as the ring holds (R-18)."""
    settings = f"<max-size-messages>1</max-size-messages>{SMALL_PAGES}"
    life = Life(RING.format(2), settings=settings)
    for body in "abcdef":
        life.send(body)
    assert life.read("reader", count_max=2) == ["a", "b"]
    life.lose("reader")
    assert life.read() == list("bcdef")


def test_Q_60_a_policy_of_the_file_goes_before_a_ring_of_former_days() -> None:
    """Somebody made the queue a ring while it ran; then a file with a policy came with a restart."""
    life = Life("")
    life.core.queue_operations.set_ring_size("q", 1)
    life = life.again(REJECTS.format(2))
    producer = life.client("producer")
    for body in "abc":
        life.send(body)
    assert [frame.command for frame in producer.collect()] == ["ERROR"]
    assert life.read() == ["a", "b"]


# ---- flow to disk --------------------------------------------------------------------------------


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("limit", ["max-depth-messages='5'", "max-depth-bytes='{}'"])
def test_Q_57_Q_58_what_does_not_fit_lives_in_pages(limit: str, restart: bool) -> None:
    bodies = [f"body {number}" for number in range(10, 30)]
    five_bytes = 5 * size_of(bodies[0], "persistent:true", "k:v\\c")
    life = Life(f"overflow-policy='FLOW_TO_DISK' {limit.format(five_bytes)}", settings=SMALL_PAGES)
    for body in bodies:
        life.send(body, "k:v\\c")
    queue = life.queue()
    assert (queue.message_count, queue.message_count - queue.contents.paged.count) == (20, 5)
    if restart:
        life = life.again()
    assert life.read("reader", count_max=10) == bodies[:10]
    queue = life.queue()
    assert queue.message_count == 11
    assert queue.message_count - queue.contents.paged.count <= 6
    life.lose("reader")
    assert life.read() == bodies[9:]
    assert life.count() == 0
    life.send("in memory again")
    assert life.queue().contents.paged.count == 0


def test_Q_58_a_consumer_that_holds_much_still_gets_the_next(cut: bool) -> None:
    """What it holds counts as memory, and yet it may ask for all."""
    life = Life(TO_DISK.format(2), settings=SMALL_PAGES)
    reader = life.client("reader")
    for number in range(10):
        life.send(str(number))
    window = "consumer-window-size:-1"
    life.write("reader", "SUBSCRIBE", "id:1", "destination:/queue/q", "ack:client", window)
    assert [frame.body.decode() for frame in reader.collect()] == [str(number) for number in range(10)]


def test_Q_59_memory_of_the_whole_broker_is_another_matter() -> None:
    """global-max-size pages a queue without overflow-policy: see docs/paging.md. With one, both hold."""
    life = Life(TO_DISK.format(100), settings=f"<max-size-messages>3</max-size-messages>{SMALL_PAGES}")
    for number in range(10):
        life.send(str(number))
    assert life.queue().contents.paged.count == 7
