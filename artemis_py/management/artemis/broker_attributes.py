"""The attributes of the broker's own bean."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Final

from artemis_py.config.settings import BrokerConfig
from artemis_py.core.tasks import Step
from artemis_py.management.artemis.attribute import Attribute, attribute, by_name
from artemis_py.management.fields import Row, Value
from artemis_py.management.managed import Managed
from artemis_py.management.operations.broker import in_words, node_id_of, show_broker
from artemis_py.version import VERSION

_NOT_ASKED: Final = "whoever reads it has asked broker show before"


@dataclass(frozen=True, slots=True)
class BrokerOwner:
    """What the attributes of the broker are read from. ``shown`` is what ``broker show`` tells; None: nobody asked."""

    managed: Managed
    config: BrokerConfig
    shown: Row | None = None

    def told(self, name: str) -> Value:
        """A value of what ``broker show`` tells."""
        assert self.shown is not None, _NOT_ASKED
        return self.shown[name]


def added_up(owner: BrokerOwner) -> Generator[Step, None, BrokerOwner]:
    """The same with what ``broker show`` tells: it looks at all queues, some at a time."""
    shown = yield from show_broker(owner.managed, {})
    return replace(owner, shown=shown)


def _told(name: str, type: str, sentence: str, field: str) -> Attribute:
    """An attribute that is a value of ``broker show``."""
    return attribute(name, type, sentence, lambda it: it.told(field), adds_up=True)


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
        attribute(
            "NodeID",
            "String",
            "The id of its log; without one it is made of the name",
            lambda it: node_id_of(it.managed),
        ),
        attribute("Started", "boolean", "Does it run?", lambda _: True),
        attribute("Active", "boolean", "Is it no backup that waits?", lambda _: True),
        attribute("Backup", "boolean", "Is it the backup of a pair?", lambda it: _is_backup(it.config)),
        attribute("SharedStore", "boolean", "Is it one of a pair?", lambda it: it.config.shared_store is not None),
        attribute("Clustered", "boolean", "Is it part of a cluster? Never", lambda _: False),
        attribute("HAPolicy", "String", "Its part in a pair", lambda it: _policy(it.config)),
        _told("Status", "String", "State, version and uptime, as JSON", "status"),
        attribute("Uptime", "String", "For how long it runs, in words", lambda it: in_words(it.managed.uptime_ms())),
        attribute("UptimeMillis", "long", "For how long it runs, in ms", lambda it: it.managed.uptime_ms()),
        _told("TotalMessageCount", "long", "Messages on all queues", "totalMessageCount"),
        _told("TotalMessagesAdded", "long", "Messages that came to queues", "totalMessagesAdded"),
        _told("TotalMessagesAcknowledged", "long", "Messages acknowledged on all queues", "totalMessagesAcknowledged"),
        _told("TotalConsumerCount", "long", "Consumers of all queues", "totalConsumerCount"),
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
        _told("DiskStoreUsage", "double", "How full the fullest disk is, in percent", "diskStoreUsage"),
        attribute("MaxDiskUsage", "int", "How full the disk may be, in percent", lambda it: it.config.max_disk_usage),
        attribute("AddressCount", "int", "Addresses", lambda it: len(it.managed.broker.addresses)),
        attribute("QueueCount", "int", "Queues", lambda it: len(it.managed.broker.queues)),
        attribute(
            "AddressNames", "String[]", "The names of all addresses", lambda it: list(it.managed.broker.addresses)
        ),
        attribute("QueueNames", "String[]", "The names of all queues", lambda it: list(it.managed.broker.queues)),
        attribute(
            "DivertNames", "String[]", "The names of all diverts", lambda it: list(it.managed.broker.diverts.in_force)
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
