"""Who holds which message of a queue, and until when (AMPS' leases)."""

from __future__ import annotations

from collections import OrderedDict
from datetime import UTC, datetime
from sys import maxsize
from typing import final

from artemis_py.core.consumer import Consumer
from artemis_py.core.order.entry import Entry
from artemis_py.core.queue_host import QueueHost
from artemis_py.message import Message


@final
class Leases:
    """The leases of one queue. All are equally long, so that the one which began first ends first.

    A message acknowledged in a transaction has no holder: its lease does not count until the transaction ends. The
    leases do not survive a restart, because no consumer does.
    """

    __slots__ = (
        "_back", "_by_bookmark", "_held", "_host", "_queue_id", "_text", "_text_at_ms", "ended_count", "is_strict",
        "period_ms",
    )  # fmt: skip

    def __init__(self, queue_id: int, host: QueueHost, period_ms: int, *, is_strict: bool) -> None:
        self._queue_id = queue_id
        self._host = host
        self.period_ms = period_ms
        """How long a consumer may hold a message; 0: for ever."""
        self.is_strict = is_strict
        """Must others leave a message alone that is leased?"""
        self._held: OrderedDict[int, tuple[int, Consumer]] = OrderedDict()
        """When each lease began (steady ms), and its holder, by message id, in the order in which they began."""
        self._back: dict[int, Entry] = {}
        """Messages that were leased and have come back, by id."""
        self._by_bookmark: dict[int, int] = {}
        """The ids of messages that are or were leased, by bookmark (the lsn of their publication)."""
        self._text = ""
        self._text_at_ms = -1
        self.ended_count = 0
        """How many leases have run out since the start."""

    # ---- begin and end ---------------------------------------------------------------------------

    def begin(self, entries: list[Entry], consumer: Consumer) -> None:
        """These entries were just sent to a consumer that is to settle them."""
        lease = self._host.clock.steady_ms(self._host.log.now_ms), consumer
        held, back = self._held, self._back
        by_bookmark = self._by_bookmark
        for entry in entries:
            message = entry.message
            message_id = message.id
            held[message_id] = lease
            if message.lsn:
                by_bookmark[message.lsn] = message_id
            if back:
                back.pop(message_id, None)
        self.set_timer()

    def end(self, message_id: int) -> None:
        """A message leaves its holder."""
        self._held.pop(message_id, None)

    def note_back(self, entry: Entry) -> None:
        """An entry that was leased is on the queue again."""
        self._back[entry.message.id] = entry

    def forget(self, messages: list[Message]) -> None:
        """These messages have left the queue."""
        held, back, by_bookmark = self._held, self._back, self._by_bookmark
        for message in messages:
            held.pop(message.id, None)
            by_bookmark.pop(message.lsn, None)
        if back:
            for message in messages:
                back.pop(message.id, None)

    # ---- expiry ----------------------------------------------------------------------------------

    @property
    def first_end_ms(self) -> int:
        """The steady time at which the first lease ends; ``maxsize`` when none does."""
        held = self._held
        return held[next(iter(held))][0] + self.period_ms if held and self.period_ms else maxsize

    def set_timer(self) -> None:
        """Have the queue look again when the first lease ends."""
        ends_ms = self.first_end_ms
        if ends_ms < maxsize:
            self._host.timers.leases.set_by(self._queue_id, ends_ms)

    def is_over(self, steady_ms: int) -> bool:
        """Is a lease over?"""
        return self.first_end_ms <= steady_ms

    def pop_over(self, steady_ms: int, count_max: int) -> list[tuple[int, Consumer]]:
        """Take leases that are over: message ids with their holders, the first first."""
        held = self._held
        over: list[tuple[int, Consumer]] = []
        while held and len(over) < count_max and self.first_end_ms <= steady_ms:
            message_id, (_, consumer) = held.popitem(last=False)
            over.append((message_id, consumer))
        return over

    # ---- what others ask -------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._held)

    def holder_of(self, message_id: int) -> Consumer | None:
        """Who holds a message; None when nobody does."""
        lease = self._held.get(message_id)
        return None if lease is None else lease[1]

    def begun_ms(self, message_id: int) -> int:
        """The steady time at which a message was sent to its holder; -1 when nobody holds it."""
        lease = self._held.get(message_id)
        return -1 if lease is None else lease[0]

    def first(self) -> tuple[int, Consumer] | None:
        """When the lease began (steady ms) that is older than all others, and its holder; None without a lease."""
        held = self._held
        return held[next(iter(held))] if held else None

    def leased_ids(self) -> list[int]:
        """The ids of all messages that are leased, in the order in which the leases began."""
        return list(self._held)

    def id_of(self, bookmark: int) -> int:
        """The id of a message that is or was leased; 0: it is not known."""
        return self._by_bookmark.get(bookmark, 0)

    def returned(self, message_id: int) -> Entry | None:
        """A message that was leased and is on the queue again; None when it is not."""
        return self._back.get(message_id)

    def end_in_words(self) -> str:
        """When a lease ends that begins now: ISO 8601, UTC, in ms. The empty text when it does not end."""
        now_ms = self._host.log.now_ms
        if now_ms != self._text_at_ms and self.period_ms:
            self._text_at_ms = now_ms
            date = datetime.fromtimestamp((now_ms + self.period_ms) // 1000, UTC)
            self._text = f"{date:%Y-%m-%dT%H:%M:%S}.{(now_ms + self.period_ms) % 1000:03d}Z"
        return self._text
