"""A client's transaction: what it keeps until COMMIT or ABORT."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.addresses.address import Address
from artemis_py.core.addresses.batch import Batch, FilterResults
from artemis_py.core.addresses.full_policy import note_full, why_full
from artemis_py.core.addresses.routing_table import Bindings, Route
from artemis_py.core.broker import Broker
from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Consumer, Sender
from artemis_py.core.events import ADDRESS_REFUSES
from artemis_py.core.order.entry import ABORTED, NACKED, Entry
from artemis_py.core.publish.publish import Publisher
from artemis_py.core.publish_outcome import PublishOutcome
from artemis_py.core.queue.acknowledge import SelectedMessages
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import Task
from artemis_py.errors import AddressFullError, DuplicateError, QueueFullError
from artemis_py.message import LargeBody, Message
from artemis_py.record_log import Actor, RecordLog
from artemis_py.selector import Program

# ---- filter evaluation -----------------------------------------------------------------------------------------------
#
# Asks selectors about a transaction's messages before its COMMIT.


_PASSES_MAX: Final = 8
"""How many passes look for selectors that arrived meanwhile. A client that subscribes without end must not hold up a
COMMIT.
"""


@final
class FilterEvaluation:
    """Asks some selectors in each turn, because all of them may cost more than one turn has."""

    __slots__ = ("_asked", "_passes_left", "_place", "_sends", "results")

    def __init__(self, sends: list[tuple[Route, Message, int]]) -> None:
        self._sends = sends
        self._place = 0
        self._passes_left = _PASSES_MAX
        self._asked: dict[Route, list[Program]] = {}
        """The programs that this pass asks about the messages of each route, taken when it reached the first of
        them.
        """
        self.results: dict[Message, FilterResults] = {}

    def ask(self, bindings: Bindings, budget: Budget, stop_at: int) -> bool:
        """Ask until the budget is down to ``stop_at`` units, at least one selector. Returns True when all are asked."""
        while not self._pass_on(bindings, budget, stop_at):
            if budget.left <= stop_at:
                return False
        return True

    def _pass_on(self, bindings: Bindings, budget: Budget, stop_at: int) -> bool:
        """Go on with this pass. Returns True when it was the last."""
        sends = self._sends
        while self._place < len(sends):
            route, message, _ = sends[self._place]
            programs = self._asked.get(route)
            if programs is None:
                programs = self._asked[route] = bindings.cost_of(route).programs.copy()
            if programs:
                results = self.results.get(message)
                if results is None:
                    results = self.results[message] = FilterResults(message)
                if not results.ask_ahead(programs, budget, stop_at):
                    return False
            self._place += 1
            if budget.left <= stop_at and self._place < len(sends):
                return False
        self._passes_left -= 1
        if self._passes_left <= 0 or all(
            bindings.cost_of(route).programs == programs for route, programs in self._asked.items()
        ):
            return True
        self._asked.clear()
        self._place = 0
        return False


# ---- transaction -----------------------------------------------------------------------------------------------------
#
# A transaction: messages and acknowledgements that take effect together, or not at all.


@final
class Transaction:
    """Gathers work until COMMIT. Entries acknowledged in it are out of the consumer's hands at once and count as in
    delivery.
    """

    __slots__ = ("_evaluation", "acknowledged", "begun_ms", "by_filter", "expired", "refused", "sender", "sends",
                 "size_bytes")  # fmt: skip

    def __init__(self, begun_ms: int = 0, sender: Sender | None = None) -> None:
        self.begun_ms = begun_ms
        """When it began, in epoch ms."""
        self.sender = sender
        self.sends: list[tuple[Route, Message, int]] = []
        self.acknowledged: list[tuple[Queue, Consumer, Entry]] = []
        self.refused: list[tuple[Queue, Consumer, Entry]] = []
        self.expired: list[tuple[Queue, Consumer, Entry]] = []
        """Entries that a consumer has expire with the COMMIT."""
        self.by_filter: list[tuple[Queue, SelectedMessages, str, int, Actor | None]] = []
        """What a client names by itself: it is looked for when the COMMIT is carried out."""
        self.size_bytes = 0
        self._evaluation: FilterEvaluation | None = None
        """What selectors say of the messages, where they are asked over several turns."""

    def send(self, route: Route, message: Message, due_ms: int) -> None:
        """Keep a message until COMMIT."""
        self.sends.append((route, message, due_ms))
        self.size_bytes += message.memory_bytes

    def send_run(self, route: Route, messages: list[Message], size_bytes: int) -> None:
        """Keep messages for one destination until COMMIT; ``size_bytes`` is what they hold in memory."""
        self.sends.extend([(route, message, 0) for message in messages])
        self.size_bytes += size_bytes

    def acknowledge_by_filter(
        self, queue: Queue, chosen: SelectedMessages, outcome: str, connection: int, actor: Actor | None
    ) -> None:
        """Keep for the COMMIT what ``Queue.acknowledge_by_filter`` is to look for."""
        self.by_filter.append((queue, chosen, outcome, connection, actor))
        self.size_bytes += chosen.size_bytes

    def blocked_by(self) -> Address | None:
        """An address that takes nothing now, and that the commit must wait for, or None."""
        looked_at: Route | None = None
        for route, _, _ in self.sends:
            if route is not looked_at:
                looked_at = route
                if route.address.refusal == "BLOCK":
                    return route.address
        return None

    @property
    def operation_count(self) -> int:
        """Messages sent, acknowledged, refused and expired."""
        return len(self.sends) + self.settled_count

    @property
    def settled_count(self) -> int:
        """Messages acknowledged, refused and expired, and what is to be looked for."""
        return len(self.acknowledged) + len(self.refused) + len(self.expired) + len(self.by_filter)

    def places(self, bindings: Bindings) -> int:
        """How often a COMMIT must decide whether a message goes to a queue: this is done in one piece."""
        return sum([bindings.cost_of(route).places_of(len(messages)) for route, messages in self._runs()])

    def is_asked(self, bindings: Bindings, budget: Budget, stop_at: int) -> bool:
        """Are all selectors asked that the transaction's messages need, or cheap enough to ask in the commit? If not,
        ask some of them now and return False; the session tries again in its next turn.
        """
        if self._evaluation is None:
            units = 0
            for route, messages in self._runs():
                cost = bindings.cost_of(route)
                if cost.programs:
                    units += cost.of_all(messages)
            if units <= budget.left - stop_at:
                return True
            self._evaluation = FilterEvaluation(self.sends)
        return self._evaluation.ask(bindings, budget, stop_at)

    def _runs(self) -> list[tuple[Route, list[Message]]]:
        """Messages that stand behind each other and have one route."""
        runs: list[tuple[Route, list[Message]]] = []
        known: Route | None = None
        for route, message, _ in self.sends:
            if route is not known:
                known = route
                runs.append((route, []))
            runs[-1][1].append(message)
        return runs

    def _filter_results_of(self, message: Message) -> FilterResults:
        known = None if self._evaluation is None else self._evaluation.results.get(message)
        return FilterResults(message) if known is None else known

    def make_way(self, publisher: Publisher, now_ms: int) -> Queue | None:
        """Let consumers take messages from queues that have stopped their senders. Returns the first queue that still
        makes senders wait, and the commit with them; None when the commit need not wait.
        """
        unlimited: Route | None = None
        for route, message, _ in self.sends:
            if route is unlimited:
                continue
            if not publisher.is_limited(route):
                unlimited = route
                continue
            for queue in publisher.limited_takers(route, self._filter_results_of(message)):
                if queue.flow.stopped:
                    queue.offer_first(now_ms)
                if not queue.may_go_on:
                    return queue
        return None

    def commit(
        self,
        broker: Broker,
        now_ms: int,
        commit_id: str | None = None,
        digest: str = "",
        outcomes: list[PublishOutcome] | None = None,
    ) -> list[Task]:
        """Carry everything out, as one group of records; ``commit_id``, which must be new, is remembered with it. What
        must be looked for follows, perhaps in later turns. Returns what of it is unfinished. ``outcomes`` gets what has
        become of each message.

        Raises AddressFullError, QueueFullError or DuplicateError, and then nothing of the transaction has happened: the
        caller aborts it.
        """
        self._renew(broker)
        self._check(broker, now_ms)
        if outcomes is not None:
            for _, message, _ in self.sends:
                outcomes.append(PublishOutcome(broker.host.outcomes))
                outcomes[-1].begin(message.id)
        broker.log.begin_group(transactional=True)
        self._publish(broker.publisher, now_ms)
        self._acknowledge()
        self._expire(now_ms)
        self._release(self.refused, now_ms, NACKED)
        broker.copy_publisher.flush(now_ms)
        if commit_id is not None:  # when all of it has happened: a COMMIT that breaks off is not confirmed later
            broker.commits.remember(commit_id, digest, broker.log)
        broker.log.end_group()
        unfinished: list[Task] = []
        for queue, chosen, outcome, connection, actor in self.by_filter:
            work = queue.acknowledge_by_filter(chosen, outcome, now_ms, connection=connection, actor=actor)
            if work is not None:
                unfinished.append(work)
        return unfinished

    def _acknowledge(self) -> None:
        """What one consumer acknowledged behind each other is one request, and one record. If one fails, the rest is
        left for an abort.
        """
        taken, self.acknowledged = self.acknowledged, []
        start = 0
        try:
            for end in range(1, len(taken) + 1):
                if end < len(taken) and taken[end][1] is taken[start][1]:
                    continue
                queue, consumer, _ = taken[start]
                some, start = taken[start:end], end
                queue.acknowledge(consumer, [entry for _, _, entry in some])
        finally:
            self.acknowledged = taken[start:]

    def _expire(self, now_ms: int) -> None:
        groups, self.expired = _by_consumer(self.expired), []
        groups.reverse()
        try:
            while groups:
                queue, consumer, entries = groups.pop()
                queue.expire_held(consumer, entries, now_ms)
        finally:
            self.expired = [(queue, consumer, entry) for queue, consumer, entries in groups for entry in entries]

    def _publish(self, publisher: Publisher, now_ms: int) -> None:
        """Messages for one destination that stand behind each other go in as one batch."""
        sends = self.sends
        filter_results = None if self._evaluation is None else self._evaluation.results
        start = 0
        for end in range(1, len(sends) + 1):
            if end < len(sends) and _go_together(sends[start], sends[end]):
                continue
            route, _, due_ms = sends[start]
            messages = [message for _, message, _ in sends[start:end]]
            size_bytes = sum(message.size_bytes for message in messages)
            batch = Batch(
                route,
                messages,
                size_bytes,
                now_ms,
                plain=False,
                due_ms=due_ms,
                sender=self.sender,
            )
            batch.filter_results = filter_results
            publisher.publish(batch, admitted=True)
            start = end

    def _renew(self, broker: Broker) -> None:
        """Addresses and queues may have gone since the messages were sent. They arrive now, so they get ids that are
        higher than those of all that came before (a consumer without replay wants what comes after it).
        """
        first_id = broker.host.take_message_ids(len(self.sends))
        known: Route | None = None
        current: Route | None = None
        for place, (route, message, due_ms) in enumerate(self.sends):
            message.id = first_id + place
            if current is None or route is not known:
                known, current = route, broker.resolver.renewed(route)
            if current is not route:
                message.account = current.address.account
                if current.view is not route.view:
                    message.head = message.head.at(current.address.name)
                self.sends[place] = (current, message, due_ms)

    def _check(self, broker: Broker, now_ms: int) -> None:
        publisher = broker.publisher
        planned: dict[str, tuple[int, int]] = {}
        planned_on_queues: dict[str, tuple[int, int]] = {}
        duplicate_ids: set[tuple[str, str]] = set()
        known: Route | None = None
        may_fail = is_limited = False
        for route, message, _ in self.sends:
            address = route.address
            if route is not known:
                known = route
                may_fail = address.may_fail
                is_limited = publisher.is_limited(route)
            if may_fail:
                count, size = planned.get(address.name, (0, 0))
                if not address.has_room_after(count, size):
                    refused = self._note_refused(broker.log, address, "fail")
                    note_full(broker.events, ADDRESS_REFUSES, address, self.sender, count=refused)
                    raise AddressFullError(why_full(address))
                planned[address.name] = (count + 1, size + message.memory_bytes)
            if is_limited:
                takers = publisher.limited_takers(route, self._filter_results_of(message))
                full = self._make_room(takers, message, planned_on_queues, now_ms)
                if full is not None:
                    self._note_refused(broker.log, address, "reject")
                    raise QueueFullError(full.flow.why_full(*self._asked_of(full, publisher)))
            duplicate_id = message.head.duplicate_id
            if duplicate_id is not None:
                if broker.duplicates.has_seen(address, message) or (address.name, duplicate_id) in duplicate_ids:
                    raise DuplicateError(f"Duplicate message id {duplicate_id} on address {address.name}")
                duplicate_ids.add((address.name, duplicate_id))

    def _make_room(
        self, queues: list[Queue], message: Message, planned: dict[str, tuple[int, int]], now_ms: int
    ) -> Queue | None:
        """Let consumers take messages from queues that have no room for one more after what is ``planned`` (messages,
        bytes) for each. Returns the first queue that would still refuse it, or None.
        """
        for queue in queues:
            if queue.flow.overflow.refuses:
                count, size_bytes = planned.get(queue.name, (0, 0))
                planned[queue.name] = (count + 1, size_bytes + message.size_bytes)
                if not queue.flow.fits(*planned[queue.name]):
                    queue.offer_first(now_ms)
                    if not queue.flow.fits(*planned[queue.name]):
                        return queue
        return None

    def _asked_of(self, queue: Queue, publisher: Publisher) -> tuple[int, int]:
        """How many messages, of how many bytes together, the transaction has for a queue."""
        sizes = [
            message.size_bytes
            for route, message, _ in self.sends
            if queue in publisher.limited_takers(route, self._filter_results_of(message))
        ]
        return len(sizes), sum(sizes)

    def _note_refused(self, log: RecordLog, full: Address, policy: str) -> int:
        """Nothing of the transaction arrives; what it would have sent to the full address counts as refused there.
        Returns how many messages these are.
        """
        refused = [message for route, message, _ in self.sends if route.address is full]
        for message in refused:
            log.audit.refused(full.name, policy, message)
        return len(refused)

    def abort(self, now_ms: int) -> list[Task]:
        """Forget the messages; acknowledged and refused entries go back to their queues as failed deliveries. Returns
        the tasks that are not done.
        """
        taken = self.acknowledged + self.refused + self.expired
        self.acknowledged, self.expired = [], []
        self.refused.clear()
        return self._release(taken, now_ms, ABORTED)

    def _release(self, taken: list[tuple[Queue, Consumer, Entry]], now_ms: int, cause: str) -> list[Task]:
        """Give back what was ``taken``, which is empty then. If one queue fails, the others still get theirs,
        before its exception is raised.
        """
        unfinished: list[Task] = []
        failures: list[Exception] = []
        groups = _by_consumer(taken)
        taken.clear()
        for queue, consumer, entries in groups:
            try:
                work = queue.release(consumer, entries, failed=True, now_ms=now_ms, cause=cause)
            except Exception as error:
                failures.append(error)
                continue
            if work is not None:
                unfinished.append(work)
        if failures:
            raise failures[0]
        return unfinished


def _by_consumer(taken: list[tuple[Queue, Consumer, Entry]]) -> list[tuple[Queue, Consumer, list[Entry]]]:
    groups: dict[int, tuple[Queue, Consumer, list[Entry]]] = {}
    for queue, consumer, entry in taken:
        groups.setdefault(consumer.id, (queue, consumer, []))[2].append(entry)
    return list(groups.values())


def _go_together(one: tuple[Route, Message, int], other: tuple[Route, Message, int]) -> bool:
    """May these be in one batch? A large body comes alone."""
    large = one[1].body.__class__ is LargeBody or other[1].body.__class__ is LargeBody
    return one[0] is other[0] and one[2] == other[2] and not large
