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
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import Any, Final

from tests.model import steps
from tests.model.axes import IN_MEMORY, plan_of, queue_plan
from tests.model.plans import Plan
from tests.model.reader_model import SELECTORS
from tests.model.steps import Taken, take
from tests.model.trade import Trade

STEPS_PER_WORLD: Final = 150
SEED_BITS: Final = 32


@dataclass(frozen=True, slots=True)
class Style:
    """What one world does often, seldom or never: worlds that differ find more than worlds that all do a little of all.
    Probabilities from 0 to 1.
    """

    settles: float
    browses: float
    selects: float
    persistent: float
    expiring: float
    delayed: float
    closing: float
    one_priority: bool
    weights: tuple[int, ...]


_Draw = Callable[[random.Random, Style], dict[str, Any]]


def draw_style(rng: random.Random) -> Style:
    """A world's style."""
    weights = tuple(weight * rng.choice(factors) for _, weight, factors, _ in _DRAWS)
    restarts = weights[[name for name, *_ in _DRAWS].index("restart")] > 0
    return Style(
        settles=rng.choice((0, 0.2, 0.9)),
        browses=rng.choice((0, 0, 0.3)),
        selects=rng.choice((0, 0.2, 0.6)),
        persistent=rng.choice((0.5, 0.95) if restarts else (0, 0.3)),
        expiring=rng.choice((0, 0, 0.4)),
        delayed=rng.choice((0, 0, 0.3)),
        closing=rng.choice((0, 0.3)),
        one_priority=rng.random() < 0.3,
        weights=weights,
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
        for _ in range(rng.choice((1, 1, 1, 2, 4)))
    ]


def _connection(rng: random.Random, style: Style) -> dict[str, Any]:
    return {"connection": rng.choice(steps.CONNECTION_NUMBERS)}


def _pick(rng: random.Random, style: Style) -> dict[str, Any]:
    return {"pick": rng.randrange(8)}


def _number(rng: random.Random, style: Style) -> dict[str, Any]:
    return {"number": rng.randrange(2)}


def _nothing(rng: random.Random, style: Style) -> dict[str, Any]:
    return {}


def _time(rng: random.Random, style: Style) -> dict[str, Any]:
    return {"ms": rng.choice(steps.TIMES_MS)}


def _end(rng: random.Random, style: Style) -> dict[str, Any]:
    return {**_connection(rng, style), "failed": rng.random() < 0.7}


def _room(rng: random.Random, style: Style) -> dict[str, Any]:
    return {**_pick(rng, style), "room": rng.choice(steps.ROOMS)}


def _size(rng: random.Random, style: Style) -> dict[str, Any]:
    return {**_number(rng, style), "size": rng.choice(steps.RING_SIZES)}


def _sending(rng: random.Random, style: Style) -> dict[str, Any]:
    delay_ms = rng.choice(steps.DELAYS_MS) if rng.random() < style.delayed else 0
    return {"specs": _specs(rng, style), **_connection(rng, style), "delay_ms": delay_ms}


def _subscribing(rng: random.Random, style: Style) -> dict[str, Any]:
    return {
        "number": rng.randrange(4),
        **_connection(rng, style),
        "settles": rng.random() < style.settles,
        "browses": rng.random() < style.browses,
        "selector": rng.choice(list(SELECTORS)) if rng.random() < style.selects else None,
        "no_local": rng.random() < style.selects / 4,
        "window": rng.choice(steps.WINDOWS),
        "priority": rng.choice((0, 0, 0, 5)),
        "room": rng.choice(steps.ROOMS),
        "replay_s": rng.choice(steps.REPLAYS_S) if rng.random() < style.selects else None,
        "alone": rng.random() < style.selects / 8,
        "backlog": rng.choice(steps.BACKLOGS),
    }


def _settling(rng: random.Random, style: Style) -> dict[str, Any]:
    refuses, expires = rng.random() < 0.4, rng.random() < 0.1
    return {**_pick(rng, style), "index": rng.randrange(8), "refuses": refuses, "expires": expires}


def _settling_now(rng: random.Random, style: Style) -> dict[str, Any]:
    return {**_settling(rng, style), "cumulative": rng.random() < 0.3}


def _sifting(rng: random.Random, style: Style) -> dict[str, Any]:
    refuses, expires = rng.random() < 0.4, rng.random() < 0.2
    chosen = {"selector": rng.choice(list(SELECTORS)), "refuses": refuses, "expires": expires}
    return {**_number(rng, style), **_connection(rng, style), **chosen}


def _replacing(rng: random.Random, style: Style) -> dict[str, Any]:
    selector = rng.choice(list(SELECTORS)) if rng.random() < 0.5 else None
    chosen = {"selector": selector, "no_local": rng.random() < style.selects / 4, "backlog": rng.choice(steps.BACKLOGS)}
    return {**_pick(rng, style), **chosen}


_ALWAYS: Final = (1,)
_OFTEN: Final = (1, 1, 3)
_SELDOM: Final = (0, 1, 1, 3)

# Name, weight, factors that a style may put on the weight, and what draws the arguments.
_DRAWS: Final[list[tuple[str, int, tuple[int, ...], _Draw]]] = [
    ("publish", 20, _OFTEN, _sending),
    ("subscribe", 12, _OFTEN, _subscribing),
    ("unsubscribe", 3, _SELDOM, _pick),
    ("end", 2, _SELDOM, _end),
    ("settle", 40, _SELDOM, _settling_now),
    ("settle_late", 8, _SELDOM, _settling),
    ("sift", 4, _SELDOM, _sifting),
    ("replace", 3, _SELDOM, _replacing),
    ("begin", 6, _SELDOM, _connection),
    ("send_in_transaction", 4, _SELDOM, _sending),
    ("settle_in_transaction", 12, _SELDOM, _settling),
    ("commit", 4, _ALWAYS, _connection),
    ("abort", 3, _ALWAYS, _connection),
    ("advance", 3, _SELDOM, _time),
    ("dispatch", 10, _SELDOM, _nothing),
    ("write", 6, _SELDOM, _nothing),
    ("turn", 40, _ALWAYS, _time),
    ("set_room", 10, _SELDOM, _room),
    ("pause", 1, _SELDOM, _number),
    ("resume", 5, _ALWAYS, _number),
    ("resize", 1, _SELDOM, _size),
    ("purge", 1, _SELDOM, _number),
    ("restart", 1, (0, 0, 3), _time),
]


def draw_step(rng: random.Random, style: Style) -> Taken:
    """One step and what it is given."""
    name, _, _, draw = rng.choices(_DRAWS, style.weights)[0]
    return name, draw(rng, style)


def run_world(plan: Plan, taken: list[Taken]) -> set[str]:
    """Take the steps on a new world, then empty it; returns what happened. Raises what the first wrong step raises."""
    world = Trade(plan, restarts=any(name == "restart" for name, _ in taken))
    for step in taken:
        take(world, step)
    world.empty()
    return world.happened.union(*(pair.model.happened for pair in world.pairs))


def fails(plan: Plan, taken: list[Taken]) -> bool:
    """Do these steps fail?"""
    try:
        run_world(plan, taken)
    except Exception:
        return True
    return False


def shrink(plan: Plan, taken: list[Taken]) -> list[Taken]:
    """Leave steps out as long as what is left still fails."""
    size = max(len(taken) // 2, 1)
    while True:
        position = 0
        while position < len(taken):
            candidate = taken[:position] + taken[position + size :]
            if fails(plan, candidate):
                taken = candidate
            else:
                position += size
        if size == 1:
            return taken
        size //= 2


def worlds(
    seed: int, steps_max: int, wanted: Callable[[Plan], bool] | None = None
) -> Iterator[tuple[Plan, list[Taken]]]:
    """Worlds and their steps, combination after combination, until ``steps_max`` steps are used up; of these, the
    wanted ones.
    """
    for number, chosen in enumerate(islice(IN_MEMORY.drawn(random.Random(seed)), -(-steps_max // STEPS_PER_WORLD))):
        rng = random.Random(f"{seed}:{number}")
        plan = plan_of(chosen)
        if rng.random() < 0.3:
            second = IN_MEMORY.mostly_usual(rng.choice(IN_MEMORY.bases), rng)
            plan = replace(plan, queues=(*plan.queues, queue_plan(second)))
        style = draw_style(rng)
        if wanted is None or wanted(plan):
            count = min(STEPS_PER_WORLD, steps_max - number * STEPS_PER_WORLD)
            yield plan, [draw_step(rng, style) for _ in range(count)]


def plan_text(plan: Plan) -> str:
    """The plan as it would be written, without what is as usual."""
    return f"Plan(({', '.join(map(_special, plan.queues))},), {_special(plan.address)})"


def _special(part: Any) -> str:
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    usual = type(part)()
    special = [f"{name}={value!r}" for name, value in values.items() if value != getattr(usual, name)]
    return f"{type(part).__name__}({', '.join(special)})"


def report(plan: Plan, taken: list[Taken]) -> str:
    """The failure as text: plan, smallest list of steps, and what went wrong."""
    small = shrink(plan, taken)
    lines = [f"plan: {plan_text(plan)}", f"{len(small)} steps:"]
    lines += [f"    {name}({', '.join(f'{key}={value!r}' for key, value in given.items())})" for name, given in small]
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
