"""Cursors: what is one, that retention waits for it as long as it counts, that it outlives restarts and segments."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from artemis_py.cli.main import main
from artemis_py.server.log_cursors import CursorRefusedError, LogCursors
from artemis_py.storage.disk.lock import DirectoryLock
from artemis_py.storage.format.log_events import Changed
from artemis_py.storage.format.names import body_name, segment_number
from artemis_py.storage.format.reader import LogReader
from artemis_py.storage.format.scan import log_files
from artemis_py.storage.format.segment_index import index_name
from artemis_py.storage.retention.cursors import CURSORS_MAX, Cursor, CursorError, Lag, wanted_cursor
from artemis_py.storage.retention.retention import RetainedBodies, Retention, RetentionSettings
from tests.kit.journal_story import START_MS, message
from tests.kit.journal_with_cursors import TTL_S, JournalWithCursors

DAY_MS = 86_400_000
# ---- what is a cursor ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ([], "a cursor must be a JSON object"),
        ({}, "lsn must be a number, 0 or more, not None"),
        ({"lsn": -1}, "lsn must be a number, 0 or more, not -1"),
        ({"lsn": True}, "lsn must be a number"),
        ({"lsn": 1.5}, "lsn must be a number"),
        ({"lsn": 1, "owner": 2}, "owner must be a text"),
        ({"lsn": 1, "owner": "x" * 501}, "owner must be a text"),
        ({"lsn": 1, "ttl_s": 0}, "ttl_s must be a number of seconds"),
        ({"lsn": 1, "ttl_s": "1"}, "ttl_s must be a number of seconds"),
        ({"lsn": 1, "ttl_s": 1e12}, "ttl_s must be a number of seconds"),
        ({"lsn": 1, "ttl": 5}, "a cursor has no field 'ttl'; its fields are lsn, owner, ttl_s"),
    ],
)
def test_what_is_no_cursor(given: object, wrong: str) -> None:
    with pytest.raises(CursorError, match=wrong.replace("[", "\\[")):
        wanted_cursor("c", given, TTL_S, START_MS)


@pytest.mark.parametrize("name", ["", "a b", "a/b", "é", "x" * 129, "a\n"])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(CursorError, match="is not a valid cursor name"):
        wanted_cursor(name, {"lsn": 1}, TTL_S, START_MS)


def test_what_is_not_said_has_a_default() -> None:
    assert wanted_cursor("c", {"lsn": 0}, TTL_S, 7) == Cursor("c", 0, "", TTL_S, 7)
    assert wanted_cursor("c", {"lsn": 1, "ttl_s": 0.5, "owner": "me"}, TTL_S, 7) == Cursor("c", 1, "me", 0.5, 7)


def test_how_far_it_is_behind() -> None:
    lag = Lag([(1, 10, 100), (11, 20, 1000), (21, 30, 50)])
    assert [lag.bytes_behind(lsn) for lsn in (0, 10, 15, 20, 21, 30, 99)] == [1150, 1050, 550, 50, 45, 0, 0]
    assert Lag([]).bytes_behind(3) == 0


# ---- what it holds back --------------------------------------------------------------------------


def test_what_a_cursor_has_not_read_stays(tmp_path: Path) -> None:
    rig = JournalWithCursors(tmp_path)
    rig.put("slow", 0)
    rig.put("fast", 0)
    rig.write(6)
    assert rig.numbers == [1, 2, 3, 4, 5]
    rig.put("fast", rig.last_lsn(4))
    rig.retention.purge()
    assert rig.numbers[:5] == [1, 2, 3, 4, 5]
    rig.put("slow", rig.last_lsn(2) - 1)
    rig.retention.purge()
    assert rig.numbers[:4] == [2, 3, 4, 5]
    rig.put("slow", rig.last_lsn(2))
    rig.retention.purge()
    assert rig.numbers[:3] == [3, 4, 5]
    assert {path.name for path in (tmp_path / "kept").glob("*.index")} == {
        index_name(file.path.name) for file in log_files([tmp_path / "kept"])
    }
    rig.desk.drop("slow")
    rig.retention.purge()
    assert rig.numbers[0] == 5
    rig.desk.drop("fast")
    rig.retention.purge()
    assert rig.numbers == []
    assert rig.said == []


def test_age_waits_for_a_cursor_too(tmp_path: Path) -> None:
    rig = JournalWithCursors(tmp_path, period_ms=DAY_MS, bytes_max=None)
    rig.now_ms = int(time.time() * 1000)
    rig.put("reader", 0, ttl_s=1e8)
    rig.write(4)
    rig.put("reader", rig.last_lsn(1), ttl_s=1e8)
    rig.now_ms += 2 * DAY_MS
    rig.retention.purge()
    assert rig.numbers == [2, 3]
    rig.desk.drop("reader")
    rig.retention.purge()
    assert rig.numbers == []


def test_the_last_retained_file_tells_by_its_index_that_it_was_read(tmp_path: Path) -> None:
    rig = JournalWithCursors(tmp_path)
    rig.put("reader", 0)
    rig.write(3)
    assert rig.numbers == [1, 2]
    rig.put("reader", rig.journal.durable_lsn)
    index = next(path for path in (tmp_path / "kept").glob("*.index") if "000000000002-" in path.name)
    text = index.read_bytes()
    index.unlink()
    rig.retention.purge()
    assert rig.numbers == [2]
    index.write_bytes(text)
    rig.retention.purge()
    assert rig.numbers == []


def test_a_cursor_that_is_not_moved_lapses(tmp_path: Path) -> None:
    rig = JournalWithCursors(tmp_path)
    rig.put("default", 0)
    rig.put("short", 0, ttl_s=1.5)
    rig.write(4)
    rig.now_ms += TTL_S * 1000 - 1
    rig.retention.purge()
    assert rig.numbers == [1, 2, 3]
    assert {view.cursor.name: view.holds for view in rig.desk.all()} == {"default": True, "short": False}
    rig.put("default", 0)
    rig.now_ms += TTL_S * 1000 - 1
    rig.retention.purge()
    assert rig.numbers == [1, 2, 3]
    rig.now_ms += 1
    rig.retention.purge()
    assert rig.numbers == []
    assert [view.is_overtaken for view in rig.desk.all()] == [True, True]


def test_a_full_disk_wins_over_cursors_and_that_is_told(tmp_path: Path) -> None:
    rig = JournalWithCursors(tmp_path)
    rig.put("slow", 0)
    rig.write(6)
    rig.put("fast", rig.last_lsn(2))
    room = iter([True, True, True, False])
    rig.crowded = lambda: next(room)
    rig.retention.purge()
    assert rig.numbers == [4, 5]
    names = [f"artemis-journal-{number:012}" for number in (1, 2, 3)]
    for line, name, cursors in zip(rig.said, names, ("slow", "slow", "fast, slow"), strict=True):
        assert line.startswith(f"warning: the disk is full: {name}-")
        assert line.endswith(f"before these cursors had read it: {cursors}")
    counts = rig.desk.counts()
    assert counts["overrun_files"] == 3
    assert counts["overrun_bytes"] >= 3 * 4096
    assert (counts["retained_files"], counts["retained_bytes"] >= 2 * 4096) == (2, True)
    assert {view.cursor.name: view.is_overtaken for view in rig.desk.all()} == {"fast": True, "slow": True}


def test_bodies_of_held_files_stay(tmp_path: Path) -> None:
    """``storage-limit`` alone would have removed them."""
    rig = JournalWithCursors(tmp_path)
    bodies = RetainedBodies(rig.disk, rig.disk.directory, rig.disk.directory, tmp_path / "kept", lambda: rig.now_ms)
    rig.disk.begin(body_name(7, durable=True))
    rig.disk.write(body_name(7, durable=True), 0, bytes(5000))
    settings = RetentionSettings(tmp_path / "kept", None, 1)
    rig.put("reader", 0)
    rig.write(3)
    retention = Retention(rig.disk, tmp_path / "journal", settings, bodies=bodies, holds=rig.cursors)
    bodies.retire(body_name(7, durable=True), 0)
    retention.purge()
    assert bodies.size_bytes == 5000
    rig.desk.drop("reader")
    retention.purge()
    assert (retention.files, bodies.size_bytes) == ((), 0)


@pytest.mark.parametrize("limits", [{"bytes_max": 1}, {"bytes_max": None, "period_ms": 1000}], ids=str)
def test_bodies_of_which_only_the_journal_tells_are_held(tmp_path: Path, limits: dict[str, Any]) -> None:
    """No segment is retained yet, or none any more."""
    rig = JournalWithCursors(tmp_path, **limits)
    for number in range(1, 7):
        rig.journal.records.published(message(number, b""), [], 0)
        rig.turn()
    settings = RetentionSettings(tmp_path / "kept", rig.period_ms, rig.bytes_max)

    def left(*retired: tuple[int, int], starts: bool = False) -> int:
        """How many bytes of bodies are kept after these, each with its number and lsn."""
        if starts or not retention:
            own = rig.disk.directory
            body_log = RetainedBodies(rig.disk, own, own, tmp_path / "kept", lambda: rig.now_ms)
            log = Retention(rig.disk, own, settings, lambda: rig.now_ms, body_log, rig.cursors)
            retention[:] = [(log, body_log)]
        log, bodies = retention[0]
        for number, lsn in retired:
            rig.disk.begin(body_name(number, durable=True))
            rig.disk.write(body_name(number, durable=True), 0, bytes(5000))
            bodies.retire(body_name(number, durable=True), lsn)
        rig.now_ms += 2000
        log.purge()
        assert not log.files
        return bodies.size_bytes

    retention: list[tuple[Retention, RetainedBodies]] = []
    rig.put("reader", 2)
    assert left((1, 2), (2, 3), (3, 9)) == 10_000
    rig.put("reader", 5)
    assert left() == 5_000
    assert left(starts=True) == 5_000
    rig.put("reader", 9)
    assert left() == 5_000, "it is unknown which records refer to it"
    assert left((4, 10)) == 10_000
    rig.put("reader", 10)
    assert left() == 0
    rig.put("reader", 0)
    assert left((5, 11)) == 5_000
    rig.crowded = lambda: True
    assert left() == 0


# ---- what it outlives ----------------------------------------------------------------------------


def test_a_cursor_outlives_restarts_and_the_segments_that_told_of_it(tmp_path: Path) -> None:
    rig = JournalWithCursors(tmp_path, bytes_max=None)
    rig.put("reader", 0, owner="a query")
    rig.put("gone", 0)
    rig.desk.drop("gone")
    for _ in range(3):
        rig.write(4)
        rig.start()
        assert [view.cursor for view in rig.desk.all()] == [Cursor("reader", 0, "a query", TTL_S, START_MS)]
    assert len([name for name in rig.disk.names() if segment_number(name)]) < 3
    told = [event.fields for event in LogReader([tmp_path / "kept"]).events() if isinstance(event, Changed)]
    assert told[:3] == [
        {"name": "reader", "lsn": 0, "owner": "a query", "ttl_s": TTL_S, "moved_ms": START_MS},
        {"name": "gone", "lsn": 0, "owner": "", "ttl_s": TTL_S, "moved_ms": START_MS},
        {"name": "gone", "deleted": True},
    ]


def test_what_cannot_be_set(tmp_path: Path) -> None:
    rig = JournalWithCursors(tmp_path)
    with pytest.raises(CursorRefusedError, match="lsn 99 is past the end of the log, which is 0"):
        rig.desk.put("c", {"lsn": 99})
    for number in range(CURSORS_MAX):
        rig.desk.put(f"c{number}", {"lsn": 0})
    with pytest.raises(CursorRefusedError, match="there are already 1000 cursors, the most allowed; drop one first"):
        rig.desk.put("c", {"lsn": 0})
    rig.desk.put("c7", {"lsn": 0})
    desk = LogCursors(rig.journal, None, None, lambda: 0)
    with pytest.raises(CursorRefusedError, match="set journal-retention-directory"):
        desk.put("c", {"lsn": 0})
    assert (desk.all(), desk.get("c7")) == ([], None)


# ---- the command, on files -----------------------------------------------------------------------


def listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """What the command tells of a stopped broker's cursors."""
    assert main(["cursor", "ls", "--journal", str(folder / "journal"), "--json"]) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["data"]
    return rows


def test_the_command_lists_and_drops_in_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rig = JournalWithCursors(tmp_path)
    rig.put("one", 0, owner="me")
    rig.put("two", 1, ttl_s=5e7)
    rig.write(2)
    before = {path: path.read_bytes() for path in (tmp_path / "journal").iterdir()}
    assert [(one["name"], one["lsn"], one["owner"]) for one in listed(tmp_path, capsys)] == [
        ("one", 0, "me"),
        ("two", 1, ""),
    ]
    assert {path: path.read_bytes() for path in (tmp_path / "journal").iterdir()} == before
    journal = ["--journal", str(tmp_path / "journal")]
    assert main(["cursor", "ls", *journal, "--where", "lsn>0"]) == 0
    printed = capsys.readouterr().out
    assert ("two" in printed, "one" in printed, "1 cursor" in printed) == (True, False, True)
    assert main(["cursor", "delete", *journal, "one"]) == 1
    assert "nobody is here to ask: add --yes" in capsys.readouterr().err
    journal.append("--yes")
    lock = DirectoryLock(tmp_path / "journal")
    assert main(["cursor", "delete", *journal, "one"]) == 1
    assert "omit --journal, and ask the broker itself" in capsys.readouterr().err
    lock.release()
    assert main(["cursor", "delete", *journal, "one"]) == 0
    assert capsys.readouterr().out.split() == ["removed", "one"]
    assert [one["name"] for one in listed(tmp_path, capsys)] == ["two"]
    rig.start()
    assert [view.cursor.name for view in rig.desk.all()] == ["two"]
    rig.write(3)
    assert main(["cursor", "delete", *journal, "one"]) == 1
    assert "there is no cursor 'one'" in capsys.readouterr().err
    assert main(["cursor", "ls", "--journal", str(tmp_path / "nowhere")]) == 1
    assert "No such file" in capsys.readouterr().err
