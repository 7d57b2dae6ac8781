"""The reader finds the true story, whole and in parts, whatever was retired, compacted or copied meanwhile."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path
from random import Random

import pytest

from artemis_py.storage import reader
from artemis_py.storage.codec import FORMAT_VERSION, RECORD_HEADER_BYTES, SETTLED, VersionError
from artemis_py.storage.reader import (
    Attempted,
    Changed,
    Delivered,
    Event,
    LogReader,
    Published,
    Range,
    Settled,
    read_file,
)
from artemis_py.storage.retention import RetentionSettings
from artemis_py.storage.scan import log_files, whole_records
from tests.unit.storage_tools.parts import START_MS, Story, Told


def told(event: Event) -> Told:
    """An event in the words of the story."""
    match event:
        case Published(kept=kept):
            what: object = (kept.message.id, tuple(kept.queue_ids), bytes(kept.message.body))
        case Delivered(queue_id=queue_id, message_ids=message_ids):
            what = (queue_id, message_ids)
        case Settled(queue_id=queue_id, reason=reason, message_ids=message_ids):
            what = (queue_id, reason, message_ids)
        case Attempted(queue_id=queue_id, message_id=message_id, attempts=attempts, due_ms=due_ms):
            what = (queue_id, message_id, attempts, due_ms)
        case Changed(kind=kind, fields=fields):
            return event.lsn, event.time_ms, kind, fields
        case _:
            raise AssertionError(event)
    return event.lsn, event.time_ms, type(event).__name__.lower(), what


@pytest.fixture
def story(tmp_path: Path, rng: Random) -> Story:
    """Enough traffic that segments were retired and messages moved."""
    kept = RetentionSettings(tmp_path / "retained", None, None)
    made = Story(tmp_path / "journal", kept)
    made.generate(rng, 120)
    assert len(log_files([tmp_path / "retained"])) > 3
    return made


def read(story: Story, wanted: Range = reader.EVERYTHING) -> list[Told]:
    """What a reader of both directories finds."""
    log = LogReader([story.folder.parent / "retained", story.folder])
    found = [told(event) for event in log.events(wanted)]
    assert log.damages == []
    return found


def without_repeats(found: list[Told]) -> list[Told]:
    """Queues are told again in later files; only the first telling is in the story."""
    first: list[Told] = []
    queues: set[str] = set()
    for each in found:
        if each[2] == "queue":
            if str(each[3]) in queues:
                continue
            queues.add(str(each[3]))
        first.append(each)
    return first


def test_the_whole_story_is_found(story: Story) -> None:
    assert without_repeats(read(story)) == story.told


def test_each_number_comes_once_and_in_order(story: Story) -> None:
    numbers = [lsn for lsn, *_ in read(story)]
    assert numbers == sorted(set(numbers))


def test_a_range_of_numbers(story: Story, rng: Random) -> None:
    whole = read(story)
    for _ in range(20):
        low, high = sorted(rng.choices([lsn for lsn, *_ in whole], k=2))
        assert read(story, Range(lsn_min=low, lsn_max=high)) == [each for each in whole if low <= each[0] <= high]


def test_a_range_of_time(story: Story) -> None:
    whole = read(story)
    low, high = START_MS + 40_000, START_MS + 90_000
    wanted = [each for each in whole if low <= each[1] <= high]
    assert wanted
    assert read(story, Range(time_ms_min=low, time_ms_max=high)) == wanted


def test_a_segment_in_both_directories_is_read_once(story: Story) -> None:
    whole = read(story)
    retained = log_files([story.folder.parent / "retained"])[-1]
    shutil.copyfile(retained.path, story.folder / f"artemis-journal-{retained.number:012}.log")
    assert read(story) == whole


def test_a_segment_that_moves_while_it_is_read_is_found(story: Story) -> None:
    whole = read(story)
    log = LogReader([story.folder.parent / "retained", story.folder])
    events = log.events()
    found = [told(next(events))]
    last = log_files([story.folder])[-1]
    last.path.rename(story.folder.parent / "retained" / f"{last.path.stem}-20300101T000000.000Z.log")
    assert found + [told(event) for event in events] == whole


def test_one_file_alone(story: Story) -> None:
    files = log_files([story.folder.parent / "retained", story.folder])
    assert [told(event) for file in files for event in read_file(file.path)] == read(story)


def test_damage_is_told_and_what_is_whole_is_read(story: Story) -> None:
    whole = read(story)
    path = log_files([story.folder.parent / "retained"])[1].path
    data = bytearray(path.read_bytes())
    damaged = next(record for record in whole_records("", bytes(data), []) if record.type_code == SETTLED)
    data[damaged.offset + RECORD_HEADER_BYTES] ^= 1
    path.write_bytes(data)
    log = LogReader([story.folder.parent / "retained", story.folder])
    found = [told(event) for event in log.events()]
    assert [(damage.name, damage.offset, damage.torn) for damage in log.damages] == [(path.name, damaged.offset, False)]
    assert found == [each for each in whole if each[0] != damaged.lsn]


def test_a_file_of_another_version_is_refused(story: Story) -> None:
    from artemis_py.storage import codec

    path = log_files([story.folder])[0].path
    data = bytearray(path.read_bytes())
    data[8:10] = (FORMAT_VERSION + 1).to_bytes(2, "little")
    data[60:64] = codec.crc32(bytes(data[:60])).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(VersionError, match="format version 2"):
        read(story)


def test_it_needs_nothing_of_the_broker() -> None:
    for name in ("reader", "scan"):
        source = Path(reader.__file__).with_name(f"{name}.py").read_text("utf-8")
        imported = {node.module for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)}
        ours = {module for module in imported if module and module.startswith("artemis_py")}
        parts = {"artemis_py.storage.codec", "artemis_py.storage.scan", "artemis_py.storage.body_names"}
        assert ours <= {"artemis_py.message", "artemis_py.storage", *parts}
