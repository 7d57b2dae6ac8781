"""Attributes of Artemis' beans: of the broker, acceptors, addresses, queues, diverts and bridges."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from artemis_py.config.settings import BrokerConfig
from artemis_py.config.tables.acceptor import AcceptorConfig
from artemis_py.core.addresses.address import Address
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import Step
from artemis_py.management.artemis.java import java_type
from artemis_py.management.listing import AnyKind, Row, Value
from artemis_py.management.managed import BridgeState, Managed
from artemis_py.management.operations.addresses import ADDRESSES
from artemis_py.management.operations.bridges import BRIDGES
from artemis_py.management.operations.broker import in_words, node_id_of, show_broker
from artemis_py.management.operations.queues import QUEUES
from artemis_py.version import VERSION


@dataclass(frozen=True, slots=True)
class Attribute:
    """``type`` as Java names it. ``read`` gets the owner of the bean and returns a value of JSON. ``adds_up``: does it
    need numbers of all queues?
    """

    name: str
    type: str
    sentence: str
    read: Callable[[Any], Any]
    adds_up: bool = False

    @property
    def reader(self) -> str:
        """The name of its getter in Java, which permissions use."""
        return f"is{self.name}" if self.type == "boolean" else f"get{self.name}"


def attribute(name: str, type: str, sentence: str, read: Callable[[Any], Any], *, adds_up: bool = False) -> Attribute:
    """An attribute; ``type`` as in a signature."""
    return Attribute(name, java_type(type), sentence, read, adds_up)


def field_of(kind: AnyKind, name: str, type: str, field: str, read: Callable[[Any], Any] | None = None) -> Attribute:
    """An attribute that is a field of our list."""
    known = kind.fields[field]
    return Attribute(name, java_type(type), known.sentence, read or known.read)


def by_name(attributes: Iterable[Attribute]) -> dict[str, Attribute]:
    """The attributes of a bean."""
    return {one.name: one for one in attributes}


_ACCEPTOR_FACTORY: Final = "org.apache.activemq.artemis.core.remoting.impl.netty.NettyAcceptorFactory"
"""Tools look for this name; there is no such class here."""


def _dead_letter_address(queue: Queue) -> str | None:
    own = queue.reference.rules.dead_letter_address
    return queue.address.settings.dead_letter_address if own is None else own or None


def _queue_names(address: Address) -> list[str]:
    return [queue.name for queue in address.queues.values()]


def _binding_names(address: Address) -> list[str]:
    return [*_queue_names(address), *(divert.name for divert in address.diverts)]


QUEUE_ATTRIBUTES: Final[dict[str, Attribute]] = by_name(
    [
        field_of(QUEUES, "Name", "String", "name"),
        field_of(QUEUES, "ID", "long", "id"),
        field_of(QUEUES, "Address", "String", "address"),
        field_of(QUEUES, "RoutingType", "String", "routingType"),
        field_of(QUEUES, "MessageCount", "long", "messageCount"),
        field_of(QUEUES, "ConsumerCount", "int", "consumerCount"),
        field_of(QUEUES, "DeliveringCount", "int", "deliveringCount"),
        field_of(QUEUES, "ScheduledCount", "long", "scheduledCount"),
        field_of(QUEUES, "PersistentSize", "long", "persistentSize"),
        field_of(QUEUES, "MessagesAdded", "long", "messagesAdded"),
        field_of(QUEUES, "MessagesAcknowledged", "long", "messagesAcked"),
        field_of(QUEUES, "MessagesExpired", "long", "messagesExpired"),
        field_of(QUEUES, "MessagesKilled", "long", "messagesKilled"),
        field_of(QUEUES, "Paused", "boolean", "paused"),
        field_of(QUEUES, "PersistedPause", "boolean", "persistedPause"),
        field_of(QUEUES, "FirstMessageAge", "Long", "firstMessageAge"),
        field_of(QUEUES, "User", "String", "user"),
        field_of(QUEUES, "AutoDelete", "boolean", "autoDelete"),
        field_of(QUEUES, "Exclusive", "boolean", "exclusive"),
        field_of(QUEUES, "LastValue", "boolean", "lastValue"),
        field_of(QUEUES, "LastValueKey", "String", "lastValueKey"),
        field_of(QUEUES, "GroupRebalance", "boolean", "groupRebalance"),
        field_of(QUEUES, "GroupRebalancePauseDispatch", "boolean", "groupRebalancePauseDispatch"),
        field_of(QUEUES, "GroupBuckets", "int", "groupBuckets"),
        field_of(QUEUES, "GroupFirstKey", "String", "groupFirstKey"),
        field_of(QUEUES, "ConsumersBeforeDispatch", "int", "consumersBeforeDispatch"),
        field_of(QUEUES, "DelayBeforeDispatch", "long", "delayBeforeDispatch"),
        field_of(QUEUES, "InternalQueue", "boolean", "internalQueue"),
        field_of(QUEUES, "Enabled", "boolean", "enabled"),
        field_of(QUEUES, "Durable", "boolean", "durable"),
        field_of(QUEUES, "Temporary", "boolean", "temporary"),
        field_of(QUEUES, "Filter", "String", "filter"),
        field_of(QUEUES, "MaxConsumers", "int", "maxConsumers"),
        field_of(QUEUES, "PurgeOnNoConsumers", "boolean", "purgeOnNoConsumers"),
        field_of(QUEUES, "RingSize", "long", "ringSize"),
        field_of(QUEUES, "NonDestructive", "boolean", "nonDestructive"),
        attribute("DeadLetterAddress", "String", "Where its dead letters go; null: nowhere", _dead_letter_address),
        attribute(
            "ExpiryAddress",
            "String",
            "Where its expired messages go; null: nowhere",
            lambda it: it.address.settings.expiry_address,
        ),
    ]
)

ADDRESS_ATTRIBUTES: Final[dict[str, Attribute]] = by_name(
    [
        field_of(ADDRESSES, "Address", "String", "name"),
        field_of(ADDRESSES, "RoutingTypes", "String[]", "routingTypes", lambda it: sorted(it.routing_types)),
        attribute(
            "RoutingTypesAsJSON",
            "String",
            "Its routing types, as a JSON list",
            lambda it: json.dumps(sorted(it.routing_types)),
        ),
        field_of(ADDRESSES, "QueueCount", "long", "queueCount"),
        attribute("QueueNames", "String[]", "The names of its queues", _queue_names),
        attribute("AllQueueNames", "String[]", "The names of its queues", _queue_names),
        attribute("BindingNames", "String[]", "The names of its queues and diverts", _binding_names),
        field_of(ADDRESSES, "MessageCount", "long", "messageCount"),
        field_of(ADDRESSES, "NumberOfMessages", "long", "messageCount"),
        field_of(ADDRESSES, "AddressSize", "long", "addressSize"),
        field_of(ADDRESSES, "AddressLimitPercent", "int", "addressLimitPercent"),
        field_of(ADDRESSES, "Paging", "boolean", "paging"),
        field_of(ADDRESSES, "NumberOfPages", "long", "numberOfPages"),
        field_of(ADDRESSES, "NumberOfBytesPerPage", "long", "numberOfBytesPerPage"),
        field_of(ADDRESSES, "RoutedMessageCount", "long", "routedMessageCount"),
        field_of(ADDRESSES, "UnRoutedMessageCount", "long", "unroutedMessageCount"),
        field_of(ADDRESSES, "AutoCreated", "boolean", "autoCreated"),
        field_of(ADDRESSES, "Temporary", "boolean", "temporary"),
        field_of(ADDRESSES, "Internal", "boolean", "internal"),
        field_of(ADDRESSES, "Paused", "boolean", "paused"),
        field_of(ADDRESSES, "CurrentDuplicateIdCacheSize", "long", "currentDuplicateIdCacheSize"),
        field_of(ADDRESSES, "RetroactiveResource", "boolean", "retroactiveResource"),
    ]
)


def _none(_owner: object) -> None:
    """None has one here."""


DIVERT_ATTRIBUTES: Final[dict[str, Attribute]] = by_name(
    [
        attribute("UniqueName", "String", "The name of the divert", lambda it: it.name),
        attribute("RoutingName", "String", "Its name in routing", lambda it: it.routing_name or it.name),
        attribute("Address", "String", "The address whose messages it takes", lambda it: it.address),
        attribute("ForwardingAddress", "String", "Where they go", lambda it: ",".join(it.forwarding_addresses)),
        attribute("Filter", "String", "Which messages it takes; null: all", lambda it: it.filter),
        attribute("Exclusive", "boolean", "Do the address's own queues not get them?", lambda it: it.exclusive),
        attribute("RoutingType", "String", "STRIP, PASS, ANYCAST or MULTICAST", lambda it: it.routing_type),
        attribute("TransformerClassName", "String", "The Java class that changes them; null: none", _none),
    ]
)


def _parameters(acceptor: AcceptorConfig) -> dict[str, str]:
    """Without passwords."""
    parameters = {name: text for name, text in acceptor.params.items() if "password" not in name.lower()}
    return {"scheme": "tcp", "host": acceptor.host, "port": str(acceptor.port), **parameters}


ACCEPTOR_ATTRIBUTES: Final[dict[str, Attribute]] = by_name(
    [
        attribute("Name", "String", "The name of the acceptor", lambda it: it.name),
        attribute("FactoryClassName", "String", "What Artemis would open it with", lambda _: _ACCEPTOR_FACTORY),
        attribute("Started", "boolean", "Is the port open?", lambda it: it.is_opened),
        attribute("Parameters", "Map", "The parameters of its URI, without passwords", _parameters),
    ]
)


def _metrics(bridge: BridgeState) -> dict[str, int]:
    return {
        "messagesPendingAcknowledgement": bridge.unconfirmed_count, "messagesAcknowledged": bridge.forwarded_count,
    }  # fmt: skip


BRIDGE_ATTRIBUTES: Final[dict[str, Attribute]] = by_name(
    [
        field_of(BRIDGES, "Name", "String", "name"),
        field_of(BRIDGES, "QueueName", "String", "queue"),
        field_of(BRIDGES, "ForwardingAddress", "String", "forwardingAddress"),
        field_of(BRIDGES, "FilterString", "String", "filter"),
        field_of(BRIDGES, "Started", "boolean", "started"),
        attribute("Connected", "boolean", "Has it a connection?", lambda it: it.connected_count > 0),
        field_of(BRIDGES, "MessagesAcknowledged", "long", "messagesAcknowledged"),
        field_of(BRIDGES, "MessagesPendingAcknowledgement", "long", "messagesPendingAcknowledgement"),
        attribute("Metrics", "Map", "Both of these numbers", _metrics),
        attribute(
            "StaticConnectors",
            "String[]",
            "The names of its connectors",
            lambda it: [connector.name for connector in it.config.connectors],
        ),
        attribute("RetryInterval", "long", "The setting of this name, in ms", lambda it: it.config.retry_interval),
        attribute(
            "RetryIntervalMultiplier",
            "double",
            "The setting of this name",
            lambda it: it.config.retry_interval_multiplier,
        ),
        attribute(
            "MaxRetryInterval", "long", "The setting of this name, in ms", lambda it: it.config.max_retry_interval
        ),
        attribute("ReconnectAttempts", "int", "The setting of this name", lambda it: it.config.reconnect_attempts),
        field_of(BRIDGES, "UseDuplicateDetection", "boolean", "useDuplicateDetection"),
        attribute("HA", "boolean", "The setting of this name, without effect here", lambda it: it.config.ha),
        attribute("DiscoveryGroupName", "String", "How it finds others: null, it has connectors", _none),
        attribute("TransformerClassName", "String", "The Java class that changes messages; null: none", _none),
    ]
)


# ---- the broker's own bean -----------------------------------------------------------------------


_NOT_ASKED: Final = "whoever reads it has asked broker show before"


@dataclass(frozen=True, slots=True)
class BrokerOwner:
    """What the attributes of the broker are read from. ``summary`` is the answer of ``broker show``, once read."""

    managed: Managed
    config: BrokerConfig
    summary: Row | None = None

    def value_of(self, name: str) -> Value:
        """A value of the answer of ``broker show``."""
        assert self.summary is not None, _NOT_ASKED
        return self.summary[name]


def with_summary(owner: BrokerOwner) -> Generator[Step, None, BrokerOwner]:
    """The same with the answer of ``broker show``, which looks at all queues, some in each step."""
    summary = yield from show_broker(owner.managed, {})
    return replace(owner, summary=summary)


def _summarized(name: str, type: str, sentence: str, field: str) -> Attribute:
    """An attribute that is a value of ``broker show``."""
    return attribute(name, type, sentence, lambda it: it.value_of(field), adds_up=True)


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
        _summarized("Status", "String", "State, version and uptime, as JSON", "status"),
        attribute("Uptime", "String", "For how long it runs, in words", lambda it: in_words(it.managed.uptime_ms())),
        attribute("UptimeMillis", "long", "For how long it runs, in ms", lambda it: it.managed.uptime_ms()),
        _summarized("TotalMessageCount", "long", "Messages on all queues", "totalMessageCount"),
        _summarized("TotalMessagesAdded", "long", "Messages that came to queues", "totalMessagesAdded"),
        _summarized(
            "TotalMessagesAcknowledged", "long", "Messages acknowledged on all queues", "totalMessagesAcknowledged"
        ),
        _summarized("TotalConsumerCount", "long", "Consumers of all queues", "totalConsumerCount"),
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
        _summarized("DiskStoreUsage", "double", "How full the fullest disk is, in percent", "diskStoreUsage"),
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
        attribute("BridgeNames", "String[]", "The names of all bridges", lambda it: list(it.managed.bridges())),
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
