"""``journal verify`` and ``journal dump`` on files whose content is known, whole and damaged."""

from __future__ import annotations

import json
import os
import re
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from artemis_py.cli import main as cli
from artemis_py.record_log import Depth
from artemis_py.storage.disk.lock import DirectoryLock
from artemis_py.storage.format.scan import log_files
from artemis_py.storage.journal.bindings_copy import NAME as COPY
from artemis_py.storage.journal.extent import NAMES as EXTENTS
from artemis_py.storage.retention.retention import RetentionSettings
from tests.kit.files import flip
from tests.kit.journal_story import QUEUES, START_MS, Story


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Content and times of all files."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def dump(story: Story, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    """What ``dump --json`` prints."""
    capsys.readouterr()
    assert cli.main(["journal", "dump", str(story.folder), "--json", *arguments]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


# ---- verify --------------------------------------------------------------------------------------


def test_verify_counts_what_lives(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    before = snapshot(story.folder)
    assert cli.main(["journal", "verify", str(story.folder)]) == 0
    printed = capsys.readouterr().out
    for number in QUEUES:
        assert f"  q{number} (queue {number}): {len(story.live[number])} messages\n" in printed
    alive = {number for numbers in story.live.values() for number in numbers}
    assert f"live: {len(alive)} messages in 3 durable queues" in printed
    assert printed.endswith("no damage\n")
    assert snapshot(story.folder) == before


def test_verify_names_the_place_of_damage(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers beside the record that compaction has removed may be counted as lost, too."""
    messages = dump(story, capsys, "--type", "message")
    place = next(each for each in messages if each["offset"] is not None)
    path = story.folder / place["file"]
    flip(path, place["offset"] + 20)
    before = snapshot(story.folder)
    assert cli.main(["journal", "verify", str(story.folder)]) == 1
    printed = capsys.readouterr().out
    told = rf"  at byte {place['offset']}: DAMAGED: a record with a wrong checksum \(at most \d+ records? lost: "
    assert re.search(told + "messages of q", printed)
    assert printed.endswith("1 DAMAGED place\n")
    assert snapshot(story.folder) == before


def test_verify_forgives_the_end_of_a_torn_write(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    last = [line for line in dump(story, capsys) if line["offset"] is not None][-1]  # what is in a group has none
    flip(story.folder / last["file"], last["offset"] + 20)
    assert cli.main(["journal", "verify", str(story.folder)]) == 0
    assert f"  at byte {last['offset']}: an incomplete write: " in capsys.readouterr().out


def test_verify_reads_behind_a_damaged_header(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    flip(log_files([story.folder])[0].path, 20)
    assert cli.main(["journal", "verify", str(story.folder)]) == 1
    printed = capsys.readouterr().out
    assert "no header, " in printed
    assert "  at byte 0: DAMAGED: the file header is damaged" in printed
    assert f"  q1 (queue 1): {len(story.live[1])} messages\n" in printed


def test_verify_sees_a_file_under_a_wrong_name(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    path = log_files([story.folder])[-1].path
    path.rename(story.folder / "artemis-journal-000000099999.log")
    assert cli.main(["journal", "verify", str(story.folder)]) == 4
    printed = capsys.readouterr().out
    assert "DAMAGED: the header says segment" in printed
    assert "LOST: the header of artemis-journal-000000099999.log says that it is file" in printed


def test_verify_names_each_file_that_is_missing(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    for file in log_files([story.folder]):
        data = file.path.read_bytes()
        file.path.unlink()
        assert cli.main(["journal", "verify", str(story.folder)]) == 4
        printed = capsys.readouterr().out
        assert f"LOST: {file.path.name} is missing: " in printed
        assert "no damage" not in printed
        file.path.write_bytes(data)


def test_verify_sees_damage_in_what_stands_twice(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    for name in (*EXTENTS, COPY):
        data = (story.folder / name).read_bytes()
        flip(story.folder / name, 70 if name == COPY else 20)
        assert cli.main(["journal", "verify", str(story.folder)]) == 1
        assert f"DAMAGED: {name}" in capsys.readouterr().out
        (story.folder / name).write_bytes(data)
    assert cli.main(["journal", "verify", str(story.folder)]) == 0


def test_verify_sees_a_hole_in_what_is_retained(
    tmp_path: Path, rng: Random, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept"
    Story(tmp_path / "log", RetentionSettings(kept, None, None)).generate(rng, 150)
    files = log_files([kept])
    assert len(files) > 2
    assert cli.main(["journal", "verify", str(kept)]) == 0
    files[1].path.unlink()
    assert cli.main(["journal", "verify", str(kept)]) == 1
    assert f"DAMAGED: files {files[1].number} to {files[1].number} are missing" in capsys.readouterr().out


def test_a_file_that_was_only_made_is_no_damage(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    number = log_files([story.folder])[-1].number + 1
    (story.folder / f"artemis-journal-{number:012}.log").write_bytes(bytes(4096))
    assert cli.main(["journal", "verify", str(story.folder)]) == 0
    assert "created, never written to" in capsys.readouterr().out


def test_a_directory_in_use_may_be_read(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    lock = DirectoryLock(story.folder)
    try:
        assert cli.main(["journal", "verify", str(story.folder)]) == 0
    finally:
        lock.release()
    assert f"note: a broker (process {os.getpid()} on host " in capsys.readouterr().err


@pytest.mark.parametrize("command", ["verify", "dump"])
def test_a_directory_without_journal_files(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["journal", command, str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"artemis-py: {tmp_path} has no journal files\n"
    assert cli.main(["journal", command, str(tmp_path / "gone")]) == 1
    assert "gone: No such file or directory" in capsys.readouterr().err


# ---- dump ----------------------------------------------------------------------------------------


def test_dump_tells_of_every_record(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    lines = {line["lsn"]: line for line in dump(story, capsys)}
    numbers = sorted(lines)
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    named = [line["fields"] for line in lines.values() if line["type"] in ("session", "consumer")]
    names = {None: "", **{each["id"]: each.get("client") or each.get("subscription") for each in named}}
    for lsn, time_ms, kind, what in story.told:
        if lsn < numbers[0]:
            continue
        line = lines[lsn]
        assert line["time_ms"] == time_ms
        if kind == "published":
            number, queue_ids, body, _ = cast(Any, what)
            assert (line["type"], line["message_id"], line["address"]) == ("message", number, "a")
            assert tuple(state["queue"] for state in line["queues"]) == queue_ids
            assert line["body"].encode() == body
            assert line["headers"]["destination"] == "/queue/a"
        elif kind == "settled":
            consumer = names[line["consumer"]]
            assert (line["queue"], line["reason"], tuple(line["message_ids"]), consumer) == what
        elif kind == "delivered":
            consumer = names[line["consumer"]]
            found = (line["type"], line["queue"], tuple(line["message_ids"]), consumer)
            assert found == ("delivered", *what)  # type: ignore[misc]
        elif kind == "attempted":
            consumer = names[line["consumer"]]
            which = (line["queue"], line["message_id"], line["attempts"], line["due_ms"])
            assert (*which, consumer, line["cause"]) == what
        elif kind == "refused":
            fields = line["fields"]
            session = names[fields["session"]]
            assert (fields["address"], fields["policy"], session, fields["count"], fields["bytes"]) == what
        elif kind == "depths":
            assert tuple(Depth(*depth.values()) for depth in line["queues"]) == what


def test_dump_says_in_words_who_did_what(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = Story(tmp_path / "short")
    steps = [partial(story.publish, number, [1], b"", 1) for number in (1, 2, 3)]
    story.turn(story.declare, *steps, partial(story.deliver, 1, [1, 2]), partial(story.settle, 1, [1], "acked"))
    gone = partial(story.settle, 1, [3], "expired")
    story.turn(partial(story.fail, 1, 2, 1), gone, partial(story.refuse, 1, 2), story.count)
    assert cli.main(["journal", "dump", str(story.folder)]) == 0
    said = capsys.readouterr().out
    for words in (
        r"delivered +queue 1 [\d, ]+ by consumer \d+\n",
        r"settled +queue 1 acked [\d, ]+ by consumer \d+\n",
        r"settled +queue 1 expired [\d, ]+\n",
        r"attempted +queue 1 \d+ failed \d+ times by consumer \d+, nacked\n",
        r"session +id=\d+ client=host:1 protocol=STOMP 1.2\n",
        r"consumer +id=\d+ session=\d+ queue=1 subscription=sub-1 ack=client\n",
        r"origin +session \d+ sent the messages that follow",
        r"refused +address=a policy=drop session=\d+ count=\d+ bytes=\d+\n",
        r"depths +queue 1: \d+ \(\d+ bytes\)",
        r"broker +name=story start=1\n",
    ):
        assert re.search(words, said), words


def test_dump_shows_groups_and_copies(story: Story, rng: Random, capsys: pytest.CaptureFixture[str]) -> None:
    lines = dump(story, capsys)
    for _ in range(20):  # until the traffic had some of each
        if any(line["group"] for line in lines) and any(line.get("copy_of_lsn") for line in lines):
            break
        story.generate(rng, 150)
        lines = dump(story, capsys)
    groups = {line["lsn"] for line in lines if line["type"] == "group"}
    assert groups
    assert {line["group"] for line in lines if line["group"]} == groups
    copies = [line for line in lines if line.get("copy_of_lsn")]
    assert copies
    assert all(line["copy_of_lsn"] < line["lsn"] for line in copies)


def test_dump_chooses_types_and_numbers(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    lines = dump(story, capsys)
    low = lines[len(lines) // 3]["lsn"]
    high = low + 40
    chosen = dump(story, capsys, "--type", "message,settled", "--lsn", f"{low}..{high}")
    assert chosen == [line for line in lines if line["type"] in ("message", "settled") and low <= line["lsn"] <= high]
    assert dump(story, capsys, "--lsn", str(low)) == [line for line in lines if line["lsn"] == low]
    assert dump(story, capsys, "--lsn", f"{high}..") == [line for line in lines if line["lsn"] >= high]
    assert dump(story, capsys, "--lsn", f"..{low}") == [line for line in lines if line["lsn"] <= low]


def test_dump_for_people_has_one_line_for_each_record(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    count = len(dump(story, capsys))
    assert cli.main(["journal", "dump", str(story.folder)]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["lsn", "time", "type", "what"]
    assert len(lines) == count
    first = next(line for line in lines if " message " in line)
    assert "2023-11-14T22:" in first
    assert START_MS // 1000 == 1_700_000_000


def test_a_body_that_is_no_text_is_base64(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = Story(tmp_path / "journal")
    story.turn(story.declare)
    story.turn(lambda: story.publish(1, [1], b"\xff\xfe"))
    (line,) = dump(story, capsys, "--type", "message")
    assert (line["body_base64"], line["body_bytes"], "body" in line) == ("//4=", 2, False)


def test_dump_goes_on_behind_damage_and_says_so(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    lines = dump(story, capsys)
    place = next(line for line in lines if line["type"] == "settled")
    flip(story.folder / place["file"], place["offset"] + 18)
    assert cli.main(["journal", "dump", str(story.folder), "--json"]) == 1
    captured = capsys.readouterr()
    assert f"{place['file']} at byte {place['offset']}: DAMAGED" in captured.err
    assert len(captured.out.splitlines()) == len(lines) - 1


@pytest.mark.parametrize(
    "arguments", [["--type", "mesage"], ["--lsn", "a..b"], ["--lsn", ".."], ["--lsn", "-1"], ["--format", "xml"]]
)
def test_bad_arguments(arguments: list[str], story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        cli.main(["journal", "dump", str(story.folder), *arguments])
    assert exit_info.value.code == 2
    assert "journal dump: argument" in capsys.readouterr().err
