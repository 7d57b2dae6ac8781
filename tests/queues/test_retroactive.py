"""Retroactive addresses (rows 2.11 and 2.17.17 of rows.py), and Artemis' settings beside them."""

from __future__ import annotations

import pytest

from tests.kit.bench import Bench
from tests.kit.life import Life

pytestmark = pytest.mark.wire

T = "/topic/t"
TOPIC = '<address name="t"><multicast/></address>'
KEEPS = "<retroactive-message-count>{}</retroactive-message-count>"
RING = "$.artemis.internal.t.queue.multicast.retro"


def subscribe(bench: Bench, name: str, *headers: str) -> list[str]:
    """A client subscribes to the topic; returns what it gets at once."""
    bench.write(name, "SUBSCRIBE", "id:1", "destination:/topic/t", *headers)
    return bench.got(name)


def test_runtime_2_17_17_who_comes_later_gets_the_last_messages(cut: bool) -> None:
    bench = Bench(settings=KEEPS.format(3), more=TOPIC, cut=cut)
    bench.send_all("12345", to=T)
    assert subscribe(bench, "x") == ["3", "4", "5"]
    bench.send("6", to=T)
    assert bench.got("x") == ["6"]
    assert subscribe(bench, "y") == ["4", "5", "6"]
    assert (bench.count(RING), bench.queue(RING).contents.counters.replaced) == (3, 3)


def test_runtime_2_11_as_they_were_sent(cut: bool) -> None:
    """Destination, headers, priority and expiry are those of the sender; order is that of arrival."""
    bench = Bench(settings=KEEPS.format(3), more=TOPIC, cut=cut)
    expires = str(bench.world.now_ms + 1000)
    bench.send("a", "k:v", "priority:1", f"expires:{expires}", to=T)
    bench.send("b", "priority:9", to=T)
    bench.write("c", "SUBSCRIBE", "id:1", "destination:/topic/t")
    second, first = bench.messages("c")
    shown = [first.header(name) for name in ("destination", "k", "priority", "expires", "_AMQ_ORIG_ADDRESS")]
    assert (shown, second.body) == (["/topic/t", "v", "1", expires, None], b"b")


def test_runtime_2_11_the_last_ones_whatever_their_priority(cut: bool) -> None:
    """Then each queue puts them in its own order."""
    bench = Bench(settings=KEEPS.format(3), more=TOPIC, cut=cut)
    for number in range(10):
        bench.send(str(number), f"priority:{number}" if number < 8 else "priority:0", to=T)
    assert subscribe(bench, "c") == ["7", "8", "9"]


def test_runtime_2_11_only_what_the_filter_lets_in(cut: bool) -> None:
    bench = Bench(settings=KEEPS.format(10), more=TOPIC, cut=cut)
    bench.send("red", "color:red", to=T)
    bench.send("blue", "color:blue", to=T)
    assert subscribe(bench, "c", "selector:color = 'red'") == ["red"]


def test_runtime_2_11_each_routing_type_has_its_own(cut: bool) -> None:
    both = '<address name="t"><multicast/><anycast><queue name="t"/></anycast></address>'
    bench = Bench(settings=KEEPS.format(2), more=both, cut=cut)
    bench.send("all", to=T)
    bench.send("one", to="/queue/t")
    bench.subscribe("new", to="t::later")
    assert bench.got("new") == ["one"]
    assert subscribe(bench, "c") == ["all"]


def test_runtime_2_11_what_expired_is_not_given(cut: bool) -> None:
    bench = Bench(settings=KEEPS.format(3), more=TOPIC, cut=cut)
    bench.send("a", f"expires:{bench.world.now_ms + 100}", to=T)
    bench.world.advance(200)
    assert subscribe(bench, "c") == []


def test_runtime_2_11_with_duplicate_ids_and_transactions(cut: bool) -> None:
    bench = Bench(settings=KEEPS.format(3), more=TOPIC, cut=cut)
    bench.send_all(["a", "again"], "_AMQ_DUPL_ID:1", to=T)
    bench.write("p", "BEGIN", "transaction:t")
    bench.write("p", "SEND", "destination:/topic/t", "transaction:t", body="b")
    bench.write("p", "COMMIT", "transaction:t")
    assert subscribe(bench, "c") == ["a", "b"]


def test_where_duplicates_are_let_in_they_are_kept(cut: bool) -> None:
    """The copy's id says nothing: it is that of the original."""
    settings = f"{KEEPS.format(3)}<id-cache-size>0</id-cache-size>"
    bench = Bench(settings=settings, more=TOPIC, cut=cut)
    bench.send_all(["a", "again"], "_AMQ_DUPL_ID:1", to=T)
    assert subscribe(bench, "c") == ["a", "again"]


def test_a_queue_on_a_wildcard_address_gets_each_message_once(cut: bool) -> None:
    wide = '<address name="#"><multicast><queue name="wide"/></multicast></address>'
    bench = Bench(settings=KEEPS.format(3), more=TOPIC + wide, cut=cut)
    bench.send("a", to=T)
    assert bench.count("wide") == 1


def test_without_the_setting_nothing_is_kept() -> None:
    bench = Bench(more=TOPIC)
    bench.send("a", to=T)
    assert subscribe(bench, "c") == []
    assert not [name for name in bench.world.broker.queues if name.startswith("$")]


def test_an_address_that_goes_takes_what_was_kept(cut: bool) -> None:
    settings = f"{KEEPS.format(3)}<auto-delete-queues>true</auto-delete-queues>"
    bench = Bench(settings=settings, cut=cut)
    assert subscribe(bench, "c") == []
    bench.send("a", to=T)
    assert bench.got("c") == ["a"]
    assert bench.count(RING) == 1
    bench.leave("c")
    bench.world.advance(100_000)
    assert not [name for name in bench.world.broker.addresses if name == "t" or ".t." in name]
    assert RING not in bench.world.broker.queues


def test_runtime_2_11_over_a_restart() -> None:
    """Durable messages are kept; a smaller count holds from the next message on (as with every ring)."""
    stage, here = Life(settings=KEEPS.format(3)), ("persistent:true",)
    stage.send_all("12345", *here, to=T)
    stage = Life("", stage.disk, KEEPS.format(3))
    assert subscribe(stage, "c1") == ["3", "4", "5"]
    stage.send("6", *here, to=T)
    stage = Life("", stage.disk, KEEPS.format(2))
    assert subscribe(stage, "c2") == ["5", "6"]
    stage = Life("", stage.disk, KEEPS.format(0))
    assert subscribe(stage, "c3") == []
    assert not [name for name in stage.core.queues if name.startswith("$")]
