"""Queues with pages, beside their model: reads and writes of pages come when the machine says so."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tests.model import paging_soak, steps
from tests.model.axes import ADDRESS_AXES, PAGED, Axes, Chosen, address_plan
from tests.model.letters import Spec
from tests.model.paging_state import PagePlan, Seat
from tests.model.paging_world import PagingWorld
from tests.model.plans import AddressPlan, QueuePlan
from tests.model.reader_model import SELECTORS

pytestmark = [pytest.mark.model, pytest.mark.interpreted, pytest.mark.usefixtures("small_steps")]

LETTERS_MAX = 60
SEATS_MAX = 6
PICKS = st.integers(0, 7)
CONNECTION = st.sampled_from(steps.CONNECTION_NUMBERS)
NUMBER = st.integers(0, 1)
SPECS = st.lists(
    st.tuples(
        st.sampled_from(steps.COLORS),
        st.sampled_from(steps.PRIORITIES),
        st.booleans(),
        st.sampled_from(steps.TTLS_MS),
        st.sampled_from(steps.BODIES),
        st.sampled_from(steps.KEYS),
        st.sampled_from(steps.GROUPS),
        st.sampled_from(steps.HOLDS_MS),
        st.booleans(),
    ),
    min_size=1,
    max_size=5,
)
DELAY = st.sampled_from(steps.DELAYS_MS)
TIME = st.sampled_from(steps.TIMES_MS)
ROOM = st.sampled_from(steps.ROOMS)


def _is_taken(chosen: Chosen) -> bool:
    return not any(PAGED.all_pairs[pair] for pair in PAGED.pairs_of(chosen))


def _mostly_usual(axes: Axes) -> st.SearchStrategy[Chosen]:
    return st.fixed_dictionaries(
        {axis: st.just(next(iter(names))) | st.sampled_from(list(names)) for axis, names in axes.items()}
    )


QUEUES = _mostly_usual(PAGED.queue_axes).filter(_is_taken).map(PAGED.queue_plan)
FAILURES = _mostly_usual({axis: ADDRESS_AXES[axis] for axis in ("redelivery", "attempts")}).map(address_plan)
PAGES = st.builds(
    PagePlan,
    messages_max=st.sampled_from((0, 1, 2, 5, -1)),
    page_bytes=st.sampled_from((200, 400, 1500)),
    read_messages_max=st.sampled_from((-1, -1, 1, 3)),
    ready_messages_max=st.sampled_from((-1, -1, 1, 2)),
    limit_messages=st.sampled_from((-1, -1, -1, 6)),
    limit_policy=st.sampled_from(("DROP", "FAIL")),
)


class PagingMachine(RuleBasedStateMachine):
    """One world."""

    world: PagingWorld

    @initialize(
        first=QUEUES,
        more=st.lists(QUEUES, max_size=2),
        pages=PAGES,
        failure=FAILURES,
    )
    def begin_world(self, first: QueuePlan, more: list[QueuePlan], pages: PagePlan, failure: AddressPlan) -> None:
        """Make the world."""
        self.world = PagingWorld((first, *more), pages, failure)

    def _seat(self, pick: int) -> Seat:
        return self.world.seats[pick % len(self.world.seats)]

    def _with_sent(self, *, in_transaction: bool) -> list[Seat]:
        return [
            seat
            for seat in self.world.seats
            if self.world.sent(seat) and (not in_transaction or seat.reader.connection in self.world.transactions)
        ]

    @property
    def _is_crowded(self) -> bool:
        return len({one for book in self.world.books for one in book.slots}) > LETTERS_MAX

    @rule(specs=SPECS, connection=CONNECTION, delay_ms=DELAY)
    def publish(self, specs: list[steps.Given], connection: int, delay_ms: int) -> None:
        """SEND."""
        if not self._is_crowded:
            self.world.publish([Spec(*spec) for spec in specs], connection=connection, delay_ms=delay_ms)

    @rule(count=st.sampled_from((8, 16)), red=st.booleans())
    def publish_many(self, count: int, red: bool) -> None:
        """A run of alike messages, which fills pages."""
        if not self._is_crowded:
            self.world.publish([Spec("red" if red else "blue", persistent=True)] * count)

    @rule(
        number=NUMBER,
        connection=CONNECTION,
        settles=st.booleans(),
        browses=st.booleans(),
        selector=st.none() | st.sampled_from(sorted(SELECTORS)),
        no_local=st.booleans(),
        window=st.sampled_from(steps.WINDOWS),
        room=ROOM,
        replay_s=st.sampled_from(steps.REPLAYS_S),
    )
    def subscribe(
        self,
        number: int,
        connection: int,
        settles: bool,
        browses: bool,
        selector: str | None,
        no_local: bool,
        window: int,
        room: int,
        replay_s: int | None,
    ) -> None:
        """SUBSCRIBE."""
        if len(self.world.seats) < SEATS_MAX:
            self.world.subscribe(
                number, connection, settles=settles, browses=browses, selector=selector, no_local=no_local,
                window=window, room=room, replay_s=replay_s,
            )  # fmt: skip

    @rule(number=NUMBER, connection=CONNECTION)
    def subscribe_plainly(self, number: int, connection: int) -> None:
        """SUBSCRIBE with nothing special."""
        if len(self.world.seats) < SEATS_MAX:
            self.world.subscribe(number, connection)

    @precondition(lambda self: self.world.seats)
    @rule(pick=PICKS)
    def unsubscribe(self, pick: int) -> None:
        """UNSUBSCRIBE."""
        self.world.leave(self._seat(pick))

    @precondition(lambda self: self.world.seats)
    @rule(connection=CONNECTION, failed=st.booleans())
    def end(self, connection: int, failed: bool) -> None:
        """DISCONNECT, or the socket is lost."""
        self.world.end(connection, failed=failed)

    @precondition(lambda self: self._with_sent(in_transaction=False))
    @rule(pick=PICKS, index=PICKS, cumulative=st.booleans(), refuses=st.booleans())
    def settle(self, pick: int, index: int, cumulative: bool, refuses: bool) -> None:
        """ACK or NACK."""
        seats = self._with_sent(in_transaction=False)
        seat = seats[pick % len(seats)]
        self.world.settle(seat, index % len(self.world.sent(seat)), cumulative=cumulative, refuses=refuses)

    @precondition(lambda self: self._with_sent(in_transaction=False))
    @rule()
    def settle_all(self) -> None:
        """Everybody acknowledges everything."""
        for seat in self._with_sent(in_transaction=False):
            self.world.settle(seat, len(self.world.sent(seat)) - 1, cumulative=True)

    @rule(connection=CONNECTION)
    def begin(self, connection: int) -> None:
        """BEGIN."""
        if connection not in self.world.transactions:
            self.world.begin(connection)

    @precondition(lambda self: self.world.transactions)
    @rule(specs=SPECS, connection=CONNECTION, delay_ms=DELAY)
    def send_in_transaction(self, specs: list[steps.Given], connection: int, delay_ms: int) -> None:
        """SEND in a transaction."""
        if connection in self.world.transactions and not self._is_crowded:
            self.world.send_in(connection, [Spec(*spec) for spec in specs], delay_ms)

    @precondition(lambda self: self._with_sent(in_transaction=True))
    @rule(pick=PICKS, index=PICKS, refuses=st.booleans())
    def settle_in_transaction(self, pick: int, index: int, refuses: bool) -> None:
        """ACK or NACK in a transaction."""
        seats = self._with_sent(in_transaction=True)
        seat = seats[pick % len(seats)]
        self.world.settle_in(seat, index % len(self.world.sent(seat)), refuses=refuses)

    @precondition(lambda self: self.world.transactions)
    @rule(connection=CONNECTION, keep=st.booleans())
    def finish_transaction(self, connection: int, keep: bool) -> None:
        """COMMIT or ABORT."""
        if connection in self.world.transactions:
            (self.world.commit if keep else self.world.abort)(connection)

    @rule(ms=TIME)
    def turn(self, ms: int) -> None:
        """A turn."""
        self.world.turn(ms)

    @rule()
    def write(self) -> None:
        """The disk writes what was sealed."""
        self.world.writer.step()

    @rule()
    def read(self) -> None:
        """The disk reads one part of a page."""
        self.world.reader.step()

    @rule()
    def rest(self) -> None:
        """Everything that can happen by itself happens."""
        self.world.rest()

    @precondition(lambda self: self.world.seats)
    @rule(pick=PICKS, room=ROOM)
    def set_room(self, pick: int, room: int) -> None:
        """A client stops reading, or reads again."""
        self.world.set_room(self._seat(pick), room)

    @rule(number=NUMBER, paused=st.booleans())
    def pause_or_resume(self, number: int, paused: bool) -> None:
        """The operator pauses or resumes."""
        self.world.pause(number, paused)

    @rule(number=NUMBER, size=st.sampled_from(steps.RING_SIZES))
    def resize(self, number: int, size: int) -> None:
        """The operator changes the ring."""
        self.world.resize(number, size)

    @rule(number=NUMBER)
    def purge(self, number: int) -> None:
        """The operator removes all."""
        self.world.purge(number)

    @rule(number=st.integers(0, 5))
    def delete(self, number: int) -> None:
        """The operator deletes a queue; seldom, and never the first."""
        if 0 < number < len(self.world.books):
            self.world.delete(number)

    @rule(drains=st.booleans())
    def start_again(self, drains: bool) -> None:
        """Everything goes, and the same queues go on."""
        self.world.finish(drains=drains)
        for seat in list(self.world.seats):
            self.world.leave(seat)

    def teardown(self) -> None:
        """At last everybody goes, and nothing may be left."""
        if hasattr(self, "world"):
            self.world.finish(drains=True)


def test_pages_against_the_model() -> None:
    """Whatever clients and disk do, nothing is lost, doubled or held back, and every count is right."""
    profile = settings()
    run_state_machine_as_test(
        PagingMachine,
        settings=settings(
            max_examples=2 * profile.max_examples,
            stateful_step_count=min(profile.stateful_step_count, 100),
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_every_two_choices_meet_with_pages(seed: int) -> None:
    """On any two axes of a queue that pages, or flows to disk, every two choices have a world, or ``check`` refuses
    them.
    """
    count = max(settings().max_examples // 100, 1) * len(PAGED.bases)
    met: list[Chosen] = []
    for number, one in paging_soak.worlds(seed, 2 * count):
        if number == count and not PAGED.apart(met):  # for most seeds so many are enough
            break
        try:
            paging_soak.run_world(seed, number, one)
        except Exception as failure:
            raise AssertionError(f"world {number} of seed {seed}: {PAGED.id_of(one)}") from failure
        met.append(one)
    assert not PAGED.apart(met)
