"""The state that the journal's records about pages add up to: which pages exist, and what durable queues need of them.

As with the rest of the index, a running journal and recovery use the same code. A running journal passes the page
objects that the broker itself uses, so their content need not be repeated.
"""

from __future__ import annotations

from collections.abc import Sequence

from artemis_py.paged_messages import Page, PagedMessage, PageShare, PlaceSet, SettledPlaces
from artemis_py.record_log import KeptStream


class PageIndex:
    """Pages by stream and number."""

    def __init__(self) -> None:
        self.streams: dict[int, KeptStream] = {}
        self.orphans: list[tuple[int, int]] = []
        """Empty pages found by a recovery: the journal must record that before their numbers are reused."""
        self._pages: dict[tuple[int, int], Page] = {}
        self._streams_of: dict[int, set[int]] = {}
        """The streams in which a durable queue had messages, so that its end does not affect others."""

    def __bool__(self) -> bool:
        return bool(self._pages)

    def pages(self) -> list[Page]:
        """All pages that are still needed."""
        return list(self._pages.values())

    def find(self, stream: int, number: int) -> Page | None:
        """A page by stream and number; None if it is no longer needed."""
        return self._pages.get((stream, number))

    def address_of(self, page: Page) -> str:
        """The address of a page."""
        return self.streams[page.stream].address

    def open(self, page: Page, address: str) -> None:
        """A stream got a new page; a repetition (when a journal file is removed) changes nothing."""
        if (page.stream, page.number) in self._pages:
            return
        self._pages[page.stream, page.number] = page
        stream = self.streams.get(page.stream)
        if stream is None:
            stream = self.streams[page.stream] = KeptStream(page.stream, address)
        stream.pages.append(page)

    def grow(self, told: Page) -> None:
        """Update a known page from one that was read from a record."""
        page = self.find(told.stream, told.number)
        if page is not None:
            page.count, page.size_bytes = told.kept_count, told.kept_bytes
            page.kept_count, page.kept_bytes = told.kept_count, told.kept_bytes
            page.expires_ms, page.has_large, page.durable = told.expires_ms, told.has_large, told.durable
            self.note_queues(page)

    def note_queues(self, page: Page) -> None:
        """A page grew: its durable queues have messages in its stream."""
        for queue_id in page.durable:
            self._streams_of.setdefault(queue_id, set()).add(page.stream)

    def settle(self, queue_id: int, page: Page, places: Sequence[int], size_bytes: int) -> None:
        """A queue is done with places of a page that hold this many bytes."""
        stream = self.streams[page.stream]
        settled = self._settled(stream, queue_id, page)
        count = settled.count
        for place in places:
            if settled.places.add(place):
                settled.count += 1
            if stream.attempts:
                stream.attempts.pop((queue_id, place), None)
        if settled.count > count:  # a step that failed may be repeated
            settled.size_bytes += size_bytes

    def _settled(self, stream: KeptStream, queue_id: int, page: Page) -> SettledPlaces:
        settled = stream.settled.get((queue_id, page.number))
        if settled is None:
            settled = stream.settled[queue_id, page.number] = SettledPlaces(PlaceSet(page.first_place))
            self._streams_of.setdefault(queue_id, set()).add(page.stream)
        return settled

    def restore_settled(self, queue_id: int, page: Page, settled: SettledPlaces) -> None:
        """Restore what a queue is done with in a page, as recorded when a journal file was removed."""
        self.streams[page.stream].settled[queue_id, page.number] = settled
        self._streams_of.setdefault(queue_id, set()).add(page.stream)

    def purge(self, queue_id: int, page: Page, kept: Sequence[int], size_bytes: int) -> None:
        """A queue is done with a page except for some places, which hold this many bytes. With this and ``settle``, no
        attempts are left when a page is dropped.
        """
        stream = self.streams[page.stream]
        settled = self._settled(stream, queue_id, page)
        settled.places.fill(page.end_place, kept)
        settled.count = settled.size_bytes = 0
        page.durable[queue_id] = PageShare(len(kept), size_bytes)
        if stream.attempts:
            for place in range(page.first_place, page.end_place):
                if place not in kept:
                    stream.attempts.pop((queue_id, place), None)

    def attempt(self, queue_id: int, page: Page, place: int, attempts: int, due_ms: int) -> None:
        """A delivery failed."""
        self.streams[page.stream].attempts[queue_id, place] = attempts, due_ms
        self._streams_of.setdefault(queue_id, set()).add(page.stream)

    def drop(self, stream_number: int, number: int) -> None:
        """Every queue is done with a page."""
        page = self._pages.pop((stream_number, number), None)
        if page is None:
            return
        stream = self.streams[stream_number]
        stream.pages.remove(page)
        for queue_id in page.durable:
            stream.settled.pop((queue_id, number), None)
        if not stream.pages:
            del self.streams[stream_number]

    def drop_orphans(self) -> None:
        """Drop pages in which nothing is left."""
        for page in self.pages():
            if not self.left(page):
                self.drop(page.stream, page.number)
                self.orphans.append((page.stream, page.number))

    def delete_queue(self, queue_id: int) -> None:
        """A queue was deleted: it needs nothing any more."""
        for number in self._streams_of.pop(queue_id, ()):
            stream = self.streams.get(number)
            if stream is None:
                continue
            for page in stream.pages:
                page.durable.pop(queue_id, None)
                stream.settled.pop((queue_id, page.number), None)
            for key in [key for key in stream.attempts if key[0] == queue_id]:
                del stream.attempts[key]

    def needs(self, queue_id: int, page: Page, place: int) -> bool:
        """Does a durable queue still need the message at a place?"""
        settled = self.streams[page.stream].settled.get((queue_id, page.number))
        return queue_id in page.durable and (settled is None or place not in settled.places)

    def share_left(self, queue_id: int, page: Page) -> PageShare:
        """The durable messages of a page that a queue still needs."""
        return self.streams[page.stream].share_left(queue_id, page)

    def left_of(self, queue_id: int, page: Page) -> int:
        """How many durable messages of a page a queue still needs."""
        return self.share_left(queue_id, page).count

    def left(self, page: Page) -> int:
        """How many durable messages of a page are unsettled, over all queues."""
        return sum(self.left_of(queue_id, page) for queue_id in page.durable)

    def recovered_state(self) -> list[KeptStream]:
        """What the broker recovers at a start, in order. The pages then belong to it."""
        for stream in self.streams.values():
            stream.pages.sort(key=_number)  # repeated when a journal file was removed, they come in another order
        return list(self.streams.values())


def _number(page: Page) -> int:
    return page.number


def places_of(messages: Sequence[PagedMessage]) -> list[int]:
    """The places of messages."""
    return [message.place for message in messages]
