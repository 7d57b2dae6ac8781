"""What a queue consists of: its parts, its counters, and what stands on it or has left it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from artemis_py.core.backlog import Backlog, ReadAhead
from artemis_py.core.consumer import Consumer, ConsumerDefaults
from artemis_py.core.distribution import Distribution
from artemis_py.core.entry import Entry
from artemis_py.core.exclusivity import Exclusivity
from artemis_py.core.gate import Gate
from artemis_py.core.group_views import GroupViews
from artemis_py.core.groups import GroupRule
from artemis_py.core.host import Host
from artemis_py.core.order.last_value import LastValues
from artemis_py.core.order.order import Order
from artemis_py.core.overflow import Overflow
from artemis_py.core.queue_work import QueueWork, QueueWorks
from artemis_py.core.redelivery import Redelivery
from artemis_py.core.rules import MessageRules
from artemis_py.core.schedule import drop_void
from artemis_py.core.shared_cursors import SharedCursors
from artemis_py.core.tally import Tally
from artemis_py.message import Account, Message
from artemis_py.paged import PagedMessage
from artemis_py.records import Actor, Depth
from artemis_py.selector import Selector

if TYPE_CHECKING:
    from artemis_py.core.address import Address
    from artemis_py.core.queue import Queue


_VOID_MIN: Final = 1024
WOKEN_AT_ONCE: Final = 512
"""How many consumers are looked at before the budget is asked again."""
_WOKEN_PER_UNIT: Final = 8
_LOOKS: Final = 4
"""When more than so many watched messages, and more than stand on the queue, are gone, each new one makes the queue
look at so many of them.
"""


class QueueState(ABC):
    """The fields of a queue and what every part of it does with them. Counts are plain ints; see ``Tally`` for what
    they mean. The parts: pages, and the queue itself.
    """

    def __init__(  # noqa: PLR0913 - the recipe names each part
        self,
        id: int,
        name: str,
        address: Address,
        host: Host,
        *,
        order: Order,
        distribution: Distribution,
        overflow: Overflow,
        gate: Gate,
        redelivery: Redelivery,
        read_ahead: ReadAhead,
        routing_type: str,
        durable: bool = True,
        selector: Selector | None = None,
        non_destructive: bool = False,
        rules: MessageRules | None = None,
        consumers_max: int = -1,
        purge_on_no_consumers: bool = False,
        enabled: bool = True,
        auto_created: bool = False,
        temporary: bool = False,
        last_values: LastValues | None = None,
        group_rule: GroupRule | None = None,
        exclusivity: Exclusivity | None = None,
        consumer_defaults: ConsumerDefaults | None = None,
        attributes: Mapping[str, object] | None = None,
    ) -> None:
        self.id = id
        """The number that the log knows the queue by."""
        self.name = name
        self.address = address
        self.order = order
        self.last_values = last_values
        """The newest value of each key; None when the queue keeps all."""
        self.group_rule = group_rule
        """How messages are grouped; None when they are not."""
        self.groups: GroupViews | None = None
        """Which consumer has which group, from the first message with a group on."""
        self.exclusivity = exclusivity or Exclusivity()
        self.consumer_defaults = consumer_defaults or ConsumerDefaults()
        self.distribution = distribution
        self.overflow = overflow
        self.gate = gate
        self.redelivery = redelivery
        self.read_ahead = read_ahead
        self.routing_type = routing_type
        self.durable = durable
        self.selector = selector
        self.non_destructive = non_destructive
        self.rules = rules or MessageRules()
        self.lifetime = self.rules.lifetime
        self.holds = self.rules.holds
        self.consumers_max = consumers_max
        self.purge_on_no_consumers = purge_on_no_consumers
        self.enabled = enabled
        self.auto_created = auto_created
        self.temporary = temporary
        self.attributes = dict(attributes or {})
        """What was written on the queue itself, by attribute: a restart needs it when the file no longer declares the
        queue.
        """
        self.no_local = 0
        """The connection whose messages do not enter; 0 for none."""
        self.ring_size_changed: int | None = None
        """The ring-size set while the broker ran; None while that of the configuration holds."""
        self.deleted = False
        self.noted_ready = False
        self.was_used = False
        """A consumer left, or a message was settled: only then may auto-delete take the queue (unless told
        otherwise).
        """
        self.idle_since_ms = 0
        self.tally = Tally()
        self.scheduled: dict[int, Entry] = {}
        self.backlogs: dict[int, Backlog] = {}
        """What stands in pages and not in memory, by stream: one, or several for a queue on a wildcard address."""
        self.host = host
        self._prepare()

    def _prepare(self) -> None:
        """What the queue's parts remember from one call to the next."""
        self.alerts = self.rules.alerts
        self._ages = None if self.alerts is None else self.alerts.ages
        self._reads_left = 0
        """How many more messages in pages this dispatch may look at."""
        self._tired: list[Consumer] = []
        """Consumers that looked at as many messages in pages as one turn allows."""
        self.held_back: set[int] = set()
        """Of the scheduled: ids of those that have their place already, and return to it."""
        self.flow_stopped = False
        """Senders wait until the depth has fallen (PRODUCER_FLOW_CONTROL)."""
        self._picked_bytes = 0
        """Encoded size of what was picked for consumers that settle on send, and not written; kept where a depth is."""
        self.expiring: list[tuple[int, int, int, int]] = []
        """When to look where for which message: (epoch ms, level, sequence, message id). Not the entry itself: what
        is acknowledged long before it would have expired must not stay in memory until then.
        """
        self._looked_at = 0
        """Where to go on looking for what is watched in vain."""
        self.works: QueueWorks | None = None
        """What the queue was told to do and is not done with; None when that is nothing."""
        self._expiry: QueueWork | None = None
        """The round that removes what has expired, if one is not done yet."""
        self._shown_count = 0
        """How many consumers were shown what stands on a queue that dispatches nothing, before a turn was over."""
        self._was_cut = False
        """The consumer just picked was not shown all: it has its turn again."""
        self._dry = False
        """Some consumer was parked because nothing matched; arrivals wake it."""
        self._waking = 0
        """How many of very many consumers are still to be woken, from ``_wake_place`` on."""
        self._wake_place = 0
        self._has_lost_one = False
        """A consumer left since the last dispatch: the next one may have to take over."""
        self.shared_cursors: SharedCursors | None = None
        """Cursors of consumers that choose; None before the first of them comes."""
        self._cramped = False
        """Something in pages was not read because the queue may have no more in memory; whatever goes makes room."""

    # ---- what stands on the queue ----------------------------------------------------------------

    @property
    def message_count(self) -> int:
        """Ready, in delivery, scheduled and in pages. A message that is only being read (non-destructive) is counted
        once.
        """
        return self.order.count + self.tally.held_count + len(self.scheduled) + self.paged_count

    @property
    def paged_count(self) -> int:
        """In pages, and not in memory."""
        return sum(backlog.count for backlog in self.backlogs.values()) if self.backlogs else 0

    @property
    def paged_size_bytes(self) -> int:
        """Encoded size of what is in pages, and not in memory."""
        return sum(backlog.size_bytes for backlog in self.backlogs.values()) if self.backlogs else 0

    @property
    def delivering_count(self) -> int:
        """Sent to a consumer and not settled."""
        return self.tally.held_count + self.tally.read_count

    def depth(self) -> Depth | None:
        """What a durable queue holds of persistent messages; None when that is nothing."""
        tally = self.tally
        if not self.durable or self.temporary or not tally.durable_count:
            return None
        scheduled_count = tally.scheduled_durable_count
        return Depth(self.id, tally.durable_count, tally.durable_size_bytes, tally.held_durable_count, scheduled_count)

    @property
    def consumer_count(self) -> int:
        """Consumers attached."""
        return len(self.distribution.consumers)

    @property
    def taker_count(self) -> int:
        """Consumers attached that are no browsers: where consumers are counted, those who only look do not matter."""
        return self.distribution.taker_count

    @property
    def accepts_all(self) -> bool:
        """True when every message routed here is taken: no filter, enabled, and not waiting for a consumer."""
        return self.selector is None and self.enabled and not (self.purge_on_no_consumers or self.no_local)

    def accepts(self, message: Message) -> bool:
        """Does this message enter the queue?"""
        return self.is_open_to(message) and (self.selector is None or self.selector.matches(message.lookup))

    def is_open_to(self, message: Message) -> bool:
        """Does this message enter the queue, whatever its filter says?"""
        if not self.enabled or (self.purge_on_no_consumers and not self.taker_count):
            return False
        return not self.no_local or message.origin != self.no_local

    @property
    def _own(self) -> Queue:
        """This queue, for those who wake it."""
        return self  # type: ignore[return-value]

    @abstractmethod
    def _note_ready(self) -> None:
        """There may be something to dispatch."""

    @abstractmethod
    def _resume_flow(self) -> None:
        """Let senders go on, if enough has left."""

    @abstractmethod
    def put_aside(self, entry: Entry, due_ms: int) -> None:
        """Hold an entry until ``due_ms``."""

    @abstractmethod
    def expire(self, entries: list[Entry]) -> None:
        """Entries that are out of the order already have expired."""

    @property
    def is_held(self) -> bool:
        """Must nothing be dispatched, because entries are being moved?"""
        return self.works is not None and self.works.holds

    def expires_ms(self, message: Message) -> int:
        """When the message expires on this queue, in epoch ms; 0: never."""
        return message.expires_ms if self.lifetime is None else self.lifetime.expires_ms(message)

    @property
    def gives_expiry(self) -> bool:
        """Do messages expire here that have no expiry of their own?"""
        return self.lifetime is not None and self.lifetime.longest_ms > 0

    def watch_expiry(self, entry: Entry) -> None:
        message = entry.message
        expires_ms = self.expires_ms(message)
        if self.lifetime is not None and not (self.expiring and self.expiring[0][0] <= expires_ms):
            self.host.note_alarm(expires_ms, self._own)
        heappush(self.expiring, (expires_ms, self.order.level_of(message), entry.sequence, message.id))
        if len(self.expiring) > 2 * self.message_count + _VOID_MIN:
            self._looked_at = drop_void(self.expiring, self._looked_at, _LOOKS, self._expires_no_more)

    def _expires_no_more(self, watched: tuple[int, int, int, int]) -> bool:
        """Is a message gone that was watched? It is not while it stands here, waits, or is with a consumer."""
        _, level, sequence, message_id = watched
        entry = self.order.at(level, sequence)
        if (entry is not None and entry.message.id == message_id) or message_id in self.scheduled:
            return False
        if not self.tally.held_count:
            return True
        return not any(message_id in consumer.held for consumer in self.distribution.consumers)

    def wake_dry(self) -> None:
        """Something new stands on the queue: consumers that found nothing they want look again."""
        if self._dry:
            self._dry = False
            self._wake_others()

    def _wake_others(self) -> None:
        """Whoever has room looks again: at once, or, where there are very many, some in each dispatch."""
        count = len(self.distribution.consumers)
        if count <= WOKEN_AT_ONCE:
            self._waking = 0
            self.distribution.wake_all()
        else:
            self._waking = count

    def _wake_some(self) -> None:
        """Wake the next of those who are to look again."""
        consumers = self.distribution.consumers
        start = self._wake_place if self._wake_place < len(consumers) else 0
        end = min(start + min(self._waking, WOKEN_AT_ONCE), len(consumers))
        self._waking = 0 if end <= start else self._waking - (end - start)
        self._wake_place = end
        self.host.budget.spend(1 + (end - start) // _WOKEN_PER_UNIT)
        self.distribution.wake_all(start, end)

    def _use_freed(self) -> None:
        """A group may be with nobody now: consumers that found nothing look again."""
        groups = self.groups
        if groups is not None and groups.freed:
            groups.freed = False
            self.wake_dry()
            self._note_ready()

    def left_aside(self, entry: Entry) -> None:
        """An entry that was scheduled is ready, or gone: its group no longer waits for another attempt."""
        if self.groups is not None and entry.attempts:
            self.groups.leave_aside(entry.message)
            self._use_freed()

    def _wake_for_turn(self) -> None:
        """A dispatch begins: who looked at as much as one turn allows goes on, and who may have to take over from one
        that left.
        """
        if self._has_lost_one:
            self._has_lost_one = False
            self._dry = False
            self._wake_others()
        tired, self._tired = self._tired, []
        for consumer in tired:
            consumer.passed_over = 0  # behind those who have not had their turn
            if consumer.has_room and not consumer.closed:
                self.distribution.wake(consumer)
        if self._waking:
            self._wake_some()

    def use_room(self) -> None:
        """There may be room for messages from pages again, and not only for the consumer whose messages went."""
        self._cramped = False
        self.wake_dry()
        self._note_ready()

    def _forget(self, messages: list[Message], reason: str, by: Actor | None = None) -> None:
        """The queue no longer holds the messages, in whatever state they were; ``by``: the consumer that brought that
        about.
        """
        tally = self.tally
        durable: list[Message] | None = None
        paged: list[PagedMessage] | None = None
        for message in messages:
            head = message.head
            size_bytes = head.size_bytes + len(message.body)
            tally.size_bytes -= size_bytes
            if message.__class__ is PagedMessage:
                if paged is None:
                    paged = []
                paged.append(message)
            elif head.persistent and self.durable:
                if durable is None:
                    durable = []
                durable.append(message)
            if head.persistent:
                tally.durable_count -= 1
                tally.durable_size_bytes -= size_bytes
        if self.last_values is not None:
            self.last_values.forget(messages)
        if self._ages is not None:
            self._ages.remove(messages)
        release(messages)
        if durable is not None:
            self.host.log.settled(self.id, durable, reason, by)
        if paged is not None:
            self._forget_paged(paged, reason, by)
        if self.flow_stopped:
            self._resume_flow()
        if self._cramped and self._dry:
            self.use_room()

    def _forget_paged(self, messages: list[PagedMessage], reason: str, by: Actor | None) -> None:
        groups: dict[int, list[PagedMessage]] = {}
        for message in messages:
            groups.setdefault(message.page.stream, []).append(message)
        for number, group in groups.items():
            backlog = self.backlogs[number]
            for message in group:
                del backlog.in_memory[message.place]
            if not self.deleted:
                backlog.stream.settle(self._own, group, reason, by)
        durable: list[Message] = [message for message in messages if message.head.persistent]
        if self.deleted and self.durable and durable:  # its pages are forgotten; what became of messages is still told
            self.host.log.settled(self.id, durable, reason, by)

    # ---- expiry ----------------------------------------------------------------------------------

    def pop_expired(self, now_ms: int, looks_max: int) -> tuple[list[Entry], int]:
        """Entries of which the time is over, ready or held back, out of the order now, and how many times were looked
        at, of ``looks_max``; fewer than these when that is all.
        """
        expired: list[Entry] = []
        expiring = self.expiring
        looked = 0
        while looked < looks_max and expiring and expiring[0][0] <= now_ms:
            looked += 1
            _, level, sequence, message_id = heappop(expiring)
            entry = self.order.at(level, sequence)
            if entry is not None and entry.message.id == message_id:
                self.order.remove(entry, sequence)
                expired.append(entry)
            elif message_id in self.held_back:
                self.held_back.discard(message_id)
                held = self.scheduled.pop(message_id)
                self.tally.leave_scheduled(held.message)
                self.left_aside(held)
                expired.append(held)
        return expired, looked

    def set_alarm(self) -> None:
        """Look again when the next message expires, where the queue gives messages their time."""
        if self.expiring and self.lifetime is not None:
            self.host.note_alarm(self.expiring[0][0], self._own)


def release(messages: list[Message]) -> None:
    """One queue less refers to each of the messages; those that nobody needs leave the address' memory."""
    account: Account | None = None
    count = size_bytes = 0
    for message in messages:
        message.refs -= 1
        if message.refs:
            continue
        if message.__class__ is PagedMessage:
            message.page.resident.pop(message.place, None)
        if message.account is not account:
            if account is not None:
                account.credit(count, size_bytes)
            account = message.account
            count = size_bytes = 0
        count += 1
        size_bytes += message.memory_bytes
    if account is not None:
        account.credit(count, size_bytes)
