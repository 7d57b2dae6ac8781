"""Resolves the name of a destination to an address or queue, and creates it where settings allow (auto-create)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final, final

from artemis_py.config.settings import BrokerConfig, QueueConfig
from artemis_py.core.addresses.address import ANYCAST, MULTICAST, Address, names_temporary
from artemis_py.core.addresses.routing_table import Route
from artemis_py.core.destinations.registry import Registry
from artemis_py.core.queue.queue import Queue
from artemis_py.errors import NotFoundError
from artemis_py.security.rights import Permit

_NAMED_MAX: Final = 10
"""How many queues an error names."""


@final
class Resolver:
    """Finds what a destination names, and creates it where settings allow.

    In every method ``by`` is the login of the client that asks. It is None where the broker itself asks: then no limit
    on the number of addresses and queues holds. ``permit`` says what the client may do, and is asked before anything is
    created; None: everything. Then methods also raise NotAllowedError.
    """

    __slots__ = ("_bindings", "_config", "_registry")

    def __init__(self, config: BrokerConfig, registry: Registry) -> None:
        self._config = config
        self._registry = registry
        self._bindings = registry.bindings

    def use(self, config: BrokerConfig) -> None:
        """What is created from now on has the settings of this configuration."""
        self._config = config

    # ---- senders ---------------------------------------------------------------------------------

    def route(
        self,
        name: str,
        queue_name: str | None,
        routing_type: str | None,
        by: str | None = None,
        permit: Permit | None = None,
    ) -> Route:
        """Where a message sent to this destination goes. Raises NotFoundError when settings do not allow to create it,
        LimitError when there are as many addresses or queues as there may be.
        """
        bindings = self._bindings
        if queue_name is not None:
            queue = self.obtain_queue(name, queue_name, routing_type, by, permit)
            if queue.passes_on:
                return self.route_through(queue, in_full=True)
            return bindings.route_to(bindings.address_of(queue), queue, None)
        named = bindings.addresses.get(name)
        if named is not None and named.view is not None:
            if permit is not None:
                permit.to_use(name, None)
            return self.route_through(named.view)
        if permit is not None:
            self._ask_to_send(permit, name, routing_type)
        address = self.obtain_address(name, routing_type, by)
        wants_anycast = routing_type == ANYCAST or (routing_type is None and ANYCAST in address.routing_types)
        if wants_anycast and not bindings.has_anycast(address):
            self._create_for_send(address, by)
        return bindings.route_to(address, None, routing_type)

    def route_through(self, queue: Queue, *, in_full: bool = False) -> Route:
        """Where a message goes that is sent to a view: to all that is bound to its ``default-publish-target``. Nobody
        asks for a permission there, and no limit counts an address that broker.xml
        names. Raises NotFoundError.
        """
        view = queue.view
        target = "" if view is None else view.target
        if not target:
            raise NotFoundError(f"Queue {queue.name} has no default-publish-target; send to an underlying address")
        route = self._bindings.route_to(self.obtain_address(target, None), None, None)
        route.view = queue
        route.in_full = in_full
        return route

    def is_gone(self, name: str) -> bool:
        """Is this a temporary destination whose client has gone?"""
        return name not in self._bindings.addresses and names_temporary(name)

    def would_route(self, name: str, queue_name: str | None, routing_type: str | None) -> bool:
        """Would ``route`` find this destination now, or create it?"""
        if queue_name is not None:
            queue = self._bindings.queues.get(queue_name)
            if queue is not None:
                return not name or queue.address.name == name
            name = name or queue_name
            if not self._config.settings_for(name).auto_create_queues:
                return False
        address = self._bindings.addresses.get(name)
        if address is not None and address.view is not None and queue_name is None:
            target = "" if address.view.view is None else address.view.view.target
            return bool(target) and self.would_route(target, None, None)
        settings = self._config.settings_for(name) if address is None else address.settings
        if settings.auto_create_addresses:
            return address is not None or not names_temporary(name)
        return address is not None and (routing_type is None or routing_type in address.routing_types)

    def would_create_queue(self, name: str, routing_type: str | None) -> bool:
        """Would a message sent to this address create a queue for itself, if there is none?"""
        address = self._bindings.addresses.get(name)
        if address is not None and address.view is not None:
            return False
        settings = self._config.settings_for(name) if address is None else address.settings
        creates = settings.auto_create_queues and name not in self._bindings.queues
        return creates and ANYCAST in self.types_of(name, routing_type)

    def route_to_nobody(self, name: str, routing_type: str | None, permit: Permit | None = None) -> Route:
        """Where a message goes that is sent to a temporary destination whose client has gone, or by a schedule to what
        does not exist: nobody gets it, and nothing is created for it. It counts as unrouted, by the settings of that
        name.
        """
        if permit is not None:
            permit.to_use(name, None)
        address = Address(name, self._config.settings_for(name), temporary=names_temporary(name))
        address.deleted = True
        return self._bindings.route_to(address, None, routing_type)

    def _ask_to_send(self, permit: Permit, name: str, routing_type: str | None) -> None:
        """May a client send to an address, with all that is created for that?"""
        address = self._bindings.addresses.get(name)
        settings = self._config.settings_for(name) if address is None else address.settings
        routing_type = ANYCAST if ANYCAST in self.types_of(name, routing_type) else MULTICAST
        has_queue = address is not None and self._bindings.has_anycast(address)
        creates = routing_type == ANYCAST and not has_queue and settings.auto_create_queues
        if address is None and settings.auto_create_addresses:
            permit.to_create_address(name)
        if creates and name not in self._bindings.queues:
            permit.to_create_queue(name, name, durable=True)
        permit.to_use(name, None)

    def types_of(self, name: str, routing_type: str | None) -> Collection[str]:
        """The routing types that a message has which is sent to this address with this type; None: it names none."""
        if routing_type is not None:
            return (routing_type,)
        address = self._bindings.addresses.get(name)
        if address is None:
            return (self._config.settings_for(name).default_address_routing_type,)
        return address.routing_types

    def renewed(self, route: Route) -> Route:
        """A route to the same destination as things are now. Raises NotFoundError."""
        if self._bindings.is_current(route):
            return route
        return self.route(route.asked_address, route.asked_queue, route.routing_type)

    def _create_for_send(self, address: Address, by: str | None) -> None:
        if address.settings.auto_create_queues and address.name not in self._bindings.queues:
            config = _plain_queue(address.name, address.name, ANYCAST)
            self._registry.create_queue(address, config, auto_created=True, by=by)

    # ---- addresses and queues --------------------------------------------------------------------

    def obtain_address(self, name: str, routing_type: str | None, by: str | None = None) -> Address:
        """An address with this routing type (None: whatever it has). Raises NotFoundError when it may not be created or
        extended, LimitError when there are as many as there may be.
        """
        if not name:
            raise NotFoundError("The destination has no address")
        addresses = self._bindings.addresses
        address = addresses.get(name)
        if address is None:
            if names_temporary(name):
                raise NotFoundError(f"{name} is a temporary destination whose client has gone")
            settings = self._config.settings_for(name)
            if not settings.auto_create_addresses:
                raise NotFoundError(f"Address {name} does not exist and auto-create-addresses is false for it")
            self._registry.quota.check_address(name, len(addresses), by)
            address = self._registry.create_address(name, auto_created=True)
            address.was_asked_for = True
            address.add_routing_types((routing_type or settings.default_address_routing_type,))
            self._registry.note_address(address)
        elif routing_type is not None and routing_type not in address.routing_types and address.view is None:
            if not address.settings.auto_create_addresses:
                has = " and ".join(sorted(address.routing_types)) or "no routing type"
                raise NotFoundError(f"Address {name} has {has} and cannot be used as {routing_type}")
            address.add_routing_types((routing_type,))
            self._registry.note_address(address)
        return address

    def obtain_queue(
        self,
        address_name: str,
        queue_name: str,
        routing_type: str | None,
        by: str | None = None,
        permit: Permit | None = None,
    ) -> Queue:
        """The queue of a fully qualified name, created if settings allow. Raises NotFoundError or BrokerError."""
        if not queue_name:
            raise NotFoundError(f"The destination {address_name}:: has no queue")
        queue = self._bindings.queues.get(queue_name)
        if permit is not None:
            asked_name = address_name or (queue_name if queue is None else queue.address.name)
            creates = self._config.settings_for(asked_name).auto_create_queues
            self.ask_to_use(permit, asked_name, queue_name, durable=True, creates=creates, in_full=True)
        if queue is not None:
            if address_name and queue.address.name != address_name:
                raise NotFoundError(f"Queue {queue_name} is on address {queue.address.name}, not on {address_name}")
            return queue
        address_name = address_name or queue_name
        settings = self._config.settings_for(address_name)
        if not settings.auto_create_queues:
            raise NotFoundError(f"Queue {queue_name} does not exist and auto-create-queues is false for {address_name}")
        known = self._bindings.addresses.get(address_name)
        if routing_type is None:
            routing_type = settings.default_queue_routing_type
            if known is not None and routing_type not in known.routing_types and known.routing_types:
                routing_type = min(known.routing_types)
        address = self.obtain_address(address_name, routing_type, by)
        config = _plain_queue(queue_name, address_name, routing_type)
        return self._registry.create_queue(address, config, auto_created=True, by=by)

    def ask_to_use(
        self,
        permit: Permit,
        address_name: str,
        queue_name: str,
        *,
        durable: bool,
        creates: bool = True,
        in_full: bool = False,
    ) -> None:
        """May a client use a queue of an address? What does not exist must be allowed to be created for it, too; a
        queue only with ``creates``. ``in_full``: the client named the queue in full. Raises NotAllowedError.
        """
        if (
            address_name not in self._bindings.addresses
            and self._config.settings_for(address_name).auto_create_addresses
        ):
            permit.to_create_address(address_name)
        if creates and queue_name not in self._bindings.queues:
            permit.to_create_queue(address_name, queue_name, durable=durable)
        permit.to_use(address_name, queue_name, in_full=in_full)

    # ---- consumers -------------------------------------------------------------------------------

    def obtain_anycast_queue(self, name: str, by: str | None = None, permit: Permit | None = None) -> Queue:
        """The queue that a consumer of an anycast address reads: the one of the same name (created if settings
        allow), or the only one. Raises NotFoundError or LimitError.
        """
        if permit is not None:
            self._ask_to_read(permit, name)
        address = self.obtain_address(name, ANYCAST, by)
        queue = self._bindings.queues.get(name)
        if queue is not None and queue.address is address and queue.routing_type == ANYCAST:
            return queue
        others = list(islice(_anycast_of(address), _NAMED_MAX))
        if len(others) == 1:
            return others[0]
        if others or not address.settings.auto_create_queues or queue is not None:
            names = ", ".join(sorted(each.name for each in others))
            hint = f"; subscribe to {name}::QUEUE with one of {names}" if others else ""
            raise NotFoundError(f"Address {name} has no queue {name}, and none is created{hint}")
        return self._registry.create_queue(address, _plain_queue(name, name, ANYCAST), auto_created=True, by=by)

    def existing_queue(self, name: str, queue_name: str | None) -> Queue:
        """The queue behind a destination as it is; nothing is created. Raises NotFoundError."""
        bindings = self._bindings
        queue = bindings.queues.get(name if queue_name is None else queue_name)
        if queue is not None and (queue.address.name == name or (queue_name is not None and not name)):
            return queue
        address = bindings.addresses.get(name)
        others = [] if address is None or queue_name is not None else list(islice(_anycast_of(address), 2))
        if len(others) == 1:
            return others[0]
        shown = name if queue_name is None else f"{name}::{queue_name}"
        hint = f"; name one of its queues: {name}::QUEUE" if others or (address and not queue_name) else ""
        raise NotFoundError(f"There is no queue {shown}{hint}")

    def _ask_to_read(self, permit: Permit, name: str) -> None:
        """May a client read an anycast address, with all that is created for that?"""
        bindings = self._bindings
        queue, address = bindings.queues.get(name), bindings.addresses.get(name)
        others = [] if address is None else list(islice(_anycast_of(address), 2))
        if len(others) == 1 and (queue is None or queue not in others):
            permit.to_use(name, others[0].name)
        else:
            creates = not others and self._config.settings_for(name).auto_create_queues
            self.ask_to_use(permit, name, name, durable=True, creates=creates)

    def create_subscription_queue(
        self, name: str, address: Address, *, durable: bool, selector: str | None, by: str | None = None
    ) -> Queue:
        """A queue for one subscriber (or one durable subscription) of a multicast address; ``auto-create-queues`` does
        not matter. Raises BrokerError when the name is taken, LimitError.
        """
        config = _plain_queue(name, address.name, MULTICAST, durable=durable, selector=selector)
        return self._registry.create_queue(address, config, auto_created=not durable, temporary=not durable, by=by)

    def create_temporary_address(
        self, name: str, routing_type: str, by: str | None = None, permit: Permit | None = None
    ) -> Address:
        """An address that goes with its last queue (a connection's temporary destination). Raises LimitError."""
        registry, bindings = self._registry, self._bindings
        if permit is not None:
            self.ask_to_use(permit, name, name, durable=False)
        registry.quota.check_address(name, len(bindings.addresses), by)
        if routing_type != MULTICAST:
            registry.quota.check_queue(name, len(bindings.queues), by)
        address = registry.create_address(name, auto_created=True, temporary=True)
        address.add_routing_types((routing_type,))
        if routing_type != MULTICAST:
            config = _plain_queue(name, name, routing_type, durable=False)
            registry.create_queue(address, config, auto_created=True, by=by)
        return address

    # ---- dead and expired messages ---------------------------------------------------------------

    def obtain_resources(self, source: Address, target: str, *, dead: bool) -> None:
        """Make the queue for what is dead (or has expired) of an address, where its settings ask for one (Artemis
        manual, "Automatically Creating Dead Letter Resources").
        """
        settings = source.settings
        if dead:
            wanted, prefix, suffix = (
                settings.auto_create_dead_letter_resources,
                settings.dead_letter_queue_prefix,
                settings.dead_letter_queue_suffix,
            )
        else:
            wanted, prefix, suffix = (
                settings.auto_create_expiry_resources,
                settings.expiry_queue_prefix,
                settings.expiry_queue_suffix,
            )
        name = f"{prefix}{source.name}{suffix}"
        if not wanted or name in self._bindings.queues:
            return
        address = self._bindings.addresses.get(target) or self._registry.create_address(target, auto_created=True)
        if address.view is not None:
            return
        routing_type = address.settings.default_queue_routing_type
        quoted = source.name.replace("'", "''")
        config = QueueConfig(
            name=name, address=target, routing_type=routing_type, filter=f"_AMQ_ORIG_ADDRESS = '{quoted}'"
        )
        self._registry.create_queue(address, config, auto_created=True)


def _anycast_of(address: Address) -> Iterator[Queue]:
    if address.anycast_count:
        for queue in address.queues.values():
            if queue.routing_type == ANYCAST:
                yield queue


def _plain_queue(
    name: str, address: str, routing_type: str, *, durable: bool = True, selector: str | None = None
) -> QueueConfig:
    """A queue nobody declared: everything from address-settings."""
    return QueueConfig(name=name, address=address, routing_type=routing_type, durable=durable, filter=selector)
