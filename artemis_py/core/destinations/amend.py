"""What operators create, change and delete of addresses, queues and address-settings while the broker runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, Final, final

from artemis_py.config.checks.requested import check_queue
from artemis_py.config.settings import (
    AddressSettings,
    BrokerConfig,
    Origin,
    QueueConfig,
    SettingsEntry,
    SettingsRepository,
)
from artemis_py.config.tables.fields import RING, settings_of
from artemis_py.core.addresses import retroactive
from artemis_py.core.addresses.address import ANYCAST, MULTICAST, Address
from artemis_py.core.destinations.registry import Registry
from artemis_py.core.events import OPERATION
from artemis_py.core.order.entry import PURGED
from artemis_py.core.queue.attributes import amend, amended, config_of, set_ring_size
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue_host import QueueHost
from artemis_py.core.queue_reference import AutoDelete
from artemis_py.core.tasks import Task
from artemis_py.errors import BadRequestError, BrokerError, NotFoundError

# ---- address changes -------------------------------------------------------------------------------------------------
#
# What an operator creates and changes of addresses. All but ``block`` survives a restart, and the operational log
# tells it.


_TYPES: Final = (ANYCAST, MULTICAST)
_WAKES_PER_STEP: Final = 250


@final
class AddressChanges:
    """Creates and deletes addresses, and says what they may be used for and whether anything goes in or out."""

    __slots__ = ("_host", "_registry")

    def __init__(self, host: QueueHost, registry: Registry) -> None:
        self._host = host
        self._registry = registry

    def create(self, name: str, routing_types: Iterable[str]) -> Address:
        """A new address. Raises BrokerError if there is one of this name, BadRequestError for another routing type."""
        types = _checked(routing_types)
        if not name or "::" in name:
            raise BadRequestError(f"{name!r} is not a name of an address")
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
            raise BrokerError(f"Address {address.name} belongs to the view {address.view.name}")
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
        if address.queues or address.is_fanning_out:
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
            queue.state.note_ready()
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


# ---- queue changes ---------------------------------------------------------------------------------------------------
#
# What an operator creates and changes of queues. It survives a restart, and the operational log tells it.


_OTHERS_MAX: Final = 2
"""So many of the queues on an address are looked at when one is checked."""


@final
class QueueChanges:
    """Creates queues and changes their attributes.

    A queue that an operator created is remembered with its attributes. One that broker.xml declares has those of the
    file again after a restart or a reload, but for its ring-size.
    """

    __slots__ = ("_host", "_registry")

    def __init__(self, host: QueueHost, registry: Registry) -> None:
        self._host = host
        self._registry = registry

    def create(
        self,
        config: QueueConfig,
        auto_delete: AutoDelete,
        *,
        creates_address: bool | None = None,
        auto_created: bool = False,
    ) -> Queue:
        """A new queue. Without ``creates_address``, auto-create-addresses says whether its address is made, too;
        ``auto_created``: it is one of those that the broker makes for clients. Raises NotFoundError without an address,
        BrokerError for a name that is taken and for attributes that make no sense.
        """
        bindings = self._registry.bindings
        address = bindings.addresses.get(config.address)
        others = [] if address is None else [config_of(one) for one in islice(address.queues.values(), _OTHERS_MAX)]
        check_queue(config, others, self._registry.config)
        known = bindings.queues.get(config.name)
        if known is not None:
            raise BrokerError(f"Queue {config.name} already exists on address {known.address.name}")
        if address is None:
            address = self._new_address(config, creates_address=creates_address)
        queue = self._registry.create_queue(address, config, auto_created=auto_created)
        if not auto_delete.says_nothing:
            queue.auto_delete = auto_delete
            self._registry.note_queue(queue)
        if address.origin is None:
            self._registry.note_address(address)
        self._tell(queue, "create")
        return queue

    def _new_address(self, config: QueueConfig, *, creates_address: bool | None) -> Address:
        if creates_address is None:
            creates_address = self._registry.config.settings_for(config.address).auto_create_addresses
        if not creates_address:
            raise NotFoundError(f"Address {config.address} does not exist; create it first, or set auto-create-address")
        return self._registry.create_address(config.address, auto_created=True)

    def update(self, queue: Queue, values: dict[str, Any], routing_type: str | None, auto_delete: AutoDelete) -> None:
        """Change these attributes, all of them or none. Raises BrokerError with what cannot be changed, and why."""
        config = amended(queue, values, routing_type)
        address = self._registry.bindings.address_of(queue)
        others = [one for one in islice(address.queues.values(), _OTHERS_MAX) if one is not queue]
        check_queue(config, [config_of(one) for one in others], self._registry.config)
        if config.routing_type != queue.routing_type and queue.view is not None:
            raise BrokerError(f"Queue {queue.name} is a view, and takes messages of both routing types")
        before = filter_of(queue)
        changed = amend(queue, config, self._host.turn_ms)
        self._registry.selector_changed(before, filter_of(queue))
        self._registry.bindings.queue_changed(queue, config.routing_type)
        if not auto_delete.says_nothing:
            queue.auto_delete = auto_delete
        self._registry.note_queue(queue)
        names = sorted(attribute.replace("_", "-") for attribute in changed)
        self._tell(queue, f"update {', '.join(names)}" if names else "update")

    def enable(self, queue: Queue, *, enabled: bool) -> None:
        """Let a queue take messages, or not. What it has is delivered in both cases."""
        amend(queue, amended(queue, {"enabled": enabled}), self._host.turn_ms)
        self._registry.note_queue(queue)
        self._tell(queue, "enable" if enabled else "disable")

    def _tell(self, queue: Queue, operation: str) -> None:
        self._host.note_event(OPERATION, queue.reference, {"operation": operation}, kind=operation)


def filter_of(queue: Queue) -> str | None:
    """The text of its filter; None without one."""
    return None if queue.selector is None else queue.selector.text


# ---- queue operations ------------------------------------------------------------------------------------------------
#
# What an operator does to a queue that is there: pause, resume, purge, delete, another ring-size.


@final
class QueueOperations:
    """Changes to queues by name. They survive a restart, and are in the operational log."""

    __slots__ = ("_host", "_registry")

    def __init__(self, host: QueueHost, registry: Registry) -> None:
        self._host = host
        self._registry = registry

    def set_ring_size(self, queue_name: str, ring_size: int) -> None:
        """Change a ring while it runs; -1: it is no ring; 0 keeps nothing. A smaller ring purges nothing: it stops
        growing. Raises NotFoundError for an unknown queue, BrokerError for a size below -1 and for a queue that may not
        be a ring.
        """
        queue = self._queue(queue_name)
        if not RING.accepts(ring_size):
            raise BrokerError(f"ring-size must be {RING.allowed}, not {ring_size}")
        set_ring_size(queue, ring_size)
        self._note(queue, f"set ring-size to {ring_size}", "ring-size")

    def pause(self, queue_name: str) -> None:
        """Stop a queue's dispatch; arrivals go on. Raises NotFoundError."""
        queue = self._queue(queue_name)
        queue.pause()
        self._note(queue, "pause", "pause")

    def resume(self, queue_name: str) -> None:
        """Let a paused queue dispatch again. Raises NotFoundError."""
        queue = self._queue(queue_name)
        queue.resume()
        self._note(queue, "resume", "resume")

    def purge(self, queue_name: str, now_ms: int) -> tuple[int, Task | None]:
        """Remove every message that nobody has. Returns how many that are, and the work that is left. Raises
        NotFoundError.
        """
        queue = self._queue(queue_name)
        count = queue.unheld_count
        unfinished = queue.purge(PURGED, now_ms)
        self._tell(queue, "purge", "purge")
        return count, unfinished

    def delete(self, queue_name: str, now_ms: int) -> tuple[int, Task | None]:
        """Delete a queue that nobody consumes, with its messages. Returns how many these are, and the work that is
        left. Raises NotFoundError, BrokerError while it has consumers.
        """
        queue = self._queue(queue_name)
        if queue.consumer_count:
            count = queue.consumer_count
            who = "1 consumer; close its connection" if count == 1 else f"{count} consumers; close their connections"
            raise BrokerError(f"Queue {queue_name} has {who} first")
        count = queue.message_count
        self._tell(queue, "delete", "delete")
        return count, self._registry.delete_queue(queue, now_ms)

    def _note(self, queue: Queue, operation: str, kind: str) -> None:
        self._registry.note_queue(queue)
        self._tell(queue, operation, kind)

    def _tell(self, queue: Queue, operation: str, kind: str) -> None:
        self._host.note_event(OPERATION, queue.reference, {"operation": operation}, kind=kind)

    def _queue(self, name: str) -> Queue:
        queue = self._registry.bindings.queues.get(name)
        if queue is None:
            raise NotFoundError(f"Queue {name} does not exist")
        return queue


# ---- settings changes ------------------------------------------------------------------------------------------------
#
# The address-settings that operators make while the broker runs. They survive a restart and a reload.


KIND: Final = "address-setting"
"""What the log calls them."""
_PLACE: Final = Origin("an operator", 0)
_ATTRIBUTES: Final = frozenset(row.attribute for row in settings_of(AddressSettings).values())


@final
class SettingsChanges:
    """What operators said, by match: all that an address-setting of this match says, instead of broker.xml's."""

    __slots__ = ("_host", "_made", "declared")

    def __init__(self, host: QueueHost, declared: BrokerConfig, kept: Iterable[dict[str, Any]]) -> None:
        self._host = host
        self.declared = declared
        """The configuration as the files say it."""
        self._made: dict[str, dict[str, Any]] = {}
        for fields in kept:
            if fields["kind"] == KIND:
                values = fields["values"].items()
                self._made[fields["name"]] = {name: value for name, value in values if name in _ATTRIBUTES}

    @property
    def config(self) -> BrokerConfig:
        """The configuration with what operators said."""
        return self.over(self.declared)

    def over(self, config: BrokerConfig, match: str = "", values: dict[str, Any] | None = None) -> BrokerConfig:
        """The same configuration with what operators said, and with these values, by attribute, for one more match."""
        made = self._made if values is None else {**self._made, match: values}
        return _with(config, made)

    def put(self, match: str, values: dict[str, Any]) -> None:
        """A match has these values from now on."""
        self._made[match] = values
        self._host.log.configured({"kind": KIND, "name": match, "values": values})
        self._tell(match, "add")

    def remove(self, match: str) -> None:
        """What broker.xml says counts again for a match. Raises NotFoundError if nobody said anything about it, and
        BrokerError if only the file did.
        """
        if match not in self._made:
            if any(entry.match == match for entry in self.declared.address_settings.entries):
                raise BrokerError(f"the address-setting {match} is that of broker.xml; change it there, and reload")
            raise NotFoundError(f"no operator has made an address-setting for {match[:200]!r}")
        del self._made[match]
        self._host.log.configured({"kind": KIND, "name": match, "deleted": True})
        self._tell(match, "remove")

    def _tell(self, match: str, operation: str) -> None:
        told: dict[str, str | int] = {"operation": f"{operation} address-setting {match}"}
        self._host.events.note(OPERATION, match, told, kind=f"{operation} address-setting")


def _with(config: BrokerConfig, made: dict[str, dict[str, Any]]) -> BrokerConfig:
    if not made:
        return config
    entries = {entry.match: entry for entry in config.address_settings.entries}
    for match, values in made.items():
        origins = dict.fromkeys(values, _PLACE)
        entries[match] = SettingsEntry(match=match, values=values, origins=origins, origin=_PLACE)
    repository = SettingsRepository(
        tuple(entries.values()),
        config.wildcards,
        literal_match_markers=config.literal_match_markers,
        uuid_namespace=config.uuid_namespace,
    )
    return replace(config, address_settings=repository)
