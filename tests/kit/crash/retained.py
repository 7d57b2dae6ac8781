"""The retained log beside what is true: does it add up, does each file stand alone, does it name the right ones?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from artemis_py.message import LargeBody
from artemis_py.record_log import Depth
from artemis_py.storage.format.codec import Kept
from artemis_py.storage.format.log_events import (
    Attempted,
    Changed,
    Consumer,
    Delivered,
    Depths,
    Event,
    PageDropped,
    PageOpened,
    Published,
    Purged,
    Recalled,
    Refused,
    Session,
    Settled,
)
from artemis_py.storage.format.names import segment_number
from artemis_py.storage.format.reader import events_of
from artemis_py.storage.format.scan import Damage
from artemis_py.storage.journal.index_files import delete_segment
from tests.kit.disk import SimDisk

LEASING = ("leased", "strict")
"""Queues on which others may settle what a client holds, and what nobody holds."""
WITH_BARRIERS = "barriers"
"""A queue some of whose messages go to all, and are done when they were sent."""
SENDER = "from"
"""The header in which a client names itself."""


class Untrue(AssertionError):
    """The log says what did not happen, or not what did."""


@dataclass
class Telling:
    """Reads the log from its beginning and believes it. Raises Untrue where it contradicts itself."""

    live: dict[int, dict[int, int]] = field(default_factory=dict)
    """What stands on each queue: encoded size by message id."""
    depths: int = 0
    """How often the broker's own count was told, and was the same."""
    _places: dict[tuple[int, int], tuple[str, int]] = field(default_factory=dict)
    """(queue, message): the address in whose pages the queue has it, and where."""
    _pages: dict[tuple[int, int], tuple[int, str]] = field(default_factory=dict)
    _clients: dict[int, str] = field(default_factory=dict)
    _holders: dict[tuple[int, int], int] = field(default_factory=dict)
    """(queue, message): the consumer that was sent it last."""
    _queue_names: dict[int, str] = field(default_factory=dict)
    _named: set[int] = field(default_factory=set)
    """Sessions and consumers that this file has told of."""

    def read(self, files: dict[str, bytes]) -> Self:
        """Read all files, from the first on. Raises Untrue."""
        damages: list[Damage] = []
        for name in sorted(name for name, data in files.items() if any(data)):
            self._named = {0}
            for event in events_of(name, files[name], damages, is_last=name == max(files)):
                self._take(event)
            if any(not damage.torn for damage in damages):
                raise Untrue(f"{damages}")
        return self

    def _take(self, event: Event) -> None:
        match event:
            case Session(session=number, client_id=client):
                self._named.add(number)
                if self._clients.setdefault(number, client) != client:
                    raise Untrue(f"session {number} is {client} and {self._clients[number]}")
            case Consumer(consumer=number, session=session):
                self._must_know(event, session)
                self._named.add(number)
            case Published():
                self._published(event)
            case Recalled():
                self._recalled(event)
            case Delivered(queue_id=queue_id, message_ids=message_ids, consumer=consumer):
                self._must_know(event, consumer)
                self._holders.update(((queue_id, number), consumer) for number in message_ids)
            case Attempted(queue_id=queue_id, message_id=number, consumer=consumer, cause=cause):
                self._must_know(event, consumer)
                if not consumer or not cause or self._holders.get((queue_id, number)) != consumer:
                    raise Untrue(f"{event}: held by {self._holders.get((queue_id, number))}")
            case Settled():
                self._settled(event)
            case PageOpened(stream=stream, page=page, first_place=place, address=address):
                self._pages[stream, page] = place, address
            case PageDropped(stream=stream, page=page):
                self._pages.pop((stream, page), None)  # after a restart its number and places may come again
            case Purged():
                self._purged(event)
            case Refused(session=session):
                self._must_know(event, session)
            case Changed(kind="queue", fields=fields):
                self._queue_names[fields["id"]] = fields["name"]
            case Changed(kind="queue-deleted", fields=fields):
                self.live.pop(fields["id"], None)
            case Depths(depths=depths):
                self._compare(event, depths)

    def _must_know(self, event: Event, number: int) -> None:
        if number not in self._named:
            raise Untrue(f"{event} names {number}, of whom its file has not told")

    def _published(self, event: Published) -> None:
        kept = event.kept
        message = kept.message
        self._must_know(event, event.session)
        properties = message.head.properties
        is_operators = not event.session and "_AMQ_ORIG_MESSAGE_ID" in properties
        sender = "" if "reason" in properties or is_operators else properties.get(SENDER, "")
        if self._clients.get(event.session, "") != sender:
            raise Untrue(f"message {message.id} of {sender!r} came from {self._clients.get(event.session)!r}")
        self._arrive(kept, event.place)

    def _recalled(self, event: Recalled) -> None:
        for queue_id in event.kept.queue_ids:
            if event.kept.message.id in self.live.get(queue_id, {}):
                raise Untrue(f"{event}: queue {queue_id} has it already")
        self._arrive(event.kept, 0)

    def _arrive(self, kept: Kept, place: int) -> None:
        message = kept.message
        body_bytes = message.body.size_bytes if isinstance(message.body, LargeBody) else len(message.body)
        for queue_id in kept.queue_ids:
            self.live.setdefault(queue_id, {})[message.id] = message.head.size_bytes + body_bytes
            self._places.pop((queue_id, message.id), None)
            if place:
                self._places[queue_id, message.id] = message.head.address, place

    def _settled(self, event: Settled) -> None:
        self._must_know(event, event.consumer)
        on_queue = self.live.get(event.queue_id)
        queue_name = self._queue_names.get(event.queue_id)
        for number in event.message_ids:
            if on_queue is not None and on_queue.pop(number, None) is None:
                raise Untrue(f"{event}: {number} was not there")
            holder = self._holders.pop((event.queue_id, number), 0)
            is_barrier = queue_name == WITH_BARRIERS and not event.consumer and event.reason == "acked"
            if queue_name in LEASING or is_barrier:
                continue
            if event.reason in ("acked", "dead") and (not event.consumer or holder != event.consumer):
                raise Untrue(f"{event}: {number} was held by {holder}")

    def _purged(self, event: Purged) -> None:
        first, address = self._pages[event.stream, event.page]
        later = [number for of_stream, number in self._pages if of_stream == event.stream and number > event.page]
        end_place = self._pages[event.stream, min(later)][0] if later else 1 << 63  # pages between had nothing left
        on_queue = self.live[event.queue_id]
        gone = [
            number
            for number in on_queue
            if (event.queue_id, number) in self._places
            and self._places[event.queue_id, number][0] == address
            and first <= self._places[event.queue_id, number][1] < end_place
            and self._places[event.queue_id, number][1] not in event.kept_places
        ]
        size_bytes = sum(on_queue.pop(number) for number in gone)
        if (len(gone), size_bytes) != (event.count, event.size_bytes):
            raise Untrue(f"{event}: by their places {len(gone)} messages of {size_bytes} bytes")

    def _compare(self, event: Depths, depths: tuple[Depth, ...]) -> None:
        self.depths += 1
        told = {depth.queue_id: (depth.count, depth.size_bytes) for depth in depths}
        found = {queue_id: (len(held), sum(held.values())) for queue_id, held in self.live.items() if held}
        if told != found:
            raise Untrue(f"at lsn {event.lsn} the broker counts {told}, the log adds up to {found}")


@dataclass
class Archive:
    """Segments that the journal needs no longer, and those that it does, as one log."""

    retired: dict[str, bytes] = field(default_factory=dict)
    """What left the journal, by name."""

    def retire(self, disk: SimDisk, name: str) -> None:
        """Keep a segment as retention does."""
        self.retired.setdefault(name, disk.read(name))
        delete_segment(disk, name)

    def remove_oldest(self) -> None:
        """Forget a segment as retention does."""
        del self.retired[min(self.retired)]

    def files(self, disk: SimDisk) -> dict[str, bytes]:
        """All segments by their names."""
        there = {name: disk.read(name) for name in disk.names() if segment_number(name) is not None}
        return there | self.retired
