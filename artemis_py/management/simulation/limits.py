"""The limits of an address and one of its queues that a load may reach, from the settings in force."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from artemis_py.config.explain import Explained, Explanation, explain
from artemis_py.config.settings import BrokerConfig
from artemis_py.message import MESSAGE_OVERHEAD_BYTES

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
        found = explain(config, name if "::" in name else f"{name}::{_queue_of(config, address)}")
        self.config = config
        self.address = address
        self.queue = name.partition("::")[2] or _queue_of(config, address)
        self.settings = found.address_settings
        assert found.queue_settings is not None
        self.own = found.queue_settings
        self.declared = found.queue_declared
        self.global_bytes = global_bytes
        self._found: Explanation = found

    def place(self, name: str) -> str:
        """A setting with its value and line, as in ``max-size-bytes 1048576 bytes, broker.xml:12``."""
        for row in _rows(self._found):
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
        found: list[tuple[float, str]] = []
        if self.settings.max_size_bytes > 0:
            found.append((self.settings.max_size_bytes / each, "max-size-bytes"))
        if self.settings.max_size_messages > 0:
            found.append((self.settings.max_size_messages, "max-size-messages"))
        if self.global_bytes > 0:
            found.append((self.global_bytes / each, "global-max-size"))
        return sorted(found)

    def slow_below_per_s(self) -> float:
        """The rate below which a consumer counts as slow; 0: none does."""
        spans = {"SECOND": 1, "MINUTE": 60, "HOUR": 3_600, "DAY": 86_400}
        unit = self.settings.slow_consumer_threshold_measurement_unit.rpartition("_")[2]
        return max(self.settings.slow_consumer_threshold, 0) / spans[unit]


def _rows(found: Explanation) -> Iterable[Explained]:
    yield from found.queue_attributes
    yield from found.settings


def _queue_of(config: BrokerConfig, address: str) -> str:
    """The queue that is meant by an address alone: the one of its name, else the first, else one of its name."""
    queues = [queue.name for each in config.addresses if each.name == address for queue in each.queues]
    return address if address in queues or not queues else queues[0]
