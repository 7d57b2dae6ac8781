"""Retroactive addresses: the last messages of an address, kept for queues that are created later.

As in Artemis (``retroactive-message-count``; manual, "Retroactive Addresses"), two rings on an internal address keep
them, one for each routing type. A divert copies everything sent to the address there. The rings are ordinary queues:
they are in the journal and in the metrics, and go with the address.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from artemis_py.config.settings import QueueConfig
from artemis_py.config.tables.core_settings import INTERNAL_PREFIX as PREFIX
from artemis_py.config.tables.queue_types import STANDARD
from artemis_py.core.addresses.address import ANYCAST, MULTICAST, Address, Divert
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue_host import QueueHost
from artemis_py.message import Account, Message

_ROUTING_TYPES: Final = (ANYCAST, MULTICAST)


def is_internal(address_name: str) -> bool:
    """Is this an internal address of the broker? Queues on wildcard addresses get nothing sent there."""
    return address_name.startswith(PREFIX)


def internal_address(address_name: str) -> str:
    """The name of the internal address that keeps the messages of an address."""
    return f"{PREFIX}{address_name}.address.retro"


def ring_name(address_name: str, routing_type: str) -> str:
    """The name of the ring that keeps messages of a routing type."""
    return f"{PREFIX}{address_name}.queue.{routing_type.lower()}.retro"


@final
@dataclass(frozen=True, slots=True)
class Retention:
    """What a retroactive address needs: an internal address, rings on it, and a divert that copies to them."""

    inner_address: str
    rings: tuple[QueueConfig, ...]
    divert: Divert


def retention_of(address: Address) -> Retention | None:
    """What the address needs to be retroactive; None when its settings do not ask for it."""
    count = 0 if is_internal(address.name) or address.temporary else address.settings.retroactive_message_count
    if count <= 0 or address.is_wildcard:
        return None
    name = internal_address(address.name)
    rings = tuple(
        QueueConfig(
            name=ring_name(address.name, routing_type),
            address=name,
            routing_type=routing_type,
            ring_size=count,
            queue_type=STANDARD,  # the last ones are kept, whatever their priority
            barrier_expression="",
            target_queue_depth=-1,
        )
        for routing_type in _ROUTING_TYPES
    )
    divert = Divert(
        f"{PREFIX}{address.name}.divert.retro", "", (name,), exclusive=False, selector=None, routing_type="PASS"
    )
    return Retention(name, rings, divert)


def copies_of(ring: Queue, queue: Queue, account: Account, host: QueueHost) -> list[Message]:
    """Copies of a ring's messages for a new queue, in order, as far as the queue accepts them."""
    kept = sorted(ring.contents.order, key=lambda entry: entry.message.id)
    return [
        Message(
            entry.message.head, entry.message.body, host.next_message_id(), entry.message.timestamp_ms,
            entry.message.expires_ms, account, 0,
        )
        for entry in kept
        if queue.accepts(entry.message)
    ]  # fmt: skip
