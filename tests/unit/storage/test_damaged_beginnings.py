"""A segment whose header is damaged begins with its lowest record, wherever in the file that stands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from artemis_py.server.log_view import LogView
from artemis_py.storage.format.names import segment_name
from tests.kit.journal_story import message
from tests.kit.log_desk import Desk


def alone(desk: Desk) -> None:
    desk.journal.records.published(message(1), [1], 0)
    desk.journal.records.published(message(2), [1], 0)


def together(desk: Desk) -> None:
    desk.journal.records.begin_group()
    alone(desk)
    desk.journal.records.end_group()


def first_together(desk: Desk) -> None:
    together(desk)
    desk.journal.records.published(message(3), [1], 0)


@pytest.mark.parametrize("write", [alone, together, first_together])
def test_who_has_read_nothing_is_not_overtaken_by_a_damaged_header(
    tmp_path: Path, write: Callable[[Desk], None]
) -> None:
    """BATCH and GROUP have higher numbers than the records that follow them."""
    desk = Desk(tmp_path)
    desk.turn()
    desk.write(1)
    number, first_lsn = desk.journal.segments[-1].number, desk.journal.records.next_lsn
    write(desk)
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
