"""Rows of AMPS (rows.py) about which messages are active, and which of those go out, at the wire."""

from __future__ import annotations

import pytest

from artemis_py.core.order.entry import PURGED
from tests.kit.bench import FLAT, FREELY, Bench
from tests.kit.life import Life

pytestmark = pytest.mark.wire

MANY = "max-backlog:10"
TWO = "target-queue-depth='2' max-per-subscription-backlog='10'"


def browsed(bench: Bench, name: str) -> list[str]:
    """What a browser sees that comes now."""
    bench.subscribe(name, "browser:true")
    return bench.got(name)


# ---- the conditions of a delivery ----------------------------------------------------------------


def test_A_53_the_subscription_must_want_it(cut: bool) -> None:
    bench = Bench("max-per-subscription-backlog='10'", cut=cut)
    bench.subscribe("c", *FREELY, "selector:n = '2'")
    bench.send_all("12", "n:{}")
    assert bench.got("c") == ["2"]


@pytest.mark.parametrize(("order", "first"), [("", "1"), ("priority-expression='n'", "3")])
def test_A_53_it_must_be_the_oldest_that_matches_or_that_of_the_highest_priority(
    cut: bool, order: str, first: str
) -> None:
    bench = Bench(f"max-per-subscription-backlog='1' {order}", cut=cut)
    bench.send_all("132", "n:{}")
    bench.subscribe("c", *FREELY, "selector:n <> '9'")
    assert bench.got("c") == [first]


@pytest.mark.parametrize("limit", ["max-per-subscription-backlog='2'", "max-backlog='2'"])
def test_A_53_the_backlog_must_have_room(cut: bool, limit: str) -> None:
    """That of the subscription, and that of the queue."""
    bench = Bench(f"max-per-subscription-backlog='10' {limit}" if "sub" not in limit else limit, cut=cut)
    bench.subscribe("c", *FREELY)
    bench.send_all("123", "n:{}")
    first, second = bench.messages("c")
    assert (first.body, second.body) == (b"1", b"2")
    bench.settle("c", first)
    assert bench.got("c") == ["3"]


def test_A_53_fairness_must_pick_it(cut: bool) -> None:
    """Of two that could have it: the one with the smaller share of its backlog."""
    bench = Bench("max-per-subscription-backlog='10' fairness-model='proportional'", cut=cut)
    bench.subscribe("ten", FLAT, MANY)
    bench.subscribe("two", FLAT, "max-backlog:2")
    bench.send_all("1234", "n:{}")
    assert (bench.got("ten"), bench.got("two")) == (["1", "3", "4"], ["2"])


# ---- what may be looked at -----------------------------------------------------------------------


@pytest.mark.parametrize("lease", ["", "lease-period='1s'"], ids=["until it leaves", "with a lease"])
def test_A_65_what_is_leased_is_hidden_until_it_is_back(cut: bool, lease: str) -> None:
    bench = Bench(f"max-per-subscription-backlog='2' {lease}", cut=cut)
    bench.send_all("123", "n:{}")
    bench.subscribe("c", *FREELY)
    first, second = bench.messages("c")
    assert browsed(bench, "while leased") == ["3"]
    bench.settle("c", first)
    assert browsed(bench, "after one is done") == []
    bench.settle("c", second, "NACK")
    bench.leave("c")
    assert browsed(bench, "all are back") == ["2", "3"]
    assert bench.count() == 2, "looking takes nothing away"


def test_A_65_a_lease_that_ends_shows_it_again(cut: bool) -> None:
    bench = Bench("max-per-subscription-backlog='1' lease-period='1s' max-backlog='1'", cut=cut)
    bench.send_all("12", "n:{}")
    bench.subscribe("c", *FREELY, "selector:n = '1'")
    assert bench.got("c") == ["1"]
    bench.leave("c")
    bench.subscribe("d", *FREELY, "selector:n = '1'")
    assert bench.got("d") == ["1"]
    assert browsed(bench, "before") == ["2"]
    bench.queue().pause()
    bench.world.advance(1000)
    assert browsed(bench, "after") == ["1", "2"]


def test_A_65_A_66_what_is_not_active_is_not_shown(cut: bool) -> None:
    """It appears as soon as it is."""
    bench = Bench(TWO, cut=cut)
    bench.send_all("1234", "n:{}")
    assert browsed(bench, "looker") == ["1", "2"]
    bench.subscribe("c", *FREELY, "selector:n = '1'")
    (one,) = bench.messages("c")
    assert bench.got("looker") == [], "what is out takes a place"
    bench.settle("c", one)
    assert bench.got("looker") == ["3"]
    assert browsed(bench, "late") == ["2", "3"]


# ---- a target depth ------------------------------------------------------------------------------


def test_A_66_only_so_many_are_active(cut: bool) -> None:
    """In order of arrival, whatever is out counts, and each that is done makes room for one."""
    bench = Bench(TWO, cut=cut)
    bench.subscribe("c", *FREELY)
    bench.send_all("12345", "n:{}")
    first, second = bench.messages("c")
    assert (first.body, second.body, bench.count()) == (b"1", b"2", 5)
    bench.settle("c", second)
    (third,) = bench.messages("c")
    assert third.body == b"3"
    bench.settle("c", first)
    assert bench.got("c") == ["4"]
    assert bench.count() == 3


def test_A_66_a_consumer_does_not_see_past_it(cut: bool) -> None:
    """Even if what it wants is only behind."""
    bench = Bench(TWO, cut=cut)
    bench.subscribe("wants 4", *FREELY, "selector:n = '4'")
    bench.send_all("1234", "n:{}")
    assert bench.got("wants 4") == []
    bench.subscribe("others", *FREELY, "selector:n <> '4'")
    assert bench.drain("others", at_once_max=3) == ["1", "2", "3"]
    assert bench.got("wants 4") == ["4"]


@pytest.mark.parametrize(("condition", "left"), [("n IS NOT NULL", "345"), ("n = '4'", "12345")])
def test_A_66_A_40_a_filter_settles_nothing_that_is_not_active(cut: bool, condition: str, left: str) -> None:
    """Neither what stands behind, nor what is scheduled there."""
    bench = Bench(TWO, cut=cut)
    bench.send_all("1234", "n:{}")
    bench.send_all("5", "n:{}", "AMQ_SCHEDULED_DELAY:1000")
    bench.write("c", "ACK", "destination:/queue/q", f"filter:{condition}")
    assert bench.count() == len(left)
    bench.world.advance(1000)
    bench.subscribe("all", *FREELY)
    assert bench.drain("all", at_once_max=5) == list(left)


def test_A_66_one_that_comes_back_keeps_its_place(cut: bool) -> None:
    bench = Bench("target-queue-depth='1' max-per-subscription-backlog='10'", cut=cut)
    bench.subscribe("c", *FREELY)
    bench.send_all("12", "n:{}")
    (one,) = bench.messages("c")
    bench.settle("c", one, "NACK")
    (again,) = bench.messages("c")
    assert (again.body, again.header("redelivered")) == (b"1", "true")
    bench.lose("c")
    bench.subscribe("d", *FREELY)
    assert bench.drain("d") == ["1", "2"]


def test_A_66_one_that_waits_for_another_attempt_is_active(cut: bool) -> None:
    bench = Bench("target-queue-depth='1'", settings="<redelivery-delay>1000</redelivery-delay>", cut=cut)
    bench.subscribe("c", *FREELY)
    bench.send_all("12", "n:{}")
    (one,) = bench.messages("c")
    bench.settle("c", one, "NACK")
    bench.world.advance(999)
    assert bench.got("c") == []
    bench.world.advance(1)
    assert bench.got("c") == ["1"]


def test_A_66_one_that_is_scheduled_is_passed_over(cut: bool) -> None:
    """It takes no place until it is due; then it is active, and one more than the target may be."""
    bench = Bench("target-queue-depth='1'", cut=cut)
    bench.send("later", "AMQ_SCHEDULED_DELAY:1000")
    bench.send_all("12", "n:{}")
    bench.subscribe("c", *FREELY)
    (one,) = bench.messages("c")
    assert one.body == b"1"
    bench.world.advance(1000)
    assert bench.got("c") == []
    bench.settle("c", one)
    assert bench.drain("c") == ["later", "2"]


@pytest.mark.parametrize("cleared", ["expires", "purged"])
def test_A_66_what_goes_makes_room(cut: bool, cleared: str) -> None:
    bench = Bench(TWO, cut=cut)
    bench.send_all("12", "n:{}", *(["expires:" + str(bench.world.now_ms + 500)] if cleared == "expires" else []))
    bench.send_all("34", "n:{}")
    if cleared == "expires":
        assert browsed(bench, "before") == ["1", "2"]
        bench.world.advance(500)
        assert browsed(bench, "after") == ["3", "4"]
    else:
        assert bench.queue().unheld_count == 4
        bench.queue().purge(PURGED, bench.world.now_ms)
        bench.send_all("5", "n:{}")
        assert browsed(bench, "after") == ["5"]


def test_A_66_what_is_not_active_expires(cut: bool) -> None:
    bench = Bench(f"{TWO} max-message-ttl='600000'", cut=cut)  # so it goes at its time, and not with the next round
    bench.send_all("12", "n:{}")
    bench.send_all("3", "n:{}", "expires:" + str(bench.world.now_ms + 500))
    bench.send_all("4", "n:{}")
    bench.world.advance(500)
    assert bench.count() == 3
    bench.subscribe("c", *FREELY)
    assert bench.drain("c", at_once_max=3) == ["1", "2", "4"]


def test_A_66_in_a_transaction_a_place_is_free_with_its_commit(cut: bool) -> None:
    bench = Bench("target-queue-depth='1'", cut=cut)
    bench.subscribe("c", *FREELY)
    bench.send_all("12", "n:{}")
    (one,) = bench.messages("c")
    bench.write("c", "BEGIN", "transaction:t")
    bench.write("c", "ACK", f"id:{one.header('ack')}", "transaction:t")
    assert bench.got("c") == []
    bench.write("c", "COMMIT", "transaction:t")
    assert bench.got("c") == ["2"]


@pytest.mark.parametrize("ack", ["auto", "client"])
def test_A_66_all_come_in_the_end(cut: bool, ack: str) -> None:
    bench = Bench("target-queue-depth='1' max-per-subscription-backlog='10'", cut=cut)
    bench.subscribe("c", *FREELY, ack=ack)
    bench.send_all("123", "n:{}")
    got = bench.got("c") if ack == "auto" else bench.drain("c")
    assert (got, bench.count()) == (["1", "2", "3"], 0)


@pytest.mark.parametrize("more", ["", "overflow-policy='FLOW_TO_DISK' max-depth-messages='3'"], ids=["PAGE", "to disk"])
@pytest.mark.parametrize("restart", [False, True])
def test_A_66_in_pages_and_after_a_restart(more: str, restart: bool) -> None:
    """Nobody reads past it in pages."""
    pages = "<page-size-bytes>300</page-size-bytes>" + ("" if more else "<max-size-messages>3</max-size-messages>")
    life = Life(f"{TWO} {more}", settings=pages)
    for body in "123456789":
        life.send(body, f"n:{body}")
    assert life.queue().contents.paged.count > 4
    if restart:
        life = life.again()
    chooser, other = life.client("chooser"), life.client("other")
    life.subscribe("chooser", FLAT, MANY, "selector:n = '9'")
    life.subscribe("other", FLAT, MANY, "selector:n <> '9'")
    assert list(chooser.collect()) == []
    got = ""
    while frames := list(other.collect()):
        other.collect().clear()
        assert len(frames) <= 2
        for frame in frames:
            got += frame.body.decode()
            life.settle("other", frame)
    assert got == "12345678"
    assert [frame.body for frame in chooser.collect()] == [b"9"]
