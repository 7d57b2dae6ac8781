"""The regular rounds: removing what expired, and deleting auto-created queues and addresses that nobody uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from artemis_py.core.address import Address
from artemis_py.core.queue import Queue

if TYPE_CHECKING:
    from artemis_py.core.registry import Registry


class Sweep:
    """``message-expiry-scan-period`` and ``address-queue-scan-period``, both in ms; -1 switches a round off.

    A queue or address is deleted when two rounds running find it unused (Artemis' reaper does the same), so that
    something created a moment before a round has one period to be used.
    """

    def __init__(self, deletion_period_ms: int, expiry_period_ms: int, now_ms: int) -> None:
        self._deletion_period_ms = deletion_period_ms
        self._expiry_period_ms = expiry_period_ms
        self._next_deletion_ms = now_ms + deletion_period_ms if deletion_period_ms > 0 else None
        self._next_expiry_ms = now_ms + expiry_period_ms if expiry_period_ms > 0 else None
        self._condemned: set[Queue | Address] = set()

    def next_due_ms(self) -> int | None:
        """When the next round is due, or None when both are off."""
        deletion_ms, expiry_ms = self._next_deletion_ms, self._next_expiry_ms
        if deletion_ms is None or expiry_ms is None:
            return deletion_ms if expiry_ms is None else expiry_ms
        return min(deletion_ms, expiry_ms)

    def run(self, registry: Registry, now_ms: int) -> None:
        """Make the rounds that are due."""
        if self._next_expiry_ms is not None and now_ms >= self._next_expiry_ms:
            self._next_expiry_ms = now_ms + self._expiry_period_ms
            for queue in registry.queues.values():
                queue.expire_due(now_ms)
                if queue.backlogs:
                    queue.expire_paged(now_ms)
        if self._next_deletion_ms is not None and now_ms >= self._next_deletion_ms:
            self._next_deletion_ms = now_ms + self._deletion_period_ms
            self._delete_unused(registry, now_ms)

    def _delete_unused(self, registry: Registry, now_ms: int) -> None:
        unused_queues = [queue for queue in registry.queues.values() if _queue_is_unused(queue, now_ms)]
        unused_addresses = [address for address in registry.addresses.values() if _address_is_unused(address, now_ms)]
        for queue in unused_queues:
            if queue in self._condemned:
                registry.delete_queue(queue, now_ms)
        for address in unused_addresses:
            if address in self._condemned:
                registry.delete_address(address)
        self._condemned = {*unused_queues, *unused_addresses}


def _queue_is_unused(queue: Queue, now_ms: int) -> bool:
    settings = queue.address.settings
    allowed = settings.auto_delete_queues if queue.auto_created else settings.auto_delete_created_queues
    if not allowed or queue.temporary or queue.consumer_count:
        return False
    limit = settings.auto_delete_queues_message_count
    if 0 <= limit < queue.message_count:
        return False
    if not queue.was_used and not settings.auto_delete_queues_skip_usage_check:
        return False
    return now_ms - queue.idle_since_ms >= settings.auto_delete_queues_delay


def _address_is_unused(address: Address, now_ms: int) -> bool:
    settings = address.settings
    if (
        not address.auto_created
        or address.temporary
        or address.queues
        or address.is_paging
        or address.diverts
        or not settings.auto_delete_addresses
    ):
        return False
    if not address.had_binding and not settings.auto_delete_addresses_skip_usage_check:
        return False
    return now_ms - address.empty_since_ms >= settings.auto_delete_addresses_delay
