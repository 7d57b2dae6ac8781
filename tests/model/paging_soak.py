"""Seeded worlds with pages: every two choices on any two axes of a queue that pages, or flows to disk, meet in one.

``test_paging`` lets Hypothesis choose the steps and make failures small; here a seed does, so that what meets can be
counted.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from artemis_py.core.queue.messages import ACCEPT, CANCEL, EXPIRE
from tests.model import steps
from tests.model.axes import ADDRESS_AXES, PAGED, Chosen
from tests.model.letters import Spec
from tests.model.paging_state import PagePlan, Seat
from tests.model.paging_world import PagingWorld
from tests.model.plans import AddressPlan, QueuePlan
from tests.model.reader_model import SELECTORS

STEPS_PER_WORLD: Final = 60
LETTERS_MAX: Final = 60
SEATS_MAX: Final = 5


def page_plan(chosen: Chosen) -> PagePlan:
    """How the address pages."""
    values: dict[str, Any] = {}
    for axis in ("pages-from", "page-size", "read-ahead", "page-limit"):
        values |= PAGED.axes[axis][chosen[axis]]
    return PagePlan(**values)


def failure_plan(chosen: Chosen) -> AddressPlan:
    """What a failed delivery leads to."""
    values: dict[str, Any] = {}
    for axis in ("redelivery", "attempts"):
        values |= ADDRESS_AXES[axis][chosen[axis]]
    return AddressPlan(**values)


class Client:
    """Everybody who does something to a world, at random."""

    def __init__(self, world: PagingWorld, rng: random.Random) -> None:
        self.world = world
        self.rng = rng
        self._expires = rng.random() < 0.3
        self._chooses = rng.choice((0, 0.4))
        self._settles = rng.choice((0.1, 0.9))
        self._steps = [
            (12, self.publish), (8, self.subscribe), (2, self.leave), (1, self.end), (20, self.settle), (2, self.begin),
            (3, self.send_in), (5, self.settle_in), (3, self.finish), (25, self.turn), (10, self.disk), (6, self.rest),
            (5, self.set_room), (1, self.pause), (4, self.resume), (1, self.purge), (2, self.sift), (2, self.replace),
        ]  # fmt: skip

    def step(self) -> None:
        """One of all."""
        weights = [weight for weight, _ in self._steps]
        self.rng.choices([step for _, step in self._steps], weights)[0]()

    def _connection(self) -> int:
        return self.rng.choice(steps.CONNECTION_NUMBERS)

    def _number(self) -> int:
        return self.rng.randrange(len(self.world.books))

    def _specs(self) -> list[Spec]:
        rng = self.rng
        return [
            Spec(
                rng.choice(steps.COLORS), rng.choice(steps.PRIORITIES), rng.random() < 0.7,
                rng.choice(steps.TTLS_MS) if self._expires else 0, rng.choice(steps.BODIES), rng.choice(steps.KEYS),
                rng.choice(steps.GROUPS), rng.choice(steps.HOLDS_MS), rng.random() < 0.1,
            )
            for _ in range(rng.choice((1, 1, 2, 4, 9)))
        ]  # fmt: skip

    @property
    def _is_crowded(self) -> bool:
        return len({one for book in self.world.books for one in book.slots}) > LETTERS_MAX

    def _with_sent(self, *, in_transaction: bool) -> list[Seat]:
        seats = [seat for seat in self.world.seats if self.world.sent(seat)]
        return [seat for seat in seats if not in_transaction or seat.reader.connection in self.world.transactions]

    def publish(self) -> None:
        """SEND."""
        if not self._is_crowded:
            delay_ms = self.rng.choice(steps.DELAYS_MS)
            self.world.publish(self._specs(), connection=self._connection(), delay_ms=delay_ms)

    def subscribe(self) -> None:
        """SUBSCRIBE."""
        rng = self.rng
        if len(self.world.seats) < SEATS_MAX:
            chooses = rng.random() < self._chooses
            self.world.subscribe(
                self._number(),
                self._connection(),
                settles=rng.random() < self._settles,
                browses=rng.random() < 0.15,
                selector=rng.choice(list(SELECTORS)) if chooses else None,
                no_local=chooses and rng.random() < 0.3,
                window=rng.choice(steps.WINDOWS),
                room=rng.choice(steps.ROOMS),
                replay_s=rng.choice(steps.REPLAYS_S) if chooses else None,
                backlog=rng.choice(steps.BACKLOGS),
            )

    def sift(self) -> None:
        """ACK or NACK by a filter."""
        rng = self.rng
        outcome = rng.choice((ACCEPT, ACCEPT, CANCEL, EXPIRE))
        self.world.sift(self._number(), self._connection(), rng.choice(list(SELECTORS)), outcome=outcome)

    def replace(self) -> None:
        """SUBSCRIBE with replace:true."""
        rng = self.rng
        if self.world.seats:
            selector = rng.choice(list(SELECTORS)) if rng.random() < self._chooses else None
            self.world.replace(rng.choice(self.world.seats), selector, rng.choice(steps.BACKLOGS))

    def leave(self) -> None:
        """UNSUBSCRIBE."""
        if self.world.seats:
            self.world.leave(self.rng.choice(self.world.seats))

    def end(self) -> None:
        """DISCONNECT, or the socket is lost."""
        self.world.end(self._connection(), failed=self.rng.random() < 0.7)

    def settle(self) -> None:
        """ACK or NACK."""
        seats = self._with_sent(in_transaction=False)
        if seats:
            seat, rng = self.rng.choice(seats), self.rng
            index = rng.randrange(len(self.world.sent(seat)))
            self.world.settle(seat, index, cumulative=rng.random() < 0.4, refuses=rng.random() < 0.3)

    def begin(self) -> None:
        """BEGIN."""
        connection = self._connection()
        if connection not in self.world.transactions:
            self.world.begin(connection)

    def send_in(self) -> None:
        """SEND in a transaction."""
        connection = self._connection()
        if connection in self.world.transactions and not self._is_crowded:
            self.world.send_in(connection, self._specs(), self.rng.choice(steps.DELAYS_MS))

    def settle_in(self) -> None:
        """ACK or NACK in a transaction."""
        seats = self._with_sent(in_transaction=True)
        if seats:
            seat = self.rng.choice(seats)
            index = self.rng.randrange(len(self.world.sent(seat)))
            self.world.settle_in(seat, index, refuses=self.rng.random() < 0.3)

    def finish(self) -> None:
        """COMMIT or ABORT."""
        connection = self._connection()
        if connection in self.world.transactions:
            (self.world.commit if self.rng.random() < 0.7 else self.world.abort)(connection)

    def turn(self) -> None:
        """A turn."""
        self.world.turn(self.rng.choice(steps.TIMES_MS))

    def disk(self) -> None:
        """The disk writes what was sealed, or reads one part of a page."""
        self.rng.choice((self.world.writer, self.world.reader)).step()

    def rest(self) -> None:
        """Everything that can happen by itself happens."""
        self.world.rest()

    def set_room(self) -> None:
        """A client stops reading, or reads again."""
        if self.world.seats:
            self.world.set_room(self.rng.choice(self.world.seats), self.rng.choice(steps.ROOMS))

    def pause(self) -> None:
        """The operator pauses a queue."""
        self.world.pause(self._number(), paused=True)

    def resume(self) -> None:
        """And resumes it."""
        self.world.pause(self._number(), paused=False)

    def purge(self) -> None:
        """And removes all."""
        self.world.purge(self._number())


def worlds(seed: int, count: int) -> Iterator[tuple[int, Chosen]]:
    """So many worlds: number, and what is drawn for each."""
    return enumerate(islice(PAGED.drawn(random.Random(seed)), count))


def run_world(seed: int, number: int, chosen: Chosen) -> PagingWorld:
    """Make the world, let clients at it, then read or remove what is left. Raises what the first wrong step raises."""
    rng = random.Random(f"{seed}:{number}")
    queues: tuple[QueuePlan, ...] = (PAGED.queue_plan(chosen),)
    if rng.random() < 0.3:
        queues = (*queues, PAGED.queue_plan(PAGED.mostly_usual(rng.choice(PAGED.bases), rng)))
    world = PagingWorld(queues, page_plan(chosen), failure_plan(chosen))
    client = Client(world, rng)
    for _ in range(STEPS_PER_WORLD):
        client.step()
    world.finish(drains=rng.random() < 0.7)
    return world
