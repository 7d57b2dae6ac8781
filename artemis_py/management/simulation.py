"""When a queue pages, blocks, drops or expires under a steady load.

Messages are treated as a flow: between two events all rates are constant, so the moment of the next event follows by
arithmetic, exactly and at once, for hours of load. (The broker's own core with a moved clock would need a message for
each message.) What it leaves out: bursts shorter than a second, windows of consumers, failed deliveries, and that disk
and network have limits of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final

from artemis_py.config.explain import Explained, Explanation, explain
from artemis_py.config.settings import BrokerConfig
from artemis_py.message import MESSAGE_OVERHEAD_BYTES
from artemis_py.terminal_output import many

OFF: Final = -1


@dataclass(frozen=True, slots=True)
class Load:
    """What comes and who takes it: messages per second, their body and headers in bytes, consumers and what each
    settles per second. ``away_s``: for how long no consumer is there at first. ``ttl_ms``: the time to live that
    senders set; 0: none. ``disk_bytes``: room for pages; -1: not asked.
    """

    per_s: float
    body_bytes: int
    header_bytes: int
    consumers: int
    settled_per_s: float
    for_s: float
    away_s: float = 0
    ttl_ms: int = 0
    disk_bytes: int = OFF

    @property
    def encoded_bytes(self) -> int:
        """A message in a page."""
        return self.body_bytes + self.header_bytes

    @property
    def memory_bytes(self) -> int:
        """A message in memory."""
        return self.encoded_bytes + MESSAGE_OVERHEAD_BYTES


class Limits:
    """The settings of ``ADDRESS`` or ``ADDRESS::QUEUE``, each with its value and line. ``global_bytes`` is
    ``global-max-size`` in force.
    """

    def __init__(self, config: BrokerConfig, name: str, global_bytes: int) -> None:
        address = name.partition("::")[0]
        explanation = explain(config, name if "::" in name else f"{name}::{_queue_of(config, address)}")
        self.config = config
        self.address = address
        self.queue = name.partition("::")[2] or _queue_of(config, address)
        self.settings = explanation.address_settings
        assert explanation.queue_settings is not None
        self.own = explanation.queue_settings
        self.declared = explanation.queue_declared
        self.global_bytes = global_bytes
        self._explanation: Explanation = explanation

    def place(self, name: str) -> str:
        """A setting with its value and line, as in ``max-size-bytes 1048576 bytes, broker.xml:12``."""
        for row in _rows(self._explanation):
            if row.setting.name == name:
                where = "default" if row.origin is None else str(row.origin)
                return f"{name} {row.value_text}, {where}"
        if name == "global-max-size":
            origin = self.config.origins.get("global_max_size")
            return f"{name} {self.global_bytes} bytes, {'default' if origin is None else origin}"
        return name

    @property
    def full_policy(self) -> str:
        """The policy of the full address; empty where nothing counts: PAGE without a journal has no pages."""
        policy = self.settings.address_full_policy
        return "" if policy == "PAGE" and not self.config.persistence_enabled else policy

    @property
    def ttl_ms(self) -> int:
        """The time to live that settings give a message without one; 0: none."""
        settings = self.settings
        if settings.no_expiry:
            return 0
        for value in (settings.expiry_delay, settings.max_expiry_delay, settings.min_expiry_delay):
            if value >= 0:
                return value
        return 0

    def lived_ms(self, asked_ms: int) -> int:
        """How long a message lives that asks for so many ms (0: for ever)."""
        settings = self.settings
        if settings.no_expiry:
            return 0
        if not asked_ms:
            return self.ttl_ms
        if settings.expiry_delay < 0 and settings.max_expiry_delay >= 0:
            asked_ms = min(asked_ms, settings.max_expiry_delay)
        if settings.expiry_delay < 0 and settings.min_expiry_delay >= 0:
            asked_ms = max(asked_ms, settings.min_expiry_delay)
        return asked_ms

    @property
    def ttl_setting(self) -> str:
        """The setting that gives it; empty: none."""
        settings = self.settings
        names = ("expiry_delay", "max_expiry_delay", "min_expiry_delay")
        return next((name.replace("_", "-") for name in names if getattr(settings, name) >= 0), "")

    def memory_limits(self, load: Load) -> list[tuple[float, str]]:
        """The numbers of messages in memory at which the address is full, each with the setting, the least first."""
        each = load.memory_bytes
        limits: list[tuple[float, str]] = []
        if self.settings.max_size_bytes > 0:
            limits.append((self.settings.max_size_bytes / each, "max-size-bytes"))
        if self.settings.max_size_messages > 0:
            limits.append((self.settings.max_size_messages, "max-size-messages"))
        if self.global_bytes > 0:
            limits.append((self.global_bytes / each, "global-max-size"))
        return sorted(limits)

    def slow_below_per_s(self) -> float:
        """The rate below which a consumer counts as slow; 0: none does."""
        spans = {"SECOND": 1, "MINUTE": 60, "HOUR": 3_600, "DAY": 86_400}
        unit = self.settings.slow_consumer_threshold_measurement_unit.rpartition("_")[2]
        return max(self.settings.slow_consumer_threshold, 0) / spans[unit]


def _rows(explanation: Explanation) -> Iterable[Explained]:
    yield from explanation.queue_attributes
    yield from explanation.settings


def _queue_of(config: BrokerConfig, address: str) -> str:
    """The queue that is meant by an address alone: the one of its name, else the first, else one of its name."""
    queues = [queue.name for each in config.addresses if each.name == address for queue in each.queues]
    return address if address in queues or not queues else queues[0]


PAGE: Final = "page"
BLOCK: Final = "block"
FAIL: Final = "fail"
DROP: Final = "drop"
RING: Final = "ring"
EXPIRE: Final = "expire"
DRAINED: Final = "drained"
_EVENTS_MAX: Final = 100
_NEVER: Final = float("inf")
_CLOSE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Moment:
    """What happens at a time (s from the start): a word, a sentence, and the setting with its line, if there is one."""

    at_s: float
    what: str
    text: str
    setting: str = ""


@dataclass(slots=True)
class Outcome:
    """The timeline, and what has become of the messages at the end."""

    moments: list[Moment]
    offered: float = 0
    settled: float = 0
    refused: float = 0
    dropped: float = 0
    expired: float = 0
    waiting: float = 0
    backlog: float = 0
    paged: float = 0


@final
class Model:
    """One queue of an address. ``run`` may be called once."""

    def __init__(self, limits: Limits, load: Load) -> None:
        self._limits = limits
        self._load = load
        self._consumers = self._admitted()
        self._at_s = 0.0
        self._backlog = 0.0
        self._memory_max = _NEVER
        """How many messages are in memory when pages begin."""
        self._states: dict[str, float] = {}
        """What has been reached, and at which backlog."""
        self._outcome = Outcome([])
        self._are_there = False

    # ---- consumers -------------------------------------------------------------------------------

    def _admitted(self) -> int:
        """How many consumers are offered messages."""
        own, count = self._limits.own, self._load.consumers
        if own.max_consumers >= 0:
            count = min(count, own.max_consumers)
        if own.exclusive:
            count = min(count, 1)
        if own.max_live_consumers > 0:
            count = min(count, own.max_live_consumers)
        return count

    def _opens_s(self) -> float:
        """When consumers begin to get messages."""
        own, load = self._limits.own, self._load
        if not self._consumers:
            return _NEVER
        if load.consumers >= own.consumers_before_dispatch:
            return load.away_s
        return load.away_s + own.delay_before_dispatch / 1000 if own.delay_before_dispatch >= 0 else _NEVER

    @property
    def _taken_per_s(self) -> float:
        return self._consumers * self._load.settled_per_s if self._are_there else 0.0

    # ---- the run ---------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """The timeline up to the end of the load."""
        self._begin()
        opens_s, end_s = self._opens_s(), self._load.for_s
        for _ in range(_EVENTS_MAX):
            if not self._are_there and self._at_s >= opens_s:
                self._are_there = True
                self._tell_consumers(opens_s)
            accepted, gone = self._rates()
            growth = accepted - gone
            until_s = min(end_s, _NEVER if self._are_there else opens_s)
            step_s, reached = self._next(growth, until_s - self._at_s)
            self._go_on(step_s, accepted, gone)
            if reached is not None:
                self._reach(*reached)
            elif self._at_s >= end_s - _CLOSE:
                break
        self._outcome.backlog = self._backlog
        self._outcome.paged = max(self._backlog - self._memory_max, 0) if PAGE in self._states else 0
        return self._outcome

    def _begin(self) -> None:
        load, limits, own = self._load, self._limits, self._limits.own
        name = f"{limits.address}::{limits.queue}" + ("" if limits.declared else " (not declared: as auto-created)")
        rate = f"{load.per_s:g}/s of {load.body_bytes} bytes for {name}, {many(self._consumers, 'consumer')} at "
        self._tell("start", f"{rate}{load.settled_per_s:g}/s each: {self._consumers * load.settled_per_s:g}/s")
        if self._consumers < load.consumers:
            most = "max-consumers" if 0 <= own.max_consumers < load.consumers else "exclusive"
            most = "max-live-consumers" if most == "exclusive" and not own.exclusive else most
            self._tell("consumers", f"only {self._consumers} of {load.consumers} consumers get messages", most)
        if self._consumers and load.consumers < own.consumers_before_dispatch:
            self._tell("gate", "the gate waits for more consumers", "consumers-before-dispatch")
        if not own.enabled:
            self._tell("disabled", "the queue takes no messages", "enabled")
        if load.away_s and self._consumers:
            self._tell("away", f"no consumer is there for the first {load.away_s:g} s")

    def _tell_consumers(self, opens_s: float) -> None:
        load, limits = self._load, self._limits
        if opens_s:
            self._tell("consumers", "consumers begin to take messages")
        slow = limits.slow_below_per_s()
        if load.settled_per_s < slow and load.per_s >= slow * max(self._consumers, 1):
            does = (
                "their connections are closed" if limits.settings.slow_consumer_policy == "KILL" else "it is reported"
            )
            period_s = limits.settings.slow_consumer_check_period
            text = f"each consumer counts as slow after {2 * period_s} s at most, and {does}"
            self._tell("slow-consumer", text, "slow-consumer-threshold")
            if limits.settings.slow_consumer_policy == "KILL":
                self._tell("slow-consumer", "consumers that do not come back are not simulated", "slow-consumer-policy")

    def _rates(self) -> tuple[float, float]:
        """Messages per second that the queue takes, and that leave it by consumers, a ring or expiry."""
        offered, taken = self._load.per_s, self._taken_per_s
        if self._backlog <= _CLOSE:
            taken = min(taken, offered)
        accepted = offered
        is_at_limit = any(state in self._states for state in (BLOCK, FAIL, DROP))
        if is_at_limit and self._backlog >= self._states_limit() - _CLOSE:
            accepted = min(offered, taken)
        gone = taken
        for state in (RING, EXPIRE):
            if state in self._states and self._backlog >= self._states[state] - _CLOSE:
                gone = max(gone, accepted)
        return accepted, gone

    def _states_limit(self) -> float:
        return min(self._states[state] for state in (BLOCK, FAIL, DROP) if state in self._states)

    def _next(self, growth: float, left_s: float) -> tuple[float, tuple[str, float, str] | None]:
        """How long until something is reached, and what; None: the time is over before."""
        if growth > _CLOSE:
            for what, level, setting in self._levels():
                if what not in self._states and level >= self._backlog - _CLOSE:
                    step_s = max(level - self._backlog, 0) / growth
                    return (step_s, (what, level, setting)) if step_s <= left_s else (left_s, None)
        elif growth < -_CLOSE and self._backlog > _CLOSE:
            step_s = self._backlog / -growth
            return (step_s, (DRAINED, 0.0, "")) if step_s <= left_s else (left_s, None)
        return left_s, None

    def _go_on(self, step_s: float, accepted: float, gone: float) -> None:
        """So many seconds pass at these rates."""
        load, outcome = self._load, self._outcome
        taken = min(self._taken_per_s, gone)
        self._at_s += step_s
        self._backlog = max(self._backlog + (accepted - gone) * step_s, 0.0)
        outcome.offered += load.per_s * step_s
        outcome.settled += taken * step_s
        not_taken = (load.per_s - accepted) * step_s
        if FAIL in self._states:
            outcome.refused += not_taken
        elif DROP in self._states:
            outcome.dropped += not_taken
        else:
            outcome.waiting += not_taken
        lost = (gone - taken) * step_s
        if RING in self._states and self._backlog >= self._states[RING] - _CLOSE:
            outcome.dropped += lost
        else:
            outcome.expired += lost

    # ---- what can be reached ---------------------------------------------------------------------

    def _levels(self) -> list[tuple[str, float, str]]:
        """Backlogs at which something happens, with the setting, the least first."""
        load, limits, own = self._load, self._limits, self._limits.own
        levels: list[tuple[str, float, str]] = []
        memory = limits.memory_limits(load)
        if memory and limits.full_policy and PAGE not in self._states:
            levels.append((limits.full_policy.lower(), *memory[0]))
        if PAGE in self._states:
            levels += self._page_levels()
        if own.ring_size >= 0:
            levels.append((RING, float(own.ring_size), "ring-size"))
        depths = [(float(own.depth_messages_max), "max-depth-messages")] if own.depth_messages_max >= 0 else []
        if own.max_depth_bytes >= 0:
            depths.append((own.max_depth_bytes / load.encoded_bytes, "max-depth-bytes"))
        state = {"RING": RING, "REJECT": FAIL, "PRODUCER_FLOW_CONTROL": BLOCK, "FLOW_TO_DISK": PAGE}.get(own.policy)
        if depths and state is not None:
            levels.append((state, *min(depths)))
        lives_ms = limits.lived_ms(load.ttl_ms)
        if lives_ms:
            levels.append((EXPIRE, load.per_s * lives_ms / 1000, "" if load.ttl_ms else limits.ttl_setting))
        return sorted(levels, key=lambda one: one[1])

    def _page_levels(self) -> list[tuple[str, float, str]]:
        load, settings = self._load, self._limits.settings
        levels: list[tuple[str, float, str]] = []
        policy = settings.page_full_policy
        if policy is not None and (settings.page_limit_messages or -1) > 0:
            most = self._memory_max + (settings.page_limit_messages or 0)
            levels.append((policy.lower(), most, "page-limit-messages"))
        if policy is not None and (settings.page_limit_bytes or -1) >= 0:
            most = self._memory_max + (settings.page_limit_bytes or 0) / load.encoded_bytes
            levels.append((policy.lower(), most, "page-limit-bytes"))
        if load.disk_bytes >= 0:
            full = settings.disk_full_policy.lower()
            levels.append((full, self._memory_max + load.disk_bytes / load.encoded_bytes, "max-disk-usage"))
        return levels

    def _reach(self, what: str, level: float, setting: str) -> None:
        load = self._load
        if what == DRAINED:
            self._backlog = 0.0
            self._states.clear()
            self._memory_max = _NEVER
            self._tell(DRAINED, "the queue is empty again")
            return
        self._backlog = level
        self._states[what] = level
        taken = self._taken_per_s
        over = load.per_s - taken
        if what == PAGE:
            self._memory_max = level
            per_hour = over * load.encoded_bytes * 3600 / (1 << 30)
            text = f"further messages go to pages, which grow by {per_hour:.3g} GiB an hour"
        elif what == BLOCK:
            text = f"senders wait: they are held to {taken:g}/s"
        elif what == FAIL:
            text = f"senders get an ERROR for {over:g}/s"
        elif what == DROP:
            text = f"{over:g}/s are dropped without an error"
        elif what == RING:
            text = f"the ring is full: {over:g}/s push out older messages"
        else:
            text = f"messages reach the end of their time: {over:g}/s expire"
            target = self._limits.settings.expiry_address
            text += f", to the address {target}" if target else " and are gone, because there is no expiry-address"
        self._tell(what, f"{text} (backlog {level:,.0f} messages)", setting)

    def _tell(self, what: str, text: str, setting: str = "") -> None:
        place = self._limits.place(setting) if setting else ""
        self._outcome.moments.append(Moment(self._at_s, what, text, place))
