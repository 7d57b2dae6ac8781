"""The reader finds the true story, whole and in parts, whatever was retired, compacted or copied meanwhile."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from zlib import crc32

import pytest

from artemis_py.storage.format import reader
from artemis_py.storage.format.log_events import (
    Attempted,
    Changed,
    Consumer,
    Delivered,
    Depths,
    Event,
    Published,
    Recalled,
    Refused,
    Session,
    Settled,
    Started,
)
from artemis_py.storage.format.reader import EVERYTHING, LogReader, Range, events_of
from artemis_py.storage.format.records import (
    BATCH,
    FORMAT_VERSION,
    RECORD_HEADER_BYTES,
    SETTLED,
    VersionError,
    decode_file_header,
)
from artemis_py.storage.format.scan import log_files, whole_records
from artemis_py.storage.retention.retention import RetentionSettings
from tests.kit.files import flip
from tests.kit.journal_story import START_MS, Story, Told


def told(events: Iterable[Event]) -> list[Told]:
    """Events in the words of the story, in which sessions and consumers have names. Raises KeyError when one is named
    of whom nothing was told before.
    """
    names = {0: ""}
    found: list[Told] = []
    for event in events:
        told_kind: str = type(event).__name__.lower()
        what: object
        match event:
            case Session(session=number, client=client):
                names[number] = client
                continue
            case Consumer(consumer=number, session=session, subscription=subscription, queue_id=queue_id):
                assert names[session] == f"host:{queue_id}"
                names[number] = subscription
                continue
            case Started():
                continue
            case Published(kept=kept, session=session):
                what = (kept.message.id, tuple(kept.queue_ids), kept.message.body, names[session])
            case Recalled(kept=kept):
                what = (kept.message.id, tuple(kept.queue_ids), kept.message.body, kept.lsn)
            case Delivered(queue_id=queue_id, message_ids=message_ids, consumer=consumer):
                what = (queue_id, message_ids, names[consumer])
            case Settled(queue_id=queue_id, reason=reason, message_ids=message_ids, consumer=consumer):
                what = (queue_id, reason, message_ids, names[consumer])
            case Attempted(queue_id=queue_id, message_id=message_id, consumer=consumer, cause=cause):
                what = (queue_id, message_id, event.attempts, event.due_ms, names[consumer], cause)
            case Refused(address=address, policy=policy, session=session):
                what = (address, policy, names[session], event.count, event.size_bytes)
            case Depths(depths=depths):
                what = depths
            case Changed(kind=kind, fields=fields):
                told_kind, what = kind, fields
            case _:
                raise AssertionError(event)
        found.append((event.lsn, event.time_ms, told_kind, what))
    return found


@pytest.fixture
def story(tmp_path: Path, rng: Random) -> Story:
    """Enough traffic that segments were retired and messages moved."""
    kept = RetentionSettings(tmp_path / "retained", None, None)
    made = Story(tmp_path / "journal", kept)
    made.generate(rng, 120)
    assert len(log_files([tmp_path / "retained"])) > 3
    return made


def events(story: Story, wanted: Range = reader.EVERYTHING) -> list[Event]:
    """What a reader of both directories finds."""
    log = LogReader([story.folder.parent / "retained", story.folder])
    found = list(log.events(wanted))
    assert log.damages == []
    return found


def shown(found: Iterable[Event]) -> list[str]:
    """Events as text that can be compared: what a message is does not matter here, but its number does."""
    return [
        f"{event.kept.message.id} of {event.session}"
        if isinstance(event, Published)
        else f"{event.kept.message.id} again"
        if isinstance(event, Recalled)
        else str(event)
        for event in found
    ]


def test_the_whole_story_is_found(story: Story) -> None:
    first: list[Told] = []
    for each in told(events(story)):  # queues are told again in later files; only the first telling is in the story
        if each[2] != "queue" or each[2:] not in [one[2:] for one in first]:
            first.append(each)
    assert first == story.told


def test_each_number_comes_once_and_in_order(story: Story) -> None:
    numbers = [lsn for lsn, *_ in told(events(story))]
    assert numbers == sorted(set(numbers))


def test_a_range_of_numbers(story: Story, rng: Random) -> None:
    whole = events(story)
    for _ in range(20):
        low, high = sorted(rng.choices([event.lsn for event in whole], k=2))
        found = events(story, Range(lsn_min=low, lsn_max=high))
        assert shown(found) == shown(event for event in whole if low <= event.lsn <= high)


def test_a_range_of_time(story: Story) -> None:
    low, high = START_MS + 40_000, START_MS + 90_000
    wanted = [event for event in events(story) if low <= event.time_ms <= high]
    assert wanted
    assert shown(events(story, Range(time_ms_min=low, time_ms_max=high))) == shown(wanted)


def test_a_segment_in_both_directories_is_read_once(story: Story) -> None:
    whole = told(events(story))
    retained = log_files([story.folder.parent / "retained"])[-1]
    shutil.copyfile(retained.path, story.folder / f"artemis-journal-{retained.number:012}.log")
    assert told(events(story)) == whole


def test_a_segment_that_moves_while_it_is_read_is_found(story: Story) -> None:
    whole = told(events(story))
    log = LogReader([story.folder.parent / "retained", story.folder])
    moving = log.events()
    found = [next(moving)]
    last = log_files([story.folder])[-1]
    last.path.rename(story.folder.parent / "retained" / f"{last.path.stem}-20300101T000000.000Z.log")
    assert told([*found, *moving]) == whole


def test_a_segment_that_goes_while_it_is_read_is_not_replaced_by_a_later_one(story: Story) -> None:
    """Or that one's events came twice."""
    log = LogReader([story.folder.parent / "retained", story.folder])
    going = log.events()
    next(going)
    log_files([story.folder.parent / "retained"])[1].path.unlink()
    with pytest.raises(FileNotFoundError):
        list(going)


def events_in(path: Path, wanted: Range = EVERYTHING) -> Iterator[Event]:
    return events_of(path.name, path.read_bytes(), [], wanted)


def test_what_stands_before_the_first_whole_batch_is_of_the_time_that_the_header_tells(story: Story) -> None:
    path = log_files([story.folder.parent / "retained"])[1].path
    data = path.read_bytes()
    first = next(record for record in whole_records("", data, []) if record.type_code == BATCH)
    time_ms = decode_file_header(data).created_ms
    flip(path, first.offset + RECORD_HEADER_BYTES)
    before = [event for event in events_in(path) if event.time_ms == time_ms]
    assert before
    assert shown(events_in(path, Range(time_ms_max=time_ms))) == shown(before)
    later = list(events_in(path, Range(time_ms_min=time_ms + 1)))
    assert later
    assert time_ms not in {event.time_ms for event in later}


def test_each_file_can_be_read_alone(story: Story) -> None:
    """It tells of each session and consumer that it names."""
    files = log_files([story.folder.parent / "retained", story.folder])
    assert [words for file in files for words in told(events_in(file.path))] == told(events(story))


def test_each_file_tells_once_of_whom_it_names(story: Story) -> None:
    for file in log_files([story.folder.parent / "retained", story.folder]):
        named = [event for event in events_in(file.path) if isinstance(event, (Session, Consumer))]
        numbers = [event.session if isinstance(event, Session) else event.consumer for event in named]
        assert len(numbers) == len(set(numbers))


def test_damage_is_told_and_what_is_whole_is_read(story: Story) -> None:
    whole = told(events(story))
    path = log_files([story.folder.parent / "retained"])[1].path
    damaged = next(record for record in whole_records("", path.read_bytes(), []) if record.type_code == SETTLED)
    flip(path, damaged.offset + RECORD_HEADER_BYTES)
    log = LogReader([story.folder.parent / "retained", story.folder])
    found = told(log.events())
    assert [(damage.name, damage.offset, damage.torn) for damage in log.damages] == [(path.name, damaged.offset, False)]
    assert found == [each for each in whole if each[0] != damaged.lsn]


def test_a_file_of_another_version_is_refused(story: Story) -> None:

    path = log_files([story.folder])[0].path
    data = bytearray(path.read_bytes())
    data[8:10] = (FORMAT_VERSION + 1).to_bytes(2, "little")
    data[60:64] = crc32(bytes(data[:60])).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(VersionError, match="format version 2"):
        told(events(story))


def test_it_needs_nothing_of_the_broker() -> None:
    for name in ("reader", "log_events", "scan"):
        source = Path(reader.__file__).with_name(f"{name}.py").read_text("utf-8")
        imported = {node.module for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)}
        ours = {module for module in imported if module and module.startswith("artemis_py")}
        parts = {f"artemis_py.storage.format.{part}" for part in ("codec", "log_events", "names", "records", "scan")}
        assert ours <= {
            "artemis_py.message",
            "artemis_py.paged_messages",
            "artemis_py.record_log",
            "artemis_py.storage.format",
            *parts,
        }
