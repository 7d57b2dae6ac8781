"""The steps of worlds, in memory and with pages. Each may be taken in any state: numbers are reduced to what there is,
and where there is nothing the step does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tests.model.letters import Spec
from tests.model.plans import FALLBACK
from tests.model.world import CONNECTIONS, PLENTY

SEATS_MAX: Final = 5
BACKLOGS: Final = (None, None, 1, 2, 10)
READY_MAX: Final = 60
ONE_MESSAGE: Final = 1

# What a step may be given.
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

Given = tuple[str, int, bool, int, int, str | None, str | None, int, bool]
"""A message to send: color, priority, persistent, ttl_ms, body_bytes, key, group, held_ms, closes."""

Taken = tuple[str, dict[str, Any]]
"""A step that was taken: the name of a method of the world, and what it was given. ``specs`` are messages to send,
``pick`` stands for a seat, ``index`` for one of its messages.
"""


def _is_open(world: Any, given: dict[str, Any]) -> bool:
    return given["connection"] in world.transactions


_WHEN: Final[dict[str, Callable[[Any, dict[str, Any]], bool]]] = {
    "publish": lambda world, _: len(world.letters()) < READY_MAX,
    "send_in_transaction": lambda world, given: len(world.letters()) < READY_MAX and _is_open(world, given),
    "subscribe": lambda world, _: len(world.seats) < SEATS_MAX,
    "begin": lambda world, given: not _is_open(world, given),
    "commit": _is_open,
    "abort": _is_open,
}
"""When a step can be taken, if not always."""

_OF_A_SEAT: Final[dict[str, Callable[[Any, Any], Sequence[Any]]]] = {
    "settle": lambda world, seat: seat.reader.sent,
    "settle_late": lambda world, seat: seat.reader.lapsed,
    "settle_in_transaction": lambda world, seat: (
        seat.reader.sent if seat.reader.connection in world.transactions else ()
    ),
    "replace": lambda world, seat: () if seat.reader.reads else [seat],
    "unsubscribe": lambda world, seat: [seat],
    "set_room": lambda world, seat: [seat],
}
"""What of a seat a step is about: it is taken on a seat that has any."""


def take(world: Any, step: Taken) -> None:
    """Take one step, on a ``Trade`` or a ``PagingWorld``."""
    name, given = step[0], dict(step[1])
    if name in _WHEN and not _WHEN[name](world, given):
        return
    arguments: list[Any] = [Spec(*spec) for spec in given.pop("specs", ())]
    if name in _OF_A_SEAT:
        found = [(seat, things) for seat in world.seats if (things := _OF_A_SEAT[name](world, seat))]
        if not found:
            return
        seat, things = found[given.pop("pick") % len(found)]
        arguments.append(seat)
        if "index" in given:
            given["index"] %= len(things)
    getattr(world, name)(*arguments, **given)
