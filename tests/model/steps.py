"""The steps that both drivers take, random soak and Hypothesis. Each may be taken in any state: numbers are reduced to
what there is, and where there is nothing the step does nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tests.model.letters import Spec
from tests.model.plans import FALLBACK, NO_POLICY
from tests.model.side_by_side import CONNECTIONS, PLENTY, Seat
from tests.model.trade import Trade

SEATS_MAX: Final = 5
BACKLOGS: Final = (None, None, 1, 2, 10)
READY_MAX: Final = 60
ONE_MESSAGE: Final = 1

Given = tuple[str, int, bool, int, int, str | None, str | None, int, bool]
"""A message to send: color, priority, persistent, ttl_ms, body_bytes, key, group, held_ms, closes."""


def _seat(world: Trade, pick: int) -> Seat | None:
    return world.seats[pick % len(world.seats)] if world.seats else None


def publish(world: Trade, specs: list[Given], connection: int, delay_ms: int) -> None:
    """Send messages at once."""
    if len(world.letters()) < READY_MAX:
        world.publish(*(Spec(*spec) for spec in specs), connection=connection, delay_ms=delay_ms)


def subscribe(
    world: Trade,
    *,
    number: int,
    connection: int,
    settles: bool,
    browses: bool,
    selector: str | None,
    no_local: bool,
    window: int,
    priority: int,
    room: int,
    replay_s: int | None,
    alone: bool,
    backlog: int | None = None,
) -> None:
    """A consumer comes."""
    if len(world.seats) < SEATS_MAX:
        world.subscribe(
            number % len(world.pairs), connection, settles=settles, browses=browses, selector=selector,
            no_local=no_local, window=window, priority=priority, room=room, replay_s=replay_s, alone=alone,
            backlog=backlog,
        )  # fmt: skip


def unsubscribe(world: Trade, pick: int) -> None:
    """A consumer leaves."""
    seat = _seat(world, pick)
    if seat is not None:
        world.unsubscribe(seat)


def end(world: Trade, connection: int, failed: bool) -> None:
    """A connection is lost or says goodbye."""
    world.end(connection, failed=failed)


def settle(world: Trade, pick: int, index: int, cumulative: bool, refuses: bool, expires: bool = False) -> None:
    """ACK or NACK, one or cumulative, or one that has them expire."""
    seats = [seat for seat in world.seats if seat.reader.sent]
    if seats:
        seat = seats[pick % len(seats)]
        world.settle(seat, index % len(seat.reader.sent), cumulative=cumulative, refuses=refuses, expires=expires)


def settle_late(world: Trade, pick: int, index: int, refuses: bool, expires: bool) -> None:
    """ACK or NACK of what was held for too long."""
    seats = [seat for seat in world.seats if seat.reader.lapsed]
    if seats:
        seat = seats[pick % len(seats)]
        world.settle_late(seat, index % len(seat.reader.lapsed), refuses=refuses, expires=expires)


def sift(world: Trade, number: int, connection: int, selector: str, refuses: bool, expires: bool) -> None:
    """ACK or NACK by a filter."""
    number %= len(world.pairs)
    if world.pairs[number].model.plan.is_like_amps:
        world.sift(number, connection, selector, refuses=refuses and not expires, expires=expires)


def replace(world: Trade, pick: int, selector: str | None, no_local: bool, backlog: int | None) -> None:
    """SUBSCRIBE with replace:true."""
    seats = [seat for seat in world.seats if not seat.reader.reads]
    if seats:
        world.replace(seats[pick % len(seats)], selector, no_local=no_local, backlog=backlog)


def begin(world: Trade, connection: int) -> None:
    """BEGIN."""
    if connection not in world.transactions:
        world.begin(connection)


def send_in_transaction(world: Trade, specs: list[Given], connection: int, delay_ms: int) -> None:
    """SEND inside a transaction."""
    if connection in world.transactions and len(world.letters()) < READY_MAX:
        world.send_in_transaction(*(Spec(*spec) for spec in specs), connection=connection, delay_ms=delay_ms)


def settle_in_transaction(world: Trade, pick: int, index: int, refuses: bool, expires: bool = False) -> None:
    """ACK or NACK inside a transaction."""
    seats = [seat for seat in world.seats if seat.reader.sent and seat.reader.connection in world.transactions]
    if seats:
        seat = seats[pick % len(seats)]
        world.settle_in_transaction(seat, index % len(seat.reader.sent), refuses=refuses, expires=expires)


def commit(world: Trade, connection: int) -> None:
    """COMMIT."""
    if connection in world.transactions:
        world.commit(connection)


def abort(world: Trade, connection: int) -> None:
    """ABORT."""
    if connection in world.transactions:
        world.abort(connection)


def advance(world: Trade, ms: int) -> None:
    """Time passes."""
    world.advance(ms)


def dispatch(world: Trade) -> None:
    """Offer what is ready."""
    world.dispatch()


def write(world: Trade) -> None:
    """Write out what consumers got."""
    world.write()


def turn(world: Trade, ms: int) -> None:
    """A whole turn, as the server makes it."""
    world.advance(ms)
    world.dispatch()
    world.write()


def set_room(world: Trade, pick: int, room: int) -> None:
    """A client stops reading (0), has room for one message, or reads again."""
    seat = _seat(world, pick)
    if seat is not None:
        world.set_room(seat, room)


def pause(world: Trade, number: int) -> None:
    """Pause a queue."""
    world.pause(number % len(world.pairs))


def resume(world: Trade, number: int) -> None:
    """Resume a queue."""
    world.resume(number % len(world.pairs))


def resize(world: Trade, number: int, size: int) -> None:
    """Change the ring."""
    number %= len(world.pairs)
    plan = world.pairs[number].model.plan
    if plan.policy == NO_POLICY and not plan.activates_in_order:
        world.resize(size, number)


def purge(world: Trade, number: int) -> None:
    """Remove all."""
    world.purge(number % len(world.pairs))


def restart(world: Trade, ms: int) -> None:
    """The power goes, in a world with a journal."""
    if world.has_journal:
        world.restart(ms)


STEPS: Final[dict[str, Callable[..., None]]] = {
    step.__name__: step
    for step in (
        publish, subscribe, unsubscribe, end, settle, settle_late, sift, replace, begin, send_in_transaction,
        settle_in_transaction, commit, abort, advance, dispatch, write, turn, set_room, pause, resume, resize, purge,
        restart,
    )
}  # fmt: skip

# What the drivers choose from.
COLORS: Final = ("red", "blue")
PRIORITIES: Final = (4, 4, 4, 0, 9, 6)
TTLS_MS: Final = (0, 0, 0, 150, 400)
DELAYS_MS: Final = (0, 0, 0, 0, 100, 250)
BODIES: Final = (3, 3, 90)
KEYS: Final = ("a", "a", "b", "aa", "", None)
GROUPS: Final = (None, None, "g", "g", "h", "i", FALLBACK)
HOLDS_MS: Final = (0, 0, 0, 0, 0, 0, 100, 250)
REPLAYS_S: Final = (None, None, None, None, 0, 1)
WINDOWS: Final = (-1, -1, -1, 0, 1, 150, 400)
ROOMS: Final = (PLENTY, PLENTY, PLENTY, PLENTY, ONE_MESSAGE, 0)
TIMES_MS: Final = (0, 0, 0, 50, 100, 200, 1000)
RING_SIZES: Final = (-1, -1, 0, 1, 2, 3, 4)
CONNECTION_NUMBERS: Final = tuple(range(1, CONNECTIONS + 1))

Taken = tuple[str, dict[str, Any]]
"""A step that was taken: its name and what it was given."""


def take(world: Trade, step: Taken) -> None:
    """Take one step."""
    name, arguments = step
    STEPS[name](world, **arguments)
