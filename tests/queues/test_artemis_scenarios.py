"""What Artemis' scenarios (rows 2.8 and 2.17 of rows.py) leave open beside their transcripts in tests/wire, and tests
about types, groups, consumers, time and retroactive addresses.
"""

from __future__ import annotations

import pytest

from tests.kit.bench import ONE_AT_A_TIME, Bench

pytestmark = pytest.mark.wire

SOME = "consumer-window-size:-1"


def counts(bench: Bench, name: str = "q") -> tuple[int, int, int]:
    """Messages, in delivery, scheduled."""
    queue = bench.queue(name)
    return queue.message_count, queue.contents.delivering_count, len(queue.contents.scheduled)


def test_runtime_2_8_an_expired_message(cut: bool) -> None:
    """It is there until its time is over, then on the expiry address; a non-destructive queue is no exception."""
    expired = '<address name="old"><anycast><queue name="old"/></anycast></address>'
    settings = "<expiry-address>old</expiry-address>"
    bench = Bench("non-destructive='true'", settings=settings, more=expired, cut=cut)
    bench.send("a", f"expires:{bench.world.now_ms + 200}")
    assert (bench.count(), bench.count("old")) == (1, 0)
    bench.world.advance(31_000)
    assert (bench.count(), bench.queue().contents.counters.expired, bench.count("old")) == (0, 1, 1)


@pytest.mark.parametrize("way", ["lose", "NACK"])
def test_runtime_2_17_14_gaps_grow_to_their_maximum(way: str, cut: bool) -> None:
    """1, 2, 3 and 3 s after a failed delivery, of which DISCONNECT and UNSUBSCRIBE are none (in Artemis DISCONNECT is
    one, and a lost connection is none).
    """
    settings = """<redelivery-delay>1000</redelivery-delay>
    <redelivery-delay-multiplier>2</redelivery-delay-multiplier>
    <max-redelivery-delay>3000</max-redelivery-delay>"""
    bench = Bench(settings=settings, cut=cut)
    bench.send("a")
    for gap_ms in (1000, 2000, 3000, 3000):
        bench.subscribe("c", ONE_AT_A_TIME)
        (frame,) = bench.messages("c")
        if way == "lose":
            bench.lose("c")
        else:
            bench.settle("c", frame, "NACK")
            bench.leave("c")
        assert counts(bench) == (1, 0, 1)
        bench.world.advance(gap_ms - 1)
        assert counts(bench) == (1, 0, 1)
        bench.world.advance(1)
        assert counts(bench) == (1, 0, 0)
    for ending in ("UNSUBSCRIBE", "DISCONNECT"):
        bench.subscribe("d", ONE_AT_A_TIME)
        assert len(bench.messages("d")) == 1
        bench.write("d", ending, "id:1")
        assert counts(bench) == (1, 0, 0)


@pytest.mark.parametrize("policy", ["FAIL", "BLOCK", "DROP"])
def test_runtime_2_17_18_duplicates_and_a_full_address(policy: str, cut: bool) -> None:
    """Who missed the receipt sends again, and is told that the message is there."""
    settings = f"<max-size-messages>1</max-size-messages><address-full-policy>{policy}</address-full-policy>"
    bench = Bench(settings=settings, cut=cut)
    for number in range(2):
        bench.send("a", "_AMQ_DUPL_ID:1", f"receipt:{number}")
    assert [frame.header("receipt-id") for frame in bench.frames("producer")] == ["0", "1"]
    assert bench.count() == 1
