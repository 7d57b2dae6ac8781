"""A queue: entries on their way from an address to consumers.

It is composed of parts (:mod:`artemis_py.core.queue.parts`), which own what they change and decide. The queue is the
list of verbs that others may use; how messages get on it is in its ``arrivals``. It does not route and does not know
sessions or frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from artemis_py.core.budget import Budget
from artemis_py.core.queue.consumer import Consumer, ConsumerDefaults
from artemis_py.core.queue.entry import ABANDONED, NACKED, PURGED, Entry
from artemis_py.core.queue.exclusivity import Exclusivity
from artemis_py.core.queue.falling import FallDue
from artemis_py.core.queue.parts import QueueParts
from artemis_py.core.queue.removal import Expiring, Removal
from artemis_py.core.queue.returning import Return
from artemis_py.core.queue.seats import Seats
from artemis_py.core.queue.settling import Settling
from artemis_py.core.queue.works import QueueWork
from artemis_py.message import Message
from artemis_py.records import Depth
from artemis_py.selector import Selector

_NO_ATTRIBUTES: Final[Mapping[str, object]] = {}


@final
class Queue:
    """One queue. Verbs that may take longer than a turn return what is not done yet."""

    __slots__ = (
        "__weakref__", "_expiry", "address", "arrivals", "attributes", "auto_created", "consumer_defaults", "contents",
        "distribution", "durable", "enabled", "flow", "gate", "grouping", "id", "name", "no_local", "non_destructive",
        "parts", "purge_on_no_consumers", "reference", "ring_size_changed", "routing_type", "seats", "selector",
        "temporary",
    )  # fmt: skip

    def __init__(  # noqa: PLR0913 - the recipe names each attribute
        self,
        parts: QueueParts,
        *,
        routing_type: str,
        selector: Selector | None = None,
        non_destructive: bool = False,
        consumers_max: int = -1,
        purge_on_no_consumers: bool = False,
        enabled: bool = True,
        auto_created: bool = False,
        temporary: bool = False,
        exclusivity: Exclusivity | None = None,
        consumer_defaults: ConsumerDefaults | None = None,
        attributes: Mapping[str, object] | None = None,
    ) -> None:
        reference = parts.reference
        self.parts = parts
        self.reference = reference
        self.id = reference.id
        self.name = reference.name
        self.address = reference.address
        self.durable = reference.durable
        self.contents = parts.contents
        self.flow = parts.flow
        self.grouping = parts.grouping
        self.distribution = parts.distribution
        self.gate = parts.gate
        self.arrivals = parts.arrivals
        self.seats = Seats(
            parts, exclusivity or Exclusivity(), consumers_max=consumers_max, shows_returns=non_destructive
        )
        self.routing_type = routing_type
        self.selector = selector
        self.non_destructive = non_destructive
        self.purge_on_no_consumers = purge_on_no_consumers
        self.enabled = enabled
        self.auto_created = auto_created
        self.temporary = temporary
        self.consumer_defaults = consumer_defaults or ConsumerDefaults()
        self.attributes: Mapping[str, object] = attributes or _NO_ATTRIBUTES
        """What was written on the queue itself, by attribute: a restart needs it when the file no longer declares the
        queue.
        """
        self.no_local = 0
        """The connection whose messages do not enter; 0 for none."""
        self.ring_size_changed: int | None = None
        """The ring-size set while the broker ran; None while that of the configuration holds."""
        self._expiry: QueueWork | None = None
        """The round that removes what has expired, if one is not done yet."""

    # ---- what others ask -------------------------------------------------------------------------

    @property
    def deleted(self) -> bool:
        """Is the queue gone?"""
        return self.reference.deleted

    @property
    def message_count(self) -> int:
        """Ready, in delivery, scheduled and in pages."""
        return self.contents.message_count

    @property
    def consumer_count(self) -> int:
        """Consumers attached."""
        return len(self.distribution.consumers)

    @property
    def taker_count(self) -> int:
        """Consumers attached that are no browsers: where consumers are counted, those who only look do not matter."""
        return self.distribution.taker_count

    @property
    def may_go_on(self) -> bool:
        """May a sender that was made to wait go on?"""
        return self.flow.may_go_on

    @property
    def is_held(self) -> bool:
        """Must nothing be dispatched, because entries are being moved?"""
        return self.parts.works.holds

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

    def depth(self) -> Depth | None:
        """What a durable queue holds of persistent messages; None when that is nothing."""
        tally = self.contents.tally
        if not self.durable or self.temporary or not tally.durable_count:
            return None
        scheduled_count = tally.scheduled_durable_count
        return Depth(self.id, tally.durable_count, tally.durable_size_bytes, tally.held_durable_count, scheduled_count)

    # ---- dispatch --------------------------------------------------------------------------------

    def dispatch(self, now_ms: int) -> None:
        """Offer ready entries to consumers, until the turn's budget is spent."""
        if not self.parts.works.holds:
            self.parts.delivery.run(now_ms, 0)
            self.parts.aftermath.run()

    def offer_first(self, now_ms: int) -> None:
        """Before anything is refused or given up, offer ready entries to consumers, also when the budget is spent."""
        self.parts.growth.offer_first(now_ms)

    def sent(self, consumer: Consumer, entries: list[Entry]) -> None:
        """The entries of a consumer's outbox were written: for a consumer that settles on send, that is the end of
        them.
        """
        if consumer.actor is not None:
            durable = [entry.message for entry in entries if entry.message.head.persistent]
            if durable:
                self.parts.host.log.story.delivered(self.id, durable, consumer.actor)
        if consumer.settles and consumer.destructive:
            contents = self.contents
            messages = [entry.message for entry in entries]
            if contents.picked_bytes:
                contents.picked_bytes -= sum([message.size_bytes for message in messages])
            contents.acknowledge(messages, consumer.actor)
            self.grouping.settle(messages)
            self.parts.aftermath.run()

    # ---- settling and returning ------------------------------------------------------------------

    def acknowledge(self, consumer: Consumer, entries: list[Entry]) -> None:
        """The consumer is done with entries that it let go."""
        self.parts.acknowledge(consumer, entries)
        self.parts.aftermath.run()

    def acknowledge_up_to(self, consumer: Consumer, message_id: int, now_ms: int) -> QueueWork | None:
        """The consumer is done with a held message and all that were sent to it before."""
        budget = self.parts.host.budget
        if self.parts.tasks.are_done and len(consumer.held) <= budget.left:
            entries = consumer.let_go_up_to(message_id)
            budget.spend(len(entries))
            self.acknowledge(consumer, entries)
            return None
        return self.parts.tasks.begin(Settling(self.parts, consumer, message_id), now_ms)

    def refuse_up_to(self, consumer: Consumer, message_id: int, now_ms: int) -> QueueWork | None:
        """The consumer refuses a held message and all that were sent to it before."""
        return self.parts.tasks.begin(Return(self.parts, consumer, None, failed=True, up_to=message_id), now_ms)

    def release(
        self, consumer: Consumer, entries: list[Entry], *, failed: bool, now_ms: int, cause: str = NACKED
    ) -> QueueWork | None:
        """Take back entries that the consumer let go; see ``Return``."""
        return self.parts.tasks.begin(Return(self.parts, consumer, entries, failed=failed, cause=cause), now_ms)

    # ---- consumers -------------------------------------------------------------------------------

    def attach(self, consumer: Consumer, now_ms: int) -> None:
        """A consumer comes. Raises LimitError when the queue has as many as it may, or admits others only."""
        self.seats.attach(consumer, now_ms)

    def detach(self, consumer: Consumer, *, failed: bool, now_ms: int) -> QueueWork | None:
        """A consumer leaves, and what it had comes back; see ``Seats``."""
        unfinished = self.seats.detach(consumer, failed=failed, now_ms=now_ms)
        if self.purge_on_no_consumers and not self.taker_count and not consumer.browses:
            unfinished = self.purge(ABANDONED, now_ms) or unfinished
        return unfinished

    def wake(self, consumer: Consumer) -> None:
        """The consumer has room or credit again."""
        self.parts.wake(consumer)

    # ---- time ------------------------------------------------------------------------------------

    def fall_due(self, entries: list[Entry], now_ms: int, budget: Budget) -> None:
        """Scheduled entries, the earliest first, take their places."""
        self.parts.tasks.begin(FallDue(self.parts, entries), now_ms, budget)

    def look_again(self, now_ms: int) -> None:
        """A time has come for which the queue set an alarm."""
        self.expire_due(now_ms)
        if self.parts.alerts is not None:
            self.parts.alerts.look_again(now_ms)

    def tick_gate(self, steady_ms: int) -> None:
        """Let a delay-before-dispatch run out."""
        if self.gate.tick(steady_ms):
            self.parts.note_ready()

    def expire_due(self, now_ms: int) -> None:
        """Remove entries of which the time is over, ready or held back. What is in delivery or scheduled is left
        alone.
        """
        first_ms = self.contents.expiry.next_ms
        if first_ms > now_ms:
            self.contents.expiry.set_alarm()
        elif first_ms and (self._expiry is None or self._expiry.done):
            self._expiry = self.parts.tasks.begin(Expiring(self.contents), now_ms)

    def expire_paged(self, now_ms: int) -> None:
        """The same in pages; what has to be fetched for that is dealt with in later turns."""
        if self.contents.backlogs:
            self.parts.pages.expire(now_ms)
            self.parts.aftermath.run()

    def page_arrived(self, consumer: Consumer | None) -> None:
        """What the queue, or one of its consumers, waited for has come from the disk."""
        if consumer is None:
            self.parts.waking.wake_dry()
        else:
            self.parts.waking.wake(consumer)
        self.parts.note_ready()

    # ---- management ------------------------------------------------------------------------------

    def pause(self) -> None:
        """Stop dispatch; arrivals go on."""
        self.gate.paused = True

    def resume(self) -> None:
        """Dispatch again."""
        self.gate.paused = False
        self.parts.note_ready()

    def remove_all(self, reason: str = PURGED) -> int:
        """Kill everything that is ready or scheduled; what is in delivery stays with its consumer. Returns how many
        go.
        """
        contents = self.contents
        removed = contents.order.count + len(contents.scheduled) + contents.paged_count
        self.purge(reason, self.parts.host.log.now_ms)
        return removed

    def purge(self, reason: str, now_ms: int) -> QueueWork | None:
        """As ``remove_all``; returns what is not done yet."""
        parts = self.parts
        parts.pages.remove_all(reason)
        unfinished = parts.tasks.begin(Removal(self.contents, reason, parts.host.message_id), now_ms)
        self.flow.resume()
        return unfinished
