"""What readers are told of both ends of the log: while the oldest segments leave, and while the newest is written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from artemis_py.server.log_view import LogView, NotInLogError
from artemis_py.storage.format.names import segment_number
from artemis_py.storage.format.records import FILE_HEADER_BYTES
from artemis_py.storage.format.segment_index import index_name
from artemis_py.storage.retention.retention import RetainedFile
from tests.kit.journal_story import message
from tests.kit.log_desk import Desk


def head(desk: Desk) -> dict[str, Any]:
    """What a listing says before its segments."""
    found: dict[str, Any] = json.loads(b"".join(desk.view.listing("b", 7, -1)()))
    return found


def readable_bytes(desk: Desk, number: int) -> int:
    """How many bytes of a segment a reader gets."""
    descriptor, size_bytes = desk.view.opening(number)()
    os.close(descriptor)
    return size_bytes


def while_leaving(desk: Desk, look: Callable[[int, Callable[[], None]], None]) -> None:
    """Call ``look`` for some segments that the journal has let go and retention has not; it moves them when it calls
    what it is given, or they are moved afterwards.
    """
    retire = desk.retention.retire

    def look_and_retire(name: str) -> None:
        number = segment_number(name)
        assert number is not None
        move = cache(partial(retire, name))
        look(number, move)
        move()

    desk.journal.files.retirement._retire = look_and_retire
    desk.write(4)
    assert len(desk.retention.files) > 2


def test_a_listing_behind_an_lsn_is_the_end_of_the_whole_one_while_segments_leave(tmp_path: Path) -> None:
    desk = Desk(tmp_path)

    def look(number: int, _move: Callable[[], None]) -> None:
        whole = desk.listed()
        assert number in [one["segment"] for one in whole]
        for after_lsn in range(desk.journal.durable_lsn + 2):
            assert desk.listed(after_lsn) == [one for one in whole if one["last_lsn"] > after_lsn]

    while_leaving(desk, look)


def test_a_segment_on_its_way_to_retention_can_be_read_and_is_where_the_log_begins(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    seen: list[int] = []

    def look(number: int, move: Callable[[], None]) -> None:
        seen.append(number)
        told = head(desk)
        assert told["first_lsn"] == 1
        bytes_of = {one["segment"]: one["bytes"] for one in told["segments"]}
        assert list(bytes_of) == list(range(1, number + 2)), "with the one that is written"
        assert readable_bytes(desk, number) == bytes_of[number]
        move()
        assert [one["segment"] for one in desk.listed()] == list(bytes_of)

    while_leaving(desk, look)
    assert seen[0] == 1


def while_moving(desk: Desk, number: int, move: Callable[[], None], ask: Callable[[], Any]) -> Any:
    """What is answered when the segment leaves the journal right after retention was asked what it has."""
    since = desk.retention.since

    def since_and_move(lsn: int) -> tuple[RetainedFile, ...]:
        found = since(lsn)
        move()
        desk.journal.files.leaving.pop(number, None)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(desk.retention, "since", since_and_move)
        return ask()


def test_a_segment_that_moves_while_a_listing_is_made_is_in_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path)

    def look(number: int, move: Callable[[], None]) -> None:
        newest = desk.journal.segments[-1].number
        listed = [one["segment"] for one in while_moving(desk, number, move, desk.listed)]
        assert listed in (list(range(1, newest)), list(range(1, newest + 1)))

    while_leaving(desk, look)


def test_a_segment_that_moves_while_cursors_are_looked_at_counts(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.put("reader", 0)

    def look(number: int, move: Callable[[], None]) -> None:
        before = desk.desk.all()
        assert while_moving(desk, number, move, desk.desk.all) == before

    while_leaving(desk, look)


def test_the_log_begins_with_the_oldest_retained_segment(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.write(4)
    desk.keep(2)
    assert head(desk)["first_lsn"] == 1
    desk.retention.give_up_oldest()
    assert head(desk)["first_lsn"] == desk.retention.files[0].first_lsn > 1
    for number, is_gone in ((1, True), (99, False)):
        with pytest.raises(NotInLogError) as missing:
            desk.view.opening(number)
        assert missing.value.is_gone == is_gone


def test_a_log_without_a_durable_record_begins_with_the_next_one(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert desk.journal.records.last_lsn == 1
    told = head(desk)
    assert (told["durable_lsn"], told["first_lsn"], told["segments"]) == (0, 1, [])
    with pytest.raises(NotInLogError, match="segment 1 does not exist yet") as missing:
        desk.view.opening(1)
    assert not missing.value.is_gone


def test_readers_are_told_of_what_is_durable_and_of_nothing_more(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.turn()
    durable_lsn = desk.journal.durable_lsn
    (durable,) = desk.listed()
    desk.journal.records.published(message(1, bytes(500)), [1], 0)
    desk.journal.seal()  # it is in the file, but nobody has taken note that it is durable
    assert (tmp_path / "journal" / durable["name"]).stat().st_size > durable["bytes"]
    assert desk.journal.segments[-1].written_bytes > durable["bytes"]
    assert desk.listed() == [durable]
    assert head(desk)["durable_lsn"] == durable["last_lsn"] == durable_lsn
    assert readable_bytes(desk, 1) == durable["bytes"] > FILE_HEADER_BYTES
    assert desk.listed(durable_lsn - 1) == [durable]
    assert desk.listed(durable_lsn) == []
    desk.journal.poll()
    assert [one["last_lsn"] for one in desk.listed(durable_lsn)] == [desk.journal.durable_lsn]


def test_of_a_segment_that_somebody_cut_off_there_is_what_is_left(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.keep(3)
    path = tmp_path / "journal" / desk.journal.segments[1].name
    os.truncate(path, 1000)
    assert readable_bytes(desk, 2) == 1000


def test_a_damaged_segment_is_not_listed_for_who_has_read_all_of_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.write(5)
    path = desk.retention.files[1].file.path
    third_lsn = desk.retention.files[2].first_lsn
    path.with_name(index_name(path.name)).unlink()
    path.write_bytes(b"!" + path.read_bytes()[1:])
    listed = [one["segment"] for one in desk.listed()]
    assert [one["segment"] for one in desk.listed(third_lsn - 1)] == listed[2:]
    assert [one["segment"] for one in desk.listed(third_lsn - 2)] == listed[1:]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_damaged_header_hides_no_other_segment_from_readers_after_a_restart(tmp_path: Path, number: int) -> None:
    """It does not say where it begins, so nothing follows from it for the segment before it."""
    desk = Desk(tmp_path)
    desk.write(6)
    desk.keep(1)
    whole = desk.listed()
    path = desk.retention.files[number - 1].file.path
    path.write_bytes(b"!" + path.read_bytes()[1:])
    desk.start()
    view = LogView(desk.journal, tmp_path / "journal", "id", [], desk.retention)
    assert desk.retention.files[number - 1].first_lsn == 0
    for after_lsn in (-1, *range(whole[-1]["last_lsn"] + 1)):
        listed = {one["segment"] for one in desk.read(view.listing("b", 7, after_lsn)())}
        assert listed >= {one["segment"] for one in whole if one["last_lsn"] > after_lsn}
