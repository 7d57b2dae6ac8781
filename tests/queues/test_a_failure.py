"""Rows of AMPS (rows.py) about messages that a consumer gives up, at the wire: frames in, frames out."""

from __future__ import annotations

import pytest

from tests.kit.bench import FLAT, Bench
from tests.kit.frames import ServerFrame
from tests.kit.life import Life
from tests.queues.outcomes import SETTINGS, TARGETS, counts, opened

pytestmark = pytest.mark.wire

ACK_AND_NACK = pytest.mark.parametrize("command", ["ACK", "NACK"])


def held(bench: Bench, bodies: str = "a", ack: str = "client-individual") -> list[ServerFrame]:
    """A consumer, c1, has these messages."""
    for body in bodies:
        bench.send(body, "k:v")
    bench.subscribe("c1", FLAT, ack=ack)
    return bench.messages("c1")


def reason_of(bench: Bench, name: str) -> str | None:
    """Why the only message of a queue is there."""
    bench.subscribe("looker", "browser:true", to=name)
    (frame,) = bench.messages("looker")
    assert frame.header("_AMQ_ORIG_QUEUE") == "q"
    assert frame.header("k") == "v"
    return frame.header("reason")


@ACK_AND_NACK
def test_A_42_cancel_gives_it_back(cut: bool, command: str) -> None:
    """What NACK does without a word, ACK does with one."""
    bench = opened(cut)
    (frame,) = held(bench)
    bench.settle("c1", frame, command, "options:cancel")
    (again,) = bench.messages("c1")
    assert (again.body, again.header("redelivered")) == (b"a", "true")
    assert counts(bench) == (1, 0, 0)


def test_A_42_cancel_counts_as_an_attempt(cut: bool) -> None:
    bench = opened(cut, "max-delivery-attempts='2'")
    (frame,) = held(bench)
    bench.settle("c1", frame, "ACK", "options:cancel")
    (frame,) = bench.messages("c1")
    bench.settle("c1", frame, "ACK", "options:cancel")
    assert counts(bench) == (0, 0, 1)
    assert reason_of(bench, "dead") == "max_deliveries"


@ACK_AND_NACK
def test_A_45_A_28_expire_sends_it_to_the_expiry_address(cut: bool, command: str) -> None:
    bench = opened(cut)
    (frame,) = held(bench)
    bench.settle("c1", frame, command, "options:expire")
    assert bench.got("c1") == []
    assert counts(bench) == (0, 1, 0)
    assert bench.queue().contents.counters.expired == 1
    assert reason_of(bench, "over") == "forced_expire"


def test_A_45_without_an_expiry_address_it_is_gone(cut: bool) -> None:
    bench = Bench(cut=cut)
    (frame,) = held(bench)
    bench.settle("c1", frame, "ACK", "options:expire")
    assert bench.count() == 0
    bench.lose("c1")
    assert bench.count() == 0


def test_A_45_cumulative(cut: bool) -> None:
    """With ack:client it means all that were sent before, as always."""
    bench = opened(cut)
    frames = held(bench, "abc", ack="client")
    bench.settle("c1", frames[1], "ACK", "options:expire")
    assert counts(bench) == (1, 2, 0)
    bench.settle("c1", frames[2], "ACK")
    assert counts(bench) == (0, 2, 0)


@pytest.mark.parametrize(("end", "expected"), [("COMMIT", (0, 1, 0)), ("ABORT", (1, 0, 0))])
def test_A_45_in_a_transaction(cut: bool, end: str, expected: tuple[int, int, int]) -> None:
    bench = opened(cut)
    (frame,) = held(bench)
    bench.write("c1", "BEGIN", "transaction:t")
    bench.settle("c1", frame, "ACK", "options:expire", "transaction:t")
    assert counts(bench) == (1, 0, 0)
    bench.write("c1", end, "transaction:t")
    assert counts(bench) == expected


def test_A_45_after_a_restart_it_is_where_it_went() -> None:
    life = Life("", settings=SETTINGS, more=TARGETS)
    reader = life.client("reader")
    life.send("a")
    life.subscribe("reader")
    (frame,) = reader.collect()
    life.write("reader", "ACK", f"id:{frame.header('ack')}", "options:expire")
    life = life.again()
    queues = life.core.queues
    assert [queues[name].message_count for name in ("q", "over", "dead")] == [0, 1, 0]


def test_A_45_many_at_once_take_several_turns() -> None:
    """Each of them makes a copy."""
    bench = opened(cut=False)
    frames = held(bench, "x" * 3000, ack="client")
    bench.settle("c1", frames[-1], "ACK", "options:expire")
    assert counts(bench) == (0, 3000, 0)


def test_A_46_without_a_word_it_is_done(cut: bool) -> None:
    bench = opened(cut)
    (frame,) = held(bench)
    bench.settle("c1", frame, "ACK")
    assert counts(bench) == (0, 0, 0)


@ACK_AND_NACK
@pytest.mark.parametrize("option", ["cancel", "expire"])
def test_A_47_at_most_once_the_options_mean_nothing(cut: bool, command: str, option: str) -> None:
    bench = opened(cut, "delivery-semantics='at-most-once'")
    (frame,) = held(bench, "ab")
    bench.settle("c1", frame, command, f"options:{option}")
    assert bench.got("c1") == ["b"]
    assert counts(bench) == (0, 0, 0)


@ACK_AND_NACK
def test_an_option_that_nobody_knows(cut: bool, command: str) -> None:
    bench = opened(cut)
    (frame,) = held(bench)
    bench.settle("c1", frame, command, "options:explode")
    (error,) = bench.frames("c1")
    assert error.command == "ERROR"
    assert "must be cancel or expire, not 'explode'" in (error.header("message") or "")
    assert counts(bench) == (1, 0, 0)


def test_on_a_queue_that_keeps_what_it_shows_nothing_expires(cut: bool) -> None:
    bench = opened(cut, "non-destructive='true'")
    (frame,) = held(bench)
    bench.settle("c1", frame, "ACK", "options:expire")
    assert counts(bench) == (1, 0, 0)


# ---- too often -----------------------------------------------------------------------------------


def test_A_20_the_most_deliveries(cut: bool) -> None:
    """Whatever ended them: the attributes of AMPS ask less of a client than max-delivery-attempts."""
    bench = opened(cut, "max-deliveries='3'")
    assert len(held(bench)) == 1
    bench.leave("c1")
    for name in ("c2", "c3"):
        assert counts(bench) == (1, 0, 0)
        bench.subscribe(name)
        assert bench.got(name) == ["a"]
        bench.lose(name)
    assert counts(bench) == (0, 0, 1)
    assert reason_of(bench, "dead") == "max_deliveries"


def test_A_20_the_last_delivery_may_be_acknowledged(cut: bool) -> None:
    bench = opened(cut, "max-deliveries='2'")
    (frame,) = held(bench)
    bench.settle("c1", frame, "NACK")
    (frame,) = bench.messages("c1")
    bench.settle("c1", frame, "ACK")
    assert counts(bench) == (0, 0, 0)


def test_A_20_what_was_not_sent_is_no_delivery(cut: bool) -> None:
    """What waits behind the backlog of a client has not been delivered to it."""
    bench = opened(cut, "max-deliveries='1' max-per-subscription-backlog='2'")
    for body in "abc":
        bench.send(body)
    bench.subscribe("c1", FLAT, "max-backlog:2")
    bench.lose("c1")
    assert counts(bench) == (1, 0, 2)


def test_A_20_the_count_does_not_survive_a_restart() -> None:
    life = Life("max-deliveries='2'", settings=SETTINGS, more=TARGETS)
    life.send("a")
    for _ in range(3):
        assert life.read("taker", count_max=1) == ["a"]
        life = life.again()
    assert life.count("dead") == 0


@pytest.mark.parametrize("option", ["", "options:cancel"])
def test_A_21_A_43_the_most_cancels(cut: bool, option: str) -> None:
    """With a limit of 2 the second removes it. Lost connections are no cancels."""
    bench = opened(cut, "max-cancels='2'")
    assert len(held(bench)) == 1
    bench.lose("c1")
    bench.subscribe("c1")
    for _ in range(2):
        assert counts(bench) == (1, 0, 0)
        (frame,) = bench.messages("c1")
        bench.settle("c1", frame, *(["ACK", option] if option else ["NACK"]))
    assert bench.got("c1") == []
    assert counts(bench) == (0, 0, 1)
    assert reason_of(bench, "dead") == "max_cancels"


def test_A_44_cancels_are_counted_for_each_message(cut: bool) -> None:
    bench = opened(cut, "max-cancels='2'")
    (frame,) = held(bench, "ab")
    bench.settle("c1", frame, "NACK")
    (frame,) = bench.messages("c1")
    bench.settle("c1", frame, "NACK")
    (frame,) = bench.messages("c1")
    assert frame.body == b"b"
    bench.settle("c1", frame, "NACK")
    assert bench.got("c1") == ["b"]
    assert counts(bench) == (1, 0, 1)


@pytest.mark.parametrize(("end", "expected"), [("COMMIT", (0, 0, 1)), ("ABORT", (1, 0, 0))])
def test_A_21_a_cancel_counts_with_the_commit(cut: bool, end: str, expected: tuple[int, int, int]) -> None:
    bench = opened(cut, "max-cancels='1'")
    (frame,) = held(bench)
    bench.write("c1", "BEGIN", "transaction:t")
    bench.settle("c1", frame, "NACK", "transaction:t")
    bench.write("c1", end, "transaction:t")
    assert counts(bench) == expected


def test_what_has_left_is_counted_no_more(cut: bool) -> None:
    bench = opened(cut, "max-cancels='5'")
    delivery_attempts = bench.queue().contents.delivery_attempts
    assert delivery_attempts is not None
    (frame,) = held(bench)
    bench.settle("c1", frame, "NACK")
    (frame,) = bench.messages("c1")
    assert len(delivery_attempts._counts) == 1
    bench.settle("c1", frame, "ACK")
    assert not delivery_attempts._counts
