"""A segment whose header is damaged begins with its lowest record, wherever in the file that stands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from artemis_py.server.log_view import LogView
from artemis_py.storage.format.names import segment_name
from tests.kit.journal_story import message
from tests.kit.log_desk import Desk


@pytest.mark.parametrize("groups", [[[1], [2]], [[1, 2]], [[1, 2], [3]]], ids=str)
def test_who_has_read_nothing_is_not_overtaken_by_a_damaged_header(tmp_path: Path, groups: list[list[int]]) -> None:
    """BATCH and GROUP have higher numbers than the records that follow them."""
    desk = Desk(tmp_path)
    desk.turn()
    desk.write(1)
    number, first_lsn = desk.journal.segments[-1].number, desk.journal.records.next_lsn
    for messages in groups:
        desk.journal.records.begin_group()
        for one in messages:
            desk.journal.records.published(message(one), [1], 0)
        desk.journal.records.end_group()
    desk.turn()
    desk.keep(2)
    path = tmp_path / "journal" / segment_name(number)
    path.write_bytes(b"!" + path.read_bytes()[1:])
    desk.put("reader", first_lsn - 1)
    desk.start()
    desk.retention.give_up_oldest()
    (oldest,) = [one for one in desk.journal.segments if one.number == number]
    assert oldest is desk.journal.segments[0]
    assert [view.is_overtaken for view in desk.desk.all()] == [False]
    view = LogView(desk.journal, tmp_path / "journal", "id", [], desk.retention)
    assert json.loads(b"".join(view.listing("b", 7, -1)()))["first_lsn"] == first_lsn
