"""A survey counts what a reader finds who looks at each record alone: for each queue, each address and each message."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Any

import pytest

from artemis_py.message import Account, Head, Message, encode_headers
from artemis_py.paged_messages import Page, PagedMessage
from artemis_py.storage.format import codec
from artemis_py.storage.format.address_index import decode_table, part_bytes
from artemis_py.storage.format.codec import BatchHeader, Kept, PagePurged
from artemis_py.storage.format.records import (
    BATCH,
    GROUP,
    KIND_JOURNAL,
    MESSAGE,
    ORIGIN,
    PAGE_PURGED,
    PAGE_SETTLED,
    SETTLED,
    FileHeader,
    decode_record,
    encode_file_header,
    encode_record,
)
from artemis_py.storage.retention.survey import ACKED, ADDED, EXPIRED, KILLED, REPLACED, Survey

HEADS = {name: Head(encode_headers([("destination", name)]), name, persistent=True) for name in ("a", "b")}


@dataclass
class MadeSegment:
    """A segment that is put together record by record."""

    data: bytes = encode_file_header(FileHeader(KIND_JOURNAL, 1, 1, 0))
    lsn: int = 0

    def record(self, kind: int, payload: bytes) -> bytes:
        """The next one."""
        self.lsn += 1
        return encode_record(kind, self.lsn, payload)

    def add(self, kind: int, payload: bytes) -> None:
        self.data += self.record(kind, payload)

    def batch(self, lsn: int = 0) -> None:
        """A BATCH, whose lsn is above those of its records."""
        payload = codec.encode_batch(BatchHeader(1, 1, 0, 0))
        self.data += encode_record(BATCH, lsn or self.lsn + 1000, payload)

    def message(self, number: int, queues: list[int], address: str = "a", *, copied_lsn: int = 0) -> bytes:
        """A message, or the copy that compaction made of one."""
        one = Message(HEADS[address], b"body", number, 0, 0, Account(), 0)
        return self.record(MESSAGE, codec.encode_message(Kept(one, copied_lsn or self.lsn + 1, queues)))

    def send(self, numbers: int | range, queues: list[int], address: str = "a", *, copied_lsn: int = 0) -> None:
        """One message, or some after another."""
        for number in [numbers] if isinstance(numbers, int) else numbers:
            self.data += self.message(number, queues, address, copied_lsn=copied_lsn)

    def survey(self, step: int = 1000) -> Survey:
        survey = Survey(self.data, len(self.data))
        while survey.step(step):
            pass
        return survey

    def told(self, step: int = 1000) -> tuple[dict[str, list[int]], list[list[int]]]:
        """Counts by queue, and the ranges of ids."""
        fields = self.survey(step).fields()
        return fields["counts"], fields["ids"]

    def messages(self) -> dict[str, int]:
        """How many of each address."""
        return dict(decode_table(self.survey().places()).messages)


def added(count: int) -> list[int]:
    """The counts of a queue that only gained messages."""
    return [count, 0, 0, 0, 0]


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_a_run_counts_each_of_its_messages_on_its_queue_and_address(step: int) -> None:
    made = MadeSegment()
    made.batch()
    made.send(range(1, 11), [1])
    made.send(range(11, 14), [2])
    made.send(range(14, 20), [2], "b")
    made.send(range(30, 33), [2], "b")
    made.batch()
    made.send(range(33, 35), [1])
    assert made.told(step)[0] == {"1": added(12), "2": added(12)}
    assert made.messages() == {"a": 15, "b": 9}
    assert made.told()[1] == [[1, 19], [30, 34]]


def test_what_compaction_copied_is_no_message_wherever_it_stands() -> None:
    made = MadeSegment()
    made.batch()
    made.send(7, [1], copied_lsn=50)
    made.send(range(1, 4), [1])
    made.send(4, [1], copied_lsn=60)
    made.send(5, [1])
    assert made.told()[0] == {"1": added(4)}
    assert made.messages() == {"a": 4}
    assert made.told()[1] == [[1, 3], [5, 5]]


def test_a_message_counts_on_each_of_its_queues() -> None:
    made = MadeSegment()
    made.batch()
    made.send(1, [1, 2])
    made.send(2, [2])
    made.send(3, [])
    assert made.told()[0] == {"1": added(1), "2": added(2)}
    assert made.messages() == {"a": 3}


def test_what_leaves_counts_by_its_reason_in_memory_and_in_pages() -> None:
    made = MadeSegment()
    made.batch()
    page = Page(1, 1, 0)
    paged = [PagedMessage(HEADS["a"], b"", number, 0, 0, Account(), page, place) for place, number in enumerate((7, 8))]
    made.add(SETTLED, codec.encode_settled(1, "acked", [1, 2, 3]))
    made.add(SETTLED, codec.encode_settled(1, "replaced", [4, 5]))
    made.add(PAGE_SETTLED, codec.encode_page_settled(1, paged, "expired", 0))
    made.add(PAGE_SETTLED, codec.encode_page_settled(2, paged[:1], "acked", 0))
    made.add(PAGE_PURGED, codec.encode_page_purged(PagePurged(2, 1, 1, (0,), 10, "purged", 5, 500)))
    counts: dict[str, list[int]] = {"1": added(0), "2": added(0)}
    counts["1"][ACKED], counts["1"][REPLACED], counts["1"][EXPIRED] = 3, 2, 2
    counts["2"][ACKED], counts["2"][KILLED] = 1, 5
    assert made.told()[0] == counts
    assert made.told()[1] == [[1, 5], [7, 8]]


def test_a_group_counts_and_its_records_are_not_the_last() -> None:
    made = MadeSegment()
    made.batch(lsn=99)
    made.send(1, [1])
    made.add(GROUP, made.message(2, [1]) + made.record(SETTLED, codec.encode_settled(1, "acked", [1])))
    counts = added(2)
    counts[ACKED] = 1
    assert made.told()[0] == {"1": counts}
    assert decode_table(made.survey().places()).of.last_lsn == 99
    alone = MadeSegment()
    alone.add(GROUP, alone.message(1, [1]))
    assert decode_table(alone.survey().places()).of.last_lsn == alone.lsn


def senders(made: MadeSegment) -> list[tuple[int, int]]:
    """For each message of address a, and each group with one, the offset of the ORIGIN record that names the sender, as
    the places say.
    """
    places = made.survey().places()
    addresses: Any = decode_table(places).addresses
    numbers = array("I")
    numbers.frombytes(part_bytes(places, addresses["a"]))
    count = len(numbers) // 3
    found: list[tuple[int, int]] = []
    behind = 0
    for gap, size, back in zip(numbers[:count], numbers[count : 2 * count], numbers[2 * count :], strict=True):
        begin = behind + gap
        behind = begin + size
        origin = begin - back if back else 0
        offset = begin
        while offset < behind:
            record = decode_record(made.data, offset)
            assert record is not None
            found += [(offset, origin)] * (record.type_code in (MESSAGE, GROUP))
            offset = record.end
    return found


def test_places_name_the_sender_of_each_message() -> None:
    """A sender holds until the next one, and no longer than its batch; a group names its own."""
    made = MadeSegment()
    made.batch()
    wanted: list[tuple[int, int]] = []
    sender = 0
    for step, number in enumerate(range(1, 13)):
        if step == 9:
            made.batch()
            sender = 0
        if step in (3, 6):
            sender = len(made.data)
            made.add(ORIGIN, codec.encode_origin(step))
        wanted.append((len(made.data), sender))
        made.send(number, [1])
    assert senders(made) == wanted
    for number in (20, 30):
        wanted.append((len(made.data), 0))
        made.add(GROUP, made.message(number, [2]))
        wanted.append((len(made.data), 0))
        made.send(number + 1, [1])
        sender = len(made.data)
        made.add(ORIGIN, codec.encode_origin(9))
        wanted.append((len(made.data), sender))
        made.send(number + 2, [1])
    assert senders(made) == wanted
    assert made.told()[0]["1"][ADDED] == 16
