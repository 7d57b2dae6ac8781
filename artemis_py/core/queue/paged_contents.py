"""What a queue has in pages, and the counters for it: the paged part of its contents."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.host import Host
from artemis_py.core.keeping import keep
from artemis_py.core.order.entry import DAMAGED, Entry
from artemis_py.core.pages.backlog import Backlog
from artemis_py.core.pages.stream import RestoredShare
from artemis_py.core.queue.tally import Tally
from artemis_py.core.reference.reference import QueueReference
from artemis_py.message import Message
from artemis_py.paged import Page, PagedMessage
from artemis_py.records import Actor

_NO_BACKLOGS: Final[dict[int, Backlog]] = {}
"""Most queues never need a dict of their own, and there are many queues."""


@final
class PagedContents:
    """One queue's backlogs. It counts messages that come into pages, leave them for memory, and are gone."""

    __slots__ = ("_host", "_reference", "_tally", "backlogs")

    def __init__(self, reference: QueueReference, host: Host, tally: Tally) -> None:
        self._reference = reference
        self._host = host
        self._tally = tally
        self.backlogs: dict[int, Backlog] = _NO_BACKLOGS
        """Messages in pages and not in memory, by stream. A queue on a wildcard address may have several streams."""

    @property
    def count(self) -> int:
        """Messages in pages and not in memory."""
        return sum(backlog.count for backlog in self.backlogs.values()) if self.backlogs else 0

    @property
    def size_bytes(self) -> int:
        """Encoded size, in bytes, of messages in pages and not in memory."""
        return sum(backlog.size_bytes for backlog in self.backlogs.values()) if self.backlogs else 0

    def begin(self, backlog: Backlog) -> None:
        """The queue may have messages in the pages of this backlog's stream from now on."""
        if not self.backlogs:
            self.backlogs = {}
        self.backlogs[backlog.stream.number] = backlog

    def end(self, number: int) -> None:
        """Paging has ended in a stream."""
        del self.backlogs[number]

    # ---- into pages, and out of them -------------------------------------------------------------

    def arrive(self, number: int, messages: list[Message], size_bytes: int) -> None:
        """Count new messages of ``size_bytes`` together that went to the pages of a stream."""
        durable_sizes = [message.size_bytes for message in messages if message.head.persistent]
        self._add(self.backlogs[number], len(messages), size_bytes, len(durable_sizes), sum(durable_sizes))

    def restore(self, backlog: Backlog, share: RestoredShare) -> None:
        """After a restart: count the queue's share of a page."""
        count, size_bytes = share.left
        self._add(backlog, count, size_bytes, count, size_bytes)
        backlog.restore(share.page, share.settled, share.attempts)

    def _add(self, backlog: Backlog, count: int, size_bytes: int, durable_count: int, durable_size_bytes: int) -> None:
        tally = self._tally
        tally.added += count
        tally.size_bytes += size_bytes
        tally.durable_count += durable_count
        tally.durable_size_bytes += durable_size_bytes
        backlog.add(count, size_bytes, durable_count, durable_size_bytes)

    def fetch(self, backlog: Backlog, message: PagedMessage) -> None:
        """The queue takes a message from a page into memory."""
        backlog.take(message)
        self._correct(backlog)
        if not message.refs:
            message.page.resident[message.place] = message
        keep(message)

    def came_back(self, message: Message) -> None:
        """A message is ready again. If it is from a page, it may stand behind some that were not read yet."""
        if isinstance(message, PagedMessage):
            self.backlogs[message.page.stream].came_back(message)

    def is_newer(self, known: Entry, entry: Entry) -> bool:
        """Came a known entry after one that was read from a page? Where places do not tell the order, sequences tell
        when an entry was read, and those of two priorities nothing.
        """
        message, other = entry.message, known.message
        assert isinstance(message, PagedMessage)
        if self.backlogs[message.page.stream].shared_order:
            return known.sequence > entry.sequence
        if isinstance(other, PagedMessage) and other.page.stream == message.page.stream:
            return other.place > message.place
        return other.id > message.id

    # ---- gone ------------------------------------------------------------------------------------

    def forget(self, messages: list[PagedMessage], reason: str, by: Actor | None) -> None:
        """Settle messages that were fetched from pages, for ``reason``."""
        reference = self._reference
        groups: dict[int, list[PagedMessage]] = {}
        for message in messages:
            groups.setdefault(message.page.stream, []).append(message)
        for number, group in groups.items():
            backlog = self.backlogs[number]
            for message in group:
                del backlog.in_memory[message.place]
            if not reference.deleted:
                backlog.stream.settle(reference, group, reason, by)
        durable: list[Message] = [message for message in messages if message.head.persistent]
        if reference.deleted and reference.durable and durable:  # its pages are forgotten, but the log
            self._host.log.settled(reference.id, durable, reason, by)  # still says how messages ended

    def kill(self, backlog: Backlog, reason: str) -> None:
        """Remove everything in the pages of one stream that is not in memory, for ``reason``."""
        tally = self._tally
        tally.kill(backlog.count, reason)
        tally.size_bytes -= backlog.size_bytes
        tally.durable_count -= backlog.durable_count
        tally.durable_size_bytes -= backlog.durable_size_bytes
        backlog.drop_all()
        backlog.stream.purge(self._reference, list(backlog.in_memory.values()), reason)

    def write_off(self, backlog: Backlog, pages: list[Page]) -> None:
        """Kill what damaged pages, read to their end, did not give."""
        for page in pages:
            there = [message for message in backlog.in_memory.values() if message.page is page]
            lost = backlog.stream.purge_page(self._reference, page, there, DAMAGED)
            if lost > 0:
                self._tally.kill(lost, DAMAGED)
                backlog.count -= lost
        self._correct(backlog)

    def _correct(self, backlog: Backlog) -> None:
        """Correct the sizes when nothing is left in pages. What they still count are damaged messages that were lost;
        nobody knows how large each was.
        """
        if not backlog.count:
            tally = self._tally
            tally.size_bytes -= backlog.size_bytes
            tally.durable_count -= backlog.durable_count
            tally.durable_size_bytes -= backlog.durable_size_bytes
            backlog.size_bytes = backlog.durable_count = backlog.durable_size_bytes = 0
