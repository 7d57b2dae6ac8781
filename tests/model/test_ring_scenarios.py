"""The ring scenarios, step by step, with the counts that Artemis has: message count, in delivery, scheduled, replaced.
They hold the broker to these counts, and the model beside it too. tests/wire/transcripts/ring has the same numbers.
"""

from __future__ import annotations

import random

import pytest

from tests.model.letters import Spec
from tests.model.plans import AddressPlan, Plan, QueuePlan
from tests.model.side_by_side import Seat
from tests.model.trade import Trade

pytestmark = pytest.mark.model

Counts = tuple[int, int, int, int]


class Ring:
    """A ring queue spoken to in letters: the first message sent is A, the second B."""

    def __init__(self, size: int, plan: QueuePlan | None = None, address: AddressPlan | None = None) -> None:
        queue = plan or QueuePlan(ring_size=size)
        self.world = Trade(Plan((queue,), address or AddressPlan()))

    def send(self, count: int = 1, *, priority: int = 4, ttl_ms: int = 0, delay_ms: int = 0) -> Counts:
        """Send messages one by one, each with a turn of its own."""
        for _ in range(count):
            self.world.publish(Spec(priority=priority, ttl_ms=ttl_ms), delay_ms=delay_ms)
            self.turn()
        return self.counts

    def turn(self, ms: int = 0) -> Counts:
        """Let time pass and make a turn."""
        self.world.advance(ms)
        self.world.dispatch()
        self.world.write()
        return self.counts

    def subscribe(self, window: int = -1, connection: int = 1) -> Seat:
        """A consumer that acknowledges each message by itself."""
        seat = self.world.subscribe(connection=connection, window=window)
        assert seat is not None
        self.turn()
        return seat

    def close(self, seat: Seat) -> Counts:
        """UNSUBSCRIBE."""
        self.world.unsubscribe(seat)
        return self.turn()

    def settle(self, seat: Seat, count: int = 1) -> Counts:
        """Acknowledge the first messages that the consumer has."""
        for _ in range(count):
            self.world.settle(seat, 0)
            self.turn()
        return self.counts

    @property
    def counts(self) -> Counts:
        """Message count, in delivery, scheduled, replaced."""
        queue = self.world.pairs[0].queue
        return (
            queue.message_count,
            queue.contents.delivering_count,
            len(queue.contents.scheduled),
            queue.contents.counters.replaced,
        )

    def left(self) -> str:
        """What a new consumer would read, in order."""
        return _names([entry.message.id for entry in self.world.pairs[0].queue.contents.order])

    def held(self, seat: Seat) -> str:
        """What a consumer has, in the order of delivery."""
        return _names(list(seat.consumer.held))


def _names(ids: list[int]) -> str:
    return "".join(chr(ord("A") + number - 1) for number in ids)


def test_01_basic() -> None:
    """One too many: the oldest goes."""
    ring = Ring(3)
    assert [ring.send() for _ in range(5)] == [(1, 0, 0, 0), (2, 0, 0, 0), (3, 0, 0, 0), (3, 0, 0, 1), (3, 0, 0, 2)]
    seat = ring.subscribe()
    assert ring.held(seat) == "CDE"
    assert ring.settle(seat, 3) == (0, 0, 0, 2)
    counters = ring.world.pairs[0].queue.contents.counters
    assert (counters.added, counters.acknowledged) == (5, 3)


def test_02_in_delivery_overflow() -> None:
    """What is in delivery is not counted; when it comes back, the ring trims."""
    ring = Ring(3)
    seat = ring.subscribe()
    assert [ring.send() for _ in range(4)] == [(1, 1, 0, 0), (2, 2, 0, 0), (3, 3, 0, 0), (4, 4, 0, 0)]
    assert ring.close(seat) == (3, 0, 0, 1)
    assert ring.held(ring.subscribe()) == "BCD"


def test_03_rollback_of_one() -> None:
    """Ring of one: the later of two that come back stays."""
    ring = Ring(1)
    seat = ring.subscribe()
    assert ring.send(2) == (2, 2, 0, 0)
    assert ring.close(seat) == (1, 0, 0, 1)
    seat = ring.subscribe()
    assert ring.held(seat) == "B"
    assert ring.settle(seat) == (0, 0, 0, 1)


def test_04_window_of_one_message() -> None:
    """The one in delivery is safe until it comes back to a full ring."""
    ring = Ring(3)
    seat = ring.subscribe(window=0)
    assert ring.send() == (1, 1, 0, 0)
    assert ring.send(3) == (4, 1, 0, 0)
    assert ring.send() == (4, 1, 0, 1)
    assert ring.held(seat) == "A"
    assert ring.close(seat) == (3, 0, 0, 2)
    assert ring.left() == "CDE"


def test_05_window_of_one_message_with_ack() -> None:
    """The same with an acknowledgement in between."""
    ring = Ring(3)
    seat = ring.subscribe(window=0)
    ring.send(5)
    assert ring.settle(seat) == (3, 1, 0, 1)
    assert ring.held(seat) == "C"
    assert ring.send() == (4, 1, 0, 1)
    assert ring.send() == (4, 1, 0, 2)
    assert ring.close(seat) == (3, 0, 0, 3)
    assert ring.left() == "EFG"


def test_06_return_that_fits() -> None:
    """Three come back to a ring of three: nothing goes."""
    ring = Ring(3)
    seat = ring.subscribe()
    ring.send(4)
    ring.world.settle(seat, 1)
    assert ring.counts == (3, 3, 0, 0)
    assert ring.close(seat) == (3, 0, 0, 0)
    assert ring.left() == "ACD"


def test_07_return_keeps_order() -> None:
    """Five come back to a ring of three: the last three stay, in order."""
    ring = Ring(3)
    seat = ring.subscribe()
    assert ring.send(5) == (5, 5, 0, 0)
    assert ring.close(seat) == (3, 0, 0, 2)
    assert ring.left() == "CDE"


def test_08_two_consumers() -> None:
    """Returns are restored by sequence, whoever held them: the lowest goes (Artemis, walking by delivery, drops B)."""
    ring = Ring(3)
    first, second = ring.subscribe(), ring.subscribe(connection=2)
    assert ring.send(4) == (4, 4, 0, 0)
    assert (ring.held(first), ring.held(second)) == ("AC", "BD")
    assert ring.close(first) == (4, 4, 0, 0)
    assert ring.held(second) == "BDAC"
    assert ring.close(second) == (3, 0, 0, 1)
    assert ring.left() == "BCD"


def test_09_scheduled_blocks_nothing() -> None:
    """A scheduled message is outside the ring, and goes itself when it falls due to a full one."""
    ring = Ring(3)
    assert ring.send(delay_ms=5000) == (1, 0, 1, 0)
    assert [ring.send() for _ in range(3)] == [(2, 0, 1, 0), (3, 0, 1, 0), (4, 0, 1, 0)]
    assert ring.turn(5000) == (3, 0, 0, 1)
    assert ring.left() == "BCD"


def test_10_scheduled_goes_to_the_head() -> None:
    """With room in the ring a due message stands before older arrivals."""
    ring = Ring(3)
    ring.send(delay_ms=100)
    assert ring.send() == (2, 0, 1, 0)
    assert ring.turn(100) == (2, 0, 0, 0)
    assert ring.left() == "AB"


def test_11_second_due_finds_the_ring_full() -> None:
    """Two due at different times, ring of one: the first stays."""
    ring = Ring(1)
    ring.world.publish(Spec(), delay_ms=100)
    ring.world.publish(Spec(), delay_ms=400)
    assert ring.counts == (2, 0, 2, 0)
    assert ring.turn(100) == (2, 0, 1, 0)
    assert ring.turn(300) == (1, 0, 0, 1)
    assert ring.left() == "A"


def test_12_due_together() -> None:
    """Five due at once to a ring of three: the earliest go, the order stays."""
    ring = Ring(3)
    ring.world.publish(*[Spec()] * 5, delay_ms=100)
    assert ring.counts == (5, 0, 5, 0)
    assert ring.turn(100) == (3, 0, 0, 2)
    assert ring.left() == "CDE"


def test_13_due_with_idle_consumer() -> None:
    """A due message goes to a consumer with room; the ring has nothing to say."""
    ring = Ring(3)
    ring.subscribe()
    assert ring.send(3) == (3, 3, 0, 0)
    ring.send(delay_ms=100)
    assert ring.turn(100) == (4, 4, 0, 0)


def test_14_priority() -> None:
    """The oldest of the lowest priority goes, a newcomer alone there goes itself (not, as in Artemis, the next)."""
    ring = Ring(1)
    ring.send(priority=4)
    assert ring.send(priority=9) == (1, 0, 0, 1)
    assert ring.left() == "B"
    ring = Ring(3)
    ring.send(priority=9)
    assert ring.send(3) == (3, 0, 0, 1)
    assert ring.left() == "ACD"
    ring = Ring(2)
    ring.send(2, priority=9)
    assert ring.send(priority=1) == (2, 0, 0, 1)
    assert ring.left() == "AB"


@pytest.mark.parametrize("scans", [False, True])
def test_15_expiry(scans: bool) -> None:
    """What has expired and was not looked at counts, and the ring gives it up as replaced."""
    ring = Ring(3, address=AddressPlan(scan_period=100 if scans else -1))
    ring.send(ttl_ms=1000)
    ring.send(2)
    assert ring.turn(2000) == ((2, 0, 0, 0) if scans else (3, 0, 0, 0))
    assert ring.send() == ((3, 0, 0, 0) if scans else (3, 0, 0, 1))
    assert ring.world.pairs[0].queue.contents.counters.expired == (1 if scans else 0)


@pytest.mark.parametrize(("failed", "counts", "killed"), [(True, (0, 0, 0, 0), 4), (False, (3, 0, 0, 1), 0)])
def test_16_dead_letters(failed: bool, counts: Counts, killed: int) -> None:
    """A lost connection counts an attempt, a good-bye does not."""
    ring = Ring(3, address=AddressPlan(attempts_max=1, dead_letter=True))
    ring.subscribe()
    assert ring.send(4) == (4, 4, 0, 0)
    ring.world.end(1, failed=failed)
    assert ring.turn() == counts
    assert ring.world.pairs[0].queue.contents.counters.killed == killed
    assert ring.world.broker.queues["dead"].message_count == killed


def test_17_resize() -> None:
    """A smaller ring does not purge, it stops growing."""
    ring = Ring(10)
    ring.send(10)
    ring.world.resize(3)
    assert ring.counts == (10, 0, 0, 0)
    assert ring.send() == (10, 0, 0, 1)
    seat = ring.subscribe()
    ring.settle(seat, 8)
    ring.close(seat)
    assert ring.counts == (2, 0, 0, 1)
    assert ring.send() == (3, 0, 0, 1)
    assert ring.send() == (3, 0, 0, 2)


def test_18_transaction() -> None:
    """Nothing before COMMIT; then the ring trims; ABORT leaves nothing."""
    ring = Ring(3)
    ring.world.begin()
    ring.world.send_in_transaction(*[Spec()] * 5)
    assert ring.turn() == (0, 0, 0, 0)
    ring.world.commit()
    assert ring.turn() == (3, 0, 0, 2)
    ring = Ring(3)
    ring.world.begin()
    ring.world.send_in_transaction(*[Spec()] * 5)
    ring.world.abort()
    assert ring.turn() == (0, 0, 0, 0)


def test_20_paused() -> None:
    """The ring works while the queue is paused."""
    ring = Ring(3)
    ring.world.pause()
    assert ring.send(5) == (3, 0, 0, 2)
    ring.world.resume()
    assert ring.turn() == (3, 0, 0, 2)


def test_21_rings_of_one_address() -> None:
    """Each queue has its own ring, and the address answers for each message once."""
    world = Trade(Plan((QueuePlan(ring_size=1), QueuePlan(ring_size=3))))
    for _ in range(3):
        world.publish(Spec())
    assert [(pair.queue.message_count, pair.queue.contents.counters.replaced) for pair in world.pairs] == [
        (1, 2),
        (3, 0),
    ]
    assert world.broker.addresses["a"].account.message_count == 3


def test_22_non_destructive() -> None:
    """Reading and acknowledging takes nothing; the newest stays."""
    ring = Ring(1, QueuePlan(ring_size=1, non_destructive=True))
    assert ring.send() == (1, 0, 0, 0)
    assert ring.send() == (1, 0, 0, 1)
    seat = ring.subscribe()
    assert ring.settle(seat) == (1, 0, 0, 1)
    assert ring.world.pairs[0].queue.contents.counters.acknowledged == 0
    assert ring.send() == (1, 1, 0, 2)
    assert ring.close(seat) == (1, 0, 0, 2)


def test_23_many_senders(rng: random.Random) -> None:
    """Twenty-five senders of twenty-five messages in any mixture: the ring keeps exactly its size."""
    ring = Ring(25)
    senders = [number for number in range(25) for _ in range(25)]
    rng.shuffle(senders)
    for sender in senders:
        ring.world.publish(Spec(), connection=sender)
    assert ring.turn() == (25, 0, 0, 600)


def test_24_ring_of_nothing() -> None:
    """Every message goes at once, even past an idle consumer."""
    ring = Ring(0)
    ring.subscribe()
    assert ring.send(3) == (0, 0, 0, 3)
    ring = Ring(0)
    ring.world.subscribe(settles=True)
    assert ring.send(3) == (0, 0, 0, 3)


def test_25_purge_on_no_consumers() -> None:
    """Without consumers nothing enters; at the end what comes back is trimmed first, then killed."""
    ring = Ring(3, QueuePlan(ring_size=3, purge=True))
    assert ring.send() == (0, 0, 0, 0)
    seat = ring.subscribe()
    assert ring.send(4) == (4, 4, 0, 0)
    assert ring.close(seat) == (0, 0, 0, 1)
    assert ring.world.pairs[0].queue.contents.counters.killed == 3


@pytest.mark.parametrize("policy", ["DROP", "FAIL", "BLOCK"])
def test_26_address_limit_comes_before_the_ring(policy: str) -> None:
    """A limited address refuses at routing: the ring never acts."""
    ring = Ring(3, address=AddressPlan(messages_max=2, full_policy=policy))
    assert ring.send(3) == (2, 0, 0, 0)


def test_R13_abort_returns_like_close() -> None:
    """ABORT of acknowledged messages gives the same result as a consumer that closes."""
    ring = Ring(3)
    seat = ring.subscribe()
    ring.send(4)
    ring.world.pause()
    ring.world.begin()
    for _ in range(4):
        ring.world.settle_in_transaction(seat)
    assert ring.counts == (4, 4, 0, 0)
    ring.world.abort()
    assert ring.turn() == (3, 0, 0, 1)
    assert ring.left() == "BCD"
