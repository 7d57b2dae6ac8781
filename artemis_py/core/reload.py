"""Brings a running broker from the configuration in force to another one, in small steps.

The order is Artemis': settings of addresses, diverts, deletions, then addresses and queues. Each step leaves its part
either as it was or as it is to be; one that fails is noted, and the others go on. What is deleted, and what an operator
has changed, docs/reload.md says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, final

from artemis_py.config.changes import FORCE, stays_because
from artemis_py.config.settings import AddressConfig, AddressSettings, BrokerConfig, QueueConfig
from artemis_py.config.tables.queue_settings import written_attributes
from artemis_py.core.addresses import retroactive
from artemis_py.core.addresses.address import Address
from artemis_py.core.addresses.routing_table import Bindings
from artemis_py.core.destinations.amend import filter_of
from artemis_py.core.destinations.diverts import Diverts, narrow_routing_types
from artemis_py.core.destinations.registry import Registry
from artemis_py.core.events import OPERATION
from artemis_py.core.publish.duplicates import Duplicates
from artemis_py.core.queue.attributes import declaration_of, use_declaration
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue_host import QueueHost
from artemis_py.core.slow_consumers import SlowConsumers
from artemis_py.core.tasks import WAIT, Task, until_done
from artemis_py.errors import BrokerError, StorageError

_LOOKS_PER_STEP: Final = 64
_FAILURES_MAX: Final = 100
_PLACES_PER_STEP: Final = 1000
_WAITS: Final = (
    "it stays on address {0} until a restart creates it anew; or delete it (artemis-py queue delete {1}), and reload"
)
_PATIENCE_MS: Final = 10_000
"""How long all consumers that must go are waited for together."""

Steps = Iterator[bool | None]
Disconnect = Callable[[int, str], None]
"""Ends the connection of this number, with the reason."""


@final
class Redeployment:
    """One change of the configuration. ``now_ms`` is the date of the turn. ``disconnect`` ends connections whose queue
    is deleted.
    """

    def __init__(
        self,
        host: QueueHost,
        registry: Registry,
        diverts: Diverts,
        duplicates: Duplicates,
        slow_consumers: SlowConsumers,
        config: BrokerConfig,
        now_ms: Callable[[], int],
        disconnect: Disconnect,
    ) -> None:
        self.failures: list[str] = []
        """What could not be done, and stays as it was."""
        self.held: dict[str, frozenset[str]] = {}
        """Attributes that need a restart, by queue; ``address`` for one that is declared on another address."""
        self.left_diverts: set[str] = set()
        """Diverts that the file does not declare any more and that stay until a restart."""
        self.removed_messages = 0
        """How many messages were deleted with their queues."""
        self._host = host
        self._registry = registry
        self._diverts = diverts
        self._bindings: Final[Bindings] = registry.bindings
        self._duplicates = duplicates
        self._slow_consumers = slow_consumers
        self._config = config
        self._now_ms = now_ms
        self._disconnect = disconnect
        self._declared: dict[str, AddressConfig] = {address.name: address for address in config.addresses}
        self._queues: dict[str, QueueConfig] = {
            queue.name: queue for address in config.addresses for queue in address.queues
        }
        self._settled: set[str] = set()
        """Addresses whose settings are other ones now."""

    def run(self) -> Steps:
        """Everything that a reload changes in the core."""
        yield from self.settle_addresses()
        yield from self._divert()
        yield from self.delete_undeclared()
        yield from self.deploy()
        yield from _forget_places(self._bindings, self._declared, self._queues)

    # ---- settings --------------------------------------------------------------------------------

    def settle_addresses(self) -> Steps:
        """Give every address, and its queues, the settings that are its own now."""
        looks = 0
        for address in list(self._bindings.addresses.values()):
            if address.deleted or retroactive.is_internal(address.name):
                continue
            settings = self._registry.config.settings_for(address.name)  # of another change, if one has come since
            if settings == address.settings:
                address.settings = settings
                looks += 1
                if looks % _LOOKS_PER_STEP == 0:
                    yield None
                continue
            self._try(f"address {address.name}", lambda: self._use_settings(address, settings))  # noqa: B023
            yield None
            for queue in list(address.queues.values()):
                if not queue.deleted:
                    self._try(f"queue {queue.name}", lambda: self._retune(queue))  # noqa: B023
                    yield None

    def _use_settings(self, address: Address, settings: AddressSettings) -> None:
        self._settled.add(address.name)
        address.use_settings(settings)
        self._duplicates.settings_changed(address)
        self._registry.rearrange_retention(address)

    def _retune(self, queue: Queue) -> None:
        """Bring a queue to the settings of its address and its own attributes, which are those of its declaration."""
        for consumer in queue.distribution.consumers:
            if not consumer.browses:
                self._slow_consumers.note_consumer(queue, consumer, self._now_ms())
                break
        declared = self._queues.get(queue.name)
        if declared is not None and declared.address == queue.address.name:
            self._update(queue, declared)
            return
        self._use(queue, declaration_of(queue))

    def _use(self, queue: Queue, config: QueueConfig) -> None:
        """Give a queue what its declaration says, and what its address says now."""
        own, text = queue.own, filter_of(queue)
        held = use_declaration(queue, config, self._now_ms())
        if held:
            self.held[queue.name] = held
        if text != filter_of(queue) or own != queue.own or queue.routing_type != config.routing_type:
            self._registry.selector_changed(text, filter_of(queue))
            self._bindings.queue_changed(queue, config.routing_type)

    # ---- diverts ---------------------------------------------------------------------------------

    def _divert(self) -> Steps:
        wanted = self._diverts.wanted(self._config.diverts)
        for name, config in list(self._diverts.in_force.items()):
            if name in wanted:
                continue
            address = self._bindings.addresses.get(config.address)
            if address is not None and address.settings.config_delete_diverts == FORCE:
                self._diverts.drop(name)
                yield None
            else:
                self.left_diverts.add(name)
        for config in wanted.values():
            self._try(f"divert {config.name}", lambda: self._diverts.put(config))  # noqa: B023
            yield None

    # ---- deletions -------------------------------------------------------------------------------

    def delete_undeclared(self) -> Steps:
        """Delete what broker.xml does not declare any more, where its address says so (``config-delete-…``).

        All consumers are asked to go before the first of them is waited for, and all waiting ends at one time: a
        consumer that does not go keeps its own queue, and holds up nothing else.
        """
        addresses: list[Address] = []
        queues: list[Queue] = []
        yield from self._find_undeclared(addresses, queues)
        for queue in queues:
            yield from self._send_off(queue)
        ends_ms = self._steady_ms() + _PATIENCE_MS
        left = queues
        while left:
            is_over = self._steady_ms() >= ends_ms
            waiting: list[Queue] = []
            for looks, queue in enumerate(left, 1):
                if not is_over and self._must_wait(queue):
                    waiting.append(queue)
                else:
                    yield from self._delete_queue(queue)
                if looks % _LOOKS_PER_STEP == 0:
                    yield None
            left = waiting
            if left:
                yield WAIT
        for address in addresses:
            if not address.queues and not address.deleted:
                self._try(f"address {address.name}", lambda: self._registry.delete_address(address))  # noqa: B023
            yield None

    def _find_undeclared(self, addresses: list[Address], queues: list[Queue]) -> Steps:
        """Add to the lists what is to go."""
        diverted = {divert.address for divert in self._diverts.wanted(self._config.diverts).values()}
        looks = 0
        for address in list(self._bindings.addresses.values()):
            looks += 1
            if looks % _LOOKS_PER_STEP == 0:
                yield None
            settings = address.settings
            if address.temporary or address.deleted or retroactive.is_internal(address.name):
                continue
            is_gone = not address.auto_created and address.name not in self._declared
            if is_gone and settings.config_delete_addresses == FORCE and address.name not in diverted:
                addresses.append(address)
                queues.extend(address.queues.values())
            elif settings.config_delete_queues == FORCE:
                declared = self._declared.get(address.name)
                names = set() if declared is None else {queue.name for queue in declared.queues}
                queues.extend(
                    queue for queue in address.queues.values() if queue.configured and queue.name not in names
                )

    def _send_off(self, queue: Queue) -> Steps:
        """Disconnect the consumers of a queue, and admit no others."""
        queue.consumer_registry.consumers_max = 0
        reason = f"Queue {queue.name} is deleted: broker.xml does not declare it any more"
        for consumer in list(queue.distribution.consumers):
            if not consumer.closed:
                self._disconnect(consumer.reader.connection, reason)
                yield None

    def _delete_queue(self, queue: Queue) -> Steps:
        """Delete a queue with its messages. If a consumer is still there, so is the queue."""
        if queue.deleted:
            return
        name = f"queue {queue.name}"
        if queue.consumer_count:
            count, seconds = queue.consumer_count, _PATIENCE_MS // 1000
            who = "a consumer was" if count == 1 else f"{count} consumers were"
            self._fail(name, f"{who} told to go and still there after {seconds} s; the next reload tries again")
            self._admit_again(queue)
            return
        count = queue.message_count
        unfinished: list[Task | None] = []
        self._try(name, lambda: unfinished.append(self._registry.delete_queue(queue, self._now_ms())))
        if unfinished:
            self._host.note_event(OPERATION, queue.reference, {"operation": "delete, by broker.xml"}, kind="delete")
        else:
            self._admit_again(queue)
        yield None
        try:
            yield from until_done(unfinished)
        except BrokerError as error:
            self._fail(name, str(error))
        else:
            self.removed_messages += count if unfinished else 0

    def _must_wait(self, queue: Queue) -> bool:
        if queue.deleted:
            return False
        return queue.consumer_count > 0 or self._bindings.address_of(queue).is_fanning_out

    def _steady_ms(self) -> int:
        return self._host.clock.steady_ms(self._now_ms())

    def _admit_again(self, queue: Queue) -> None:
        queue.consumer_registry.consumers_max = queue.own.max_consumers

    # ---- addresses and queues --------------------------------------------------------------------

    def deploy(self) -> Steps:
        """Create and change what the file declares."""
        for config in self._declared.values():
            address = self._bindings.addresses.get(config.name)
            if address is None:
                address = self._registry.create_address(config.name, auto_created=False)
            address.auto_created, address.origin = False, config.origin
            address.add_routing_types(config.routing_types)
            for queue_config in config.queues:
                self._try(f"queue {queue_config.name}", lambda: self._deploy_queue(address, queue_config))  # noqa: B023
                yield None
            kept = narrow_routing_types(address, config.routing_types) if config.routing_types else ()
            for routing_type in kept:
                self._fail(f"address {address.name}", f"it stays {routing_type}: queues of that type are there")
            yield None

    def _deploy_queue(self, address: Address, config: QueueConfig) -> None:
        queue = self._bindings.queues.get(config.name)
        if queue is None:
            self._registry.create_queue(address, config, auto_created=False, configured=True)
        elif queue.address.name != address.name:
            self.held[queue.name] = frozenset(("address",))
            why = stays_because(config, queue.address.name, queue.message_count, durable=queue.durable)
            self._fail(f"queue {config.name}", why or _WAITS.format(queue.address.name, config.name))
        else:
            self._update(queue, config)
            why = stays_because(config, queue.address.name, queue.message_count, durable=queue.durable)
            if why is not None:
                self._fail(f"queue {config.name}", why)

    def _update(self, queue: Queue, config: QueueConfig) -> None:
        """A queue that is there gets everything that its declaration says, also what that does not mention any more."""
        config = self._registry.bounded(config, self._bindings.address_of(queue))
        queue.origin = config.origin
        is_same = queue.attributes == written_attributes(config) and queue.durable == config.durable
        is_same = is_same and filter_of(queue) == (config.filter or None)
        if not (is_same and queue.routing_type == config.routing_type and queue.configured):
            queue.configured, queue.auto_created = True, False
            self._use(queue, config)
            self._registry.note_queue(queue)
        elif queue.address.name in self._settled:
            self._use(queue, config)

    # ---- failures --------------------------------------------------------------------------------

    def _try(self, name: str, step: Callable[[], object]) -> None:
        """Carry out a step. A failure is noted, and is nobody else's. Raises StorageError."""
        try:
            step()
        except StorageError:
            raise
        except Exception as error:
            self._fail(name, str(error) or type(error).__name__)

    def _fail(self, name: str, reason: str) -> None:
        if len(self.failures) < _FAILURES_MAX:
            self.failures.append(f"{name}: {reason}")


def _forget_places(bindings: Bindings, addresses: dict[str, AddressConfig], queues: dict[str, QueueConfig]) -> Steps:
    """What the file does not declare any more has no place in it."""
    looks = 0
    for queue in list(bindings.queues.values()):
        declared = queues.get(queue.name)
        if declared is None or declared.address != queue.address.name:
            queue.origin = None
        looks += 1
        if looks % _PLACES_PER_STEP == 0:
            yield None
    for address in list(bindings.addresses.values()):
        if address.name not in addresses:
            address.origin = None
        looks += 1
        if looks % _PLACES_PER_STEP == 0:
            yield None
