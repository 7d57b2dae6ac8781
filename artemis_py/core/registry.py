"""The addresses and queues that exist, by name, and which of them a message or consumer may bring into being."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from mypy_extensions import mypyc_attr

from artemis_py.config.settings import AddressSettings, BrokerConfig, DivertConfig, QueueConfig
from artemis_py.config.tables.queue_settings import known_attributes
from artemis_py.config.wildcards import is_wildcard
from artemis_py.core import events, retroactive
from artemis_py.core.address import ANYCAST, MULTICAST, Address, Divert, Plan
from artemis_py.core.faults import set_aside
from artemis_py.core.host import Host
from artemis_py.core.memory import Memory
from artemis_py.core.pages.stream import PageStream
from artemis_py.core.queue.entry import DELETED
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.works import QueueWork
from artemis_py.core.quota import Quota
from artemis_py.core.recipe import build_queue, overflow_for
from artemis_py.core.router import Bindings, Route, Router
from artemis_py.core.walk import Walk
from artemis_py.core.wildcard_addresses import WildcardAddresses
from artemis_py.errors import BrokerError, LimitError, NotFoundError
from artemis_py.records import KeptStream, PageLog
from artemis_py.selector import compile_selector

ROUTING_TYPES: Final = (ANYCAST, MULTICAST)

_CREATION_UNITS: Final = 25
"""What it costs to create an address, or a queue."""
_NAMED_MAX: Final = 10
"""How many queues an error names."""
_MIXED_MAX: Final = 4096
"""How many addresses keep a plan with the queues of wildcard addresses: one subscriber of all would stand in as many
plans as there are addresses.
"""


@mypyc_attr(allow_interpreted_subclasses=True)
class Registry(Bindings):
    """Creates, finds and deletes addresses and queues. Subclassed once, by the broker."""

    router: Router

    def __init__(self, config: BrokerConfig, host: Host, pages: PageLog | None, global_max_bytes: int) -> None:
        self.config = config
        self.host = host
        self.log = host.log
        self.budget = host.budget
        self.agenda = host.agenda
        self.clock = host.clock
        self.memory = Memory(global_max_bytes, config.global_max_messages)
        self.pages = pages
        """Files for what finds no room in memory; without them nothing is paged."""
        self.streams: dict[int, PageStream] = {}
        self._stream_number = 0
        self.addresses: dict[str, Address] = {}
        self.queues: dict[str, Queue] = {}
        self.by_id: dict[int, Queue] = {}
        """All queues, by number."""
        self.queue_id = 0
        self.queue_walk: Walk[Queue] = Walk()
        self.address_walk: Walk[Address] = Walk()
        """Both for the regular rounds."""
        self.quota = Quota(config, host.events)
        self._deployed = False
        self._born: list[Queue] = []
        """Queues that have just been created, and have not been given what their addresses keep."""
        self.wildcards = WildcardAddresses(config.wildcards)
        self._mixed: deque[Address] = deque()
        """Addresses of which the plan has queues of wildcard addresses, too."""

    def set_aside(self, queue: Queue, step: str, error: Exception) -> None:
        """A queue's own step broke off; see ``faults``."""
        set_aside(self.host, queue, step, error)

    def note_event(
        self, code: str, queue: Queue, fields: dict[str, str | int], *, kind: str = "", count: int = 1
    ) -> None:
        """Something happened to a queue that belongs into the operational log."""
        self.host.note_event(code, queue.reference, fields, kind=kind, count=count)

    # ---- declared --------------------------------------------------------------------------------

    def deploy(self, kept_queues: Iterable[dict[str, Any]], kept_addresses: Iterable[dict[str, Any]]) -> None:
        """Create what broker.xml declares, and what the log remembers beside it.

        A queue that is declared and remembered keeps its number, and with it its messages; its attributes are those of
        the file, but for what was changed while it ran (paused, ring-size).
        """
        remembered = {fields["name"]: fields for fields in kept_queues}
        self.queue_id = max([self.queue_id, *(fields["id"] for fields in remembered.values())])
        for address_config in self.config.addresses:
            address = self.create_address(address_config.name, auto_created=False)
            address.add_routing_types(address_config.routing_types)
            for queue_config in address_config.queues:
                if queue_config.name not in self.queues:
                    self._deploy_queue(address, queue_config, remembered)
        for fields in kept_addresses:
            address = self.addresses.get(fields["name"]) or self.create_address(
                fields["name"], auto_created=fields["auto_created"]
            )
            address.add_routing_types(fields["routing_types"])
        for fields in remembered.values():
            self._remember_queue(fields)
        for divert_config in self.config.diverts:
            self._deploy_divert(divert_config)
        for address in list(self.addresses.values()):
            self._arrange_retention(address)
        self._forget_retained()
        self._deployed = True

    def _arrange_retention(self, address: Address) -> None:
        """Give an address what its settings ask for, and take away what they no longer ask for. Rings that a restart
        brought back are used again.
        """
        wanted = retroactive.retention_of(address)
        if wanted is None:
            return
        name = wanted.inner_address
        inner = self.addresses.get(name) or self.create_address(name, auto_created=False)
        inner.keep_in_memory(AddressSettings())
        for config in wanted.rings:
            queue = self.queues.get(config.name)
            if queue is None:
                self.create_queue(inner, config, auto_created=False)
            elif config.ring_size is not None:
                queue.flow.overflow = overflow_for(config.ring_size)
        address.retention = wanted.divert
        address.plan = None

    def _forget_retained(self) -> None:
        """What was kept for an address that is not retroactive any more, or not there."""
        used = {retroactive.internal_address(name) for name, each in self.addresses.items() if each.retention}
        for address in [each for each in self.addresses.values() if retroactive.is_internal(each.name)]:
            if address.name not in used:
                for queue in list(address.queues.values()):
                    self.delete_queue(queue, 0)
                self.delete_address(address)

    def _deploy_queue(self, address: Address, config: QueueConfig, remembered: dict[str, dict[str, Any]]) -> None:
        fields = remembered.get(config.name)
        if fields is None or fields["address"] != address.name or not config.durable:
            self.create_queue(address, config, auto_created=False)
            return
        queue = build_queue(fields["id"], config, address, self.host)
        self._bind(queue)
        self._restore_changes(queue, fields)
        self.note_event(events.OPENED, queue, _facts(queue))
        if queue.attributes != fields.get("attributes", {}):
            self.note_queue(queue)
        del remembered[config.name]

    def _remember_queue(self, fields: dict[str, Any]) -> None:
        if fields["name"] in self.queues:
            return
        address = self.addresses.get(fields["address"]) or self.create_address(fields["address"], auto_created=True)
        config = QueueConfig(
            name=fields["name"],
            address=address.name,
            routing_type=fields["routing_type"],
            filter=fields["filter"],
            **known_attributes(fields.get("attributes", {})),
        )
        queue = build_queue(fields["id"], config, address, self.host, auto_created=fields["auto_created"])
        self._bind(queue)
        self.quota.queue_came(queue.id, fields.get("user"))
        self._restore_changes(queue, fields)
        self.note_event(events.OPENED, queue, _facts(queue))

    def _restore_changes(self, queue: Queue, fields: dict[str, Any]) -> None:
        queue.gate.paused = fields["paused"]
        # Under another policy the owner's client-id would be taken for a user.
        if fields.get("owner_by") == queue.seats.exclusivity.policy:
            queue.seats.exclusivity.owner = fields.get("owner")
        if fields["ring_size"] is not None and queue.flow.overflow.depth is None:
            queue.ring_size_changed = fields["ring_size"]
            queue.flow.overflow = overflow_for(fields["ring_size"])

    def _deploy_divert(self, config: DivertConfig) -> None:
        address = self.addresses.get(config.address) or self.create_address(config.address, auto_created=False)
        address.add_divert(
            Divert(
                config.name,
                config.routing_name or config.name,
                config.forwarding_addresses,
                exclusive=config.exclusive,
                selector=compile_selector(config.filter) if config.filter else None,
                routing_type=config.routing_type,
            )
        )

    @property
    def disk_full(self) -> bool:
        """Is the disk too full to take messages in? Then every address is full."""
        return self.memory.disk_full

    @disk_full.setter
    def disk_full(self, full: bool) -> None:
        self.memory.disk_full = full

    # ---- creating and deleting -------------------------------------------------------------------

    def create_address(self, name: str, *, auto_created: bool, temporary: bool = False) -> Address:
        """A new address with the settings that match its name."""
        self.budget.spend(_CREATION_UNITS)
        address = Address(
            name,
            self.config.settings_for(name),
            auto_created=auto_created,
            temporary=temporary,
            memory=self.memory,
            can_page=self.pages is not None,
            is_wildcard=is_wildcard(name, self.config.wildcards),
        )
        self.addresses[name] = address
        self.address_walk.add(address)
        if address.is_wildcard:
            self.wildcards.add(address)
        if self._deployed:
            self._arrange_retention(address)
        return address

    def open_stream(self, address: Address) -> PageStream:
        assert self.pages is not None, "an address pages only where there are files for it"
        self._stream_number += 1
        stream = PageStream(
            self._stream_number, address.name, address.account, self.log, self.pages, address.settings.page_size_bytes
        )
        self.streams[stream.number] = stream
        return stream

    def restore_streams(self, kept: Iterable[KeptStream], number_max: int = 0) -> None:
        """Give addresses their pages back. To be done when all queues have what they had in memory. New streams get
        numbers above ``number_max``.
        """
        for one in sorted(kept, key=lambda stream: stream.number):
            address = self.addresses.get(one.address) or self.create_address(one.address, auto_created=True)
            self._stream_number = one.number - 1
            stream = address.stream = self.open_stream(address)
            for share in stream.restore(one, self.by_id):
                self.by_id[share.queue_id].parts.pages.restore(stream, share)
        self._stream_number = max(self._stream_number, number_max)

    def create_queue(
        self,
        address: Address,
        config: QueueConfig,
        *,
        auto_created: bool,
        temporary: bool = False,
        by: str | None = None,
    ) -> Queue:
        """A new queue on an address, for the login ``by`` (None: for the broker itself). Raises BrokerError when the
        name is taken, LimitError when there are as many as there may be.
        """
        if config.name in self.queues:
            raise BrokerError(f"Queue {config.name} already exists on address {self.queues[config.name].address.name}")
        try:
            self.quota.check_queue(config.name, len(self.queues), by)
        except LimitError:
            self._drop_unused(address)
            raise
        self.budget.spend(_CREATION_UNITS)
        self.queue_id += 1
        queue = build_queue(self.queue_id, config, address, self.host, auto_created=auto_created, temporary=temporary)
        self._bind(queue)
        self.quota.queue_came(queue.id, by)
        self.note_queue(queue)
        self.note_event(events.CREATED, queue, _facts(queue))
        self._born.append(queue)
        if self._deployed:
            self.give_retained()
        return queue

    def _drop_unused(self, address: Address) -> None:
        """The queue for which an address was made may not be: nothing is left of the address, too."""
        used = address.had_binding or address.duplicate_ids is not None or address.routed_message_count
        if address.auto_created and not used and not address.unrouted_message_count:
            self.delete_address(address)

    def give_retained(self) -> None:
        """Queues that were created get what their addresses keep for them."""
        born, self._born = self._born, []
        for queue in born:
            address = self.address_of(queue)
            ring = self.queues.get(retroactive.ring_name(address.name, queue.routing_type))
            if address.retention is None or ring is None:
                continue
            messages = retroactive.copies_of(ring, queue, address.account, self.host)
            if messages:
                self.router.give(address, queue, messages, self.log.now_ms)

    def _bind(self, queue: Queue) -> None:
        self.queues[queue.name] = queue
        self.by_id[queue.id] = queue
        self.queue_walk.add(queue)
        self.address_of(queue).bind(queue)
        if queue.address.is_wildcard:
            self.wildcards.changes += 1

    def note_queue(self, queue: Queue) -> None:
        """Write down what a restart must know of a queue."""
        if queue.durable and not queue.temporary:
            owner = self.quota.owner_of(queue.id)
            self.log.queue_changed(
                {
                    **({} if owner is None else {"user": owner}),
                    "id": queue.id,
                    "name": queue.name,
                    "address": queue.address.name,
                    "routing_type": queue.routing_type,
                    "filter": None if queue.selector is None else queue.selector.text,
                    "auto_created": queue.auto_created,
                    "paused": queue.gate.paused,
                    "ring_size": queue.ring_size_changed,
                    "attributes": queue.attributes,
                    "owner": queue.seats.exclusivity.owner if queue.seats.exclusivity.outlives_consumers else None,
                    "owner_by": queue.seats.exclusivity.policy,
                }
            )

    def note_address(self, address: Address) -> None:
        """Write down what a restart must know of an address."""
        if not address.temporary:
            types = sorted(address.routing_types)
            fields = {"name": address.name, "routing_types": types, "auto_created": address.auto_created}
            self.log.address_changed(fields)

    def delete_queue(self, queue: Queue, now_ms: int) -> QueueWork | None:
        """Remove a queue without consumers; what it still holds is killed. It is gone at once, and its name free;
        returns what is not done yet.
        """
        self.note_event(events.DELETED, queue, {"address": queue.address.name, "killed": queue.message_count})
        queue.parts.pages.remove_all(DELETED)
        queue.reference.deleted = True
        if queue.durable and not queue.temporary:
            self.log.queue_deleted(queue.id)
        queue.parts.pages.forget_all()
        del self.queues[queue.name]
        del self.by_id[queue.id]
        self.queue_walk.discard(queue)
        self.quota.queue_went(queue.id)
        address = self.address_of(queue)
        address.unbind(queue, self.clock.steady_ms(now_ms))
        if address.is_wildcard:
            self.wildcards.changes += 1
            self.wildcards.anycast_losses += queue.routing_type == ANYCAST
        if address.temporary and not address.queues:
            self.delete_address(address)
        return queue.purge(DELETED, now_ms)

    def delete_address(self, address: Address) -> None:
        """Remove an address without queues."""
        address.end()
        if address.stream is not None and not address.stream.active:  # queues on wildcard addresses may still read it
            del self.streams[address.stream.number]
        if not address.temporary:
            self.log.address_changed({"name": address.name, "deleted": True})
        del self.addresses[address.name]
        self.address_walk.discard(address)
        if address.retention is not None:
            self._give_up_retained(address)
        if address.is_wildcard:
            self.wildcards.remove(address)

    def _give_up_retained(self, address: Address) -> None:
        """The address is gone: so is what was kept of it."""
        inner = self.addresses.get(retroactive.internal_address(address.name))
        if inner is not None:
            for queue in list(inner.queues.values()):
                self.delete_queue(queue, self.log.now_ms)
            self.delete_address(inner)

    def address_of(self, queue: Queue) -> Address:
        """The address that a queue is on."""
        return self.addresses[queue.address.name]

    def plan_for(self, address: Address) -> Plan:
        """Where messages to the address go now."""
        plan = address.plan
        wildcards = self._wildcards_for(address)
        if plan is not None and plan.losses == address.losses and plan.has_sources(wildcards):
            plan.wildcard_changes = self.wildcards.changes
            return plan
        plan = address.plan = Plan(address, wildcards, self.wildcards.changes)
        if wildcards:
            self._mixed.append(address)
            if len(self._mixed) > _MIXED_MAX:
                self._mixed.popleft().plan = None
        return plan

    def _wildcards_for(self, address: Address) -> list[Address]:
        """The wildcard addresses whose queues get what is sent to the address, too."""
        if address.is_wildcard or address.temporary or retroactive.is_internal(address.name):
            return []
        return self.wildcards.matching(address.name)

    def has_queues(self, address: Address) -> bool:
        """Does some queue get what is sent to the address?"""
        return bool(address.queues) or any(each.queues for each in self._wildcards_for(address))

    def _has_anycast(self, address: Address) -> bool:
        return address.anycast_count > 0 or any(each.anycast_count for each in self._wildcards_for(address))

    # ---- resolving -------------------------------------------------------------------------------

    # ``by`` is the login of the client that asks, None where it is the broker itself: then no limit holds.

    def route(self, name: str, queue_name: str | None, routing_type: str | None, by: str | None = None) -> Route:
        """Where a message sent to this destination goes, creating what settings allow. Raises NotFoundError when
        they do not, LimitError when there are as many addresses or queues as there may be.
        """
        if queue_name is not None:
            queue = self.obtain_queue(name, queue_name, routing_type, by)
            return self.route_to(self.address_of(queue), queue, None)
        address = self.obtain_address(name, routing_type, by)
        wants_anycast = routing_type == ANYCAST or (routing_type is None and ANYCAST in address.routing_types)
        if wants_anycast and not self._has_anycast(address):
            self._auto_create_for_send(address, by)
        return self.route_to(address, None, routing_type)

    def route_to(self, address: Address, queue: Queue | None, routing_type: str | None) -> Route:
        """A route as things are now."""
        return Route(address, queue, routing_type, self.wildcards.anycast_losses)

    def _auto_create_for_send(self, address: Address, by: str | None) -> None:
        if address.settings.auto_create_queues and address.name not in self.queues:
            self.create_queue(address, _plain_queue(address.name, address.name, ANYCAST), auto_created=True, by=by)

    def obtain_address(self, name: str, routing_type: str | None, by: str | None = None) -> Address:
        """An address with this routing type (None: whatever it has). Raises NotFoundError when it may not be created or
        extended, LimitError when there are as many as there may be.
        """
        if not name:
            raise NotFoundError("The destination has no address")
        address = self.addresses.get(name)
        if address is None:
            settings = self.config.settings_for(name)
            if not settings.auto_create_addresses:
                raise NotFoundError(f"Address {name} does not exist and auto-create-addresses is false for it")
            self.quota.check_address(name, len(self.addresses), by)
            address = self.create_address(name, auto_created=True)
            address.add_routing_types((routing_type or settings.default_address_routing_type,))
            self.note_address(address)
        elif routing_type is not None and routing_type not in address.routing_types:
            if not address.settings.auto_create_addresses:
                has = " and ".join(sorted(address.routing_types)) or "no routing type"
                raise NotFoundError(f"Address {name} has {has} and cannot be used as {routing_type}")
            address.add_routing_types((routing_type,))
            self.note_address(address)
        return address

    def obtain_queue(
        self, address_name: str, queue_name: str, routing_type: str | None, by: str | None = None
    ) -> Queue:
        """The queue of a fully qualified name, created if settings allow. Raises NotFoundError or BrokerError."""
        if not queue_name:
            raise NotFoundError(f"The destination {address_name}:: has no queue")
        queue = self.queues.get(queue_name)
        if queue is not None:
            if address_name and queue.address.name != address_name:
                raise NotFoundError(f"Queue {queue_name} is on address {queue.address.name}, not on {address_name}")
            return queue
        address_name = address_name or queue_name
        settings = self.config.settings_for(address_name)
        if not settings.auto_create_queues:
            raise NotFoundError(f"Queue {queue_name} does not exist and auto-create-queues is false for {address_name}")
        known = self.addresses.get(address_name)
        if routing_type is None:
            routing_type = settings.default_queue_routing_type
            if known is not None and routing_type not in known.routing_types and known.routing_types:
                routing_type = min(known.routing_types)
        address = self.obtain_address(address_name, routing_type, by)
        config = _plain_queue(queue_name, address_name, routing_type)
        return self.create_queue(address, config, auto_created=True, by=by)

    def obtain_anycast_queue(self, name: str, by: str | None = None) -> Queue:
        """The queue that a consumer of an anycast address reads: the one of the same name (created if settings
        allow).
        """
        address = self.obtain_address(name, ANYCAST, by)
        queue = self.queues.get(name)
        if queue is not None and queue.address is address and queue.routing_type == ANYCAST:
            return queue
        others = list(islice(_anycast_of(address), _NAMED_MAX))
        if len(others) == 1:
            return others[0]
        if others or not address.settings.auto_create_queues or queue is not None:
            names = ", ".join(sorted(each.name for each in others))
            hint = f"; subscribe to {name}::QUEUE with one of {names}" if others else ""
            raise NotFoundError(f"Address {name} has no queue {name}, and none is created{hint}")
        return self.create_queue(address, _plain_queue(name, name, ANYCAST), auto_created=True, by=by)

    def create_subscription_queue(
        self, name: str, address: Address, *, durable: bool, selector: str | None, by: str | None = None
    ) -> Queue:
        """A queue for one subscriber (or one durable subscription) of a multicast address; ``auto-create-queues`` does
        not matter.
        """
        config = _plain_queue(name, address.name, MULTICAST, durable=durable, selector=selector)
        return self.create_queue(address, config, auto_created=not durable, temporary=not durable, by=by)


def _anycast_of(address: Address) -> Iterator[Queue]:
    if address.anycast_count:
        for queue in address.queues.values():
            if queue.routing_type == ANYCAST:
                yield queue


def _facts(queue: Queue) -> dict[str, str | int]:
    """What the operational log tells of a queue that begins (Qpid tells owner, life, durability and levels)."""
    life = "temporary" if queue.temporary else "auto-created" if queue.auto_created else "declared"
    return {
        "address": queue.address.name,
        "routing_type": queue.routing_type,
        "life": life,
        "durable": "true" if queue.durable else "false",
        "type": str(queue.attributes.get("queue_type", "")) or "plain",
    }


def _plain_queue(
    name: str, address: str, routing_type: str, *, durable: bool = True, selector: str | None = None
) -> QueueConfig:
    """A queue nobody declared: everything from address-settings."""
    return QueueConfig(name=name, address=address, routing_type=routing_type, durable=durable, filter=selector)
