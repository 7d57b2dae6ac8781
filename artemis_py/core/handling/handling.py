"""The changes that operators make to messages, by name. Each goes on by itself until it is over."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from artemis_py.core.addresses.address import Address
from artemis_py.core.addresses.bindings import Bindings
from artemis_py.core.budget import Budget
from artemis_py.core.destinations.resolver import Resolver
from artemis_py.core.events import OPERATION
from artemis_py.core.handling.change import Change
from artemis_py.core.handling.choice import Choice
from artemis_py.core.handling.deeds import Bury, Copy, Deed, Expire, Move, Prioritize, Remove, Retry
from artemis_py.core.handling.targets import QueueTarget, Target, Targets
from artemis_py.core.host import Host
from artemis_py.core.order.priority import PRIORITIES
from artemis_py.core.placing.enqueuer import Enqueuer
from artemis_py.core.queue.queue import Queue
from artemis_py.core.routing.admission import Admission
from artemis_py.errors import BadRequestError, BrokerError

DELIVERED_MAX: Final = 5_000
"""So many scheduled messages, at most, are put in the order of their time and delivered together."""


@final
class Handling:
    """Begins changes, and ends them when the broker stops."""

    def __init__(
        self, host: Host, bindings: Bindings, resolver: Resolver, enqueuer: Enqueuer, admission: Admission
    ) -> None:
        self._host = host
        self._bindings = bindings
        self._resolver = resolver
        self._targets = Targets(bindings, resolver, enqueuer, admission)
        self.changes: list[Change] = []
        """Those that are not over, and some that are."""

    def remove(self, queue: Queue, choice: Choice) -> Change:
        """Remove messages."""
        return self._begin(queue, choice, Remove(queue))

    def expire(self, queue: Queue, choice: Choice) -> Change:
        """Have messages expire."""
        return self._begin(queue, choice, Expire(queue))

    def bury(self, queue: Queue, choice: Choice) -> Change:
        """Send messages to the dead-letter address. Raises BrokerError if the queue has none, or nothing takes what is
        sent there.
        """
        grave = self._targets.address(self._grave_of(queue))
        return self._begin(queue, choice, Bury(queue, grave, self._bindings))

    def move(self, queue: Queue, choice: Choice, target_name: str) -> Change:
        """Move messages to the queue or address of this name. Raises BrokerError."""
        return self._begin(queue, choice, Move(queue, self._target(queue, target_name), self._bindings))

    def copy(self, queue: Queue, choice: Choice, target_name: str) -> Change:
        """Copy messages to the queue or address of this name. Raises BrokerError."""
        return self._begin(queue, choice, Copy(queue, self._target(queue, target_name), self._bindings))

    def prioritize(self, queue: Queue, choice: Choice, priority: int) -> Change:
        """Give messages another priority. Raises BadRequestError."""
        if not 0 <= priority < PRIORITIES:
            raise BadRequestError(f"a priority is a number from 0 to {PRIORITIES - 1}, and not {priority}")
        return self._begin(queue, choice, Prioritize(self._targets.queue(queue), priority))

    def retry(self, queue: Queue, choice: Choice, *, allowance: int | None = None) -> Change:
        """Send dead and expired messages back to the queues they came from; see ``Change`` for the allowance."""
        return self._begin(queue, choice, Retry(queue, self._targets), allowance=allowance)

    def deliver(self, queue: Queue, ids: Iterable[int], now_ms: int) -> int:
        """Have scheduled messages delivered now, at most ``DELIVERED_MAX``: the earliest first. Returns how many there
        are.
        """
        contents = queue.contents
        entries = [entry for one in ids if (entry := contents.scheduled.get(one)) is not None]
        if not entries:
            return 0
        entries.sort(key=lambda entry: contents.waits_until.of(entry.message.id))
        count = len(entries)
        budget = Budget()
        budget.refill(1)
        self._tell(queue, "delivered")
        queue.fall_due(entries, now_ms, budget)
        return count

    def nudge(self, change: Change) -> None:
        """Let a change go on that has waited for something that is there now."""
        if change.is_off and change.may_go_on:
            change.is_off = False
            self._host.agenda.add(change)

    def stop(self) -> None:
        """The broker stops: what is not done is left undone."""
        for change in self.changes:
            change.stop("the broker stopped")

    def _begin(self, queue: Queue, choice: Choice, deed: Deed, *, allowance: int | None = None) -> Change:
        change = Change(queue, choice, deed, allowance=allowance)
        self.changes = [each for each in self.changes if not each.is_over]
        self.changes.append(change)
        self._tell(queue, deed.word)
        self._host.agenda.add(change)
        return change

    def _tell(self, queue: Queue, word: str) -> None:
        self._host.note_event(OPERATION, queue.reference, {"operation": f"messages {word}"}, kind=word)

    def _target(self, queue: Queue, name: str) -> Target:
        target = self._targets.find(name)
        if isinstance(target, QueueTarget):
            if target.queue is queue:
                raise BadRequestError(f"{name} is the queue itself; name another one")
            if not target.queue.enabled:
                raise BrokerError(f"queue {target.queue.name} is disabled and takes no messages")
        elif not self._bindings.has_queues(target.address) and not target.address.diverts:
            raise BrokerError(f"address {name} has no queue, so the messages would be lost; create one first")
        return target

    def _grave_of(self, queue: Queue) -> Address:
        address = self._bindings.address_of(queue)
        own = queue.reference.rules.dead_letter_address
        name = address.settings.dead_letter_address if own is None else own
        if not name:
            raise BrokerError(f"queue {queue.name} has no dead-letter-address; set one, or remove the messages instead")
        if name == address.name:
            raise BrokerError(f"queue {queue.name} is on the dead-letter-address {name} already")
        self._resolver.obtain_resources(address, name, dead=True)
        target = self._bindings.addresses.get(name)
        if target is None or not (self._bindings.has_queues(target) or target.diverts):
            raise BrokerError(
                f"nothing takes what is sent to the dead-letter-address {name}; create a queue on it first"
            )
        return target
