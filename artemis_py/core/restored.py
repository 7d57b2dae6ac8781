"""A queue takes back what survived a restart."""

from __future__ import annotations

from artemis_py.core.entry import Entry
from artemis_py.core.queue import Queue


def take_back(queue: Queue, entries: list[tuple[Entry, int]], now_ms: int) -> None:
    """After a restart: entries in order, each with the time it is due (0: ready). Rings trim as for arrivals."""
    tally = queue.tally
    queue.look_for_groups([entry.message for entry, _ in entries])
    queue.note_ages([entry for entry, _ in entries])
    ready: list[Entry] = []
    restored = 0
    for entry, due_ms in entries:
        message = entry.message
        size_bytes = message.head.size_bytes + len(message.body)
        tally.size_bytes += size_bytes
        tally.durable_size_bytes += size_bytes
        message.refs += 1
        if due_ms <= now_ms and queue.keeps_place(entry):
            due_ms = 0  # noqa: PLW2901 - it is due, and here its place comes
        restored += not due_ms
        if due_ms:
            if queue.keeps_place(entry):
                queue.append_restored(ready, now_ms)
                ready = []
                entry.sequence = queue.order.take_sequence(message)
            queue.put_aside(entry, due_ms)
            if entry.attempts and queue.last_values is not None:
                queue.enter_value(entry)
        elif queue.last_values is not None:
            queue.append_restored([entry], now_ms)
        else:
            ready.append(entry)
    tally.added += len(entries)
    tally.durable_count += len(entries)
    queue.append_restored(ready, now_ms)
    queue.fit_again(restored)
    queue.stop_flow()
    if queue.alerts is not None:
        queue.watch([entry.message for entry, _ in entries], now_ms)
    if restored:
        queue.host.note_ready(queue)
