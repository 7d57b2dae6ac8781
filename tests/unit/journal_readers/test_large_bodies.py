"""Large bodies as the tools for journal files see them: verify, dump, and a reader of the retained log."""

from __future__ import annotations

import json
from pathlib import Path
from zlib import crc32

import pytest

from artemis_py.cli.main import main
from artemis_py.message import LargeBody
from artemis_py.storage.format.log_events import Published
from artemis_py.storage.format.names import body_name, find_body, start_name
from artemis_py.storage.format.reader import LogReader
from tests.kit.journal_story import Story, message

NUMBER = (1 << 32) + 1
NAME = body_name(NUMBER, durable=True)
BODY = b"0123456789"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A journal with one living message of a large body, and the body beside it."""
    story = Story(tmp_path / "journal")
    story.turn(story.declare)
    large = message(1)
    large.body = LargeBody(NUMBER, 10, None, crc32(BODY))
    story.turn(lambda: story.journal.records.published(large, [1], 0) and None)
    story.disk.close()
    (tmp_path / "largemessages").mkdir()
    (tmp_path / "largemessages" / NAME).write_bytes(BODY)
    return tmp_path


def verified(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    """Exit code and output of verify."""
    code = main(["journal", "verify", str(folder / "journal"), *options])
    return code, capsys.readouterr().out


def test_verify_looks_at_the_files_of_living_messages(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = verified(folder, capsys)
    assert (code, "large: 1 body, 10 bytes" in out) == (0, True)


def test_verify_says_what_is_too_short(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "largemessages" / NAME).write_bytes(b"012345678")
    code, out = verified(folder, capsys)
    assert code == 1
    assert f"DAMAGED: message 1 needs 10 bytes of {NAME}, which has 9 bytes" in out
    assert "1 DAMAGED place" in out


def test_verify_says_which_body_is_not_as_it_was_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for place in range(len(BODY)):
        damaged = bytearray(BODY)
        damaged[place] ^= 4
        (folder / "largemessages" / NAME).write_bytes(damaged)
        code, out = verified(folder, capsys)
        assert (code, f"{NAME}, which has changed: its checksum does not match" in out) == (1, True)


def test_verify_says_what_is_missing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "largemessages" / NAME).rename(folder / "elsewhere.body")
    (folder / "largemessages" / start_name(1)).touch()
    code, out = verified(folder, capsys)
    assert (code, f"{NAME}, which is missing" in out) == (1, True)


@pytest.mark.parametrize("is_there", [True, False])
def test_verify_says_that_a_directory_is_empty_or_not_there(
    folder: Path, is_there: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a start would (exit code 4)."""
    place = folder / "largemessages"
    (place / NAME).unlink()
    if not is_there:
        place.rmdir()
    code, out = verified(folder, capsys, "--large", str(place))
    assert code == 4
    assert f"LOST: {place} lacks the only large body that the journal needs, with 1 message of q1\n" in out
    assert "a broker does not start while anything is LOST" in out
    assert "DAMAGED:" not in out


def test_verify_is_told_where_bodies_are(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "largemessages").rename(folder / "bodies")
    code, out = verified(folder, capsys)
    assert (code, "not checked; name their directory with --large DIR" in out) == (0, True)
    code, out = verified(folder, capsys, "--large", str(folder / "bodies"))
    assert (code, "large: 1 body, 10 bytes" in out) == (0, True)


def test_dump_names_the_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = str(folder / "journal")
    assert main(["journal", "dump", journal, "--type", "message"]) == 0
    assert f"body 10 bytes in {NAME}" in capsys.readouterr().out
    assert main(["journal", "dump", journal, "--type", "message", "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert (fields["body_bytes"], fields["body_file"], "body" in fields) == (10, NAME, False)


def test_a_reader_finds_bodies_in_use_and_retained_ones(folder: Path) -> None:
    log = LogReader([folder / "kept", folder / "journal"])
    (folder / "kept").mkdir()
    published = next(event for event in log.events() if isinstance(event, Published))
    body = published.kept.message.body
    assert isinstance(body, LargeBody)
    directories = [folder / "largemessages", *log.directories]
    assert find_body(body.number, directories) == folder / "largemessages" / NAME
    retained = folder / "kept" / "large" / NAME.replace(".", "-20260131T235959.999Z.")
    retained.parent.mkdir()
    (folder / "largemessages" / NAME).rename(retained)
    assert find_body(body.number, directories) == retained
    retained.unlink()
    assert find_body(body.number, directories) is None
