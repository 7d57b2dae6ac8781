"""The axes of a queue and of its address, with the choices on each; and worlds drawn so that all choices meet.

Whatever ``check`` accepts is drawn; it is asked for every two choices.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from itertools import combinations, product
from typing import Any, Final
from xml.sax.saxutils import quoteattr

from artemis_py.config.problems import ERROR
from artemis_py.config.reader import loads
from artemis_py.config.settings import QueueConfig
from artemis_py.errors import ConfigError
from tests.model import plans
from tests.model.plans import AddressPlan, PagePlan, Plan, QueuePlan

Fields = dict[str, Any]
Chosen = dict[str, str]
"""The name of a choice for each axis."""
Choice = tuple[str, str]
Pair = tuple[Choice, Choice]
"""Two choices, each with its axis."""

QUEUE_AXES: Final[dict[str, dict[str, Fields]]] = {
    "type": {kind: {"kind": kind} for kind in plans.KINDS},
    "served": {"all": {}, "exclusive": {"exclusive": True}, "1-live": {"live_max": 1}, "2-live": {"live_max": 2}},
    "groups": {
        "sticky": {"groups": plans.STICKY},
        "shared": {"groups": plans.SHARED},
        "none": {"groups": plans.UNGROUPED},
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
    "expiration": {"none": {}, "200": {"ttl_usual": 200}},
    "expiry-policy": {
        "none": {},
        "delete": {"expiry_policy": "DELETE"},
        "alternate": {"expiry_policy": "ROUTE_TO_ALTERNATE"},
    },
    "activation": {
        "at-once": {},
        "barriers": {"barriers": True},
        "first-1": {"active_max": 1},
        "first-3": {"active_max": 3},
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
        "3-or-300-ms": {"consumers_before": 3, "delay_before": 300},
    },
    "semantics": {"at-least-once": {}, "at-most-once": {"once": True}},
    "lease": {
        "none": {},
        "400-ms": {"lease_ms": 400},
        "400-ms-strict": {"lease_ms": 400, "strict": True},
        "strict": {"strict": True},
    },
    "deliveries": {"any": {}, "1": {"deliveries_max": 1}, "2": {"deliveries_max": 2}},
    "cancels": {"any": {}, "1": {"cancels_max": 1}, "2": {"cancels_max": 2}},
    "fairness": {
        "by default": {},
        "fast": {"fairness": plans.FAST},
        "in turn": {"fairness": plans.ROUND_ROBIN},
        "by share": {"fairness": plans.PROPORTIONAL},
    },
    "backlog": {"any": {}, "1": {"backlog_each": 1}, "3": {"backlog_each": 3}},
    "backlog-of-all": {"any": {}, "1": {"backlog_all": 1}, "3": {"backlog_all": 3}},
    "filter": {"none": {}, "red": {"red_only": True}},
    "purge": {"no": {}, "yes": {"purge": True}},
    "durable": {"yes": {}, "no": {"durable": False}},
    "view": {"no": {}, "exact": {"view": plans.EXACT}, "wildcard": {"view": plans.WILDCARD}},
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
Axes = dict[str, dict[str, Fields]]
_ELSEWHERE: Final = ("filter", "durable", "address", "routing_type")
"""What of a queue is no attribute."""
OF_GROUPS: Final = ("buckets", "rebalance", "first-key")


def _fields(chosen: Mapping[str, str], axes: Axes) -> Fields:
    """What these choices say."""
    return {name: value for axis in axes.keys() & chosen for name, value in axes[axis][chosen[axis]].items()}


def element_of(queue: QueuePlan, name: str) -> str:
    """The queue as it stands in broker.xml, in one line, with everything that is not as usual."""
    written, usual = queue.config(name), QueuePlan(groups=plans.STICKY).config(name)
    texts: list[str] = []
    for field in fields(QueueConfig):
        value = getattr(written, field.name)
        if value != getattr(usual, field.name) and field.name not in _ELSEWHERE:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            texts.append(f" {field.name.replace('_', '-')}={quoteattr(text)}")
    inside = f"<filter string={quoteattr(queue.red_only * plans.RED_ONLY)}/>" if queue.red_only else ""
    inside += "" if queue.durable else "<durable>false</durable>"
    return f"<queue name={quoteattr(name)}{''.join(texts)}>{inside}</queue>"


def refusals(queues: Sequence[QueuePlan], setting: str = "") -> dict[int, str]:
    """What ``check`` has against some of these queues, by their index; ``setting`` is in the address-setting."""
    lines = [
        f"<address name='{queue.home(f'q{number}')}'><multicast>{element_of(queue, f'q{number}')}</multicast></address>"
        for number, queue in enumerate(queues, 1)
    ]
    inside = "\n".join(["", *lines])
    settings = f"<address-settings><address-setting match='a'>{setting}</address-setting></address-settings>"
    core = f"<core xmlns='urn:activemq:core'><addresses>{inside}</addresses>{settings}</core>"
    try:
        loads(f"<configuration xmlns='urn:activemq'>{core}</configuration>")
    except ConfigError as refused:
        problems = [problem for problem in refused.problems if problem.severity == ERROR]
        return {(problem.line or 0) - 2: problem.message for problem in problems}
    return {}


class Space:
    """Some axes, of which ``base`` are the chief ones: of these every combination is drawn, of all others every pair.
    ``setting`` is what stands in the address-setting.
    """

    def __init__(
        self, queue_axes: Axes, address_axes: Axes, page_axes: Axes, base: Sequence[str], setting: str = ""
    ) -> None:
        self.queue_axes = queue_axes
        self.address_axes = address_axes
        self.page_axes = page_axes
        self.axes = queue_axes | address_axes | page_axes
        self.base = tuple(base)
        self.setting = setting

    def pairs_of(self, chosen: Mapping[str, str]) -> list[Pair]:
        """Every two of these choices."""
        return list(combinations([(axis, chosen[axis]) for axis in self.axes if axis in chosen], 2))

    def queue_plan(self, chosen: Mapping[str, str]) -> QueuePlan:
        """The queue with these choices; on the other axes it has what queues usually have."""
        return QueuePlan(**{"groups": plans.STICKY, **_fields(chosen, self.queue_axes)})

    def plan_of(self, chosen: Mapping[str, str], *more: Mapping[str, str]) -> Plan:
        """The world with these choices, and with more queues."""
        queues = tuple(map(self.queue_plan, (chosen, *more)))
        pages = PagePlan(**_fields(chosen, self.page_axes)) if self.page_axes else None
        return Plan(queues, AddressPlan(**_fields(chosen, self.address_axes)), pages)

    @cached_property
    def all_pairs(self) -> dict[Pair, str]:
        """Every two choices on different axes, and why they are refused; empty when they are not."""
        pairs: list[Pair] = [
            ((one, first), (other, second))
            for one, other in combinations(self.axes, 2)
            for first, second in product(self.axes[one], self.axes[other])
        ]
        plans = [self.queue_plan(dict(pair)) for pair in pairs]
        different = list(dict.fromkeys(plans))
        reasons = refusals(different, self.setting)
        refused = {different[place]: reason for place, reason in reasons.items()}
        return {pair: refused.get(plan, "") for pair, plan in zip(pairs, plans, strict=True)}

    @cached_property
    def bases(self) -> list[Chosen]:
        """Every combination of the choices on the chief axes that is not refused."""
        refused = self.all_pairs
        every = [
            dict(zip(self.base, names, strict=True)) for names in product(*(self.axes[axis] for axis in self.base))
        ]
        return [base for base in every if not any(refused[pair] for pair in self.pairs_of(base))]

    def apart(self, chosen: Iterable[Chosen]) -> list[Pair]:
        """What is accepted together and met in none of these worlds."""
        met = {pair for one in chosen for pair in self.pairs_of(one)}
        return [pair for pair, refused in self.all_pairs.items() if not refused and pair not in met]

    def drawn(self, rng: random.Random) -> Iterator[Chosen]:
        """World after world, without end: the bases in turn, and on the other axes, by turns, what makes choices meet
        that have not met before (when all have met it begins again), and mostly what is usual: where little is special,
        much happens.
        """
        apart: dict[Choice, set[Choice]] = {}
        while True:
            for base in rng.sample(self.bases, len(self.bases)):
                if not any(apart.values()):
                    apart = {choice: set(others) for choice, others in self._accepted_with.items()}
                chosen = self._completed(dict(base), apart, rng) if rng.random() < 0.5 else self.mostly_usual(base, rng)
                for choice in chosen.items():
                    apart[choice].difference_update(chosen.items())
                yield chosen

    def mostly_usual(self, base: Chosen, rng: random.Random) -> Chosen:
        """Mostly the usual choices on all other axes."""
        chosen = dict(base)
        for axis, choices in self.axes.items():
            if axis not in base:
                usual = 0.25 if axis in OF_GROUPS and base["groups"] == "sticky" else 0.75
                name = next(iter(choices)) if rng.random() < usual else rng.choice(list(choices))
                chosen[axis] = name if self._accepted_with[axis, name] >= chosen.items() else next(iter(choices))
        return chosen

    @cached_property
    def _accepted_with(self) -> dict[Choice, set[Choice]]:
        """For each choice, those on other axes that are accepted beside it."""
        found: dict[Choice, set[Choice]] = {(axis, name): set() for axis, names in self.axes.items() for name in names}
        for (one, other), refused in self.all_pairs.items():
            if not refused:
                found[one].add(other)
                found[other].add(one)
        return found

    def _completed(self, chosen: Chosen, apart: Mapping[Choice, set[Choice]], rng: random.Random) -> Chosen:
        """A choice for each axis that has none: the one that meets most of the others for the first time."""
        rest = [axis for axis in self.axes if axis not in chosen]
        for axis in rng.sample(rest, len(rest)):
            gains: dict[str, int] = {}
            for name in self.axes[axis]:
                if self._accepted_with[axis, name] >= chosen.items():
                    gains[name] = len(apart[axis, name] & chosen.items())
            most = max(gains.values())
            chosen[axis] = rng.choice([name for name, gain in gains.items() if gain == most])
        return chosen


IN_MEMORY: Final = Space(
    QUEUE_AXES, ADDRESS_AXES, {}, ("type", "served", "groups", "acquisition", "policy", "ring-size", "activation")
)
"""Queues that have all in memory."""

_NOT_PAGED: Final = (
    "first-key", "expiry-policy", "selector", "admits", "consumers",
)  # fmt: skip
"""Whether a message stands in a page makes no difference there."""
PAGED: Final = Space(
    {
        **{axis: choices for axis, choices in QUEUE_AXES.items() if axis not in _NOT_PAGED},
        "policy": {
            "none": {},
            "to-disk-2": {"policy": plans.TO_DISK, "depth_messages": 2},
            "to-disk-250-bytes": {"policy": plans.TO_DISK, "depth_bytes": 250},
            "file-backed-2": {"policy": plans.TO_DISK, "depth_messages": 2, "backed": True},
            **{name: fields for name, fields in QUEUE_AXES["policy"].items() if name != "none"},
        },
    },
    {axis: ADDRESS_AXES[axis] for axis in ("redelivery", "attempts")},
    {
        "pages-from": {"2": {}, "0": {"messages_max": 0}, "5": {"messages_max": 5}, "never": {"messages_max": -1}},
        "page-size": {"400": {}, "200": {"page_bytes": 200}, "1500": {"page_bytes": 1500}},
        "read-ahead": {
            "unlimited": {},
            "1": {"read_messages_max": 1, "ready_messages_max": 1},
            "3": {"read_messages_max": 3, "ready_messages_max": 2},
        },
        "page-limit": {
            "none": {},
            "drop": {"limit_messages": 6},
            "fail": {"limit_messages": 6, "limit_policy": "FAIL"},
        },
    },
    ("type", "groups", "acquisition", "policy", "ring-size", "activation"),
    "<address-full-policy>PAGE</address-full-policy><max-size-messages>2</max-size-messages>",
)
"""Queues on an address that pages, or that flow to disk themselves."""
