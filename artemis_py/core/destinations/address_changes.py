"""What an operator creates and changes of addresses. All but ``block`` survives a restart, and the operational log
tells it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, final

from artemis_py.core.addresses import retroactive
from artemis_py.core.addresses.address import ANYCAST, MULTICAST, Address
from artemis_py.core.destinations.registry import Registry
from artemis_py.core.events import OPERATION
from artemis_py.core.host import Host
from artemis_py.errors import BadRequestError, BrokerError

_TYPES: Final = (ANYCAST, MULTICAST)
_WAKES_PER_STEP: Final = 250


@final
class AddressChanges:
    """Creates and deletes addresses, and says what they may be used for and whether anything goes in or out."""

    __slots__ = ("_host", "_registry")

    def __init__(self, host: Host, registry: Registry) -> None:
        self._host = host
        self._registry = registry

    def create(self, name: str, routing_types: Iterable[str]) -> Address:
        """A new address. Raises BrokerError if there is one of this name, BadRequestError for another routing type."""
        types = _checked(routing_types)
        if not name or "::" in name:
            raise BadRequestError(f"{name!r} is no name of an address")
        if name in self._registry.bindings.addresses:
            raise BrokerError(f"Address {name} already exists")
        address = self._registry.create_address(name, auto_created=False)
        address.add_routing_types(types)
        self._note(address, "create")
        return address

    def update(self, address: Address, routing_types: Iterable[str]) -> None:
        """The address has these routing types from now on. Raises BrokerError if a queue has another one."""
        types = _checked(routing_types)
        lost = [one for one in _TYPES if one in address.routing_types and one not in types and _uses(address, one)]
        if lost:
            raise BrokerError(f"Address {address.name} has {lost[0].lower()} queues; delete them first")
        if address.view is not None:
            raise BrokerError(f"Address {address.name} is that of the view {address.view.name}")
        address.routing_types = frozenset(types)
        address.losses += 1  # what destinations meant before may be wrong
        self._note(address, f"set routing types to {', '.join(types)}")

    def check_deletion(self, address: Address, *, is_forced: bool) -> None:
        """Raises BrokerError for an address that has queues, unless they are to be deleted, too; for one with diverts;
        and for the broker's own.
        """
        if retroactive.is_internal(address.name):
            raise BrokerError(f"Address {address.name} belongs to a retroactive address, and is deleted with it")
        if address.diverts:
            raise BrokerError(f"Address {address.name} has the divert {address.diverts[0].name}; destroy that first")
        if address.queues and not is_forced:
            count = len(address.queues)
            has = "1 queue" if count == 1 else f"{count} queues"
            raise BrokerError(f"Address {address.name} has {has}; delete them first, or set force")

    def delete(self, address: Address) -> None:
        """Delete an address without queues. Raises BrokerError while messages of it are on their way."""
        if address.queues or address.is_spreading:
            raise BrokerError(f"Address {address.name} is in use again; try again")
        self._tell(address, "delete")
        self._registry.delete_address(address)

    def pause(self, address: Address) -> None:
        """No queue of the address dispatches any more, also not one that comes later. They still take messages."""
        address.paused = True
        self._note(address, "pause")

    def resume(self, address: Address) -> Iterator[None]:
        """The queues of the address dispatch again, but those that are paused themselves; some in each step."""
        address.paused = False
        self._note(address, "resume")
        for number, queue in enumerate(list(address.queues.values()), 1):
            queue.parts.note_ready()
            if number % _WAKES_PER_STEP == 0:
                yield None

    def block(self, address: Address) -> None:
        """Senders wait from now on, until the address is unblocked or the broker starts again."""
        address.blocked = True
        self._tell(address, "block")

    def unblock(self, address: Address) -> None:
        """Senders may send again."""
        address.blocked = False
        self._tell(address, "unblock")

    def tell_purged(self, address: Address) -> None:
        """All messages of its queues are being removed."""
        self._tell(address, "purge")

    def _note(self, address: Address, operation: str) -> None:
        self._registry.note_address(address)
        self._tell(address, operation)

    def _tell(self, address: Address, operation: str) -> None:
        self._host.events.note(OPERATION, address.name, {"operation": f"{operation} address"}, kind=operation)


def _checked(routing_types: Iterable[str]) -> tuple[str, ...]:
    types = tuple(dict.fromkeys(text.strip().upper() for text in routing_types))
    wrong = next((text for text in types if text not in _TYPES), None)
    if wrong is not None or not types:
        raise BadRequestError(f"a routing type is ANYCAST or MULTICAST, not {(wrong or '')[:40]!r}")
    return types


def _uses(address: Address, routing_type: str) -> bool:
    """Has the address a queue of this routing type?"""
    anycast = address.anycast_count
    return anycast > 0 if routing_type == ANYCAST else len(address.queues) > anycast
