"""What an operator creates and changes of queues. It survives a restart, and the operational log tells it."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final, final

from artemis_py.config.checks.one_queue import check_queue
from artemis_py.config.settings import QueueConfig
from artemis_py.core.addresses.address import Address
from artemis_py.core.destinations.registry import Registry
from artemis_py.core.events import OPERATION
from artemis_py.core.host import Host
from artemis_py.core.queue.amending import amend, amended, config_of
from artemis_py.core.queue.queue import Queue
from artemis_py.core.reference.auto_delete import AutoDelete
from artemis_py.errors import BrokerError, NotFoundError

_OTHERS_MAX: Final = 2
"""So many of the queues on an address are looked at when one is checked."""


@final
class QueueChanges:
    """Creates queues and changes their attributes.

    A queue that an operator created is remembered with its attributes. One that broker.xml declares has those of the
    file again after a restart or a reload, but for its ring-size.
    """

    __slots__ = ("_host", "_registry")

    def __init__(self, host: Host, registry: Registry) -> None:
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
        before = _filter_of(queue)
        changed = amend(queue, config, self._host.turn_ms)
        self._registry.selector_changed(before, _filter_of(queue))
        self._registry.bindings.queue_changed(queue, config.routing_type)
        if not auto_delete.says_nothing:
            queue.auto_delete = auto_delete
        self._registry.note_queue(queue)
        names = sorted(attribute.replace("_", "-") for attribute in changed)
        self._tell(queue, f"update {', '.join(names)}" if names else "update")

    def enable(self, queue: Queue, *, enabled: bool) -> None:
        """Let a queue take messages, or not. What it has is delivered all the same."""
        amend(queue, amended(queue, {"enabled": enabled}), self._host.turn_ms)
        self._registry.note_queue(queue)
        self._tell(queue, "enable" if enabled else "disable")

    def _tell(self, queue: Queue, operation: str) -> None:
        self._host.note_event(OPERATION, queue.reference, {"operation": operation}, kind=operation)


def _filter_of(queue: Queue) -> str | None:
    return None if queue.selector is None else queue.selector.text
