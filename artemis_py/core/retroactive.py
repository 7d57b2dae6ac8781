"""Retroactive addresses: the last messages of an address, kept for queues that are created later.

As in Artemis (``retroactive-message-count``; manual, "Retroactive Addresses") two rings on an address of their own keep
them, one for each routing type, and everything sent to the address is copied there. They are queues like others: in the
journal, in the metrics, gone with the address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from artemis_py.config.settings import AddressSettings, QueueConfig
from artemis_py.config.tables.queue_types import STANDARD
from artemis_py.core.address import ANYCAST, MULTICAST, Address, Divert
from artemis_py.core.overflow import Ring
from artemis_py.core.queue import Queue
from artemis_py.message import Message

if TYPE_CHECKING:
    from artemis_py.core.registry import Registry

PREFIX: Final = "$.artemis.internal."
_ROUTING_TYPES: Final = (ANYCAST, MULTICAST)


def is_internal(address_name: str) -> bool:
    """Is this the broker's own address? Queues on wildcard addresses get nothing of it."""
    return address_name.startswith(PREFIX)


def internal_address(address_name: str) -> str:
    """Where the messages of an address are kept."""
    return f"{PREFIX}{address_name}.address.retro"


def ring_name(address_name: str, routing_type: str) -> str:
    """The ring with the messages of a routing type."""
    return f"{PREFIX}{address_name}.queue.{routing_type.lower()}.retro"


def arrange(registry: Registry, address: Address) -> None:
    """Give an address what its settings ask for, and take away what they no longer ask for. Rings that a restart
    brought back are used again.
    """
    count = 0 if is_internal(address.name) or address.temporary else address.settings.retroactive_message_count
    if count <= 0 or address.is_wildcard:
        return
    name = internal_address(address.name)
    inner = registry.addresses.get(name)
    if inner is None:
        inner = registry.create_address(name, auto_created=False)
    inner.keep_in_memory(AddressSettings())
    for routing_type in _ROUTING_TYPES:
        queue = registry.queues.get(ring_name(address.name, routing_type))
        if queue is None:
            config = QueueConfig(
                name=ring_name(address.name, routing_type),
                address=name,
                routing_type=routing_type,
                ring_size=count,
                queue_type=STANDARD,  # the last ones are kept, whatever their priority
            )
            registry.create_queue(inner, config, auto_created=False)
        else:
            queue.overflow = Ring(count)
    address.retention = Divert(
        f"{PREFIX}{address.name}.divert.retro", "", (name,), exclusive=False, selector=None, routing_type="PASS"
    )
    address.plan = None


def give_up(registry: Registry, address: Address, now_ms: int) -> None:
    """The address is gone: so is what was kept of it."""
    inner = registry.addresses.get(internal_address(address.name))
    if inner is not None:
        for queue in list(inner.queues.values()):
            registry.delete_queue(queue, now_ms)
        registry.delete_address(inner)


def kept_for(registry: Registry, queue: Queue) -> list[Message]:
    """Copies of what is kept for a new queue, in order: of its routing type, and only what it accepts."""
    address = queue.address
    if address.retention is None:
        return []
    ring = registry.queues.get(ring_name(address.name, queue.routing_type))
    if ring is None:
        return []
    kept = sorted(ring.order, key=lambda entry: entry.message.id)
    return [
        Message(
            entry.message.head, entry.message.body, registry.next_message_id(), entry.message.timestamp_ms,
            entry.message.expires_ms, address.account, 0,
        )
        for entry in kept
        if queue.accepts(entry.message)
    ]  # fmt: skip
