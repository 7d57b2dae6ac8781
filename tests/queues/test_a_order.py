"""Rows of AMPS (rows.py) about which message is delivered when, at the wire: frames in, frames out."""

from __future__ import annotations

import pytest

from artemis_py.errors import ConfigError
from tests.kit.bench import Bench
from tests.kit.life import Life

pytestmark = pytest.mark.wire

OVER = '<address name="over"><anycast><queue name="over"/></anycast></address>'
EXPIRES = "<expiry-address>over</expiry-address>"
FLAT = "consumer-window-size:-1"


# ---- expiration ----------------------------------------------------------------------------------


@pytest.mark.parametrize("written", ["500", "500ms", "0.5s"])
def test_A_55_what_nobody_takes_in_this_time_is_removed(cut: bool, written: str) -> None:
    """At its time, without a round that looks for it, and it is no error."""
    if "." in written:
        with pytest.raises(ConfigError, match="expiration"):
            Bench(f"expiration='{written}'")
        return
    bench = Bench(f"expiration='{written}'", settings=EXPIRES, more=OVER, cut=cut)
    bench.send("a")
    bench.world.advance(499)
    assert bench.count() == 1
    bench.world.advance(1)
    assert (bench.count(), bench.count("over"), bench.queue().contents.counters.expired) == (0, 1, 1)
    bench.subscribe("looker", "browser:true", to="over")
    (frame,) = bench.messages("looker")
    assert frame.header("reason") == "time_limit"


def test_A_55_a_message_has_its_own_time(cut: bool) -> None:
    """Shorter or longer: what the sender says counts. The header tells it."""
    bench = Bench("expiration='500'", cut=cut)
    bench.send("short", f"expires:{bench.world.now_ms + 100}")
    bench.send("long", f"expires:{bench.world.now_ms + 900}")
    bench.send("none")
    expected = [str(bench.world.now_ms + after_ms) for after_ms in (100, 900, 500)]
    bench.subscribe("looker", "browser:true")
    assert [frame.header("expires") for frame in bench.messages("looker")] == expected
    bench.world.advance(500)
    bench.subscribe("c")
    assert bench.got("c") == ["long"]


def test_A_55_bounds_on_the_time_to_live_come_after_it(cut: bool) -> None:
    """The queue's expiration is as if the sender had set it; then the minimum, then the maximum."""
    for attributes, lives_ms in (
        ("expiration='100' min-message-ttl='300'", 300),
        ("expiration='500' max-message-ttl='200'", 200),
        ("expiration='100' min-message-ttl='900' max-message-ttl='400'", 400),
    ):
        bench = Bench(attributes, cut=cut)
        bench.send("a")
        bench.world.advance(lives_ms - 1)
        assert bench.count() == 1
        bench.world.advance(1)
        assert bench.count() == 0


def test_A_55_settings_of_the_address_come_before_it(cut: bool) -> None:
    bench = Bench("expiration='100'", settings="<expiry-delay>400</expiry-delay>", cut=cut)
    bench.send("a")
    bench.world.advance(399)
    assert bench.count() == 1
    bench.world.advance(1)
    assert bench.count() == 0


def test_A_55_the_default_of_an_address(cut: bool) -> None:
    settings = "<default-expiration>1s</default-expiration>"
    bench = Bench("", settings=settings, more="", cut=cut)
    bench.send("a")
    bench.world.advance(1000)
    assert bench.count() == 0


@pytest.mark.parametrize("lease", ["", "lease-period='3s'"], ids=["held", "leased"])
def test_A_56_it_waits_while_a_consumer_holds_the_message(cut: bool, lease: str) -> None:
    bench = Bench(f"expiration='1s' {lease}", cut=cut)
    bench.send("a")
    bench.subscribe("c", FLAT)
    (frame,) = bench.messages("c")
    bench.world.advance(2000)
    assert bench.count() == 1
    bench.settle("c", frame)
    assert (bench.count(), bench.queue().contents.counters.acknowledged) == (0, 1)


@pytest.mark.parametrize("command", ["lease", "NACK", "lose"])
def test_A_56_A_57_it_counts_when_the_message_comes_back(cut: bool, command: str) -> None:
    bench = Bench("expiration='1s' lease-period='3s'", settings=EXPIRES, more=OVER, cut=cut)
    bench.send("a")
    bench.subscribe("c", FLAT)
    (frame,) = bench.messages("c")
    bench.world.advance(2000)
    if command == "lease":
        bench.world.advance(1000)
    elif command == "NACK":
        bench.settle("c", frame, "NACK")
    else:
        bench.lose("c")
    bench.world.advance(1)
    assert (bench.count(), bench.count("over")) == (0, 1)


def test_A_55_after_a_restart_the_time_runs_from_the_arrival() -> None:
    life = Life("expiration='1m'")
    life.send("a")
    life.broker.advance(30_000)
    life = life.again()  # its clock begins where that of the first life did
    life.broker.advance(59_999)
    assert life.count() == 1
    life.broker.advance(1)
    assert life.count() == 0


def test_A_55_in_pages_too() -> None:
    """Each page is read once to know when its messages expire; the rounds look for them."""
    settings = "<max-size-messages>1</max-size-messages><page-size-bytes>300</page-size-bytes>"
    life = Life("expiration='500'", settings=settings)
    for body in "abcdef":
        life.send(body)
    assert life.queue().contents.paged.count == 5
    life = life.again()
    queue = life.queue()
    for duration_ms, left in ((499, 6), (1, 0)):
        life.broker.loop.advance(duration_ms)
        queue.expire_paged(life.broker.loop.now_ms)  # as message-expiry-scan-period does
        life.broker.drain()
        assert queue.message_count == left


@pytest.mark.parametrize("written", ["0", "-2", "366d", "1w", "soon"])
def test_A_55_times_that_are_none(written: str) -> None:
    with pytest.raises(ConfigError, match=r"broker.xml:[0-9]+: expiration has a wrong value"):
        Bench(f"expiration='{written}'")


# ---- priority ------------------------------------------------------------------------------------

RANK = "priority-expression='rank'"


def test_A_49_the_largest_value_first_and_of_equal_ones_the_oldest(cut: bool) -> None:
    bench = Bench(RANK, cut=cut)
    for body, rank in (("1", 1), ("5a", 5), ("5b", 5), ("10", 10)):
        bench.send(body, f"rank:{rank}", "priority:9" if rank == 1 else "priority:0")
    bench.subscribe("c")
    assert bench.drain("c") == ["10", "5a", "5b", "1"]


def test_A_49_what_is_no_number_comes_last(cut: bool) -> None:
    """No header, a text and a negative number are 0; of a fraction the whole part counts; a huge number is the largest
    of 64 bits.
    """
    bench = Bench(RANK, cut=cut)
    for rank in ("", "none", "-5", "0.9", "1.2", "1", "1.9", "1e30", "18446744073709551615", "2e30"):
        bench.send(rank or "missing", *([f"rank:{rank}"] if rank else []))
    bench.subscribe("c")
    expected = ["1e30", "18446744073709551615", "2e30", "1.2", "1", "1.9", "missing", "none", "-5", "0.9"]
    assert bench.drain("c") == expected


def test_A_49_an_expression_over_headers(cut: bool) -> None:
    bench = Bench("priority-expression='(vip * 100 + AMQPriority) / 2'", cut=cut)
    for body, headers in (("a", ("vip:0", "priority:9")), ("b", ("vip:1", "priority:1")), ("c", ("vip:2",))):
        bench.send(body, *headers)
    bench.subscribe("reader")
    assert bench.drain("reader") == ["c", "b", "a"]


def test_A_49_a_late_better_one_is_next(cut: bool) -> None:
    """What a consumer has, it keeps."""
    bench = Bench(f"{RANK} max-per-subscription-backlog='2'", cut=cut)
    for rank in (1, 2, 3):
        bench.send(str(rank), f"rank:{rank}")
    bench.subscribe("c", FLAT, "max-backlog:2")
    first, second = bench.messages("c")
    assert (first.body, second.body) == (b"3", b"2")
    bench.send("9", "rank:9")
    assert bench.got("c") == []
    bench.settle("c", first)
    assert bench.got("c") == ["9"]


def test_A_49_what_comes_back_has_its_place(cut: bool) -> None:
    bench = Bench(RANK, cut=cut)
    for body, rank in (("a", 3), ("b", 3), ("c", 1)):
        bench.send(body, f"rank:{rank}")
    bench.subscribe("one")
    assert bench.got("one") == ["a"]
    bench.send("d", "rank:3")
    bench.lose("one")
    bench.subscribe("two")
    assert bench.drain("two") == ["a", "b", "d", "c"]


def test_A_49_the_best_that_matches(cut: bool) -> None:
    bench = Bench(f"{RANK} max-per-subscription-backlog='9'", cut=cut)
    for body, rank in (("a", 1), ("b", 9), ("c", 5), ("d", 7)):
        bench.send(body, f"rank:{rank}", f"t:{'x' if body in 'ac' else 'y'}")
    bench.subscribe("c1", "max-backlog:9", "selector:t = 'x'")
    assert bench.got("c1") == ["c", "a"]
    bench.subscribe("looker", "browser:true")
    assert bench.got("looker") == ["b", "d"]


@pytest.mark.parametrize("ring", ["ring-size='2'", "overflow-policy='RING' max-depth-messages='2'"])
def test_A_49_a_ring_gives_up_the_oldest_of_the_lowest(cut: bool, ring: str) -> None:
    """Even the newest one, when it alone is the lowest."""
    bench = Bench(f"{RANK} {ring}", cut=cut)
    for body, rank in (("a", 1), ("b", 1), ("c", 5), ("d", 7), ("e", 2)):
        bench.send(body, f"rank:{rank}")
    bench.subscribe("reader")
    assert bench.drain("reader") == ["d", "c"]


def test_A_49_after_a_restart_and_from_pages() -> None:
    """It depends on the message alone. A message in a page is ordered once it is in memory: 7 was sent before that."""
    for settings, expected in (("", "97211"), ("<max-size-messages>2</max-size-messages>", "79211")):
        life = Life(RANK, settings=settings)
        for rank in (2, 7, 1, 9, 1):
            life.send(str(rank), f"rank:{rank}")
        life = life.again()
        assert life.read() == list(expected)


def test_A_49_it_goes_with_no_other_order() -> None:
    for other in ("sort-key='k'", "priority-levels='3'", "last-value-key='k'", "queue-type='standard'"):
        with pytest.raises(ConfigError, match=r"broker.xml:5: queue 'q' has .* which ask for different queue types"):
            Bench(f"{RANK} {other}")
