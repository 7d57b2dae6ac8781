"""Rows of AMPS (rows.py) about leases, at the wire: frames in, frames out. The clock of the broker is set by hand."""

from __future__ import annotations

from datetime import datetime

import pytest

from artemis_py.errors import ConfigError
from tests.kit.bench import FLAT, Bench
from tests.kit.frames import ServerFrame
from tests.kit.life import Life
from tests.queues.outcomes import counts, opened

pytestmark = pytest.mark.wire

SECOND = "lease-period='1s' max-per-subscription-backlog='9'"
STRICT = f"{SECOND} leasing='strict'"
EACH_LEASING = pytest.mark.parametrize("attributes", [SECOND, STRICT], ids=["sublet", "strict"])


def leased(bench: Bench, body: str = "a", *headers: str, ack: str = "client-individual") -> ServerFrame:
    """A message that c1 holds. c2 is there, too."""
    bench.send(body, *headers)
    bench.subscribe("c1", FLAT, "max-backlog:9", ack=ack)
    (frame,) = bench.messages("c1")
    bench.subscribe("c2", FLAT, "max-backlog:9")
    return frame


def lapsed(bench: Bench) -> tuple[ServerFrame, ServerFrame]:
    """A message that c1 held for too long and c2 holds now."""
    first = leased(bench)
    bench.world.advance(1000)
    (second,) = bench.messages("c2")
    return first, second


@EACH_LEASING
def test_A_18_the_period_runs_from_the_sending(cut: bool, attributes: str) -> None:
    bench = opened(cut, attributes)
    bench.send("a")
    bench.world.advance(700)
    bench.subscribe("c1", FLAT)
    assert bench.got("c1") == ["a"]
    bench.world.advance(999)
    assert bench.got("c1") == []
    bench.world.advance(1)
    (frame,) = bench.messages("c1")
    assert (frame.body, frame.header("redelivered"), frame.header("delivery-count")) == (b"a", "true", "2")


def test_A_18_without_a_period_it_has_no_end(cut: bool) -> None:
    bench = opened(cut, "leasing='strict'")
    frame = leased(bench)
    assert frame.header("lease-expires") is None
    bench.world.advance(10**8)
    assert (bench.got("c1"), bench.got("c2")) == ([], [])
    bench.settle("c1", frame)
    assert counts(bench) == (0, 0, 0)


def test_A_18_what_is_acknowledged_in_time_is_gone(cut: bool) -> None:
    bench = opened(cut, SECOND)
    frame = leased(bench)
    bench.world.advance(999)
    bench.settle("c1", frame)
    bench.world.advance(2000)
    assert (counts(bench), bench.got("c2")) == ((0, 0, 0), [])


def test_A_18_the_wall_clock_does_not_matter(cut: bool) -> None:
    bench = opened(cut, SECOND)
    leased(bench)
    bench.world.set_clock(3_600_000)
    bench.world.advance(999)
    assert bench.got("c2") == []
    bench.world.set_clock(-7_200_000)
    bench.world.advance(1)
    assert bench.got("c2") == ["a"]


@EACH_LEASING
def test_A_19_another_consumer_gets_it(cut: bool, attributes: str) -> None:
    """The one that held it is asked last, though it was here first."""
    bench = opened(cut, attributes)
    _, second = lapsed(bench)
    assert (second.header("redelivered"), second.header("delivery-count")) == ("true", "2")
    assert bench.got("c1") == []


@EACH_LEASING
def test_A_19_each_lease_ends_at_its_own_time(cut: bool, attributes: str) -> None:
    bench = opened(cut, attributes)
    bench.subscribe("c1", FLAT, "max-backlog:9")
    for body in "abc":
        bench.send(body)
        bench.world.advance(300)
    assert bench.got("c1") == ["a", "b", "c"]
    bench.subscribe("c2", FLAT, "max-backlog:9")
    bench.world.advance(100)
    assert bench.got("c2") == ["a"]
    bench.world.advance(300)
    assert bench.got("c2") == ["b"]


def test_A_19_sublet_a_late_ack_counts(cut: bool) -> None:
    """The new holder's message goes from under it; its own ACK then changes nothing."""
    bench = opened(cut, SECOND)
    first, second = lapsed(bench)
    bench.settle("c1", first)
    assert counts(bench) == (0, 0, 0)
    bench.settle("c2", second)
    assert (counts(bench), bench.got("c1"), bench.got("c2")) == ((0, 0, 0), [], [])


def test_A_19_A_41_strict_a_late_ack_is_ignored(cut: bool) -> None:
    bench = opened(cut, STRICT)
    first, second = lapsed(bench)
    bench.settle("c1", first)
    assert counts(bench) == (1, 0, 0)
    bench.settle("c2", second)
    assert (counts(bench), bench.got("c1")) == ((0, 0, 0), [])


@EACH_LEASING
@pytest.mark.parametrize("option", ["", "options:expire"])
def test_A_41_what_nobody_holds_anybody_settles(cut: bool, attributes: str, option: str) -> None:
    bench = opened(cut, attributes)
    bench.send("a")
    bench.subscribe("c1", FLAT)
    (frame,) = bench.messages("c1")
    bench.queue().pause()
    bench.world.advance(1000)
    bench.settle("c1", frame, "ACK", *filter(None, [option]))
    assert counts(bench) == (0, 1 if option else 0, 0)


@EACH_LEASING
def test_A_42_a_late_cancel_changes_nothing_where_nobody_holds_it(cut: bool, attributes: str) -> None:
    bench = opened(cut, f"{attributes} max-cancels='1'")
    bench.send("a")
    bench.subscribe("c1", FLAT)
    (frame,) = bench.messages("c1")
    bench.queue().pause()
    bench.world.advance(1000)
    bench.settle("c1", frame, "NACK")
    assert counts(bench) == (1, 0, 0)


@EACH_LEASING
def test_A_19_a_late_ack_in_a_transaction(cut: bool, attributes: str) -> None:
    """COMMIT removes it, ABORT gives it back; strict: neither does anything."""
    for end in ("COMMIT", "ABORT"):
        bench = opened(cut, attributes)
        first, _ = lapsed(bench)
        bench.write("c1", "BEGIN", "transaction:t")
        bench.settle("c1", first, "ACK", "transaction:t")
        assert counts(bench) == (1, 0, 0)
        bench.write("c1", end, "transaction:t")
        assert counts(bench) == (0 if end == "COMMIT" and attributes == SECOND else 1, 0, 0)


def test_A_18_an_ack_in_a_transaction_ends_the_lease(cut: bool) -> None:
    bench = opened(cut, SECOND)
    frame = leased(bench)
    bench.write("c1", "BEGIN", "transaction:t")
    bench.settle("c1", frame, "ACK", "transaction:t")
    bench.world.advance(5000)
    assert bench.got("c2") == []
    bench.write("c1", "COMMIT", "transaction:t")
    assert counts(bench) == (0, 0, 0)


@EACH_LEASING
def test_A_23_a_lost_connection_ends_them_at_once(cut: bool, attributes: str) -> None:
    bench = opened(cut, attributes)
    leased(bench)
    bench.lose("c1")
    assert bench.got("c2") == ["a"]
    bench.world.advance(999)
    assert bench.got("c2") == []
    bench.world.advance(1)
    assert bench.got("c2") == ["a"]


def test_A_55_what_nobody_takes_expires(cut: bool) -> None:
    bench = opened(cut, SECOND)
    bench.send("a", f"expires:{bench.world.now_ms + 500}")
    bench.world.advance(60_000)
    assert counts(bench) == (0, 1, 0)


@EACH_LEASING
def test_A_56_expiration_waits_for_the_lease(cut: bool, attributes: str) -> None:
    bench = opened(cut, attributes)
    frame = leased(bench, "a", f"expires:{bench.world.now_ms + 500}")
    bench.world.advance(900)
    assert counts(bench) == (1, 0, 0)
    bench.settle("c1", frame)
    assert counts(bench) == (0, 0, 0)


@EACH_LEASING
def test_A_57_what_is_too_old_when_the_lease_ends_expires(cut: bool, attributes: str) -> None:
    bench = opened(cut, attributes)
    leased(bench, "a", f"expires:{bench.world.now_ms + 500}")
    bench.world.advance(1000)
    assert (bench.got("c1"), bench.got("c2")) == ([], [])
    assert counts(bench) == (0, 1, 0)


@EACH_LEASING
def test_A_57_A_20_the_end_of_a_lease_is_a_delivery_in_vain(cut: bool, attributes: str) -> None:
    bench = opened(cut, f"{attributes} max-deliveries='2' max-cancels='1'")
    lapsed(bench)
    bench.world.advance(1000)
    assert counts(bench) == (0, 0, 1)
    bench.subscribe("looker", "browser:true", to="dead")
    (dead,) = bench.messages("looker")
    assert dead.header("reason") == "max_deliveries"


def test_A_57_it_is_a_failed_attempt_too(cut: bool) -> None:
    bench = opened(cut, f"{SECOND} max-delivery-attempts='1'")
    leased(bench)
    bench.world.advance(1000)
    assert counts(bench) == (0, 0, 1)


@EACH_LEASING
def test_A_58_the_consumer_is_told_when_it_ends(cut: bool, attributes: str) -> None:
    bench = opened(cut, attributes)
    bench.world.advance(123)
    frame = leased(bench)
    told = frame.header("lease-expires")
    assert told is not None
    assert told.endswith("Z")
    assert round(datetime.fromisoformat(told).timestamp() * 1000) == bench.world.now_ms + 1000
    assert frame.header("delivery-count") == "1"


def test_A_59_the_end_of_a_lease_frees_the_backlog(cut: bool) -> None:
    bench = opened(cut, "lease-period='1s'")
    bench.subscribe("c1", FLAT)
    for body in "ab":
        bench.send(body)
    assert bench.got("c1") == ["a"]
    bench.world.advance(1000)
    (frame,) = bench.messages("c1")
    assert frame.body == b"a"
    bench.settle("c1", frame)
    assert bench.got("c1") == ["b"]


def test_A_19_with_ack_client(cut: bool) -> None:
    """An ACK covers what is still leased before it; one that is late is for the named message alone."""
    bench = opened(cut, SECOND)
    bench.subscribe("c1", FLAT, "max-backlog:9", ack="client")
    for body in "abc":
        bench.send(body)
        bench.world.advance(400)
    frames = bench.messages("c1")
    assert [frame.body for frame in frames] == [b"a", b"b", b"c", b"a"]
    bench.settle("c1", frames[2])
    assert counts(bench) == (1, 0, 0)


def test_A_19_with_auto_there_is_no_lease(cut: bool) -> None:
    bench = opened(cut, SECOND)
    bench.subscribe("c1", ack="auto")
    bench.send("a")
    (frame,) = bench.messages("c1")
    assert frame.header("lease-expires") is None
    assert counts(bench) == (0, 0, 0)


def test_A_09_leases_do_not_survive_a_restart() -> None:
    """Nobody holds anything then; what was leased is there at once, in its old order."""
    life = Life("lease-period='1h' max-per-subscription-backlog='9'")
    holder = life.client("holder")
    for body in "abc":
        life.send(body)
    life.subscribe("holder", "max-backlog:2")
    assert [frame.body for frame in holder.collect()] == [b"a", b"b"]
    life = life.again()
    assert life.read() == ["a", "b", "c"]


@pytest.mark.parametrize("attributes", ["lease-period='0'", "lease-period='366d'", "lease-period='1w'"])
def test_A_18_periods_that_are_none(attributes: str) -> None:
    with pytest.raises(ConfigError, match="lease-period"):
        Bench(attributes)


def test_many_leases_end_in_slices() -> None:
    """Three thousand end together; none is lost, and each comes again in its place."""
    bench = Bench("lease-period='1s' max-per-subscription-backlog='-1'")
    bench.subscribe("c1", FLAT, "max-backlog:20000")
    for number in range(3000):
        bench.send(str(number))
    assert len(bench.got("c1")) == 3000
    bench.world.advance(1000)
    assert bench.got("c1") == [str(number) for number in range(3000)]
    leases = bench.queue().contents.leases
    assert leases is not None
    assert len(leases) == 3000
