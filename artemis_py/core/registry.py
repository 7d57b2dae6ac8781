"""The addresses and queues that exist, by name, and which of them a message or consumer may bring into being."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Final

from mypy_extensions import mypyc_attr

from artemis_py.config.queue_settings import known_attributes
from artemis_py.config.settings import BrokerConfig, DivertConfig, QueueConfig
from artemis_py.config.wildcards import WildcardIndex, is_wildcard
from artemis_py.core import events, retroactive
from artemis_py.core.address import ANYCAST, MULTICAST, Address, Divert, Memory
from artemis_py.core.entry import DELETED
from artemis_py.core.host import Host
from artemis_py.core.paging import PageStream
from artemis_py.core.queue import Queue
from artemis_py.core.recipe import build_queue, overflow_for
from artemis_py.core.router import Bindings, Route, Router
from artemis_py.errors import BrokerError, NotFoundError
from artemis_py.records import KeptStream, PageLog
from artemis_py.selector import compile_selector

ROUTING_TYPES: Final = (ANYCAST, MULTICAST)


@mypyc_attr(allow_interpreted_subclasses=True)
class Registry(Bindings, Host):
    """Creates, finds and deletes addresses and queues. Subclassed once, by the broker, which gives queues their
    host.
    """

    router: Router

    def __init__(self, config: BrokerConfig, pages: PageLog | None, global_max_bytes: int) -> None:
        self.config = config
        self.memory = Memory(global_max_bytes, config.global_max_messages)
        self.pages = pages
        """Files for what finds no room in memory; without them nothing is paged."""
        self.streams: dict[int, PageStream] = {}
        self._stream_number = 0
        self.addresses: dict[str, Address] = {}
        self.queues: dict[str, Queue] = {}
        self.queue_id = 0
        self.generation = 0
        """Grows with every binding made or removed: a route of an older generation is resolved again."""
        self._deployed = False
        self._born: list[Queue] = []
        """Queues that have just been created, and have not been given what their addresses keep."""
        self._disk_full = False
        self._wildcards = WildcardIndex(config.wildcards)

    @abstractmethod
    def next_message_id(self) -> int: ...

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
            address.routing_types.update(address_config.routing_types)
            for queue_config in address_config.queues:
                if queue_config.name not in self.queues:
                    self._deploy_queue(address, queue_config, remembered)
        for fields in kept_addresses:
            address = self.addresses.get(fields["name"]) or self.create_address(
                fields["name"], auto_created=fields["auto_created"]
            )
            address.routing_types.update(fields["routing_types"])
        for fields in remembered.values():
            self._remember_queue(fields)
        for divert_config in self.config.diverts:
            self._deploy_divert(divert_config)
        for address in list(self.addresses.values()):
            retroactive.arrange(self, address)
        self._forget_retained()
        self._deployed = True

    def _forget_retained(self) -> None:
        """What was kept for an address that is not retroactive any more, or not there."""
        used = {retroactive.internal_address(name) for name, each in self.addresses.items() if each.retention}
        for address in [each for each in self.addresses.values() if retroactive.is_internal(each.name)]:
            if address.name not in used:
                for queue in list(address.queues):
                    self.delete_queue(queue, 0)
                self.delete_address(address)

    def _deploy_queue(self, address: Address, config: QueueConfig, remembered: dict[str, dict[str, Any]]) -> None:
        fields = remembered.get(config.name)
        if fields is None or fields["address"] != address.name or not config.durable:
            self.create_queue(address, config, auto_created=False)
            return
        queue = build_queue(fields["id"], config, address, self)
        self._bind(queue, config.routing_type)
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
        queue = build_queue(fields["id"], config, address, self, auto_created=fields["auto_created"])
        self._bind(queue, queue.routing_type)
        self._restore_changes(queue, fields)
        self.note_event(events.OPENED, queue, _facts(queue))

    def _restore_changes(self, queue: Queue, fields: dict[str, Any]) -> None:
        queue.gate.paused = fields["paused"]
        # Under another policy the owner's client-id would be taken for a user.
        if fields.get("owner_by") == queue.exclusivity.policy:
            queue.exclusivity.owner = fields.get("owner")
        if fields["ring_size"] is not None and queue.overflow.depth is None:
            queue.ring_size_changed = fields["ring_size"]
            queue.overflow = overflow_for(fields["ring_size"])

    def _deploy_divert(self, config: DivertConfig) -> None:
        address = self.addresses.get(config.address) or self.create_address(config.address, auto_created=False)
        address.diverts.append(
            Divert(
                config.name,
                config.routing_name or config.name,
                config.forwarding_addresses,
                exclusive=config.exclusive,
                selector=compile_selector(config.filter) if config.filter else None,
                routing_type=config.routing_type,
            )
        )
        address.had_binding = True
        self._bindings_changed()

    @property
    def disk_full(self) -> bool:
        """Is the disk too full to take messages in? Then every address is full."""
        return self._disk_full

    @disk_full.setter
    def disk_full(self, full: bool) -> None:
        self._disk_full = full
        for address in self.addresses.values():
            address.set_disk_full(full)

    # ---- creating and deleting -------------------------------------------------------------------

    def create_address(self, name: str, *, auto_created: bool, temporary: bool = False) -> Address:
        """A new address with the settings that match its name."""
        address = Address(
            name,
            self.config.settings_for(name),
            auto_created=auto_created,
            temporary=temporary,
            memory=self.memory,
            can_page=self.pages is not None,
            is_wildcard=is_wildcard(name, self.config.wildcards),
        )
        address.set_disk_full(self._disk_full)
        self.addresses[name] = address
        if address.is_wildcard:
            self._wildcards.add(name)
        if self._deployed:
            retroactive.arrange(self, address)
        return address

    def open_stream(self, address: Address) -> PageStream:
        assert self.pages is not None, "an address pages only where there are files for it"
        self._stream_number += 1
        stream = PageStream(
            self._stream_number, address.name, address.account, self.log, self.pages, address.settings.page_size_bytes
        )
        self.streams[stream.number] = stream
        return stream

    def restore_streams(self, kept: Iterable[KeptStream]) -> None:
        """Give addresses their pages back. To be done when all queues have what they had in memory."""
        by_id = {queue.id: queue for queue in self.queues.values()}
        for one in sorted(kept, key=lambda stream: stream.number):
            address = self.addresses.get(one.address) or self.create_address(one.address, auto_created=True)
            self._stream_number = one.number - 1
            stream = address.stream = self.open_stream(address)
            stream.restore(one, by_id)

    def create_queue(
        self, address: Address, config: QueueConfig, *, auto_created: bool, temporary: bool = False
    ) -> Queue:
        """A new queue on an address. Raises BrokerError when the name is taken."""
        if config.name in self.queues:
            raise BrokerError(f"Queue {config.name} already exists on address {self.queues[config.name].address.name}")
        self.queue_id += 1
        queue = build_queue(self.queue_id, config, address, self, auto_created=auto_created, temporary=temporary)
        self._bind(queue, config.routing_type)
        self.note_queue(queue)
        self.note_event(events.CREATED, queue, _facts(queue))
        self._born.append(queue)
        if self._deployed:
            self.give_retained()
        return queue

    def give_retained(self) -> None:
        """Queues that were created get what their addresses keep for them."""
        born, self._born = self._born, []
        for queue in born:
            messages = retroactive.kept_for(self, queue)
            if messages:
                self.router.give(queue, messages, self.log.now_ms)

    def _bind(self, queue: Queue, routing_type: str) -> None:
        address = queue.address
        self.queues[queue.name] = queue
        address.queues.append(queue)
        address.routing_types.add(routing_type)
        address.had_binding = True
        self._bindings_changed()

    def note_queue(self, queue: Queue) -> None:
        """Write down what a restart must know of a queue."""
        if queue.durable and not queue.temporary:
            self.log.queue_changed(
                {
                    "id": queue.id,
                    "name": queue.name,
                    "address": queue.address.name,
                    "routing_type": queue.routing_type,
                    "filter": None if queue.selector is None else queue.selector.text,
                    "auto_created": queue.auto_created,
                    "paused": queue.gate.paused,
                    "ring_size": queue.ring_size_changed,
                    "attributes": queue.attributes,
                    "owner": queue.exclusivity.owner if queue.exclusivity.outlives_consumers else None,
                    "owner_by": queue.exclusivity.policy,
                }
            )

    def note_address(self, address: Address) -> None:
        """Write down what a restart must know of an address."""
        if not address.temporary:
            types = sorted(address.routing_types)
            fields = {"name": address.name, "routing_types": types, "auto_created": address.auto_created}
            self.log.address_changed(fields)

    def delete_queue(self, queue: Queue, now_ms: int) -> None:
        """Remove a queue without consumers; what it still holds is killed."""
        self.note_event(events.DELETED, queue, {"address": queue.address.name, "killed": queue.message_count})
        queue.remove_all(DELETED)
        queue.deleted = True
        if queue.durable and not queue.temporary:
            self.log.queue_deleted(queue.id)
        queue.forget_pages()
        del self.queues[queue.name]
        address = queue.address
        address.queues.remove(queue)
        if not address.queues:
            address.empty_since_ms = now_ms
        self._bindings_changed()
        if address.temporary and not address.queues:
            self.delete_address(address)

    def delete_address(self, address: Address) -> None:
        """Remove an address without queues."""
        address.deleted = True
        if address.stream is not None and not address.stream.active:  # queues on wildcard addresses may still read it
            del self.streams[address.stream.number]
        if not address.temporary:
            self.log.address_changed({"name": address.name, "deleted": True})
        del self.addresses[address.name]
        if address.retention is not None:
            retroactive.give_up(self, address, self.log.now_ms)
        if address.is_wildcard:
            self._wildcards.remove(address.name)
        self._bindings_changed()

    def _bindings_changed(self) -> None:
        self.generation += 1
        for address in self.addresses.values():
            address.plan = None

    def queues_for(self, address: Address) -> list[Queue]:
        queues = list(address.queues)
        is_sent_to = not (address.is_wildcard or retroactive.is_internal(address.name))
        if self.config.wildcards.routing_enabled and is_sent_to:
            for pattern in self._wildcards.matching(address.name):
                wildcard_address = self.addresses.get(pattern)
                if wildcard_address is not None:
                    queues.extend(wildcard_address.queues)
        return queues

    # ---- resolving -------------------------------------------------------------------------------

    def route(self, name: str, queue_name: str | None, routing_type: str | None) -> Route:
        """Where a message sent to this destination goes, creating what settings allow. Raises NotFoundError when
        they do not.
        """
        if queue_name is not None:
            queue = self.obtain_queue(name, queue_name, routing_type)
            return Route(queue.address, queue, None, self.generation)
        address = self.obtain_address(name, routing_type)
        wants_anycast = routing_type == ANYCAST or (routing_type is None and ANYCAST in address.routing_types)
        if wants_anycast and not any(queue.routing_type == ANYCAST for queue in self.queues_for(address)):
            self._auto_create_for_send(address)
        return Route(address, None, routing_type, self.generation)

    def _auto_create_for_send(self, address: Address) -> None:
        if address.settings.auto_create_queues and address.name not in self.queues:
            self.create_queue(address, _plain_queue(address.name, address.name, ANYCAST), auto_created=True)

    def obtain_address(self, name: str, routing_type: str | None) -> Address:
        """An address with this routing type (None: whatever it has). Raises NotFoundError when it may not be created or
        extended.
        """
        if not name:
            raise NotFoundError("The destination names no address")
        address = self.addresses.get(name)
        if address is None:
            settings = self.config.settings_for(name)
            if not settings.auto_create_addresses:
                raise NotFoundError(f"Address {name} does not exist and auto-create-addresses is false for it")
            address = self.create_address(name, auto_created=True)
            address.routing_types.add(routing_type or settings.default_address_routing_type)
            self.note_address(address)
            self._bindings_changed()
        elif routing_type is not None and routing_type not in address.routing_types:
            if not address.settings.auto_create_addresses:
                has = " and ".join(sorted(address.routing_types)) or "no routing type"
                raise NotFoundError(f"Address {name} has {has}: not allowed to use it as {routing_type}")
            address.routing_types.add(routing_type)
            self.note_address(address)
        return address

    def obtain_queue(self, address_name: str, queue_name: str, routing_type: str | None) -> Queue:
        """The queue of a fully qualified name, created if settings allow. Raises NotFoundError or BrokerError."""
        if not queue_name:
            raise NotFoundError(f"The destination {address_name}:: names no queue")
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
        address = self.obtain_address(address_name, routing_type)
        return self.create_queue(address, _plain_queue(queue_name, address_name, routing_type), auto_created=True)

    def obtain_anycast_queue(self, name: str) -> Queue:
        """The queue that a consumer of an anycast address reads: the one of the same name (created if settings
        allow).
        """
        address = self.obtain_address(name, ANYCAST)
        queue = self.queues.get(name)
        if queue is not None and queue.address is address and queue.routing_type == ANYCAST:
            return queue
        others = [queue.name for queue in address.queues if queue.routing_type == ANYCAST]
        if len(others) == 1:
            return self.queues[others[0]]
        if others or not address.settings.auto_create_queues or queue is not None:
            hint = f"; subscribe to {name}::QUEUE with one of {', '.join(sorted(others))}" if others else ""
            raise NotFoundError(f"Address {name} has no queue {name}, and it is not created{hint}")
        return self.create_queue(address, _plain_queue(name, name, ANYCAST), auto_created=True)

    def create_subscription_queue(self, name: str, address: Address, *, durable: bool, selector: str | None) -> Queue:
        """A queue for one subscriber (or one durable subscription) of a multicast address; ``auto-create-queues`` does
        not matter.
        """
        config = _plain_queue(name, address.name, MULTICAST, durable=durable, selector=selector)
        return self.create_queue(address, config, auto_created=not durable, temporary=not durable)


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
