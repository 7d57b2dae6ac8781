"""Qpid's rows about the types of queues (rows.py), at the wire: frames in, frames out."""

from __future__ import annotations

import pytest

from artemis_py.errors import ConfigError
from tests.kit.bench import ONE_AT_A_TIME, Bench

pytestmark = pytest.mark.wire

TWO_QUEUES = """<address name="both"><multicast><queue name="one"/><queue name="two"/></multicast></address>"""
LVQ = "queue-type='lvq' last-value-key='sym'"


# ---- queues and ways in --------------------------------------------------------------------------


def test_Q_01_a_queue_holds_what_nobody_reads(cut: bool) -> None:
    bench = Bench(cut=cut)
    for body in "abc":
        bench.send(body)
    assert bench.count() == 3
    bench.subscribe("c")
    assert bench.got("c") == ["a", "b", "c"]


def test_Q_02_through_the_address_or_straight_to_the_queue(cut: bool) -> None:
    bench = Bench(more=TWO_QUEUES, cut=cut)
    bench.write("p", "SEND", "destination:/topic/both", body="all")
    assert (bench.count("one"), bench.count("two")) == (1, 1)
    bench.write("p", "SEND", "destination:both::two", body="second")
    assert (bench.count("one"), bench.count("two")) == (1, 2)


def test_Q_03_consumers_compete() -> None:
    bench = Bench()
    bench.subscribe("c1")
    bench.subscribe("c2")
    for number in range(10):
        bench.send(str(number))
    first, second = bench.got("c1"), bench.got("c2")
    assert sorted(first + second) == [str(number) for number in range(10)]
    assert len(first) == len(second) == 5


@pytest.mark.parametrize(
    ("attributes", "arrival"),
    [
        ("", ["p9", "p4", "p0"]),
        ("queue-type='standard'", ["p0", "p9", "p4"]),
        ("queue-type='priority'", ["p9", "p4", "p0"]),
        ("priority-levels='2'", ["p9", "p0", "p4"]),
        ("sort-key='k'", ["p4", "p0", "p9"]),
        ("last-value-key='k'", ["p9", "p4", "p0"]),
        ("queue-type='lvq' last-value-key='k'", ["p0", "p9", "p4"]),
    ],
)
def test_Q_04_the_type_follows_from_the_attributes(attributes: str, arrival: list[str], cut: bool) -> None:
    """Named or inferred; without any it is Artemis' queue, by priority."""
    bench = Bench(attributes, cut=cut)
    for priority, key in ((0, "b"), (9, "c"), (4, "a")):
        bench.send(f"p{priority}", f"priority:{priority}", f"k:{key}")
    bench.subscribe("c", ONE_AT_A_TIME)
    assert bench.drain("c") == arrival


# ---- standard ------------------------------------------------------------------------------------


def test_Q_05_standard_is_fifo_and_what_returns_keeps_its_place(cut: bool) -> None:
    bench = Bench("queue-type='standard'", cut=cut)
    for body, priority in (("A", 0), ("B", 9), ("C", 4)):
        bench.send(body, f"priority:{priority}")
    bench.subscribe("c1")
    frames = bench.messages("c1")
    assert [frame.body for frame in frames] == [b"A", b"B", b"C"]
    bench.settle("c1", frames[2], "NACK")
    bench.lose("c1")
    bench.subscribe("c2")
    again = bench.messages("c2")
    assert [frame.body for frame in again] == [b"A", b"B", b"C"]
    assert [frame.header("redelivered") for frame in again] == ["true", "true", "true"]


# ---- priority ------------------------------------------------------------------------------------


def test_Q_06_higher_first_fifo_inside_a_level(cut: bool) -> None:
    bench = Bench("priority-levels='10'", cut=cut)
    for body, priority in (("a", 1), ("b", 9), ("c", 1), ("d", 9)):
        bench.send(body, f"priority:{priority}")
    bench.subscribe("c", ONE_AT_A_TIME)
    assert bench.drain("c") == ["b", "d", "a", "c"]


@pytest.mark.parametrize(
    ("levels", "groups"),
    [
        (1, ["0123456789"]),
        (2, ["56789", "01234"]),
        (3, ["56789", "4", "0123"]),
        (4, ["6789", "5", "4", "0123"]),
        (5, ["6789", "5", "4", "3", "012"]),
        (10, ["9", "8", "7", "6", "5", "4", "3", "2", "1", "0"]),
    ],
)
def test_Q_07_fewer_levels(levels: int, groups: list[str]) -> None:
    """Priorities that fall on one level stand in arrival order."""
    bench = Bench(f"priority-levels='{levels}'")
    for priority in range(10):
        bench.send(str(priority), f"priority:{priority}")
    bench.subscribe("c", ONE_AT_A_TIME)
    assert bench.drain("c") == list("".join(groups))


def test_Q_07_the_example_of_three_levels(cut: bool) -> None:
    bench = Bench("priority-levels='3'", cut=cut)
    for number, priority in enumerate((9, 4, 1, 4, 9, 1, 4, 1, 9, 1, 4, 9), 1):
        bench.send(str(number), f"priority:{priority}")
    bench.subscribe("c", ONE_AT_A_TIME)
    assert bench.drain("c") == ["1", "5", "9", "12", "2", "4", "7", "11", "3", "6", "8", "10"]


def test_Q_08_priority_4_is_the_default(cut: bool) -> None:
    bench = Bench("queue-type='priority'", cut=cut)
    bench.send("a", "priority:3")
    bench.send("b")
    bench.send("c", "priority:5")
    bench.send("d", "priority:4")
    bench.subscribe("c", ONE_AT_A_TIME)
    assert bench.drain("c") == ["c", "b", "d", "a"]


# ---- sorted --------------------------------------------------------------------------------------


def sorted_arrival(keys: list[str | None], *, cut: bool = False) -> list[str]:
    """What order messages arrive in; bodies are their numbers, counted from 1. None: without the header."""
    bench = Bench("sort-key='k'", cut=cut)
    for number, key in enumerate(keys, 1):
        bench.send(str(number), *([] if key is None else [f"k:{key}"]))
    bench.subscribe("c", ONE_AT_A_TIME)
    return bench.drain("c")


def test_Q_09_sorted_by_one_header(cut: bool) -> None:
    assert sorted_arrival(["c", "a", "b"], cut=cut) == ["2", "3", "1"]


def test_Q_10_as_text_case_counts(cut: bool) -> None:
    assert sorted_arrival(["9", "10", "B", "a"], cut=cut) == ["2", "1", "3", "4"]


def test_Q_11_without_the_header_first(cut: bool) -> None:
    """In arrival order; the empty text is a text."""
    assert sorted_arrival(["a", None, None, ""], cut=cut) == ["2", "3", "4", "1"]


def test_Q_12_equal_keys_in_arrival_order(cut: bool) -> None:
    assert sorted_arrival(["a", "a", "b", "a"], cut=cut) == ["1", "2", "4", "3"]


def test_sorted_what_returns_and_what_comes_late(cut: bool) -> None:
    """A returned message is where it was; one that comes late takes its place among those that wait."""
    bench = Bench("sort-key='k'", cut=cut)
    for key in "bd":
        bench.send(key, f"k:{key}")
    bench.subscribe("c1", ONE_AT_A_TIME)
    assert bench.got("c1") == ["b"]
    for key in "ac":
        bench.send(key, f"k:{key}")
    bench.lose("c1")
    bench.subscribe("c2", ONE_AT_A_TIME)
    assert bench.drain("c2") == ["a", "b", "c", "d"]


def test_sorted_with_a_selector_and_a_browser(cut: bool) -> None:
    """Readers that choose see each message once, also those that arrive before the place they have come to."""
    bench = Bench("sort-key='k'", cut=cut)
    bench.subscribe("red", "selector:color = 'red'")
    bench.subscribe("browser", "browser:true")
    for key, color in (("c", "red"), ("b", "blue"), ("a", "red"), ("d", "blue")):
        bench.send(f"{key}-{color}", f"k:{key}", f"color:{color}")
    assert sorted(bench.got("red")) == ["a-red", "c-red"]
    assert sorted(bench.got("browser")) == ["b-blue", "d-blue"]
    bench.send("0-red", "k:0", "color:red")
    assert bench.got("red") == ["0-red"]
    bench.subscribe("c")
    assert bench.got("c") == ["b-blue", "d-blue"]


# ---- last value ----------------------------------------------------------------------------------


def test_Q_13_a_newer_value_replaces_and_stands_at_the_tail(cut: bool) -> None:
    bench = Bench(LVQ, cut=cut)
    for body, key in (("A1", "A"), ("B1", "B"), ("A2", "A")):
        bench.send(body, f"sym:{key}")
    assert bench.count() == 2
    assert bench.queue().contents.counters.replaced == 1
    bench.subscribe("c")
    assert bench.got("c") == ["B1", "A2"]


@pytest.mark.parametrize(
    ("attributes", "header"),
    [
        ("last-value='true'", "_AMQ_LVQ_NAME"),
        ("last-value-key='own'", "own"),
        ("queue-type='lvq'", "qpid.LVQ_key"),
        ("queue-type='last-value' last-value-key='own'", "own"),
    ],
)
def test_Q_14_the_key_is_any_header(attributes: str, header: str, cut: bool) -> None:
    bench = Bench(attributes, cut=cut)
    for body in ("v1", "v2"):
        bench.send(body, f"{header}:x", f"other:{body}")
    for body in ("n1", "n2"):
        bench.send(body, "other:x")
    bench.subscribe("c")
    assert bench.got("c") == ["v2", "n1", "n2"]


def test_Q_14_two_queues_with_different_keys() -> None:
    queues = "<queue name='by-x' last-value-key='x'/><queue name='by-y' last-value-key='y'/>"
    bench = Bench(more=f"<address name='feed'><multicast>{queues}</multicast></address>")
    for body, x, y in (("1", "a", "a"), ("2", "a", "b"), ("3", "b", "b")):
        bench.write("p", "SEND", "destination:/topic/feed", f"x:{x}", f"y:{y}", body=body)
    bodies = []
    for name in ("by-x", "by-y"):
        bench.write(name, "SUBSCRIBE", "id:1", f"destination:feed::{name}", "ack:auto")
        bodies.append(bench.got(name))
    assert bodies == [["2", "3"], ["1", "3"]]


def test_Q_15_first_the_latest_of_each_key_then_updates(cut: bool) -> None:
    bench = Bench(LVQ, cut=cut)
    for body in ("A1", "A2", "B1"):
        bench.send(body, f"sym:{body[0]}")
    bench.subscribe("c", ack="auto")
    assert bench.got("c") == ["A2", "B1"]
    bench.send("A3", "sym:A")
    assert bench.got("c") == ["A3"]
    assert bench.count() == 0


def test_Q_16_browsing_removes_nothing(cut: bool) -> None:
    bench = Bench(LVQ, cut=cut)
    for body in ("A1", "A2", "B1"):
        bench.send(body, f"sym:{body[0]}")
    bench.subscribe("browser", "browser:true")
    assert bench.got("browser") == ["A2", "B1"]
    assert bench.count() == 2
    bench.send("A3", "sym:A")
    assert bench.got("browser") == ["A3"]
    bench.subscribe("c")
    assert bench.got("c") == ["B1", "A3"]


def test_Q_17_many_browsers_of_one_queue(cut: bool) -> None:
    bench = Bench(LVQ, cut=cut)
    for body in ("A1", "B1", "A2"):
        bench.send(body, f"sym:{body[0]}")
    for name in ("b1", "b2"):
        bench.subscribe(name, "browser:true")
        assert bench.got(name) == ["B1", "A2"]
    bench.send("A3", "sym:A")
    assert bench.got("b1") == bench.got("b2") == ["A3"]


def test_Q_18_without_the_key_nothing_is_replaced(cut: bool) -> None:
    bench = Bench(LVQ, cut=cut)
    for body in "123":
        bench.send(body)
    assert bench.count() == 3
    bench.subscribe("c")
    assert bench.got("c") == ["1", "2", "3"]


@pytest.mark.parametrize("way", ["lose", "leave", "NACK"])
def test_Q_19_an_older_value_with_a_consumer_goes_when_it_returns(way: str, cut: bool) -> None:
    bench = Bench(LVQ, cut=cut)
    bench.send("A1", "sym:A")
    bench.subscribe("c1", ONE_AT_A_TIME)
    (frame,) = bench.messages("c1")
    bench.send("A2", "sym:A")
    assert bench.count() == 2
    if way == "NACK":
        bench.settle("c1", frame, "NACK")
        assert bench.got("c1") == ["A2"]
        assert bench.count() == 1
        return
    (bench.lose if way == "lose" else bench.leave)("c1")
    assert bench.count() == 1
    bench.subscribe("c2")
    assert bench.got("c2") == ["A2"]


def test_Q_19_acknowledged_it_goes_as_any_other(cut: bool) -> None:
    bench = Bench(LVQ, cut=cut)
    bench.send("A1", "sym:A")
    bench.subscribe("c", ONE_AT_A_TIME)
    (frame,) = bench.messages("c")
    bench.send("A2", "sym:A")
    bench.settle("c", frame)
    assert bench.got("c") == ["A2"]
    assert (bench.count(), bench.queue().contents.counters.replaced) == (1, 0)


def test_Q_19_the_newer_one_was_consumed_meanwhile(cut: bool) -> None:
    bench = Bench(LVQ, cut=cut)
    bench.send("A1", "sym:A")
    bench.subscribe("c1", ONE_AT_A_TIME)
    assert bench.got("c1") == ["A1"]
    bench.send("A2", "sym:A")
    bench.subscribe("c2", ack="auto")
    assert bench.got("c2") == ["A2"]
    bench.lose("c1")
    assert bench.got("c2") == []
    assert bench.count() == 0


def test_Q_19_without_a_newer_one_it_is_the_value_again(cut: bool) -> None:
    bench = Bench(LVQ, cut=cut)
    bench.send("A1", "sym:A")
    bench.subscribe("c1")
    assert bench.got("c1") == ["A1"]
    bench.lose("c1")
    assert bench.count() == 1
    bench.send("A2", "sym:A")
    assert bench.count() == 1
    bench.subscribe("c2")
    assert bench.got("c2") == ["A2"]


def test_Q_37_only_browsers_on_a_last_value_queue(cut: bool) -> None:
    bench = Bench(LVQ + " non-destructive='true'", cut=cut)
    for number in range(100):
        bench.send(str(number), f"sym:{number % 10}")
    assert bench.count() == 10
    bench.subscribe("c", ack="auto")
    assert bench.got("c") == [str(number) for number in range(90, 100)]
    assert bench.count() == 10
    bench.send("new", "sym:3")
    assert bench.got("c") == ["new"]
    assert bench.count() == 10


# ---- rings ---------------------------------------------------------------------------------------


def test_Q_54_a_ring_of_priorities_gives_up_the_oldest_of_the_lowest(cut: bool) -> None:
    """Also a newcomer, when it is alone at the lowest level."""
    bench = Bench("priority-levels='10' ring-size='3'", cut=cut)
    for body, priority in (("a", 1), ("b", 9), ("c", 9), ("d", 5)):
        bench.send(body, f"priority:{priority}")
    bench.send("e", "priority:0")
    assert bench.queue().contents.counters.replaced == 2
    bench.subscribe("c", ONE_AT_A_TIME)
    assert bench.drain("c") == ["b", "c", "d"]


def test_Q_54_a_sorted_ring_gives_up_the_oldest(cut: bool) -> None:
    bench = Bench("sort-key='k' ring-size='2'", cut=cut)
    for key in "bca":
        bench.send(key, f"k:{key}")
    bench.subscribe("c", ONE_AT_A_TIME)
    assert bench.drain("c") == ["a", "c"]


def test_a_ring_of_last_values(cut: bool) -> None:
    """What was replaced makes room: only keys count."""
    bench = Bench(LVQ + " ring-size='2'", cut=cut)
    for body in ("A1", "B1", "A2", "B2"):
        bench.send(body, f"sym:{body[0]}")
    assert (bench.count(), bench.queue().contents.counters.replaced) == (2, 2)
    bench.send("C1", "sym:C")
    bench.subscribe("c")
    assert bench.got("c") == ["B2", "C1"]


# ---- prefetching ---------------------------------------------------------------------------------


def test_Q_63_what_was_sent_is_not_reordered(cut: bool) -> None:
    bench = Bench("queue-type='priority'", cut=cut)
    for number in range(100):
        bench.send(str(number), "priority:1")
    bench.subscribe("c", "consumer-window-size:-1")
    bench.send("high", "priority:9")
    assert bench.got("c") == [*map(str, range(100)), "high"]


def test_Q_64_a_better_one_is_first_of_the_next_batch(cut: bool) -> None:
    bench = Bench("queue-type='priority'", cut=cut)
    bench.subscribe("c", "consumer-window-size:1")
    for body, priority in (("a", 1), ("b", 1), ("c", 2)):
        bench.send(body, f"priority:{priority}")
    assert bench.drain("c") == ["a", "c", "b"]


# ---- configuration -------------------------------------------------------------------------------


def test_Q_67_an_unknown_attribute_is_an_error() -> None:
    with pytest.raises(ConfigError, match="queue has no attribute priorities"):
        Bench("priorities='3'")


def test_Q_71_two_natures_are_an_error_that_names_the_queue() -> None:
    with pytest.raises(ConfigError, match="queue 'q' has priority-levels and last-value-key"):
        Bench("priority-levels='3' last-value-key='k'")


def test_queues_that_are_created_have_the_type_of_the_address_setting(cut: bool) -> None:
    bench = Bench(settings="<default-sort-key>k</default-sort-key>", cut=cut)
    for key in "ba":
        bench.send(key, f"k:{key}", to="/queue/new")
    bench.subscribe("c", ONE_AT_A_TIME, to="new")
    assert bench.drain("c") == ["a", "b"]
