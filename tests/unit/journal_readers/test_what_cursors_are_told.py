"""Whose cursor was overrun, who is overtaken, and how far each is behind, to the record."""

from __future__ import annotations

from pathlib import Path

import pytest

from artemis_py.server.log_cursors import CursorRefusedError
from artemis_py.storage.retention.retention import Retention, RetentionSettings
from tests.kit.files import flip
from tests.kit.journal_with_cursors import JournalWithCursors
from tests.kit.log_desk import Desk


def test_a_cursor_that_lapsed_is_not_named_among_those_overrun(tmp_path: Path) -> None:
    rig = JournalWithCursors(tmp_path)
    rig.put("long", 0)
    rig.put("short", 0, ttl_s=1)
    rig.write(3)
    rig.now_ms += 1000
    rig.crowded = lambda: True
    rig.retention.purge()
    assert rig.said
    assert all(line.endswith("had read it: long") for line in rig.said)


@pytest.mark.parametrize("behind", [0, 1])
def test_a_file_given_up_is_an_overrun_only_for_who_had_not_read_all_of_it(tmp_path: Path, behind: int) -> None:
    rig = JournalWithCursors(tmp_path, bytes_max=None)
    rig.write(4)
    rig.put("reader", rig.last_lsn(1) - behind)
    assert rig.retention.give_up_oldest() is not None
    assert len(rig.said) == rig.desk.counts()["overrun_files"] == behind


def test_who_is_overtaken_is_told_to_the_record(tmp_path: Path) -> None:
    rig = JournalWithCursors(tmp_path, bytes_max=None)
    rig.write(5)
    last_lsn = rig.last_lsn(2)
    for name, lsn in (("all of it", last_lsn), ("but one", last_lsn - 1), ("more", last_lsn + 1)):
        rig.put(name.replace(" ", "-"), lsn)
    for _ in range(2):
        rig.retention.give_up_oldest()
    overtaken = {view.cursor.name: view.is_overtaken for view in rig.desk.all()}
    assert overtaken == {"all-of-it": False, "but-one": True, "more": False}


def test_a_cursor_is_as_far_behind_alone_as_among_others(tmp_path: Path) -> None:
    rig = JournalWithCursors(tmp_path, bytes_max=None)
    rig.write(6)
    rig.put("slow", rig.last_lsn(1) - 1)
    rig.put("fast", rig.last_lsn(4))
    alone = {name: rig.desk.get(name) for name in ("slow", "fast")}
    assert {view.cursor.name: view for view in rig.desk.all()} == alone
    slow = alone["slow"]
    assert slow is not None
    assert not slow.is_overtaken
    sizes = [one.size_bytes for one in rig.retention.files] + [one.written_bytes for one in rig.journal.segments]
    assert sum(sizes[1:]) < slow.lag_bytes < sum(sizes)


def test_segments_on_their_way_to_retention_count_as_not_read(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.put("reader", 0)
    retire = desk.retention.retire
    seen: list[tuple[int, int]] = []

    def look(name: str) -> None:
        before = desk.desk.all()[0].lag_bytes
        retire(name)
        seen.append((before, desk.desk.all()[0].lag_bytes))

    desk.journal.files.retirement._retire = look
    desk.write(3)
    assert len(seen) > 1
    for before, after in seen:
        assert abs(after - before) < 1024, "it is behind a segment whether that moved or not"


def test_a_clock_that_was_set_back_makes_no_cursor_idle_for_less_than_nothing(tmp_path: Path) -> None:
    rig = JournalWithCursors(tmp_path)
    rig.put("reader", 0)
    rig.now_ms -= 5000
    assert [view.idle_ms for view in rig.desk.all()] == [0]
    rig.now_ms += 7000
    assert [view.idle_ms for view in rig.desk.all()] == [2000]


def test_a_cursor_goes_no_further_than_what_is_durable(tmp_path: Path) -> None:
    """A record that is only written may be lost in a crash, and another one have its number."""
    rig = JournalWithCursors(tmp_path)
    rig.write(1)
    durable_lsn = rig.journal.durable_lsn
    rig.journal.records.queue_changed({"id": 1, "name": "q", "address": "a"})
    assert rig.journal.records.last_lsn == durable_lsn + 1
    with pytest.raises(CursorRefusedError, match="past the end of the log"):
        rig.desk.put("reader", {"lsn": durable_lsn + 1})
    rig.desk.put("reader", {"lsn": durable_lsn})
    assert rig.desk.is_set("reader")


def test_files_before_one_with_a_damaged_header_are_not_forgotten(tmp_path: Path) -> None:
    """It does not say where it begins, so who asks for what follows a record gets all that may follow it."""
    rig = JournalWithCursors(tmp_path, bytes_max=None)
    rig.write(6)
    flip(rig.retention.files[2].file.path, 3)
    settings = RetentionSettings(tmp_path / "kept", None, None)
    kept = Retention(rig.disk, tmp_path / "journal", settings, lambda: rig.now_ms)
    assert [one.first_lsn == 0 for one in kept.files] == [number == 2 for number in range(len(kept.files))]
    second, fourth = kept.files[1], kept.files[3]
    assert kept.since(0) == kept.files
    assert kept.since(second.first_lsn) == kept.files[1:]
    assert kept.since(fourth.first_lsn - 2) == kept.files[1:]
    assert kept.since(fourth.first_lsn - 1) == kept.files[3:]


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_a_damaged_header_makes_no_cursor_seem_much_nearer_or_farther(tmp_path: Path, number: int) -> None:
    """It does not say where it begins; all others do."""
    rig = JournalWithCursors(tmp_path, bytes_max=None)
    rig.write(6)
    for place in (1, 2, 3, 4):
        rig.put(f"after-{place}", rig.last_lsn(place))
        rig.put(f"in-{place}", rig.last_lsn(place) - 1)
    before = {view.cursor.name: view.lag_bytes for view in rig.desk.all()}
    damaged = rig.retention.files[number - 1]
    damaged.file.path.write_bytes(b"!" + damaged.file.path.read_bytes()[1:])
    rig.start()
    assert rig.retention.files[number - 1].first_lsn == 0
    for view in rig.desk.all():
        assert abs(view.lag_bytes - before[view.cursor.name]) <= damaged.size_bytes
        assert not view.is_overtaken
