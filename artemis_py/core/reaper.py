"""The reaper: removes expired messages, and deletes idle auto-created queues and addresses, in regular scans."""

from __future__ import annotations

from typing import Final, TypeVar, final

from artemis_py.config.settings import BrokerConfig
from artemis_py.core.addresses.address import ANYCAST, MULTICAST, Address
from artemis_py.core.addresses.retroactive import ring_name
from artemis_py.core.addresses.routing_table import RoundCursor
from artemis_py.core.budget import Budget
from artemis_py.core.destinations.registry import Registry
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue_host import QueueHost
from artemis_py.core.queue_reference import deletion_of
from artemis_py.core.tasks import Task

Item = TypeVar("Item")

_DELETION_UNITS: Final = 20
_EXPIRY: Final = 1
_DELETION: Final = 2


@final
class Reaper(Task):
    """Scans for expired messages (``message-expiry-scan-period``, ms) and for idle auto-created queues and addresses
    (``address-queue-scan-period``, ms); -1 switches a scan off.

    A queue or address is deleted when two scans in a row find it unused (as Artemis' reaper does). So one created a
    moment before a round has a whole period to be used. An address is in use while clients send to it, also if no queue
    takes what they send. A round lasts as many turns as it takes. One that is due meanwhile follows it.
    """

    def __init__(self, host: QueueHost, registry: Registry, config: BrokerConfig, steady_ms: int) -> None:
        self._host = host
        self._registry = registry
        self._bindings = registry.bindings
        self._alarms = host.clock.alarms()
        """By duty."""
        self._periods_ms = {_EXPIRY: config.message_expiry_scan_period, _DELETION: config.address_queue_scan_period}
        for duty, period_ms in self._periods_ms.items():
            if period_ms > 0:
                self._alarms.set(duty, steady_ms + period_ms)
        self.done = True
        self._asked = 0
        """What the next round must do (flags)."""
        self._duties = 0
        """What the current round does (flags)."""
        self._deletions = 0
        """How many rounds have looked for unused queues and addresses."""

    def delete_unused_at_start(self, now_ms: int) -> None:
        """A restart has ended the use of everything that clients made. What is empty and would be created again
        as it was goes at once; other queues, whose messages somebody may come back for, are left to the rounds. A delay
        begins again. Whether queues were used that may go with messages, or that clients did not make, the log knows.
        """
        if self._periods_ms[_DELETION] <= 0:
            return
        steady_ms = self._host.clock.steady_ms(now_ms)
        for queue in list(self._bindings.queues.values()):
            if queue.auto_created and not queue.deleted and not queue.message_count:
                deletion = deletion_of(queue.auto_delete, queue.address.settings, auto_created=True)
                queue.contents.was_used = queue.contents.was_used or not deletion.messages_max
                if _comes_back(queue) and _queue_is_unused(queue, steady_ms):
                    self._registry.delete_queue(queue, now_ms)
        for address in list(self._bindings.addresses.values()):
            if address.deleted or self._keeps_messages(address):
                continue  # it went with the address whose messages it kept, or keeps some for queues to come
            address.had_binding = address.had_binding or address.auto_created
            if _address_is_unused(address, steady_ms):
                self._registry.delete_address(address)

    def _keeps_messages(self, address: Address) -> bool:
        """Are there messages that a retroactive address keeps for queues to come?"""
        if address.retention is None:
            return False
        kept = [self._bindings.queues.get(ring_name(address.name, kind)) for kind in (ANYCAST, MULTICAST)]
        return any(queue is not None and queue.message_count for queue in kept)

    def run(self, now_ms: int) -> None:
        """Put the scans that are due on the agenda."""
        while self._alarms.due:
            duty = self._alarms.take()
            self._asked |= duty
            self._alarms.set(duty, self._host.clock.steady_ms(now_ms) + self._periods_ms[duty])
        if self._asked and self.done:
            self._begin()
            self._host.agenda.add(self)

    def _begin(self) -> None:
        self._duties, self._asked = self._asked, 0
        if self._duties & _DELETION:
            self._deletions += 1
            self._bindings.address_walk.begin()
        self._bindings.queue_walk.begin()

    def work(self, budget: Budget, now_ms: int) -> bool:
        while True:
            if not self._step(budget, now_ms):
                if not self._asked:
                    return True
                self._begin()
            if budget.is_spent or self._host.budget.is_spent:
                return False

    def break_off(self, now_ms: int) -> bool:
        return True  # with the next item: the failed one is behind

    def _step(self, budget: Budget, now_ms: int) -> bool:
        """Look at one address or queue. Returns False when all were seen. Addresses come first: one that loses its last
        queue in this round is found empty by the next.
        """
        budget.spend(1)
        address = self._bindings.address_walk.take() if self._duties & _DELETION else None
        if address is not None:
            self._check_address(address, budget, now_ms)
            return True
        queue = self._bindings.queue_walk.take()
        if queue is None:
            return False
        step = "expiry"
        try:
            if self._duties & _EXPIRY:
                queue.expire_due(now_ms)
                queue.expire_paged(now_ms)
            step = "deletion"
            if self._duties & _DELETION:
                self._check_queue(queue, budget, now_ms)
        except Exception as error:
            queue.set_aside(step, error)
        return True

    def _check_address(self, address: Address, budget: Budget, now_ms: int) -> None:
        steady_ms = self._host.clock.steady_ms(now_ms)
        is_sent_to = address.note_sent(steady_ms)
        unused = not is_sent_to and _address_is_unused(address, steady_ms)
        if unused and not address.had_binding and self._keeps_messages(address):
            unused = False  # nobody has had what it keeps; what once had a queue goes with all that it keeps (Artemis)
        if self._is_condemned(self._bindings.address_walk, address, unused=unused):
            budget.spend(_DELETION_UNITS)
            self._registry.delete_address(address)

    def _check_queue(self, queue: Queue, budget: Budget, now_ms: int) -> None:
        unused = _queue_is_unused(queue, self._host.clock.steady_ms(now_ms))
        if self._is_condemned(self._bindings.queue_walk, queue, unused=unused):
            budget.spend(_DELETION_UNITS)
            self._registry.delete_queue(queue, now_ms)

    def _is_condemned(self, walk: RoundCursor[Item], item: Item, *, unused: bool) -> bool:
        """Did the round before find it unused, too?"""
        found = walk.mark_of(item)
        if unused and found == self._deletions - 1 and found:
            return True
        if unused != (found == self._deletions):
            walk.mark(item, self._deletions if unused else 0)
        return False


def _queue_is_unused(queue: Queue, steady_ms: int) -> bool:
    settings = queue.address.settings
    deletion = deletion_of(queue.auto_delete, settings, auto_created=queue.auto_created)
    # A temporary queue is its client's, also while nobody reads it.
    if not deletion.is_wanted or queue.temporary or queue.address.temporary or queue.consumer_count:
        return False
    if 0 <= deletion.messages_max < queue.message_count:
        return False
    was_used = queue.contents.was_used or _has_only_a_name(queue)
    if not was_used and not settings.auto_delete_queues_skip_usage_check:
        return False
    return steady_ms - queue.consumer_registry.idle_since_ms >= deletion.delay_ms


def _has_only_a_name(queue: Queue) -> bool:
    """Did a client ask for the queue, and nothing ever came there? What it sent was refused."""
    return not queue.contents.counters.added and _comes_back(queue)


def _comes_back(queue: Queue) -> bool:
    """Would its next use make the queue again, as it is? Then nothing is lost with it when it is empty."""
    settings = queue.address.settings
    is_plain = not queue.attributes and queue.selector is None and queue.ring_size_changed is None
    is_named = queue.name == queue.address.name and queue.routing_type == ANYCAST and queue.auto_created
    return is_plain and is_named and not queue.gate.paused and settings.auto_create_queues


def _address_is_unused(address: Address, steady_ms: int) -> bool:
    settings = address.settings
    if (
        not address.auto_created
        or address.temporary
        or address.queues
        or address.is_paging
        or address.diverts
        or address.paused
        or not settings.auto_delete_addresses
    ):
        return False
    was_used = address.had_binding or address.was_asked_for or address.sent_count
    if not was_used and not settings.auto_delete_addresses_skip_usage_check:
        return False
    return steady_ms - address.empty_since_ms >= settings.auto_delete_addresses_delay
