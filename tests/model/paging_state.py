"""A broker with tiny pages on a simulated disk beside its model, and what must hold between them at every time."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from artemis_py.core.addresses.batch import Batch
from artemis_py.core.broker import Broker
from artemis_py.core.dead_letters import Copies
from artemis_py.core.events import LEASES_ENDED
from artemis_py.core.queue.messages import Contents
from artemis_py.core.queue.queue import Queue
from artemis_py.message import Message
from artemis_py.paged_messages import Page, PagedMessage
from artemis_py.record_log import Actor, RecoveredState
from artemis_py.storage.pages import PageFiles, SpillLog
from tests.kit.committer import SteppedCommitter
from tests.kit.disk import SimDisk
from tests.model.compare import behind_on, compare_sizes
from tests.model.paging_model import HANDED, HELD, READY, Book
from tests.model.plans import ADDRESS, FLOW_CONTROL, REJECT, Plan
from tests.model.reader_model import Letter
from tests.model.world import Pair, World


class WatchedCopies(Copies):
    """Stands where all queues of a broker know it, and knows who wants to know what leaves them."""

    tell: Callable[[str, list[Message], str], None]


_FORGET = Contents._forget


def _forget(contents: Contents, messages: list[Message], reason: str, by: Actor | None = None) -> None:
    copies = contents._host.copies
    if isinstance(copies, WatchedCopies):
        copies.tell(contents._reference.name, messages, reason)
    _FORGET(contents, messages, reason, by)


class StrictLog(SpillLog):
    """Nobody may settle a message in a page twice, and nothing of a page that was given up."""

    queues: list[Queue]
    settled_places: set[tuple[int, int, int]]

    def page_settled(
        self, queue_id: int, messages: list[PagedMessage], reason: str, consumer: Actor | None = None
    ) -> int:
        for message in messages:
            place = queue_id, message.page.stream, message.place
            assert place not in self.settled_places, f"place {message.place} was settled twice in queue {queue_id}"
            self.settled_places.add(place)
        return self.last_lsn

    def page_dropped(self, page: Page) -> int:
        assert not page.left, "a page goes that somebody needs"
        found = [queue.contents.paged.backlogs.get(page.stream) for queue in self.queues if queue.deleted]
        of_deleted = {place for backlog in found if backlog is not None for place in backlog.in_memory}
        assert page.resident.keys() <= of_deleted, "a page goes, and a queue has something of it in memory"
        return self.last_lsn


class PagingState(World[Book]):
    """One address whose queues all page."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.is_damaged = False
        """Did a test change the files? Then the model does not know what has to be there."""
        assert plan.pages is not None
        self.page_plan = plan.pages
        self.disk = SimDisk(Random(0))
        self.writer = SteppedCommitter(lambda: None)
        self.reader = SteppedCommitter(lambda: None)
        self.said: list[str] = []
        self.files = PageFiles(self.disk, self.reader, self.said.append)
        self.log = StrictLog(self.writer, self.files)
        self.log.queues, self.log.settled_places = [], set()
        self.broker = Broker(plan.config(), self.log, self.now_ms, RecoveredState(), self.files)
        setattr(Contents, "_forget", _forget)  # noqa: B010 - a test looks on; interpreted only
        copies = self.broker.host.copies = WatchedCopies(self.broker.log)
        copies.tell = self.note_ends
        self.watch(self.broker)
        queues = self.log.queues = [self.broker.queues[f"q{number}"] for number in range(len(plan.queues))]
        self.pairs = [
            Pair(queue, Book(queue_plan, plan.address, queue))
            for queue, queue_plan in zip(queues, plan.queues, strict=True)
        ]
        self.route = plan.route(self.broker.resolver)
        self.address: Any = self.broker.addresses[ADDRESS]
        """The address under test."""
        policies, is_limited = {queue.policy for queue in plan.queues}, self.page_plan.limit_messages >= 0
        self.is_limited = is_limited or bool(policies & {REJECT, FLOW_CONTROL})
        """May a message be refused?"""
        self.may_fail = (is_limited and self.page_plan.limit_policy == "FAIL") or REJECT in policies
        """May a COMMIT be refused?"""

    def note_event(
        self, code: str, queue: str, fields: dict[str, str | int], *, kind: str = "", count: int = 1
    ) -> None:
        """Leases end in their turn among what else is due in a tick."""
        if code == LEASES_ENDED:
            self.take_back_lapsed(next(pair for pair in self.pairs if pair.queue.name == queue))
        super().note_event(code, queue, fields, kind=kind, count=count)

    def note_ends(self, name: str, messages: list[Message], reason: str) -> None:
        """A queue no longer holds messages."""
        pair = next(pair for pair in self.pairs if pair.queue.name == name)
        for message in messages:
            pair.model.ended(message.id, reason, self.now_ms)

    def check_limits(self, batch: Batch, letters: list[Letter]) -> None:
        """What was let in fits; what was kept out, was for a reason that still holds."""
        for pair in self.pairs:
            model, name = pair.model, pair.queue.name
            if batch.refused_by is pair.queue:
                is_full = model.plan.policy == REJECT and not model.is_within([letters[0]])
                is_deep = bool(model.picked_items()) or not model.is_within([], model.plan.resume_percent)
                waits = model.plan.policy == FLOW_CONTROL and is_deep
                assert is_full or waits, f"{name} kept out what it has room for"
            elif batch.refused_by is None and any(letter.id in model.slots for letter in letters):
                assert model.plan.policy != REJECT or model.is_within([]), f"{name} is too full"

    # ---- what must always hold -------------------------------------------------------------------

    def check(self) -> None:
        """Counts, sizes, accounts and pages tell the same."""
        if self.is_damaged:
            return
        in_memory: dict[int, Letter] = {}
        for pair in self.pairs:
            model = pair.model
            if model.kills:  # the step is over in which what nobody had in hand was killed
                model.slots = {letter_id: slot for letter_id, slot in model.slots.items() if slot.state != READY}
                model.kills = False
            ids = self._check_queue(pair.queue, pair.model)
            in_memory.update({letter_id: pair.model.slots[letter_id].letter for letter_id in ids})
        super().check()
        account = self.address.account
        assert account.message_count == len(in_memory), "messages that the address answers for"
        assert account.size_bytes == sum(one.memory_bytes for one in in_memory.values()), "bytes of the address"
        assert self.broker.memory.account.message_count >= account.message_count, "messages of the broker"
        assert not self.said, "damage without damage"

    def _check_queue(self, queue: Queue, book: Book) -> set[int]:
        activation = queue.activation
        is_out = activation is not None and activation.broadcast is not None and activation.broadcast.is_out
        if book.barrier_out is not None and not is_out:
            assert not book.barrier_was_written, "a barrier came back although it was sent"
            book.end_barrier()
        slots = [slot for slot in book.slots.values() if slot.state != HANDED]
        assert queue.message_count == len(book.standing()), f"message count of {queue.name}"
        held = [slot.letter for slot in slots if slot.state == HELD]
        compare_sizes(queue, [slot.letter for slot in slots], held, [item.letter for item in book.aside()])
        places = [entry.message.id for entry in queue.contents.order] + list(queue.contents.scheduled)
        places += [entry.message.id for entry in behind_on(queue) if not queue.contents.is_aside(entry)]
        places += [slot.letter.id for slot in slots if slot.state != READY]
        ids = set(places)
        assert len(ids) == len(places), f"a message stands in {queue.name} at two places"
        in_pages = [slot.letter.size_bytes for slot in slots if slot.letter.id not in ids]
        assert len(ids) + len(in_pages) == len(slots), "something stands there that is gone"
        if not queue.deleted:
            paged = queue.contents.paged
            assert (paged.count, paged.size_bytes) == (len(in_pages), sum(in_pages)), "messages and bytes in pages"
            stream = self.address.stream
            backlog = None if stream is None else paged.backlogs.get(stream.number)
            if backlog is not None:
                left = sum(page.left.get(queue.id, 0) for page in stream.pages)
                assert left == backlog.count + len(backlog.in_memory), "pages and backlog differ"
                assert stream.message_count.get(queue.id, 0) == left, "the stream counts otherwise"
                for place, message in backlog.in_memory.items():
                    assert message.page.resident.get(place) is message, "one message, two copies in memory"
        return ids
