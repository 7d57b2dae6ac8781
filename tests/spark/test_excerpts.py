"""What stands beside a segment spares readers work and changes no answer, whatever is wrong with it; no JVM."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark.sql.datasource import EqualTo, Filter, In, IsNotNull, StringStartsWith

from artemis_py.message import Account, Head, Message, encode_headers
from artemis_py.spark.decode.digest import counted
from artemis_py.spark.decode.event_columns import facts_of
from artemis_py.spark.decode.record_walk import Piece, walk
from artemis_py.spark.log.directory import DirectoryLog
from artemis_py.spark.log.log import Segment
from artemis_py.spark.read import batch, pieces
from artemis_py.spark.read.pieces import excerpt_of
from artemis_py.spark.tables.reading import Wanted
from artemis_py.storage.format.address_index import decode_table, places_name
from artemis_py.storage.format.records import CodecError
from artemis_py.storage.format.scan import log_files
from artemis_py.storage.format.segment_index import decode_index, index_name
from artemis_py.storage.retention import survey as surveys
from artemis_py.storage.retention.retention import RetentionSettings
from artemis_py.storage.retention.survey import spans
from tests.kit.files import flip
from tests.kit.journal_story import Story
from tests.spark.made_log import START_MS, MadeLog, survey
from tests.spark.readers import Row, pushed, rows_of, segments


def rows(folder: Path, *filters: Filter, **options: str) -> list[Row]:
    """What a task gives to Spark, after Spark's own look at the conditions."""
    reader = pushed(folder, *filters, **options)
    found = rows_of(reader, reader.partitions())
    return [row for row in found if all(holds(one, row) for one in filters)]


def holds(one: Filter, row: Row) -> bool:
    """What Spark does with a filter."""
    value = row[one.attribute[0]]  # type: ignore[attr-defined]
    if isinstance(one, IsNotNull):
        return value is not None
    if isinstance(one, EqualTo):
        return bool(value == one.value)
    if isinstance(one, In):
        return value in one.value
    assert isinstance(one, StringStartsWith)
    return value is not None and value.startswith(one.value)


class Busy(Story):
    """The same traffic on five addresses; one message in seven is a copy that the broker made."""

    def publish(self, number: int, queue_ids: list[int], body: bytes = b"", origin: int = 0) -> None:
        address = f"a.{number % 5}"
        headers = [("destination", address), ("persistent", "true")]
        head = Head(encode_headers(headers), address, persistent=True, routing_type="ANYCAST")
        if number % 7 == 0:
            copied = {"_AMQ_ORIG_ADDRESS": "a.1", "_AMQ_ORIG_MESSAGE_ID": str(number - 1), "reason": "dead"}
            head = head.forwarded(address, copied)
        self.messages[number] = Message(head, body, number, START_MS + number, 0, Account(), origin)
        for queue_id in queue_ids:
            self.live[queue_id].append(number)
        self.journal.records.published(self.messages[number], list(queue_ids), 0)


FILTERS: list[tuple[Filter, ...]] = [
    (EqualTo(("address",), "a.1"),),
    (In(("topic",), ("a.0", "a.3", "elsewhere")),),
    (EqualTo(("address",), "elsewhere"),),
    (StringStartsWith(("address",), "a"),),
    (StringStartsWith(("address",), "a."), StringStartsWith(("topic",), "a.4")),
    (IsNotNull(("reason",)),),
    (IsNotNull(("originalMessageId",)), EqualTo(("address",), "a.2")),
    (EqualTo(("messageId",), 60),),
    (In(("messageId",), (3, 77, 1 << 40)), EqualTo(("address",), "a.2")),
]


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("busy")
    story = Busy(folder / "journal", RetentionSettings(folder / "retained", None, None))
    story.generate(random.Random(11), 60)
    return folder


def test_what_is_beside_segments_changes_no_answer(busy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs, transactions, senders and copies, all columns, with parts of any size; and it is used."""
    everything = rows(busy)
    events = rows(busy, table="events")
    wanted = [[row for row in everything if all(holds(one, row) for one in filters)] for filters in FILTERS]
    assert [rows(busy, *filters) for filters in FILTERS] == wanted
    survey(busy)
    assert rows(busy) == everything
    made = 0
    true_excerpt = excerpt_of

    def counted(*given: Any) -> Any:
        nonlocal made
        found = true_excerpt(*given)
        made += found is not None
        return found

    monkeypatch.setattr(batch, "excerpt_of", counted)
    for gap in (0, 300, 1 << 16):
        monkeypatch.setattr(pieces, "_GAP_BYTES", gap)
        assert [rows(busy, *filters) for filters in FILTERS] == wanted
    assert made > 50
    for number in (20, 60, 61):
        of_one = [row for row in events if row["messageId"] == number]
        assert rows(busy, EqualTo(("messageId",), number), table="events") == of_one
    at_queue = [row for row in events if row["address"] == "a"]
    assert rows(busy, EqualTo(("address",), "a"), table="events") == at_queue
    assert rows(busy, StringStartsWith(("address",), "a."), table="events") == [
        row for row in events if (row["address"] or "").startswith("a.")
    ]


def test_a_survey_says_what_is_in_the_segment(busy: Path) -> None:
    survey(busy)
    files = log_files([busy / "journal", busy / "retained"])
    assert len(files) > 10
    for file in files:
        fields = decode_index(file.path.with_name(index_name(file.path.name)).read_bytes())
        data = file.path.read_bytes()[: fields["bytes"]]
        found = walk(Piece("f", data[64:], 64, None, is_last=False), [])
        every = Wanted().records(found)
        facts = facts_of(found, every)
        segment = Segment.of(fields)
        spoken_of = set(facts.message[facts.message > 0].tolist())
        assert all(segment.may_have(number) for number in spoken_of)
        told = sum(high - low + 1 for low, high in segment.ids or ())
        assert len(spoken_of) <= told <= len(spoken_of) + (max(spoken_of) - min(spoken_of)) // 2
        counts = {
            str(queue): [one.added, one.acked, one.replaced, one.expired, one.killed]
            for queue, one in counted(found, every).counts.items()
        }
        assert segment.counts == counts
        places = file.path.with_name(places_name(file.path.name)).read_bytes()
        assert len(places) == fields["places"]
        table = decode_table(places)
        assert (table.of.number, table.of.size_bytes) == (file.number, fields["bytes"])
        assert sum(table.messages.values()) == fields["messages"]
        assert sorted(table.addresses or ()) == fields["addresses"]


def ten_addresses(folder: Path) -> Path:
    """Twenty messages to each of ten addresses in turn, in each batch."""
    log = MadeLog(folder)
    for number in range(3):
        log.segment(START_MS + number)
        for step in range(20):
            parts = [lambda a=a: log.sent(START_MS, 20, f"orders.{a}", bytes(100)) for a in range(10)]
            log.batch(START_MS + step, *parts)
        if number == 1:
            log.publish(START_MS + 30, 5, "rare")
            for _ in range(40):
                log.publish(START_MS + 31, 20, "orders.1", bytes(100))
    log.close()
    return folder


def cost(step: Callable[[], object]) -> tuple[int, int]:
    """How many bytes tasks read of segments for a step, and at how many records they look."""
    with (
        patch.object(DirectoryLog, "read", autospec=True, side_effect=DirectoryLog.read) as read,
        patch.object(pieces, "walk", side_effect=walk) as walked,
    ):
        step()
    size_bytes = sum(end - begin for begin, end in (call.args[2:4] for call in read.call_args_list))
    return size_bytes, sum(len(walk(*call.args).places) for call in walked.call_args_list)


def test_one_address_of_ten_costs_a_tenth(tmp_path: Path) -> None:
    folder = ten_addresses(tmp_path / "log")
    whole = cost(lambda: rows(folder))
    one = EqualTo(("address",), "orders.3")
    assert cost(lambda: rows(folder, one)) == whole  # as long as nothing is beside the segments
    survey(folder)
    assert len(rows(folder, one)) == 3 * 20 * 20
    _, records = cost(lambda: rows(folder, one))
    assert records <= whole[1] * 0.12
    size_bytes, records = cost(lambda: rows(folder, EqualTo(("address",), "rare")))
    assert records <= 10
    assert size_bytes <= whole[0] * 0.05
    subscribed = cost(lambda: rows(folder, subscribe="orders.3"))
    assert subscribed[1] <= whole[1] * 0.12
    assert cost(lambda: rows(folder, StringStartsWith(("address",), "orders.3")))[1] <= whole[1] * 0.12
    for path in folder.glob("*.log"):
        size = path.with_name(places_name(path.name)).stat().st_size
        assert size < path.stat().st_size / 50


def test_a_message_is_looked_for_where_it_can_be(tmp_path: Path) -> None:
    log = MadeLog(tmp_path)
    for number in range(40):
        log.segment(START_MS + number, 50)
    log.close()
    survey(tmp_path)
    for table in ("messages", "events"):
        for asked, wanted in ((EqualTo(("messageId",), 725), [15]), (In(("messageId",), (1, 2000)), [1, 40])):
            assert segments(tmp_path, asked, table=table) == wanted
        assert pushed(tmp_path, EqualTo(("messageId",), 2001), table=table).partitions() == []


def test_any_byte_beside_a_segment_that_is_wrong_changes_no_answer(tmp_path: Path, rng: random.Random) -> None:
    """Of three neighbours one, by the seed: all of them have a checksum."""
    log = MadeLog(tmp_path)
    log.segment(START_MS)
    for step in range(4):
        log.publish(START_MS + step, 3, f"orders.{step % 2}")
    log.close()
    survey(tmp_path)
    asked = EqualTo(("address",), "orders.1")
    wanted = rows(tmp_path, asked)
    assert len(wanted) == 6
    segment = next(tmp_path.glob("*.log"))
    for beside in (places_name(segment.name), index_name(segment.name)):
        path = tmp_path / beside
        good = path.read_bytes()
        for offset in range(rng.randrange(3), len(good), 3):
            changed = bytearray(good)
            changed[offset] ^= 0x80 if offset % 2 else 0x01
            path.write_bytes(changed)
            assert rows(tmp_path, asked) == wanted, (beside, offset)
        for size in (0, 1, 20, len(good) - 1):
            path.write_bytes(good[:size])
            assert rows(tmp_path, asked) == wanted, (beside, size)
        path.unlink()
        assert rows(tmp_path, asked) == wanted
        path.write_bytes(good)


def test_the_places_of_another_segment_are_not_believed(tmp_path: Path) -> None:
    """As where an older copy of a log came back without what stands beside it."""
    for name, address in (("one", "orders.1"), ("two", "orders.2")):
        log = MadeLog(tmp_path / name)
        log.segment(START_MS)
        log.publish(START_MS, 3, address)
        log.publish(START_MS, 3, "orders.1")
        log.publish(START_MS, 2 if name == "one" else 4, "orders.1")
        log.close()
        survey(tmp_path / name)
    segment = next((tmp_path / "one").glob("*.log")).name
    other = (tmp_path / "one" / places_name(segment)).read_bytes()
    (tmp_path / "two" / places_name(segment)).write_bytes(other)
    assert len(rows(tmp_path / "two", EqualTo(("address",), "orders.1"))) == 7


def test_damage_in_what_is_wanted_is_told(tmp_path: Path) -> None:
    folder = ten_addresses(tmp_path / "log")
    survey(folder)
    flip(sorted(folder.glob("*.log"))[1], b"orders.3")
    with pytest.raises(Exception, match=r"segment 2 at byte .*: DAMAGED"):
        rows(folder, EqualTo(("address",), "orders.3"))
    kept = rows(folder, EqualTo(("address",), "orders.3"), failOnDataLoss="false")
    assert len(kept) == 3 * 20 * 20 - 1


@pytest.mark.parametrize("spans_max", [1, 2, 3, 32])
def test_spans_cover_what_they_are_of(spans_max: int, rng: random.Random) -> None:
    for _ in range(200):
        pairs = [(low, low + rng.randrange(5)) for low in rng.sample(range(200), rng.randrange(1, 30))]
        found = spans(pairs, spans_max)
        assert len(found) <= spans_max
        assert all(any(low <= a and b <= high for low, high in found) for a, b in pairs)
        assert all(one[1] + 1 < other[0] for one, other in pairwise(found))
        if spans_max == 32:
            assert sum(high - low + 1 for low, high in found) == len({n for a, b in pairs for n in range(a, b + 1)})


def test_a_survey_is_made_in_steps_and_of_whole_segments_alone(tmp_path: Path) -> None:
    folder = ten_addresses(tmp_path / "log")
    path = sorted(folder.glob("*.log"))[0]
    size_bytes = decode_index(path.with_name(index_name(path.name)).read_bytes())["bytes"]
    data = path.read_bytes()
    made = []
    for records in (1, 7, 10_000_000):
        one = surveys.Survey(data, size_bytes)
        steps = 1
        while one.step(records):
            steps += 1
        made.append((one.fields(), one.places()))
        assert steps == 4022 // records + 1
    assert made[0] == made[1] == made[2]
    changed = bytearray(data)
    changed[5000] ^= 1
    one = surveys.Survey(bytes(changed), size_bytes)
    with pytest.raises(CodecError, match="incomplete record at byte"):
        one.step(1_000_000)
    with pytest.raises(CodecError):
        surveys.Survey(data[: size_bytes - 1], size_bytes)
