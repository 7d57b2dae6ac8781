"""What a queue consists of: its parts, its counters, and what stands on it or has left it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING

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
from artemis_py.core.redelivery import Redelivery
from artemis_py.core.rules import MessageRules
from artemis_py.core.tally import Tally
from artemis_py.message import Account, Message
from artemis_py.paged import PagedMessage
from artemis_py.records import Actor, Depth
from artemis_py.selector import Selector

if TYPE_CHECKING:
    from artemis_py.core.address import Address
    from artemis_py.core.queue import Queue


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
        self._host = host
        self._prepare()

    def _prepare(self) -> None:
        """What the queue's parts remember from one call to the next."""
        self.alerts = self.rules.alerts
        self._ages = None if self.alerts is None else self.alerts.ages
        self._reads_left = 0
        """How many more messages in pages this dispatch may look at."""
        self._tired: list[Consumer] = []
        """Consumers that looked at as many messages in pages as one turn allows."""
        self._held_back: set[int] = set()
        """Of the scheduled: ids of those that have their place already, and return to it."""
        self.flow_stopped = False
        """Senders wait until the depth has fallen (PRODUCER_FLOW_CONTROL)."""
        self._picked_bytes = 0
        """Encoded size of what was picked for consumers that settle on send, and not written; kept where a depth is."""
        self._expiring: list[tuple[int, int, int, int]] = []
        """When to look where for which message: (epoch ms, level, sequence, message id). Not the entry itself: what
        is acknowledged long before it would have expired must not stay in memory until then.
        """
        self._dry = False
        """Some consumer was parked because nothing matched; arrivals wake it."""
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
        return sum([not consumer.browses for consumer in self.distribution.consumers])

    @property
    def accepts_all(self) -> bool:
        """True when every message routed here is taken: no filter, enabled, and not waiting for a consumer."""
        return self.selector is None and self.enabled and not (self.purge_on_no_consumers or self.no_local)

    def accepts(self, message: Message) -> bool:
        """Does this message enter the queue?"""
        if not self.enabled or (self.purge_on_no_consumers and not self.taker_count):
            return False
        if self.no_local and message.origin == self.no_local:
            return False
        return self.selector is None or self.selector.matches(message.lookup)

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
    def _put_aside(self, entry: Entry, due_ms: int) -> None:
        """Hold an entry until ``due_ms``."""

    @abstractmethod
    def _expire(self, entry: Entry) -> None:
        """An entry that is out of the order already has expired."""

    def expires_ms(self, message: Message) -> int:
        """When the message expires on this queue, in epoch ms; 0: never."""
        return message.expires_ms if self.lifetime is None else self.lifetime.expires_ms(message)

    @property
    def gives_expiry(self) -> bool:
        """Do messages expire here that have no expiry of their own?"""
        return self.lifetime is not None and self.lifetime.longest_ms > 0

    def _watch_expiry(self, entry: Entry) -> None:
        message = entry.message
        expires_ms = self.expires_ms(message)
        if self.lifetime is not None and not (self._expiring and self._expiring[0][0] <= expires_ms):
            self._host.note_alarm(expires_ms, self._own)
        heappush(self._expiring, (expires_ms, self.order.level_of(message), entry.sequence, message.id))

    def _wake_dry(self) -> None:
        """Something new stands on the queue: consumers that found nothing they want look again."""
        if self._dry:
            self._dry = False
            self.distribution.wake_all()

    def _use_freed(self) -> None:
        """A group may be with nobody now: consumers that found nothing look again."""
        groups = self.groups
        if groups is not None and groups.freed:
            groups.freed = False
            self._wake_dry()
            self._note_ready()

    def _left_aside(self, entry: Entry) -> None:
        """An entry that was scheduled is ready, or gone: its group no longer waits for another attempt."""
        if self.groups is not None and entry.attempts:
            self.groups.leave_aside(entry.message)
            self._use_freed()

    def _wake_tired(self) -> None:
        """A dispatch begins: who looked at as much as one turn allows goes on."""
        tired, self._tired = self._tired, []
        for consumer in tired:
            if consumer.has_room and not consumer.closed:
                self.distribution.wake(consumer)

    def use_room(self) -> None:
        """There may be room for messages from pages again, and not only for the consumer whose messages went."""
        self._cramped = False
        self._wake_dry()
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
            self._host.log.settled(self.id, durable, reason, by)
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
            self._host.log.settled(self.id, durable, reason, by)

    # ---- expiry ----------------------------------------------------------------------------------

    def _pop_expired(self, now_ms: int) -> Iterator[tuple[int, Entry | None]]:
        """Ids of messages whose time is over, each with its entry, out of the order now; None when it is not ready."""
        expiring = self._expiring
        while expiring and expiring[0][0] <= now_ms:
            _, level, sequence, message_id = heappop(expiring)
            entry = self.order.at(level, sequence)
            if entry is not None and entry.message.id == message_id:
                self.order.remove(entry, sequence)
                yield message_id, entry
            else:
                yield message_id, None
        if expiring and self.lifetime is not None:
            self._host.note_alarm(expiring[0][0], self._own)


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
