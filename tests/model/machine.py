"""The Hypothesis state machine: the same steps as the soak, chosen and made smaller by Hypothesis."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.model import steps
from tests.model.axes import IN_MEMORY, Chosen, plan_of
from tests.model.reader_model import SELECTORS
from tests.model.side_by_side import PLENTY
from tests.model.trade import Trade

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
CONSUMERS = st.fixed_dictionaries(
    {
        "number": NUMBER,
        "connection": CONNECTION,
        "settles": st.booleans(),
        "browses": st.booleans(),
        "selector": st.none() | st.sampled_from(sorted(SELECTORS)),
        "no_local": st.booleans(),
        "window": st.sampled_from(steps.WINDOWS),
        "priority": st.sampled_from((0, 5)),
        "room": ROOM,
        "replay_s": st.sampled_from(steps.REPLAYS_S),
        "alone": st.sampled_from((False, False, False, True)),
        "backlog": st.sampled_from(steps.BACKLOGS),
    }
)
BASES = st.sampled_from(IN_MEMORY.bases)
OTHERS = st.fixed_dictionaries(
    {axis: st.sampled_from(list(names)) for axis, names in IN_MEMORY.axes.items() if axis not in IN_MEMORY.base}
)


class QueueMachine(RuleBasedStateMachine):
    """One world. Subclasses fix some axes of the first queue; what is left open is drawn first."""

    fixed: ClassVar[Chosen] = {}
    world: Trade

    @initialize(
        base=BASES,
        others=OTHERS,
        second=st.none() | BASES,
        restarts=st.booleans(),
    )
    def begin_world(self, base: Chosen, others: Chosen, second: Chosen | None, restarts: bool) -> None:
        """Make the world."""
        plan = plan_of(IN_MEMORY.accepted(base | others, self.fixed))
        if second is not None:
            plan = replace(plan, queues=(*plan.queues, *plan_of(IN_MEMORY.accepted(others, second)).queues))
        self.world = Trade(plan, restarts=restarts)

    @rule(specs=SPECS, connection=CONNECTION, delay_ms=DELAY)
    def publish(self, specs: list[steps.Given], connection: int, delay_ms: int) -> None:
        """SEND."""
        steps.publish(self.world, specs, connection, delay_ms)

    @rule(how=CONSUMERS)
    def subscribe(self, how: dict[str, Any]) -> None:
        """SUBSCRIBE."""
        steps.subscribe(self.world, **how)

    @rule(number=NUMBER, connection=CONNECTION)
    def subscribe_plainly(self, number: int, connection: int) -> None:
        """SUBSCRIBE with nothing special: without these, few messages would ever be settled."""
        steps.subscribe(
            self.world, number=number, connection=connection, settles=False, browses=False, selector=None,
            no_local=False, window=-1, priority=0, room=PLENTY, replay_s=None, alone=False,
        )  # fmt: skip

    @precondition(lambda self: self.world.seats)
    @rule(pick=PICKS)
    def unsubscribe(self, pick: int) -> None:
        """UNSUBSCRIBE."""
        steps.unsubscribe(self.world, pick)

    @precondition(lambda self: self.world.seats)
    @rule(connection=CONNECTION, failed=st.booleans())
    def end(self, connection: int, failed: bool) -> None:
        """DISCONNECT, or the socket is lost."""
        steps.end(self.world, connection, failed)

    @precondition(lambda self: any(seat.reader.sent for seat in self.world.seats))
    @rule(pick=PICKS, index=PICKS, cumulative=st.booleans(), refuses=st.booleans(), expires=st.booleans())
    def settle(self, pick: int, index: int, cumulative: bool, refuses: bool, expires: bool) -> None:
        """ACK or NACK."""
        steps.settle(self.world, pick, index, cumulative, refuses, expires)

    @precondition(lambda self: any(seat.reader.lapsed for seat in self.world.seats))
    @rule(pick=PICKS, index=PICKS, refuses=st.booleans(), expires=st.booleans())
    def settle_late(self, pick: int, index: int, refuses: bool, expires: bool) -> None:
        """ACK or NACK of what was held for too long."""
        steps.settle_late(self.world, pick, index, refuses, expires)

    @rule(connection=CONNECTION)
    def begin(self, connection: int) -> None:
        """BEGIN."""
        steps.begin(self.world, connection)

    @precondition(lambda self: self.world.transactions)
    @rule(specs=SPECS, connection=CONNECTION, delay_ms=DELAY)
    def send_in_transaction(self, specs: list[steps.Given], connection: int, delay_ms: int) -> None:
        """SEND in a transaction."""
        steps.send_in_transaction(self.world, specs, connection, delay_ms)

    @precondition(lambda self: self.world.transactions and any(seat.reader.sent for seat in self.world.seats))
    @rule(pick=PICKS, index=PICKS, refuses=st.booleans())
    def settle_in_transaction(self, pick: int, index: int, refuses: bool) -> None:
        """ACK or NACK in a transaction."""
        steps.settle_in_transaction(self.world, pick, index, refuses)

    @precondition(lambda self: self.world.transactions)
    @rule(connection=CONNECTION, keep=st.booleans())
    def finish(self, connection: int, keep: bool) -> None:
        """COMMIT or ABORT."""
        (steps.commit if keep else steps.abort)(self.world, connection)

    @rule(ms=TIME)
    def turn(self, ms: int) -> None:
        """The server's turn: tick, dispatch, write."""
        steps.turn(self.world, ms)

    @rule(ms=TIME)
    def advance(self, ms: int) -> None:
        """Tick alone."""
        steps.advance(self.world, ms)

    @rule()
    def dispatch(self) -> None:
        """Dispatch alone."""
        steps.dispatch(self.world)

    @rule()
    def write(self) -> None:
        """Write alone."""
        steps.write(self.world)

    @precondition(lambda self: self.world.seats)
    @rule(pick=PICKS, room=ROOM)
    def set_room(self, pick: int, room: int) -> None:
        """A client stops reading, or reads again."""
        steps.set_room(self.world, pick, room)

    @rule(number=NUMBER, paused=st.booleans())
    def pause_or_resume(self, number: int, paused: bool) -> None:
        """The operator pauses or resumes."""
        (steps.pause if paused else steps.resume)(self.world, number)

    @rule(number=NUMBER, size=st.sampled_from(steps.RING_SIZES))
    def resize(self, number: int, size: int) -> None:
        """The operator changes the ring."""
        steps.resize(self.world, number, size)

    @rule(number=NUMBER)
    def purge(self, number: int) -> None:
        """The operator removes all."""
        steps.purge(self.world, number)

    @precondition(lambda self: self.world.has_journal)
    @rule(ms=TIME)
    def restart(self, ms: int) -> None:
        """The power goes."""
        steps.restart(self.world, ms)

    def teardown(self) -> None:
        """At last everybody goes, and the address must answer for nothing."""
        if hasattr(self, "world"):
            self.world.empty()


def machine_for(fixed: Chosen) -> type[QueueMachine]:
    """A machine whose first queue has these choices."""
    return type("QueueMachine", (QueueMachine,), {"fixed": fixed})
