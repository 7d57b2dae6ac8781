"""Everything except messages that a journal still needs, as records to rewrite when an old file is removed.

Each record is independent and repeats what is already known. So a crash between two of them does no harm, and damage to
one affects no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from artemis_py.storage.format import codec, page_codec
from artemis_py.storage.journal.index import Index


def binding_records(index: Index, duplicate_ids_kept: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Addresses, queues, duplicate ids (the newest first), cursors and what operators configured: the type of each
    record and its fields.
    """
    for fields in index.addresses.values():
        yield codec.ADDRESS, fields
    for fields in index.queues.values():
        yield codec.QUEUE, fields
    for address, seen in index.duplicate_ids.items():
        for duplicate_id in reversed(seen[-duplicate_ids_kept:]):
            yield codec.DUPLICATE, {"address": address, "id": duplicate_id, "again": True}
    for fields in index.cursors.values():
        yield codec.CURSOR, fields
    for fields in index.configured.values():
        yield codec.CONFIGURED, fields


def page_records(index: Index) -> Iterator[tuple[int, bytes]]:
    """Everything known about pages: the type of each record and its payload. The content of a page is recorded twice,
    because nothing else records it: damage to one record must not cost a page.
    """
    for page in index.pages.pages():
        address = index.pages.address_of(page)
        yield codec.PAGE_OPENED, codec.encode_fields(page_codec.opened_fields(page, address))
        grew = page_codec.encode_grew(page, address)
        yield codec.PAGE_GREW, grew
        yield codec.PAGE_GREW, grew
    for stream in index.pages.recovered_state():
        for (queue_id, number), settled in stream.settled.items():
            yield codec.PAGE_PLACES, page_codec.encode_places(queue_id, stream.number, number, settled)
        for (queue_id, place), (attempts, due_ms) in stream.attempts.items():
            its_page = stream.page_of(place)
            if its_page is not None:  # None: the record of it was damaged
                told = page_codec.PageAttempted(queue_id, stream.number, its_page.number, place, 0, attempts, due_ms)
                yield codec.PAGE_ATTEMPTED, page_codec.encode_page_attempted(told)
