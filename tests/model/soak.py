"""A long deterministic run: ``python -m tests.model.soak --seed N --steps M``.

Every combination of axes gets its share of steps, drawn from the seed. A failure is made smaller and printed as a list
of steps, with the command that repeats it.
"""

from __future__ import annotations

import argparse
import random
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from itertools import accumulate, islice
from typing import Any, Final

from tests.model import steps
from tests.model.axes import IN_MEMORY, PAGED, Space
from tests.model.paging_world import PagingWorld
from tests.model.plans import Plan
from tests.model.reader_model import SELECTORS
from tests.model.steps import Taken, take
from tests.model.trade import Trade

STEPS_PER_WORLD: Final = {IN_MEMORY: 150, PAGED: 70}
_SELECTORS: Final = tuple(SELECTORS)
SEED_BITS: Final = 32


@dataclass(frozen=True, slots=True)
class Style:
    """What one world does often, seldom or never: worlds that differ find more than worlds that all do a little of all.
    Probabilities from 0 to 1; ``weights`` add up.
    """

    settles: float
    browses: float
    selects: float
    persistent: float
    expiring: float
    delayed: float
    closing: float
    one_priority: bool
    runs: tuple[int, ...]
    draws: list[_Draw]
    weights: tuple[int, ...]


def draw_style(rng: random.Random, space: Space) -> Style:
    """A world's style."""
    draws = _PAGED if space is PAGED else _IN_MEMORY
    weights = tuple(weight * rng.choice(factors) for _, weight, factors, _ in draws)
    survives = space is PAGED or weights[[name for name, *_ in draws].index("restart")] > 0
    return Style(
        settles=rng.choice((0, 0.2, 0.9)),
        browses=rng.choice((0, 0, 0.3)),
        selects=rng.choice((0, 0.2, 0.6)),
        persistent=rng.choice((0.5, 0.95) if survives else (0, 0.3)),
        expiring=rng.choice((0, 0, 0.4)),
        delayed=rng.choice((0, 0, 0.3)),
        closing=rng.choice((0, 0.3)),
        one_priority=rng.random() < 0.3,
        runs=(1, 1, 2, 4, 9, 16) if space is PAGED else (1, 1, 1, 2, 4),
        draws=draws,
        weights=tuple(accumulate(weights)),
    )


def _specs(rng: random.Random, style: Style) -> list[steps.Given]:
    expiring = rng.random() < style.expiring
    return [
        (
            rng.choice(steps.COLORS),
            4 if style.one_priority else rng.choice(steps.PRIORITIES),
            rng.random() < style.persistent,
            rng.choice(steps.TTLS_MS) if expiring else 0,
            rng.choice(steps.BODIES),
            rng.choice(steps.KEYS),
            rng.choice(steps.GROUPS),
            rng.choice(steps.HOLDS_MS),
            rng.random() < style.closing,
        )
        for _ in range(rng.choice(style.runs))
    ]


# What draws one argument of a step.
_GIVEN: Final[dict[str, Callable[[random.Random, Style], Any]]] = {
    "specs": _specs,
    "delay_ms": lambda rng, style: rng.choice(steps.DELAYS_MS) if rng.random() < style.delayed else 0,
    "connection": lambda rng, _: rng.choice(steps.CONNECTION_NUMBERS),
    "number": lambda rng, _: rng.randrange(4),
    "pick": lambda rng, _: rng.randrange(8),
    "index": lambda rng, _: rng.randrange(8),
    "settles": lambda rng, style: rng.random() < style.settles,
    "browses": lambda rng, style: rng.random() < style.browses,
    "selector": lambda rng, style: rng.choice(_SELECTORS) if rng.random() < style.selects else None,
    "filter": lambda rng, _: rng.choice(_SELECTORS),
    "no_local": lambda rng, style: rng.random() < style.selects / 4,
    "window": lambda rng, _: rng.choice(steps.WINDOWS),
    "priority": lambda rng, _: rng.choice((0, 0, 0, 5)),
    "room": lambda rng, _: rng.choice(steps.ROOMS),
    "replay_s": lambda rng, style: rng.choice(steps.REPLAYS_S) if rng.random() < style.selects else None,
    "alone": lambda rng, style: rng.random() < style.selects / 8,
    "backlog": lambda rng, _: rng.choice(steps.BACKLOGS),
    "cumulative": lambda rng, _: rng.random() < 0.3,
    "refuses": lambda rng, _: rng.random() < 0.4,
    "expires": lambda rng, _: rng.random() < 0.1,
    "failed": lambda rng, _: rng.random() < 0.7,
    "ms": lambda rng, _: rng.choice(steps.TIMES_MS),
    "size": lambda rng, _: rng.choice(steps.RING_SIZES),
    "reads": lambda rng, _: rng.random() < 0.5,
    "drains": lambda rng, _: rng.random() < 0.7,
}

_ALWAYS: Final = (1,)
_OFTEN: Final = (1, 1, 3)
_SELDOM: Final = (0, 1, 1, 3)
_Draw = tuple[str, int, tuple[int, ...], str]
"""A step's name, its weight, factors that a style may put on the weight, and what the step is given."""

_SENDING: Final = "specs connection delay_ms"
_SUBSCRIBING: Final = "number connection settles browses selector no_local window room replay_s backlog"
_COMMON: Final[list[_Draw]] = [
    ("sift", 4, _SELDOM, "number connection filter refuses expires"),
    ("replace", 3, _SELDOM, "pick selector no_local backlog"),
    ("unsubscribe", 3, _SELDOM, "pick"),
    ("end", 2, _SELDOM, "connection failed"),
    ("send_in_transaction", 4, _SELDOM, _SENDING),
    ("commit", 4, _ALWAYS, "connection"),
    ("abort", 3, _ALWAYS, "connection"),
    ("set_room", 10, _SELDOM, "pick room"),
    ("pause", 1, _SELDOM, "number"),
    ("resume", 5, _ALWAYS, "number"),
    ("resize", 1, _SELDOM, "number size"),
    ("purge", 1, _SELDOM, "number"),
]
_IN_MEMORY: Final[list[_Draw]] = [
    ("publish", 20, _OFTEN, _SENDING),
    ("subscribe", 12, _OFTEN, f"{_SUBSCRIBING} priority alone"),
    ("settle", 40, _SELDOM, "pick index cumulative refuses expires"),
    ("settle_late", 8, _SELDOM, "pick index refuses expires"),
    ("begin", 6, _SELDOM, "connection"),
    ("settle_in_transaction", 12, _SELDOM, "pick index refuses expires"),
    ("advance", 3, _SELDOM, "ms"),
    ("dispatch", 10, _SELDOM, ""),
    ("write", 6, _SELDOM, ""),
    ("turn", 40, _ALWAYS, "ms"),
    ("restart", 1, (0, 0, 3), "ms"),
    *_COMMON,
]
_PAGED: Final[list[_Draw]] = [
    ("publish", 24, _OFTEN, _SENDING),
    ("subscribe", 16, _OFTEN, _SUBSCRIBING),
    ("settle", 40, _ALWAYS, "pick index cumulative refuses expires"),
    ("begin", 4, _SELDOM, "connection"),
    ("settle_in_transaction", 10, _SELDOM, "pick index refuses expires"),
    ("turn", 50, _ALWAYS, "ms"),
    ("work_disk", 24, _SELDOM, "reads"),
    ("rest", 12, _OFTEN, ""),
    ("delete", 1, _SELDOM, "number"),
    ("finish", 1, _SELDOM, "drains"),
    *_COMMON,
]


def run_world(plan: Plan, taken: list[Taken]) -> set[str]:
    """Take the steps on a new world, then empty it; returns what happened. Raises what the first wrong step raises."""
    world: Any = Trade(plan) if plan.pages is None else PagingWorld(plan)
    for step in taken:
        take(world, step)
    world.finish()
    return set(world.happened.union(*(pair.model.happened for pair in world.pairs)))


def fails(plan: Plan, taken: list[Taken]) -> bool:
    """Do these steps fail?"""
    try:
        run_world(plan, taken)
    except Exception:
        return True
    return False


def shrink(plan: Plan, taken: list[Taken], still_fails: Callable[[Plan, list[Taken]], bool] = fails) -> list[Taken]:
    """Leave steps out as long as what is left still fails."""
    size = max(len(taken) // 2, 1)
    while True:
        position = 0
        while position < len(taken):
            candidate = taken[:position] + taken[position + size :]
            if still_fails(plan, candidate):
                taken = candidate
            else:
                position += size
        if size == 1:
            return taken
        size //= 2


def worlds(
    seed: int, steps_max: int, wanted: Callable[[Plan], bool] | None = None, space: Space = IN_MEMORY
) -> Iterator[tuple[Plan, list[Taken]]]:
    """Worlds and their steps, combination after combination, until ``steps_max`` steps are used up; of these, the
    wanted ones.
    """
    most = STEPS_PER_WORLD[space]
    for number, chosen in enumerate(islice(space.drawn(random.Random(seed)), -(-steps_max // most))):
        rng = random.Random(f"{seed}:{number}")
        more = [space.mostly_usual(rng.choice(space.bases), rng)] if rng.random() < 0.3 else []
        plan = space.plan_of(chosen, *more)
        style = draw_style(rng, space)
        if wanted is None or wanted(plan):
            taken: list[Taken] = []
            for _ in range(min(most, steps_max - number * most)):
                name, _, _, names = rng.choices(style.draws, cum_weights=style.weights)[0]
                given = {("selector" if one == "filter" else one): _GIVEN[one](rng, style) for one in names.split()}
                taken.append((name, given))
            yield plan, taken


def _special(part: Any) -> str:
    """A part of a plan as it would be written, without what is as usual."""
    usual = type(part)()
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    special = [f"{name}={value!r}" for name, value in values.items() if value != getattr(usual, name)]
    return f"{type(part).__name__}({', '.join(special)})"


def report(plan: Plan, taken: list[Taken], still_fails: Callable[[Plan, list[Taken]], bool] = fails) -> str:
    """The failure as text: plan, smallest list of steps, and what went wrong."""
    small = shrink(plan, taken, still_fails)
    parts = [f"({', '.join(map(_special, plan.queues))},)", _special(plan.address)]
    parts += [] if plan.pages is None else [_special(plan.pages)]
    lines = [f"plan: Plan({', '.join(parts)})", f"{len(small)} steps:"]
    lines += [f"    {name}({', '.join(f'{key}={value!r}' for key, value in given.items())})" for name, given in small]
    still_fails(plan, small)  # which leaves everything as this needs it
    try:
        run_world(plan, small)
    except Exception:
        lines.append(traceback.format_exc())
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run; 0 when nothing failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.model.soak", description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=None, help="repeat the run that printed this seed")
    parser.add_argument("--steps", type=int, default=500_000, help="how many steps in all (default 500000)")
    given = parser.parse_args(arguments)
    seed = random.SystemRandom().getrandbits(SEED_BITS) if given.seed is None else given.seed
    command = f"python -m tests.model.soak --seed {seed} --steps {given.steps}"
    print(f"seed {seed} (repeat with {command})", flush=True)
    count = 0
    for plan, taken in worlds(seed, given.steps):
        if fails(plan, taken):
            print(report(plan, taken), f"repeat with {command}", sep="\n", file=sys.stderr)
            return 1
        count += 1
    print(f"{count} worlds, {given.steps} steps, seed {seed}: broker and model agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
