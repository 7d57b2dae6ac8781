"""The axes of a queue and of its address, with the choices on each; and worlds drawn so that all choices meet.

Whatever ``check`` accepts is drawn. What it refuses, its own table of rules says.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import combinations, product
from typing import Any, Final

from artemis_py.config.problems import ERROR
from artemis_py.config.queue_combinations import RULES, Case
from artemis_py.config.queue_settings import queue_settings
from artemis_py.config.settings import AddressSettings
from tests.model import plans
from tests.model.plans import ADDRESS, AddressPlan, Plan, QueuePlan

Fields = dict[str, Any]
Chosen = dict[str, str]
"""The name of a choice for each axis."""
Pair = tuple[tuple[str, str], tuple[str, str]]
"""Two choices, each with its axis."""

QUEUE_AXES: Final[dict[str, dict[str, Fields]]] = {
    "type": {kind: {"kind": kind} for kind in plans.KINDS},
    "served": {"all": {}, "exclusive": {"exclusive": True}, "1-live": {"live_max": 1}, "2-live": {"live_max": 2}},
    "groups": {
        "none": {},
        "sticky": {"groups": plans.STICKY},
        "shared": {"groups": plans.SHARED},
    },
    "acquisition": {"destructive": {}, "non-destructive": {"non_destructive": True}},
    "policy": {
        "none": {},
        "ring-0": {"policy": plans.RING, "depth_messages": 0},
        "ring-1": {"policy": plans.RING, "depth_messages": 1},
        "ring-3": {"policy": plans.RING, "depth_messages": 3},
        "ring-200-bytes": {"policy": plans.RING, "depth_bytes": 200},
        "ring-3-and-250-bytes": {"policy": plans.RING, "depth_messages": 3, "depth_bytes": 250},
        "reject-2": {"policy": plans.REJECT, "depth_messages": 2},
        "reject-250-bytes": {"policy": plans.REJECT, "depth_bytes": 250},
        "flow-control-2": {"policy": plans.FLOW_CONTROL, "depth_messages": 2},
        "flow-control-250-bytes": {"policy": plans.FLOW_CONTROL, "depth_bytes": 250},
    },
    "ring-size": {"none": {}, "0": {"ring_size": 0}, "1": {"ring_size": 1}, "3": {"ring_size": 3}},
    "resume": {"80%": {}, "50%": {"resume_percent": 50}, "0%": {"resume_percent": 0}, "100%": {"resume_percent": 100}},
    "buckets": {"none": {}, "2": {"buckets": 2}, "0": {"buckets": 0}},
    "rebalance": {
        "never": {},
        "rebalance": {"rebalances": plans.REBALANCE},
        "pause": {"rebalances": plans.PAUSE},
    },
    "first-key": {"no": {}, "yes": {"marks_first": True}},
    "hold": {"no": {}, "yes": {"holds": True}},
    "ttl-min": {"none": {}, "300": {"ttl_min": 300}},
    "ttl-max": {"none": {}, "250": {"ttl_max": 250}, "1000": {"ttl_max": 1000}},
    "expiry-policy": {
        "none": {},
        "delete": {"expiry_policy": "DELETE"},
        "alternate": {"expiry_policy": "ROUTE_TO_ALTERNATE"},
    },
    "replay": {"all": {}, "future": {"replay_s": 0}, "1-s": {"replay_s": 1}},
    "selector": {"none": {}, "red": {"default_selector": plans.RED_ONLY}},
    "admits": {
        "all": {},
        "connection": {"admits": "CONNECTION"},
        "container": {"admits": "CONTAINER"},
        "link": {"admits": "LINK"},
    },
    "consumers": {"any": {}, "2": {"consumers_max": 2}},
    "alerts": {"no": {}, "yes": {"alerts": True}},
    "gate": {
        "open": {},
        "2-consumers": {"consumers_before": 2},
        "2-or-300-ms": {"consumers_before": 2, "delay_before": 300},
    },
    "filter": {"none": {}, "red": {"red_only": True}},
    "purge": {"no": {}, "yes": {"purge": True}},
    "durable": {"yes": {}, "no": {"durable": False}},
}
ADDRESS_AXES: Final[dict[str, dict[str, Fields]]] = {
    "redelivery": {
        "at-once": {},
        "delayed": {
            "redelivery_delay": 200,
            "multiplier": 2.0,
            "redelivery_delay_max": 2000,
            "scan_period": 100,
        },
    },
    "attempts": {"any": {}, "2": {"attempts_max": 2}, "1": {"attempts_max": 1}},
    "dead-letters": {"discarded": {}, "kept": {"dead_letter": True}},
    "expired": {"discarded": {}, "kept": {"expiry": True}},
    "address": {
        "unlimited": {},
        "drop": {"messages_max": 3, "full_policy": "DROP"},
        "fail": {"messages_max": 3, "full_policy": "FAIL"},
        "block": {"messages_max": 3, "full_policy": "BLOCK"},
    },
}
AXES: Final = QUEUE_AXES | ADDRESS_AXES
BASE: Final = ("type", "served", "groups", "acquisition", "policy", "ring-size")
"""Of these axes every combination is drawn, of all others every pair."""


def queue_plan(chosen: Mapping[str, str]) -> QueuePlan:
    """The queue with these choices; on the other axes it has what queues usually have."""
    fields: Fields = {}
    for axis, name in chosen.items():
        fields |= QUEUE_AXES.get(axis, {}).get(name, {})
    return QueuePlan(**fields)


def plan_of(chosen: Mapping[str, str]) -> Plan:
    """The world with these choices."""
    fields: Fields = {}
    for axis, name in chosen.items():
        fields |= ADDRESS_AXES.get(axis, {}).get(name, {})
    return Plan((queue_plan(chosen),), AddressPlan(**fields))


def id_of(chosen: Mapping[str, str]) -> str:
    """What is special about it, as a name for a test."""
    special = [f"{axis}={name}" for axis, name in chosen.items() if name != next(iter(AXES[axis]))]
    return " ".join(special) or "plain"


def pairs_of(chosen: Mapping[str, str]) -> list[Pair]:
    """Every two of these choices."""
    return list(combinations([(axis, chosen[axis]) for axis in AXES if axis in chosen], 2))


def is_refused(queue: QueuePlan) -> bool:
    """Does ``check`` refuse such a queue?"""
    settings = AddressSettings()
    case = Case(queue_settings(queue.config("q"), settings), settings, ADDRESS, pages=False, neighbours=0)
    return any(rule.severity == ERROR and rule.applies(case) for rule in RULES)


@cache
def all_pairs() -> dict[Pair, bool]:
    """Every two choices on different axes, and whether they are refused."""
    pairs: dict[Pair, bool] = {}
    for one, other in combinations(AXES, 2):
        for first, second in product(AXES[one], AXES[other]):
            pairs[(one, first), (other, second)] = is_refused(queue_plan({one: first, other: second}))
    return pairs


@cache
def bases() -> list[Chosen]:
    """Every combination of the choices on the axes of ``BASE`` that is not refused."""
    refused = all_pairs()
    every = [dict(zip(BASE, names, strict=True)) for names in product(*(AXES[axis] for axis in BASE))]
    return [base for base in every if not any(refused[pair] for pair in pairs_of(base))]


def draw_queue(rng: random.Random) -> QueuePlan:
    """Any queue that is not refused."""
    return queue_plan(_mostly_usual(rng.choice(bases()), rng))


def drawn(rng: random.Random) -> Iterator[Chosen]:
    """World after world, without end: the bases in turn, and on the other axes, by turns, what makes choices meet that
    have not met before (when all have met it begins again), and mostly what is usual: where little is special, much
    happens.
    """
    accepted = [pair for pair, refused in all_pairs().items() if not refused]
    apart = dict.fromkeys(accepted)
    while True:
        for base in rng.sample(bases(), len(bases())):
            if not apart:
                apart = dict.fromkeys(accepted)
            chosen = _completed(dict(base), apart, rng) if rng.random() < 0.5 else _mostly_usual(base, rng)
            for pair in pairs_of(chosen):
                apart.pop(pair, None)
            yield chosen


def _mostly_usual(base: Chosen, rng: random.Random) -> Chosen:
    others = {axis: list(choices) for axis, choices in AXES.items() if axis not in base}
    return base | {axis: names[0] if rng.random() < 0.75 else rng.choice(names) for axis, names in others.items()}


def _completed(chosen: Chosen, apart: dict[Pair, None], rng: random.Random) -> Chosen:
    """A choice for each axis that has none: the one that meets most of the others for the first time."""
    places = {axis: place for place, axis in enumerate(AXES)}
    rest = [axis for axis in AXES if axis not in chosen]
    for axis in rng.sample(rest, len(rest)):
        best: list[str] = []
        most = -1
        for name in AXES[axis]:
            gain = 0
            for other, taken in chosen.items():
                if places[axis] < places[other]:
                    gain += ((axis, name), (other, taken)) in apart
                else:
                    gain += ((other, taken), (axis, name)) in apart
            if gain > most:
                best, most = [name], gain
            elif gain == most:
                best.append(name)
        chosen[axis] = rng.choice(best)
    return chosen
