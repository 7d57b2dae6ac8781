"""How messages get on a queue: at once or scheduled, into memory or a page, new or restored after a restart."""

from __future__ import annotations

from typing import final

from artemis_py.core.consumer import Consumer
from artemis_py.core.order.entry import ABANDONED, REPLACED, Entry
from artemis_py.core.pages.stream import PageStream
from artemis_py.core.queue.aftermath import Aftermath
from artemis_py.core.queue.alert_watch import AlertWatch
from artemis_py.core.queue.basis import QueueBasis
from artemis_py.core.queue.growth import Growth
from artemis_py.core.queue.holding import not_before_ms
from artemis_py.core.queue.pages import QueuePages
from artemis_py.core.queue.works import QueueWorks
from artemis_py.message import Message


@final
class Arrivals:
    """Puts messages on one queue."""

    __slots__ = (
        "_aftermath", "_alerts", "_contents", "_distribution", "_flow", "_gate", "_goes_to_tail", "_grouping",
        "_growth", "_host", "_is_plain", "_pages", "_reference", "_waking", "_works",
    )  # fmt: skip

    def __init__(
        self,
        basis: QueueBasis,
        pages: QueuePages,
        works: QueueWorks,
        growth: Growth,
        aftermath: Aftermath,
        alerts: AlertWatch | None,
    ) -> None:
        self._reference = basis.reference
        self._host = basis.host
        self._contents = basis.contents
        self._flow = basis.flow
        self._grouping = basis.grouping
        self._waking = basis.waking
        self._distribution = basis.distribution
        self._gate = basis.gate
        self._pages = pages
        self._works = works
        self._growth = growth
        self._aftermath = aftermath
        self._alerts = alerts
        self._goes_to_tail = not self._contents.holds and self._contents.last_values is None
        """Does every arrival go to the tail?"""
        self._is_plain = self._goes_to_tail and self._contents.behind is None
        """And is it active there?"""

    # ---- handed over -----------------------------------------------------------------------------

    def direct_consumer(self, messages: list[Message]) -> Consumer | None:
        """The consumer that may get arrivals without queueing, if there is one: it is alone, settles on send without
        an acknowledgement, takes any message, and has room.
        """
        consumers = self._distribution.consumers
        contents = self._contents
        if len(consumers) != 1 or contents.order.count or consumers[0].outbox or self._flow.overflow.keeps_none:
            return None
        if (
            not self._is_plain
            or self._alerts is not None
            or (contents.paged.backlogs and contents.paged.count)
            or self._works.holds
        ):
            return None
        consumer = consumers[0]
        wants_it = consumer.settles and not consumer.acks and consumer.cursor is None and consumer.room_bytes > 0
        if wants_it and self._gate.is_open and self._gate.lets_out(contents.tally.held_count):
            self._grouping.look_for(messages)
            return consumer if self._grouping.groups is None else None
        return None

    def hand_over(self, consumer: Consumer, entries: list[Entry], size_bytes: int) -> None:
        """Give arrivals to the direct consumer: they count as added and acknowledged at once. Queues may share the
        entries.
        """
        consumer.handed.extend(entries)
        consumer.room_bytes -= size_bytes
        self._contents.pass_through(len(entries))
        self._host.note_output(consumer)

    # ---- queued ----------------------------------------------------------------------------------

    def arrive(self, entries: list[Entry], size_bytes: int, now_ms: int) -> None:
        """Append entries of new messages. Consumers with room take theirs before a ring trims."""
        if len(entries) > 1 and self._flow.overflow.sheds_bytes and not self._flow.fits(len(entries), size_bytes):
            for entry in entries:  # which ones stay must not depend on how many arrive together
                self.arrive([entry], entry.message.size_bytes, now_ms)
            return
        if self._grouping.rule is not None and self._grouping.groups is None:
            self._grouping.look_for([entry.message for entry in entries])
        expires = self._contents.count_in(entries, size_bytes)
        if self._is_plain and not expires:
            self._contents.order.extend(entries)
        else:
            self._append(entries, now_ms)
        self._growth.run(len(entries), now_ms)
        if self._alerts is not None:
            self._alerts.look_at([entry.message for entry in entries], now_ms)
        self._aftermath.run()

    def _append(self, entries: list[Entry], now_ms: int) -> None:
        """Append entries one by one. One that may not be delivered yet takes its place and is put aside. A newer value
        replaces the one before it.
        """
        contents = self._contents
        if self._goes_to_tail:
            contents.append_expiring(entries)
            return
        placed_count = 0
        try:
            for entry in entries:
                self._append_one(entry, now_ms)
                placed_count += 1
        except Exception:
            contents.kill([entry.message for entry in entries[placed_count:]], ABANDONED)
            raise

    def _append_one(self, entry: Entry, now_ms: int) -> None:
        contents = self._contents
        due_ms = not_before_ms(entry.message, now_ms) if contents.holds else 0
        keeps_last = contents.last_values is not None
        if keeps_last:
            self._offer_older(entry, now_ms)
            contents.enter_value(entry)
            self._aftermath.run()
        if due_ms:
            contents.append_held(entry, due_ms)
        elif keeps_last:
            contents.append_value(entry)
        else:
            contents.append_expiring([entry])

    def _offer_older(self, entry: Entry, now_ms: int) -> None:
        """Offer the older value to a consumer with room before it is replaced. What a consumer gets must not depend on
        how many messages arrive together.
        """
        contents = self._contents
        older = None if contents.last_values is None else contents.last_values.older(entry.message)
        if older is not None and contents.stands(older):
            self._waking.wake_dry()
            self._growth.offer_first(now_ms)

    def schedule(self, entry: Entry, due_ms: int, now_ms: int) -> None:
        """Put a new message aside until ``due_ms`` (epoch ms). It counts as added now."""
        message = entry.message
        self._grouping.look_for([message])
        self._contents.count_in([entry], message.size_bytes)
        try:
            if self._contents.behind is None:
                self._contents.put_aside(entry, due_ms)
            else:
                self._contents.append_held(entry, due_ms)
        except Exception:
            self._contents.kill([message], ABANDONED)
            raise
        self._growth.keep_to_depth(now_ms)
        if self._alerts is not None:
            self._alerts.look_at([message], now_ms)
        self._aftermath.run()

    def arrive_paged(self, stream: PageStream, messages: list[Message], size_bytes: int, now_ms: int) -> None:
        """New messages were paged. ``QueuePages.prepare`` must come first."""
        self._pages.arrive(stream, messages, size_bytes, now_ms)
        self._aftermath.run()

    def refuse(self, messages: list[Message]) -> None:
        """A ring that keeps nothing drops new messages as they arrive, while other queues page them."""
        self._contents.count_lost(messages, REPLACED, replaced=True)

    def miss(self, messages: list[Message], reason: str) -> None:
        """The queue does not take these messages any more: it was deleted, or has no consumer. ``reason`` is one of
        those in ``core/order/entry.py``.
        """
        self._contents.count_lost(messages, reason)

    # ---- after a restart -------------------------------------------------------------------------

    def take_back(self, entries: list[tuple[Entry, int]], now_ms: int) -> None:
        """Restore entries in their order, each with the date when it is due in epoch ms (0: ready). Rings trim as for
        arrivals.
        """
        contents, grouping = self._contents, self._grouping
        grouping.look_for([entry.message for entry, _ in entries])
        contents.count_restored([entry for entry, _ in entries])
        ready: list[Entry] = []
        restored = 0
        for entry, due_ms in entries:
            keeps_place = contents.keeps_place(entry)
            if not due_ms or (keeps_place and due_ms <= now_ms):
                ready.append(entry)
                restored += 1
                continue
            if keeps_place or contents.last_values is not None:
                self._append_ready(ready, now_ms)
                ready = []
            if contents.behind is not None and not entry.attempts:
                contents.append_held(entry, due_ms)
                continue
            if keeps_place:
                entry.sequence = contents.order.take_sequence(entry.message)
            contents.put_aside(entry, due_ms)
            if entry.attempts and contents.last_values is not None:
                contents.enter_value(entry)
        self._append_ready(ready, now_ms)
        self._growth.fit_again(restored)
        self._flow.stop()
        if self._alerts is not None:
            self._alerts.look_at([entry.message for entry, _ in entries], now_ms)
        if restored:
            self._host.note_ready(self._reference)
        self._aftermath.run()

    def _append_ready(self, entries: list[Entry], now_ms: int) -> None:
        if not entries:
            return
        if self._is_plain and not any(self._contents.expires_ms(entry.message) for entry in entries):
            self._contents.order.extend(entries)
        else:
            self._append(entries, now_ms)
