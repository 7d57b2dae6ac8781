"""``journal repair``: a clean journal of what can be read, and every old file as it was in a folder inside it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from artemis_py.cli import main as cli
from artemis_py.storage.disk.disk import FileDisk
from artemis_py.storage.format.scan import log_files, whole_records
from artemis_py.storage.recovery import repair as repair_module
from artemis_py.storage.recovery.accept_journal import LossError, recover
from artemis_py.storage.recovery.examination import examine
from tests.kit.crash.damaged import found_in, published_by
from tests.kit.files import contents
from tests.kit.journal_story import Story


def _lose_one(story: Story) -> tuple[Path, set[tuple[int, int]]]:
    """Remove the second file; returns it, and everything that lives elsewhere."""
    file = log_files([story.folder])[1]
    records = whole_records(file.path.name, file.path.read_bytes(), [], is_last=False)
    gone = {number for record in records for _, number in published_by(record)}
    file.path.unlink()
    alive = {(queue, number) for queue, numbers in story.live.items() for number in numbers}
    return file.path, {pair for pair in alive if pair[1] not in gone}


def test_without_write_it_only_tells(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    missing, _ = _lose_one(story)
    before = contents(story.folder)
    assert cli.main(["journal", "repair", str(story.folder)]) == 4
    assert contents(story.folder) == before
    printed = capsys.readouterr().out
    assert f"LOST: {missing.name} is missing: " in printed
    assert "nothing was changed" in printed


def test_a_repaired_journal_is_whole_and_the_old_files_are_kept(
    story: Story, capsys: pytest.CaptureFixture[str]
) -> None:
    _, rest = _lose_one(story)
    before = contents(story.folder)
    with pytest.raises(LossError):
        recover(FileDisk(story.folder))
    assert cli.main(["journal", "repair", str(story.folder), "--write"]) == 0
    [folder] = story.folder.glob("lost+found-*")
    kept = contents(folder)
    assert all(kept.get(name) == data for name, data in before.items() if not name.startswith("spare-"))
    assert cli.main(["journal", "verify", str(story.folder)]) == 0
    assert "no damage" in capsys.readouterr().out
    found = recover(FileDisk(story.folder))
    assert rest <= found_in(found), "everything that was not in the missing file lives"
    assert set(found.index.queues) == {1, 2, 3}
    assert found.next_lsn > story.journal.records.last_lsn - 4, "no number is given twice"
    assert not found.tells_all, "what the journal does not tell of may be needed"


def test_no_number_is_given_twice_when_the_last_files_are_lost(story: Story) -> None:
    """Readers of the log had read behind what is left: they passed over what got their numbers."""
    last = log_files([story.folder])[-1]
    for file in log_files([story.folder])[-2:]:
        file.path.unlink()
    assert cli.main(["journal", "repair", str(story.folder), "--write"]) == 0
    found = recover(FileDisk(story.folder))
    assert found.segments[0].number > last.number
    assert found.next_lsn > story.journal.records.last_lsn
    assert found.segments[0].first_lsn > story.journal.records.last_lsn
    assert found.index.message_id_max > max(story.messages)
    assert not found.damages


def test_the_old_files_are_for_the_brokers_user_alone(story: Story) -> None:
    _lose_one(story)
    before = os.umask(0)
    try:
        assert cli.main(["journal", "repair", str(story.folder), "--write"]) == 0
    finally:
        os.umask(before)
    [folder] = story.folder.glob("lost+found-*")
    assert folder.stat().st_mode & 0o077 == 0
    assert [
        path for path in story.folder.iterdir() if path.name.startswith("journal-") and path.stat().st_mode & 0o077
    ] == []


def test_a_folder_without_a_journal_is_left_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["journal", "repair", str(tmp_path)]) == 1
    assert f"{tmp_path} has no journal files" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_whole_journal_is_left_alone(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(story.folder)
    assert cli.main(["journal", "repair", str(story.folder), "--write"]) == 0
    assert contents(story.folder) == before
    assert "nothing to repair" in capsys.readouterr().out


def test_a_repair_that_is_interrupted_goes_on_and_nobody_starts_before(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies at its first, second, third... move."""
    _, rest = _lose_one(story)
    before = contents(story.folder)
    really = os.rename
    moves = 0
    left = 0

    def move(source: Path, target: Path) -> None:
        nonlocal left
        if not left:
            raise KeyboardInterrupt
        left -= 1
        really(source, target)

    monkeypatch.setattr("artemis_py.storage.recovery.repair.os.rename", move)
    while True:
        left = 1
        try:
            repair_module.repair(story.folder, 4096)
            break
        except KeyboardInterrupt:
            moves += 1
            examined = examine(FileDisk(story.folder))
            assert examined.reasons[0] == "a repair was interrupted; run it again"
    assert moves > len(log_files([story.folder]))
    [folder] = story.folder.glob("lost+found-*")
    assert all(contents(folder).get(name) == data for name, data in before.items() if not name.startswith("spare-"))
    assert rest <= found_in(recover(FileDisk(story.folder)))
