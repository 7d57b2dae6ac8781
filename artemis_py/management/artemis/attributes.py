"""The attributes of the beans of queues, addresses, diverts and acceptors, and which fields of our lists they are."""

from __future__ import annotations

import json
from typing import Final

from artemis_py.config.settings import DivertConfig
from artemis_py.config.tables.acceptor import AcceptorConfig
from artemis_py.core.addresses.address import Address
from artemis_py.core.queue.queue import Queue
from artemis_py.management.artemis.attribute import Attribute, attribute, by_name, field_of
from artemis_py.management.operations.addresses import ADDRESSES
from artemis_py.management.operations.queues import QUEUES

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
        field_of(QUEUES, "FirstMessageAge", "Long", "firstMessageAge"),
        field_of(QUEUES, "Exclusive", "boolean", "exclusive"),
        field_of(QUEUES, "LastValue", "boolean", "lastValue"),
        field_of(QUEUES, "LastValueKey", "String", "lastValueKey"),
        field_of(QUEUES, "NonDestructive", "boolean", "nonDestructive"),
        field_of(QUEUES, "GroupRebalance", "boolean", "groupRebalance"),
        field_of(QUEUES, "GroupBuckets", "int", "groupBuckets"),
        field_of(QUEUES, "GroupFirstKey", "String", "groupFirstKey"),
        field_of(QUEUES, "ConsumersBeforeDispatch", "int", "consumersBeforeDispatch"),
        field_of(QUEUES, "DelayBeforeDispatch", "long", "delayBeforeDispatch"),
        field_of(QUEUES, "AutoDelete", "boolean", "autoDelete"),
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
        field_of(
            ADDRESSES, "RoutingTypesAsJSON", "String", "routingTypes", lambda it: json.dumps(sorted(it.routing_types))
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


def _transformer(_divert: DivertConfig) -> None:
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
        attribute("TransformerClassName", "String", "The Java class that changes them; null: none", _transformer),
    ]
)


def _parameters(acceptor: AcceptorConfig) -> dict[str, str]:
    """Without passwords."""
    shown = {name: text for name, text in acceptor.params.items() if "password" not in name.lower()}
    return {"scheme": "tcp", "host": acceptor.host, "port": str(acceptor.port), **shown}


ACCEPTOR_ATTRIBUTES: Final[dict[str, Attribute]] = by_name(
    [
        attribute("Name", "String", "The name of the acceptor", lambda it: it.name),
        attribute("FactoryClassName", "String", "What Artemis would open it with", lambda _: _ACCEPTOR_FACTORY),
        attribute("Started", "boolean", "Is the port open?", lambda it: it.is_opened),
        attribute("Parameters", "Map", "The parameters of its URI, without passwords", _parameters),
    ]
)
