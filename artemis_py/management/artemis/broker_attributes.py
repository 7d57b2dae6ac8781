"""The attributes of the broker's own bean."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Final
from uuid import NAMESPACE_OID, uuid5

from artemis_py.config.settings import BrokerConfig
from artemis_py.management.artemis.attribute import Attribute, attribute, by_name
from artemis_py.management.lists.selection import LOOKS_PER_STEP
from artemis_py.management.managed import Managed
from artemis_py.version import VERSION

_UNITS_S: Final = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))
_NO_SUM: Final = "whoever reads it has added up the queues before"


@dataclass(frozen=True, slots=True)
class Totals:
    """Numbers of all queues together."""

    messages: int = 0
    consumers: int = 0
    added: int = 0
    acknowledged: int = 0


@dataclass(frozen=True, slots=True)
class BrokerOwner:
    """What the attributes of the broker are read from."""

    managed: Managed
    config: BrokerConfig
    totals: Totals | None = None

    @property
    def sums(self) -> Totals:
        """The numbers of all queues, once they are added up."""
        assert self.totals is not None, _NO_SUM
        return self.totals


def added_up(owner: BrokerOwner) -> Generator[None, None, BrokerOwner]:
    """The same with the numbers of all queues, some queues at a time."""
    queues = list(owner.managed.broker.queues.values())
    messages = consumers = added = acknowledged = 0
    for start in range(0, len(queues), LOOKS_PER_STEP):
        for queue in queues[start : start + LOOKS_PER_STEP]:
            tally = queue.contents.tally
            messages += queue.message_count
            consumers += queue.consumer_count
            added += tally.added
            acknowledged += tally.acknowledged
        yield
    return replace(owner, totals=Totals(messages, consumers, added, acknowledged))


def node_id(name: str) -> str:
    """What tools know this broker by: made of its name."""
    return str(uuid5(NAMESPACE_OID, name))


def uptime(duration_ms: int) -> str:
    """A duration in words: ``2 hours 5 minutes``."""
    left_s, parts = duration_ms // 1000, []
    for unit, size_s in _UNITS_S:
        count, left_s = divmod(left_s, size_s)
        if count:
            parts.append(f"{count} {unit}{'' if count == 1 else 's'}")
    return " ".join(parts[:2]) or "0 seconds"


def _status(owner: BrokerOwner) -> str:
    name = owner.managed.name
    server: dict[str, object] = {
        "state": "STARTED",
        "version": VERSION,
        "nodeId": node_id(name),
        "identity": None,
        "uptime": uptime(owner.managed.uptime_ms()),
        "jaas": {"properties": {}},
    }
    return json.dumps({"configuration": {"properties": {}}, "server": server})


def _policy(config: BrokerConfig) -> str:
    part = config.shared_store
    if part is None:
        return "Primary Only"
    return "Shared Store Backup" if part.is_backup else "Shared Store Primary"


def _limit_percent(owner: BrokerOwner) -> int:
    memory = owner.managed.broker.memory
    return 100 * memory.account.size_bytes // memory.bytes_max if memory.bytes_max > 0 else 0


def _is_backup(config: BrokerConfig) -> bool:
    return config.shared_store is not None and config.shared_store.is_backup


BROKER_ATTRIBUTES: Final[dict[str, Attribute]] = by_name(
    [
        attribute("Name", "String", "The broker's name", lambda it: it.managed.name),
        attribute("Version", "String", "Its version", lambda _: VERSION),
        attribute("NodeID", "String", "An id made of its name", lambda it: node_id(it.managed.name)),
        attribute("Started", "boolean", "Does it run?", lambda _: True),
        attribute("Active", "boolean", "Is it no backup that waits?", lambda _: True),
        attribute("Backup", "boolean", "Is it the backup of a pair?", lambda it: _is_backup(it.config)),
        attribute("SharedStore", "boolean", "Is it one of a pair?", lambda it: it.config.shared_store is not None),
        attribute("Clustered", "boolean", "Is it part of a cluster? Never", lambda _: False),
        attribute("HAPolicy", "String", "Its part in a pair", lambda it: _policy(it.config)),
        attribute("Status", "String", "State, version and uptime, as JSON", _status),
        attribute("Uptime", "String", "For how long it runs, in words", lambda it: uptime(it.managed.uptime_ms())),
        attribute("UptimeMillis", "long", "For how long it runs, in ms", lambda it: it.managed.uptime_ms()),
        attribute("TotalMessageCount", "long", "Messages on all queues", lambda it: it.sums.messages, adds_up=True),
        attribute("TotalMessagesAdded", "long", "Messages that came to queues", lambda it: it.sums.added, adds_up=True),
        attribute(
            "TotalMessagesAcknowledged",
            "long",
            "Messages acknowledged on all queues",
            lambda it: it.sums.acknowledged,
            adds_up=True,
        ),
        attribute("TotalConsumerCount", "long", "Consumers of all queues", lambda it: it.sums.consumers, adds_up=True),
        attribute("ConnectionCount", "int", "Clients that are connected", lambda it: it.managed.client_count()),
        attribute(
            "AddressMemoryUsage",
            "long",
            "Memory of the messages of all addresses, in bytes",
            lambda it: it.managed.broker.memory.account.size_bytes,
        ),
        attribute("AddressMemoryUsagePercentage", "int", "The same in percent of GlobalMaxSize", _limit_percent),
        attribute(
            "GlobalMaxSize",
            "long",
            "Memory that messages may take, in bytes; -1: no limit",
            lambda it: it.managed.broker.memory.bytes_max,
        ),
        attribute("MaxDiskUsage", "int", "How full the disk may be, in percent", lambda it: it.config.max_disk_usage),
        attribute("AddressCount", "int", "Addresses", lambda it: len(it.managed.broker.addresses)),
        attribute("QueueCount", "int", "Queues", lambda it: len(it.managed.broker.queues)),
        attribute(
            "AddressNames", "String[]", "The names of all addresses", lambda it: list(it.managed.broker.addresses)
        ),
        attribute("QueueNames", "String[]", "The names of all queues", lambda it: list(it.managed.broker.queues)),
        attribute(
            "DivertNames", "String[]", "The names of all diverts", lambda it: [one.name for one in it.config.diverts]
        ),
        attribute("PersistenceEnabled", "boolean", "Has it a journal?", lambda it: it.config.persistence_enabled),
        attribute("SecurityEnabled", "boolean", "Do users log in?", lambda it: it.config.security_enabled),
        attribute("JournalDirectory", "String", "Where the journal is", lambda it: it.config.journal_directory),
        attribute("PagingDirectory", "String", "Where the pages are", lambda it: it.config.paging_directory),
        attribute("BindingsDirectory", "String", "Where Artemis has queues", lambda it: it.config.bindings_directory),
        attribute(
            "LargeMessagesDirectory",
            "String",
            "Where the bodies of large messages are",
            lambda it: it.config.large_messages_directory,
        ),
        attribute("ManagementAddress", "String", "The setting of this name", lambda it: it.config.management_address),
        attribute(
            "ManagementNotificationAddress",
            "String",
            "The setting of this name",
            lambda it: it.config.management_notification_address,
        ),
    ]
)
