"""Puts the messages of an export on the queues on which they were, and on no other.

An import is no SEND: no divert, filter, expiry setting or duplicate id of a sender has a say, and a message keeps all
that it was. What limits a queue or an address does: what has no room there is refused, and not dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, final

from artemis_py.core.addresses.address import Address
from artemis_py.core.addresses.batch import Batch
from artemis_py.core.addresses.enqueue import Enqueuer
from artemis_py.core.addresses.full_policy import why_refused
from artemis_py.core.addresses.routing_table import Bindings, Route
from artemis_py.core.publish.duplicates import Duplicates
from artemis_py.core.publish.publish import make_room, make_room_or_page
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue_host import QueueHost
from artemis_py.message import Head, LargeBody, Message

_COPY_UNITS: Final = 40
_PLACE_UNITS: Final = 5
"""What a message costs, and each of its queues, in units of a turn."""


@final
@dataclass(slots=True)
class Import:
    """A message to import. ``id`` names it, and no other message of any export. ``due_ms`` has the time for which a
    queue waits (epoch ms), by the queue's name. ``expires_ms`` is 0 if it never expires.
    """

    id: str
    head: Head
    body: bytes | LargeBody
    timestamp_ms: int
    expires_ms: int
    queues: Sequence[str]
    due_ms: dict[str, int] = field(default_factory=dict)


@final
@dataclass(slots=True)
class QueueResult:
    """What became of the messages for one queue."""

    placed: int = 0
    """So many came on the queue."""
    known: int = 0
    """So many had come before, by the same import."""
    replaced: int = 0
    """So many gave way when others came: the queue is a ring, or keeps the last value."""
    transient: int = 0
    """So many of these are persistent but will not survive a restart: the queue is not durable."""
    refused: int = 0
    reason: str = ""
    """Why the first of these was refused."""
    is_full: bool = False
    """Was there no room? Then none of the later ones is taken, either, so that their order stays."""


Shares = dict[str, QueueResult]
"""By the name of the queue."""


@final
class Importing:
    """Puts messages on queues. Each is recorded once for all of its queues that have no other time."""

    __slots__ = ("_bindings", "_duplicates", "_enqueuer", "_host")

    def __init__(self, host: QueueHost, bindings: Bindings, enqueuer: Enqueuer, duplicates: Duplicates) -> None:
        self._host = host
        self._bindings = bindings
        self._enqueuer = enqueuer
        self._duplicates = duplicates

    def must_wait(self, message: Import) -> bool:
        """Is an address of the message busy with what came before, or behind with its pages? Then nothing can be put
        there in this turn.
        """
        for name in message.queues:
            queue = self._bindings.queues.get(name)
            if queue is not None:
                address = self._source_of(message, queue)
                stream = address.stream
                if address.is_fanning_out or (stream is not None and stream.active and stream.is_behind):
                    return True
        return False

    def put(self, message: Import, shares: Shares, now_ms: int) -> bool:
        """Put the message on those of its queues that can have it and have not had it, and count the outcome.
        Those that have it, and the id by which that is known, survive a crash together or not at all. Returns whether
        one of them has it, or has had it before.
        """
        groups: dict[tuple[Address, int], list[Queue]] = {}
        came = False
        for name in dict.fromkeys(message.queues):
            share = shares.setdefault(name, QueueResult())
            queue = self._bindings.queues.get(name)
            if queue is not None and self._duplicates.knows(self._bindings.address_of(queue), _id(message, name)):
                share.known += 1
                share.transient += message.head.persistent and not queue.durable
                came = True
            elif queue is None or not self._may_come(message, queue, share, now_ms):
                share.refused += 1
                share.reason = share.reason or f"there is no queue {name}"
            else:
                place = self._source_of(message, queue), message.due_ms.get(name, 0)
                groups.setdefault(place, []).append(queue)
        self._host.budget.spend(_COPY_UNITS + _PLACE_UNITS * len(message.queues))
        for (address, due_ms), queues in groups.items():
            before = [queue.contents.counters.replaced for queue in queues]
            self._host.log.begin_group()
            try:
                self._place(message, address, queues, due_ms, now_ms)
                for queue in queues:
                    self._duplicates.note(self._bindings.address_of(queue), _id(message, queue.name))
            finally:
                self._host.log.end_group()
            for queue, count in zip(queues, before, strict=True):
                share = shares[queue.name]
                share.placed += 1
                share.transient += message.head.persistent and not queue.durable
                share.replaced += queue.contents.counters.replaced - count
        return came or bool(groups)

    def _source_of(self, message: Import, queue: Queue) -> Address:
        """The address that has the message. One that came to a view, or to a queue of a wildcard address, belongs to
        the address that it was sent to, while that is there.
        """
        own = self._bindings.address_of(queue)
        if queue.view is None and not own.is_wildcard:
            return own
        return self._bindings.addresses.get(message.head.address, own)

    def _may_come(self, message: Import, queue: Queue, share: QueueResult, now_ms: int) -> bool:
        """Can the queue have the message? If not, its share says why."""
        if share.is_full:
            return False
        address, size_bytes = self._source_of(message, queue), message.head.size_bytes + len(message.body)
        reason, name = "", queue.name
        if not queue.enabled:
            reason = f"queue {name} is disabled"
        elif queue.flow.overflow.keeps_none:
            reason = f"queue {name} keeps no message (ring-size or max-depth is 0)"
        elif queue.purge_on_no_consumers and not queue.taker_count:
            reason = f"queue {name} keeps no message without a consumer (purge-on-no-consumers)"
        elif queue.filling is not None:
            reason = f"queue {name} is still being filled from the log; try again when that is done"
        elif address.refusal is not None:
            share.is_full = True
            reason = why_refused(address)
        elif queue.flow.limits_senders and make_room([queue], size_bytes, now_ms) is not None:
            share.is_full = True
            reason = queue.flow.why_full(1, size_bytes)
        share.reason = share.reason or reason
        return not reason

    def _place(self, message: Import, address: Address, queues: list[Queue], due_ms: int, now_ms: int) -> None:
        head = message.head if message.head.address == address.name else message.head.at(address.name)
        number = self._host.next_message_id()
        one = Message(head, message.body, number, message.timestamp_ms, message.expires_ms, address.account, 0)
        batch = Batch(Route(address, None, None), [one], one.size_bytes, now_ms, plain=False, due_ms=due_ms)
        batch.limited = any(queue.flow.limits_senders for queue in queues)
        batch.paged = address.must_page or make_room_or_page(address, queues, one.size_bytes, now_ms)
        self._enqueuer.enqueue(batch, [(queue, batch.messages) for queue in queues])
        if address.fan_outs is not None:  # put off, because the turn has no units left; the count is wanted now
            self._host.agenda.complete(address.fan_outs, now_ms)


def _id(message: Import, queue: str) -> str:
    return f"{message.id}-{queue}"
