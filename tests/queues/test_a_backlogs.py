"""Rows of AMPS (rows.py) about backlogs and fairness, at the wire: frames in, frames out."""

from __future__ import annotations

import pytest

from tests.kit.bench import Bench
from tests.kit.frames import ServerFrame
from tests.kit.life import Life
from tests.queues.outcomes import refused, shown

pytestmark = pytest.mark.wire

SOME = "consumer-window-size:-1"
EACH_10 = "max-per-subscription-backlog='10'"


# ---- the queue as a view -------------------------------------------------------------------------


def test_A_03_publishers_name_the_address_and_consumers_the_queue(cut: bool) -> None:
    core = """<addresses><address name="trades"><multicast>
        <queue name="desk" fairness-model="fast"/><queue name="audit"/></multicast></address></addresses>"""
    bench = Bench(core=core, cut=cut)
    bench.subscribe("c1", to="trades::desk")
    bench.write("producer", "SEND", "destination:/topic/trades", body="a")
    assert bench.got("c1") == ["a"]


def test_A_10_queues_of_one_address_are_independent(cut: bool) -> None:
    """In what is acknowledged, in backlogs, and in fairness."""
    core = """<addresses><address name="trades"><multicast>
        <queue name="one" fairness-model="fast"/>
        <queue name="two" max-per-subscription-backlog="2"/></multicast></address></addresses>"""
    bench = Bench(core=core, cut=cut)
    bench.subscribe("c1", to="trades::one")
    bench.subscribe("c2", "max-backlog:2", to="trades::two")
    for body in "ab":
        bench.write("producer", "SEND", "destination:/topic/trades", body=body)
    (frame,) = bench.messages("c1")
    bench.settle("c1", frame)
    assert bench.got("c1") == ["b"]
    assert bench.got("c2") == ["a", "b"]
    assert (bench.count("one"), bench.count("two")) == (1, 2)


# ---- delivery ------------------------------------------------------------------------------------


def test_A_04_messages_are_pushed_while_the_backlog_has_room(cut: bool) -> None:
    bench = Bench(EACH_10, cut=cut)
    bench.subscribe("c1", "max-backlog:2")
    bench.send_all("a")
    assert bench.got("c1") == ["a"], "nobody asked for it"
    bench.send_all("bc")
    assert bench.got("c1") == ["b"]


def test_A_05_A_08_counts_of_what_is_delivered_and_what_is_done(cut: bool) -> None:
    bench = Bench(EACH_10, cut=cut)
    bench.send_all("abc")
    bench.subscribe("c1")
    (frame,) = bench.messages("c1")
    queue = bench.queue()
    assert (queue.message_count, queue.contents.delivering_count) == (3, 1)
    bench.settle("c1", frame)
    assert (queue.message_count, queue.contents.delivering_count) == (2, 1)


def test_A_06_A_16_each_message_goes_to_one_consumer(cut: bool) -> None:
    bench = Bench(EACH_10, cut=cut)
    for name in ("c1", "c2", "c3"):
        bench.subscribe(name, "max-backlog:10")
    bench.send_all("abcdefghi")
    got = [bench.got(name) for name in ("c1", "c2", "c3")]
    assert sorted(body for each in got for body in each) == list("abcdefghi")
    assert [len(each) for each in got] == [3, 3, 3]


@pytest.mark.parametrize("ack", ["client", "client-individual"])
def test_A_07_A_59_an_acknowledgement_makes_room_for_the_next(cut: bool, ack: str) -> None:
    bench = Bench(EACH_10, cut=cut)
    bench.send_all("0123456789")
    bench.subscribe("c1", "max-backlog:3", ack=ack)
    frames = bench.messages("c1")
    assert shown(frames) == "012"
    bench.settle("c1", frames[0])
    assert bench.got("c1") == ["3"]
    bench.settle("c1", frames[2])
    assert len(bench.got("c1")) == (2 if ack == "client" else 1)


def test_A_09_what_is_done_is_done_after_a_restart() -> None:
    life = Life(EACH_10)
    reader = life.client("reader")
    for body in "abc":
        life.send(body)
    life.subscribe("reader", "max-backlog:2")
    first, second = reader.collect()
    life.settle("reader", first)
    assert second.body == b"b"
    life = life.again()
    assert life.read() == ["b", "c"]


def test_A_64_acknowledgements_in_any_order(cut: bool) -> None:
    bench = Bench(EACH_10, cut=cut)
    bench.send_all("abc")
    bench.subscribe("c1", "max-backlog:3")
    frames = bench.messages("c1")
    for place in (2, 0, 1):
        bench.settle("c1", frames[place])
    assert bench.count() == 0


def test_A_54_a_selector_gets_the_oldest_that_matches(cut: bool) -> None:
    bench = Bench(EACH_10, cut=cut)
    bench.send("a", "t:x")
    bench.send("b", "t:y")
    bench.send("c", "t:y")
    bench.subscribe("c1", "selector:t = 'y'")
    (frame,) = bench.messages("c1")
    assert frame.body == b"b"
    bench.settle("c1", frame)
    assert bench.got("c1") == ["c"]
    bench.subscribe("c2")
    assert bench.got("c2") == ["a"]


# ---- backlogs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("asked", "most"), [(10, 5), (3, 3), (5, 5)])
def test_A_29_A_31_the_smaller_of_queue_and_request(cut: bool, asked: int, most: int) -> None:
    bench = Bench("max-per-subscription-backlog='5'", cut=cut)
    bench.send_all("0123456789")
    bench.subscribe("c1", SOME, f"max-backlog:{asked}")
    assert len(bench.got("c1")) == most


@pytest.mark.parametrize(
    "attributes", ["max-per-subscription-backlog='5'", "max-backlog='7'", "fairness-model='fast'", EACH_10]
)
def test_A_30_one_message_for_who_asks_for_nothing(cut: bool, attributes: str) -> None:
    bench = Bench(attributes, cut=cut)
    bench.send_all("abc")
    bench.subscribe("c1", SOME)
    assert bench.got("c1") == ["a"]


def test_A_30_a_queue_without_these_attributes_knows_no_backlog(cut: bool) -> None:
    """A consumer may have one all the same; windows go on to count."""
    bench = Bench(cut=cut)
    bench.send_all("abc")
    bench.subscribe("c1", "max-backlog:2", SOME)
    assert bench.got("c1") == ["a", "b"]
    bench.lose("c1")
    bench.subscribe("c2", SOME)
    assert bench.got("c2") == ["a", "b", "c"]
    bench.lose("c2")
    bench.subscribe("c3", "max-backlog:2", "consumer-window-size:0")
    assert bench.got("c3") == ["a"]


def test_A_30_the_default_of_an_address_setting(cut: bool) -> None:
    setting = "<default-max-per-subscription-backlog>2</default-max-per-subscription-backlog>"
    bench = Bench(settings=setting, cut=cut)
    bench.send_all("abc")
    bench.subscribe("c1", "max-backlog:9")
    assert bench.got("c1") == ["a", "b"]


@pytest.mark.parametrize("asked", ["0", "-1", "many", ""])
def test_A_31_a_backlog_that_is_no_number_of_messages(asked: str) -> None:
    assert "max-backlog" in refused(Bench(EACH_10), "bad", f"max-backlog:{asked}")


def test_A_32_the_pipe_stays_full(cut: bool) -> None:
    """As soon as one acknowledgement arrives the next message is out."""
    bench = Bench(EACH_10, cut=cut)
    bench.send_all("0123456789")
    bench.subscribe("c1", "max-backlog:2")
    waiting = bench.messages("c1")
    seen = ""
    while waiting:
        assert len(waiting) == min(2, 10 - len(seen))
        seen += waiting[0].body.decode()
        bench.settle("c1", waiting.pop(0))
        waiting += bench.messages("c1")
    assert seen == "0123456789"


def test_A_66_the_backlog_of_a_whole_queue(cut: bool) -> None:
    """At the limit nothing more is delivered, to whomever; a browser sees everything."""
    bench = Bench(f"max-backlog='3' {EACH_10}", cut=cut)
    bench.subscribe("c1", "max-backlog:2")
    bench.subscribe("c2", "max-backlog:2")
    bench.send_all("abcdef")
    first, second = bench.messages("c1"), bench.messages("c2")
    assert len(first) + len(second) == 3
    bench.subscribe("looker", "browser:true")
    assert bench.got("looker") == ["d", "e", "f"]
    bench.settle("c1", first[0])
    assert bench.got("c1") + bench.got("c2") == ["d"]
    bench.lose("c2")
    assert bench.got("c1") == [], "its own backlog is used up"
    bench.settle("c1", first[1])
    assert bench.got("c1") == ["b"], "what c2 had comes first"


def test_A_66_what_a_transaction_has_acknowledged_counts_until_it_commits(cut: bool) -> None:
    bench = Bench(f"max-backlog='1' {EACH_10}", cut=cut)
    bench.send_all("ab")
    bench.subscribe("c1", "max-backlog:5")
    (frame,) = bench.messages("c1")
    bench.write("c1", "BEGIN", "transaction:t")
    bench.write("c1", "ACK", f"id:{frame.header('ack')}", "transaction:t")
    assert bench.got("c1") == []
    bench.write("c1", "COMMIT", "transaction:t")
    assert bench.got("c1") == ["b"]


# ---- fairness ------------------------------------------------------------------------------------


def test_A_33_fast_the_first_with_room(cut: bool) -> None:
    bench = Bench(f"fairness-model='fast' {EACH_10}", cut=cut)
    for name in ("c1", "c2"):
        bench.subscribe(name, "max-backlog:5")
    bench.send_all("abcde")
    assert bench.got("c1") == list("abcde")
    bench.send_all("fg")
    assert (bench.got("c1"), bench.got("c2")) == ([], ["f", "g"])


def test_A_34_round_robin_passes_over_who_is_full(cut: bool) -> None:
    bench = Bench(f"fairness-model='round-robin' {EACH_10}", cut=cut)
    bench.subscribe("c1", "max-backlog:1")
    bench.subscribe("c2", "max-backlog:5")
    bench.send_all("ab")
    assert (bench.got("c1"), bench.got("c2")) == (["a"], ["b"])
    bench.send_all("cd")
    assert (bench.got("c1"), bench.got("c2")) == ([], ["c", "d"])


def test_A_35_proportional_the_example_of_the_document(cut: bool) -> None:
    """Inky has 1 of 2, Blinky 3 of 4 and Clyde 4 of 10: Clyde gets the next."""
    bench = Bench(f"fairness-model='proportional' {EACH_10}", cut=cut)
    ghosts: dict[str, list[ServerFrame]] = {}
    for name, backlog, sent in (("inky", 2, 2), ("blinky", 4, 4), ("clyde", 10, 4)):
        bench.subscribe(name, f"max-backlog:{backlog}")
        bench.send_all("x" * sent)
        ghosts[name] = bench.messages(name)
        assert len(ghosts[name]) == sent
    bench.settle("inky", ghosts["inky"][0])
    bench.settle("blinky", ghosts["blinky"][0])
    bench.send("next")
    assert [bench.got(name) for name in ghosts] == [[], [], ["next"]]


def test_A_35_consumer_priority_counts_first(cut: bool) -> None:
    bench = Bench(EACH_10, cut=cut)
    bench.subscribe("low", "max-backlog:10")
    bench.subscribe("high", "max-backlog:2", "consumer-priority:5")
    bench.send_all("abc")
    assert (bench.got("high"), bench.got("low")) == (["a", "b"], ["c"])


def test_A_36_a_tie_goes_to_the_first(cut: bool) -> None:
    bench = Bench(EACH_10, cut=cut)
    for name in ("c1", "c2"):
        bench.subscribe(name, "max-backlog:4")
    bench.send_all("abc")
    assert (bench.got("c1"), bench.got("c2")) == (["a", "c"], ["b"])


def test_A_67_a_new_backlog_alone_begins_nothing_anew() -> None:
    """The consumer reads on behind what it does not want, however much that is."""
    durable = Life("leasing='sublet' max-per-subscription-backlog='9'")
    for number in "2" * 50 + "111":
        durable.send(number, f"number:{number}")
    durable.subscribe("c1", SOME, "max-backlog:1", "selector:number = '1'")
    assert durable.got("c1") == ["1"]
    (consumer,) = durable.queue().distribution.consumers
    cursor = consumer.cursor
    assert cursor is not None
    durable.subscribe("c1", SOME, "max-backlog:2", "selector:number = '1'", "replace:true")
    assert (durable.got("c1"), consumer.cursor is cursor) == (["1"], True)
    durable.subscribe("c1", SOME, "max-backlog:2", "selector:number = '2'", "replace:true")
    assert consumer.cursor is not cursor
