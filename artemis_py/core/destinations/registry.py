"""Creates and deletes addresses and queues, within the limits of clients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, NoReturn, final

from artemis_py.config.settings import AddressSettings, BrokerConfig, QueueConfig, UserLimits
from artemis_py.config.wildcards import is_wildcard
from artemis_py.core import events
from artemis_py.core.addresses import retroactive
from artemis_py.core.addresses.address import Address
from artemis_py.core.addresses.enqueue import Enqueuer
from artemis_py.core.addresses.routing_table import Bindings
from artemis_py.core.events import LIMITED, Events
from artemis_py.core.memory import ADDRESS_BYTES, ADDRESSES, QUEUE_BYTES, QUEUES, SELECTORS, Memory, selector_bytes
from artemis_py.core.notification_fields import tell_address, tell_binding
from artemis_py.core.notifications import ADDRESS_ADDED, ADDRESS_REMOVED, BINDING_ADDED, BINDING_REMOVED
from artemis_py.core.order.entry import DELETED
from artemis_py.core.pages import Streams
from artemis_py.core.queue.attributes import declaration_of, use_declaration
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.recipe import build_queue
from artemis_py.core.queue_host import QueueHost
from artemis_py.core.queue_reference import deletion_of
from artemis_py.core.tasks import Task
from artemis_py.errors import BrokerError, LimitError
from artemis_py.terminal_output import many

# ---- quota -----------------------------------------------------------------------------------------------------------
#
# Limits on how many addresses and queues clients may create, together and by login, and on the connections of a
# login. Addresses and queues that a restart finds count. The broker's own needs are not limited, because messages
# would be lost: queues for dead and expired messages (at most one each for an address), and the targets of diverts
# that broker.xml names.


ANYBODY: Final = "*"
"""Stands for every login without limits of its own. Clients without a login count as one login."""
_UNLIMITED: Final = UserLimits()


@final
class Quota:
    """Counts addresses, queues and connections, and refuses more than the limits allow; -1: no limit. ``by`` is a
    login, empty for a client that gave none, and None for the broker itself.
    """

    __slots__ = ("_connections", "_events", "_limits", "_owners", "_queues", "addresses_max", "queues_max")

    def __init__(self, config: BrokerConfig, events: Events) -> None:
        self.addresses_max = -1 if config.max_addresses is None else config.max_addresses
        self.queues_max = -1 if config.max_queues is None else config.max_queues
        self._limits = config.user_limits
        self._events = events
        self._owners: dict[int, str] = {}
        self._queues: dict[str, int] = {}
        self._connections: dict[str, int] = {}

    def check_address(self, name: str, count: int, by: str | None) -> None:
        """Check whether a client may create an address, when ``count`` exist. Raises LimitError when it may not."""
        if by is not None and 0 <= self.addresses_max <= count:
            self._refuse(
                f"Address {name[:200]} was not created: there {_are(count, 'address', 'addresses')}, the limit of "
                "max-addresses; let "
                "unused ones be deleted (auto-delete-addresses) or raise max-addresses in broker.xml",
                name,
                "max-addresses",
                by,
            )

    def check_queue(self, name: str, count: int, by: str | None) -> None:
        """Check whether a client may create a queue, when ``count`` exist. Raises LimitError when it may not."""
        if by is None:
            return
        if 0 <= self.queues_max <= count:
            self._refuse(
                f"Queue {name[:200]} was not created: there {_are(count, 'queue', 'queues')}, the limit of max-queues; "
                "unsubscribe, let unused ones be deleted (auto-delete-queues) or raise max-queues in broker.xml",
                name,
                "max-queues",
                by,
            )
        if not self._limits:
            return
        queues_max = self._limits_of(by).queues_max
        if 0 <= queues_max <= self._queues.get(by, 0):
            self._refuse(
                f"Queue {name[:200]} was not created: {_in_words(by)} {many(queues_max, 'queue')}, the limit of "
                "max-queues in resource-limit-settings; unsubscribe or raise it in broker.xml",
                name,
                "max-queues of the user",
                by,
            )

    def owner_of(self, queue_id: int) -> str | None:
        """The login that created the queue; None when that is not counted."""
        return self._owners.get(queue_id)

    def queue_created(self, queue_id: int, by: str | None) -> None:
        """Count a queue that was created, or that a restart found."""
        if by or (by is not None and ANYBODY in self._limits):
            self._owners[queue_id] = by
            self._queues[by] = self._queues.get(by, 0) + 1

    def queue_deleted(self, queue_id: int) -> None:
        """A queue was deleted."""
        by = self._owners.pop(queue_id, None)
        if by is not None:
            _count_down(self._queues, by)

    def connected(self, by: str) -> None:
        """Count a connection that was accepted. Raises LimitError when its login has as many as it may."""
        if self._limits:
            connections_max = self._limits_of(by).connections_max
            if 0 <= connections_max <= self._connections.get(by, 0):
                self._refuse(
                    f"Connection refused: {_in_words(by)} {many(connections_max, 'connection')}, the limit of "
                    "max-connections in resource-limit-settings; close one or raise it in broker.xml",
                    by,
                    "max-connections of the user",
                    by,
                )
        self._connections[by] = self._connections.get(by, 0) + 1

    def disconnected(self, by: str) -> None:
        """A counted connection has ended."""
        _count_down(self._connections, by)

    def _limits_of(self, by: str) -> UserLimits:
        limits = self._limits.get(by)
        return self._limits.get(ANYBODY, _UNLIMITED) if limits is None else limits

    def _refuse(self, text: str, name: str, limit: str, by: str) -> NoReturn:
        self._events.note(LIMITED, name[:200], {"limit": limit, "user": by[:200]})
        raise LimitError(text)


def _are(count: int, one: str, several: str) -> str:
    return f"{'is' if count == 1 else 'are'} {many(count, one, several)}"


def _in_words(by: str) -> str:
    return f"user {by[:200]} has" if by else "clients without a login have"


def _count_down(counts: dict[str, int], by: str) -> None:
    counts[by] -= 1
    if not counts[by]:
        del counts[by]


# ---- registry --------------------------------------------------------------------------------------------------------
#
# Creates and deletes addresses and queues.


LISTENED_MAX: Final = 2_000
"""How many notifications wait on a queue whose settings say nothing of that: it is a ring, and the oldest give way."""
_CREATION_UNITS: Final = 25
"""What it costs to create an address, or a queue, in units of a turn."""


@final
class Registry:
    """Creates and deletes; what exists is in ``bindings``. Each change is counted against the limits, written to the
    log, and told to the operational log.
    """

    __slots__ = ("_born", "_enqueuer", "_host", "_is_ready", "_memory", "_notifications", "_streams", "bindings",
                 "config", "queue_id", "quota", "unfilled")  # fmt: skip

    def __init__(
        self,
        config: BrokerConfig,
        host: QueueHost,
        bindings: Bindings,
        streams: Streams,
        memory: Memory,
        enqueuer: Enqueuer,
    ) -> None:
        self.config = config
        self._host = host
        self._notifications = host.notifications
        self.bindings = bindings
        self._streams = streams
        self._memory = memory
        self._enqueuer = enqueuer
        self.quota = Quota(config, host.events)
        self.queue_id = 0
        """The highest number that a queue has had."""
        self.unfilled: list[Queue] = []
        """Queues that wait for what the log has for them. Whoever fills them takes them out."""
        self._born: list[Queue] = []
        """Queues that have just been created, and have not been given what their addresses keep."""
        self._is_ready = False
        """Is everything there that was declared, or there before a restart? Until then no retroactive address is
        looked at, because its rings may still come.
        """

    @property
    def last_lsn(self) -> int:
        """The last lsn of the log."""
        return self._host.log.last_lsn

    # ---- addresses -------------------------------------------------------------------------------

    def create_address(self, name: str, *, auto_created: bool, temporary: bool = False) -> Address:
        """A new address with the settings that match its name."""
        self._host.budget.spend(_CREATION_UNITS)
        address = Address(
            name,
            self.config.settings_for(name),
            auto_created=auto_created,
            temporary=temporary,
            memory=self._memory,
            can_page=self._streams.are_possible,
            is_wildcard=is_wildcard(name, self.config.wildcards),
        )
        address.empty_since_ms = self._host.clock.steady_ms(self._host.turn_ms)
        self.bindings.add_address(address)
        if self._is_ready:
            self._arrange_retention(address)
        if name == self.config.management_notification_address:
            address.can_page = False
            address.use_settings(address.settings)
        if self._notifications.is_heard:
            tell_address(self._notifications, ADDRESS_ADDED, address)
        self._memory.holdings.move(ADDRESSES, _address_bytes(address))
        return address

    def delete_address(self, address: Address) -> None:
        """Remove an address without queues."""
        address.end()
        if address.stream is not None:
            self._streams.forget(address.stream)
        if not address.temporary:
            self._host.log.address_changed({"name": address.name, "deleted": True})
        self.bindings.remove_address(address)
        if self._notifications.is_heard:
            tell_address(self._notifications, ADDRESS_REMOVED, address)
        if address.retention is not None:
            self._give_up_retained(address)
        self._memory.holdings.move(ADDRESSES, -_address_bytes(address))
        if address.duplicate_ids is not None:
            address.duplicate_ids.forget()
            address.duplicate_ids = None  # a sender's shape may know the address a while longer

    def note_address(self, address: Address) -> None:
        """Write down what a restart must know of an address."""
        if not address.temporary:
            self._host.log.address_changed(kept_of_address(address))

    # ---- queues ----------------------------------------------------------------------------------

    def create_queue(
        self,
        address: Address,
        config: QueueConfig,
        *,
        auto_created: bool,
        temporary: bool = False,
        by: str | None = None,
        configured: bool = False,
    ) -> Queue:
        """A new queue on an address, for the login ``by`` (None: for the broker itself). Raises BrokerError when the
        name is taken and when the address is that of a view, LimitError when there are as many as there may be.
        """
        queues = self.bindings.queues
        if config.name in queues:
            raise BrokerError(f"Queue {config.name} already exists on address {queues[config.name].address.name}")
        if address.view is not None:
            raise BrokerError(
                f"Address {address.name} belongs to the view {address.view.name}: another queue on it would get "
                "nothing; use the view, or an address under it"
            )
        try:
            self.quota.check_queue(config.name, len(queues), by)
        except LimitError:
            self._drop_unused(address)
            raise
        self._host.budget.spend(_CREATION_UNITS)
        self.queue_id += 1
        config = self.bounded(config, address)
        queue = build_queue(self.queue_id, config, address, self._host, auto_created=auto_created, temporary=temporary)
        queue.configured = configured
        if configured:
            queue.origin = config.origin
        if queue.recovery is not None:
            queue.recovery.begin(self._host.log.last_lsn)
            self.fill_from_past(queue)
        self._bind(queue)
        self.quota.queue_created(queue.id, by)
        self.note_queue(queue)
        self._host.note_event(events.CREATED, queue.reference, _facts(queue))
        self._born.append(queue)
        if self._is_ready:
            self.give_retained()
        return queue

    def open_queue(self, number: int, config: QueueConfig, address: Address, *, auto_created: bool = False) -> Queue:
        """A queue that was there before a restart, with the number that it had."""
        queue = build_queue(number, self.bounded(config, address), address, self._host, auto_created=auto_created)
        self._bind(queue)
        return queue

    def bounded(self, config: QueueConfig, address: Address) -> QueueConfig:
        """The same declaration; a queue of notifications whose depth nothing limits becomes a ring."""
        if address.name != self.config.management_notification_address or address.settings.default_ring_size >= 0:
            return config
        policy = config.overflow_policy or address.settings.default_overflow_policy
        return replace(config, ring_size=LISTENED_MAX) if config.ring_size is None and policy == "NONE" else config

    def fill_from_past(self, queue: Queue) -> None:
        """Let a queue wait for what the log has for it, if it is to have that."""
        recovery = queue.recovery
        if recovery is None or not recovery.is_filling:
            return
        if self._host.log.has_past:
            queue.filling = recovery
            self.unfilled.append(queue)
        else:
            recovery.finish()

    def forget_queue(self, number: int) -> None:
        """A queue that was there before a restart, and on which nothing is left, is not opened again."""
        self._host.log.queue_deleted(number)

    def note_opened(self, queue: Queue) -> None:
        """Tell the operational log of a queue that was there before a restart."""
        self._host.note_event(events.OPENED, queue.reference, _facts(queue))

    def delete_queue(self, queue: Queue, now_ms: int) -> Task | None:
        """Remove a queue without consumers; what it still holds is killed. It is gone at once, and its name free.
        Returns the work that is left, None when all is done.
        """
        host = self._host
        killed: dict[str, str | int] = {"address": queue.address.name, "killed": queue.message_count}
        host.note_event(events.DELETED, queue.reference, killed)
        queue.pages.remove_all(DELETED)
        queue.reference.deleted = True
        if queue.durable and not queue.temporary:
            host.log.queue_deleted(queue.id)
        queue.pages.forget_all()
        self.quota.queue_deleted(queue.id)
        address = self.bindings.unbind(queue, host.clock.steady_ms(now_ms))
        if self._notifications.is_heard:
            tell_binding(self._notifications, BINDING_REMOVED, queue)
        self.note_listeners(address)
        if address.temporary and not address.queues:
            self.delete_address(address)
        unfinished = queue.purge(DELETED, now_ms)
        host.timers.forget(queue.id)
        queue.grouping.forget()
        if queue.contents.deferred_acks is not None:
            queue.contents.deferred_acks.forget()
        self._count_queue(queue, -1)
        return unfinished

    def note_queue(self, queue: Queue) -> None:
        """Write down what a restart must know of a queue."""
        if queue.durable and not queue.temporary:
            self._host.log.queue_changed(self.kept_of_queue(queue))

    def begin_use(self, queue: Queue) -> bool:
        """A consumer has come. Returns whether a restart must know that the queue was used: if it may be deleted for
        being unused later, and not only if it is empty and a client made it.
        """
        if queue.contents.was_used or not queue.durable or queue.temporary:
            return False
        deletion = deletion_of(queue.auto_delete, queue.address.settings, auto_created=queue.auto_created)
        if not deletion.is_wanted or (queue.auto_created and not deletion.messages_max):
            return False
        queue.contents.was_used = True
        return True

    def kept_of_queue(self, queue: Queue) -> dict[str, Any]:
        """What a restart must know of a queue."""
        return _kept(queue, self.quota.owner_of(queue.id))

    def _bind(self, queue: Queue) -> None:
        queue.consumer_registry.idle_since_ms = self._host.clock.steady_ms(self._host.turn_ms)
        address = self.bindings.bind(queue)
        self._count_queue(queue, 1)
        self._host.dead_letter_addresses.note(queue.reference.rules.dead_letter_address)
        self.note_listeners(address)
        if self._notifications.is_heard:
            tell_binding(self._notifications, BINDING_ADDED, queue)

    def note_listeners(self, address: Address) -> None:
        """Queues of an address came or went: notifications are published while theirs has any, or a divert."""
        if self._is_ready and address.name == self.config.management_notification_address:
            self._notifications.has_queues = bool(address.queues or address.diverts)

    def _count_queue(self, queue: Queue, sign: int) -> None:
        holdings = self._memory.holdings
        holdings.move(QUEUES, sign * (QUEUE_BYTES + len(queue.name)))
        holdings.move(SELECTORS, sign * selector_bytes(None if queue.selector is None else queue.selector.text))

    def _drop_unused(self, address: Address) -> None:
        """The queue for which an address was made may not be: then nothing of the address stays, either."""
        used = address.had_binding or address.duplicate_ids is not None or address.routed_message_count
        if address.auto_created and not used and not address.unrouted_message_count:
            self.delete_address(address)

    # ---- retroactive addresses -------------------------------------------------------------------

    def begin_retention(self) -> None:
        """All declared and recovered addresses exist: give the retroactive ones their rings."""
        addresses = self.bindings.addresses
        for address in list(addresses.values()):
            self._arrange_retention(address)
        used = {retroactive.internal_address(name) for name, each in addresses.items() if each.retention}
        for address in list(addresses.values()):
            if retroactive.is_internal(address.name) and address.name not in used:
                self._delete_with_queues(address, 0)
        self._is_ready = True
        listened_to = addresses.get(self.config.management_notification_address)
        if listened_to is not None:
            self.note_listeners(listened_to)

    def _arrange_retention(self, address: Address) -> None:
        """Give an address the rings that its settings ask for, if any. Those that a restart brought back are used
        again.
        """
        wanted = retroactive.retention_of(address)
        if wanted is None:
            return
        name = wanted.inner_address
        inner = self.bindings.addresses.get(name) or self.create_address(name, auto_created=False)
        inner.can_page = False
        inner.use_settings(AddressSettings())
        for config in wanted.rings:
            queue = self.bindings.queues.get(config.name)
            if queue is None:
                self.create_queue(inner, config, auto_created=False)
            elif config.ring_size is not None:
                as_wanted = replace(declaration_of(queue), ring_size=config.ring_size)
                use_declaration(queue, as_wanted, self._host.turn_ms)
        address.use_retention(wanted.divert)

    def rearrange_retention(self, address: Address) -> None:
        """The settings of an address were changed: it keeps another number of messages for later queues, or none."""
        if address.retention is not None and retroactive.retention_of(address) is None:
            address.use_retention(None)
            self._give_up_retained(address)
        self._arrange_retention(address)

    def selector_changed(self, before: str | None, after: str | None) -> None:
        """A queue has another filter: count what it takes in memory."""
        self._memory.holdings.move(SELECTORS, selector_bytes(after) - selector_bytes(before))

    def give_retained(self) -> None:
        """Give queues that were just created what their addresses keep for them."""
        born, self._born = self._born, []
        for queue in born:
            address = self.bindings.address_of(queue)
            ring = self.bindings.queues.get(retroactive.ring_name(address.name, queue.routing_type))
            if address.retention is None or ring is None or queue.filling is not None:
                continue
            messages = retroactive.copies_of(ring, queue, address.account, self._host)
            if messages:
                self._enqueuer.enqueue_copies(address, queue, messages, self._host.log.now_ms)

    def _give_up_retained(self, address: Address) -> None:
        """The address is deleted: delete what it kept for later queues, too."""
        inner = self.bindings.addresses.get(retroactive.internal_address(address.name))
        if inner is not None:
            self._delete_with_queues(inner, self._host.log.now_ms)

    def _delete_with_queues(self, address: Address, now_ms: int) -> None:
        for queue in list(address.queues.values()):
            self.delete_queue(queue, now_ms)
        self.delete_address(address)


def _address_bytes(address: Address) -> int:
    return ADDRESS_BYTES + len(address.name)


def kept_of_address(address: Address) -> dict[str, Any]:
    """What a restart must know of an address."""
    return {
        "name": address.name,
        "routing_types": sorted(address.routing_types),
        "auto_created": address.auto_created,
        **({"paused": True} if address.paused else {}),
    }


def _kept(queue: Queue, owner: str | None) -> dict[str, Any]:
    """What a restart must know of a queue, which this user owns."""
    exclusivity = queue.consumer_registry.exclusivity
    return {
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
        **({"configured": True} if queue.configured else {}),
        "owner": exclusivity.owner if exclusivity.outlives_consumers else None,
        "owner_by": exclusivity.policy,
        **({} if queue.auto_delete is None else {"auto_delete": queue.auto_delete.fields()}),
        **({"used": True} if queue.contents.was_used else {}),
        **({} if queue.recovery is None else {"recovery": queue.recovery.fields()}),
    }


def _facts(queue: Queue) -> dict[str, str | int]:
    """The fields of a queue that begins, for the operational log (Qpid: owner, life, durability and levels)."""
    made = "declared" if queue.configured else "created"
    life = "temporary" if queue.temporary else "auto-created" if queue.auto_created else made
    return {
        "address": queue.address.name,
        "routing_type": queue.routing_type,
        "life": life,
        "durable": "true" if queue.durable else "false",
        "type": str(queue.attributes.get("queue_type", "")) or "plain",
    }
