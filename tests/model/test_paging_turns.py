"""What one turn may read of pages, and how the next one goes on: each a short story with its reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from artemis_py.storage import pages as page_files
from tests.model.letters import Spec
from tests.model.paging_world import PagingWorld
from tests.model.plans import PagePlan, Plan

pytestmark = [pytest.mark.model, pytest.mark.interpreted]

RED, BLUE = Spec("red", persistent=True), Spec("blue", persistent=True)
PAGES = PagePlan(messages_max=0, page_bytes=100_000)
"""All goes to one page."""


@pytest.mark.usefixtures("small_steps")
def test_a_consumer_gets_what_stands_behind_more_scheduled_messages_than_a_turn_looks_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The turn that came to them found its consumer parked, and nobody woke it: nothing else was to arrive."""
    monkeypatch.setattr(page_files, "CHUNK_BYTES", 1 << 20)  # the page is read at once
    world = PagingWorld(Plan(pages=PAGES))
    world.publish(*[RED] * 6, delay_ms=100_000)
    world.publish(*[BLUE] * 2)
    for _ in range(5):
        world.writer.step()
        world.turn()
    seat = world.subscribe()
    world.rest()
    assert len(seat.reader.sent) == 2


@pytest.mark.usefixtures("small_steps")
def test_more_that_came_back_than_a_queue_reads_ahead_still_waits_for_what_was_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A bound on what is brought in before them once counted them, too: they overtook it."""
    monkeypatch.setattr(page_files, "CHUNK_BYTES", 1 << 20)  # the page is read at once
    world = PagingWorld(Plan(pages=PAGES))
    world.publish(*[BLUE] * 3 + [RED] * 8)
    chooser = world.subscribe(selector="color = 'red'")
    world.rest()
    world.unsubscribe(chooser)
    seat = world.subscribe()
    world.rest()
    assert [item.letter.id for item in seat.reader.sent] == list(range(1, 12))


def test_who_found_no_room_for_more_in_memory_goes_on_when_others_make_it() -> None:
    """Only the consumer whose messages went was woken. With its socket full, another one waited for ever."""
    world = PagingWorld(Plan(pages=replace(PAGES, read_messages_max=2)))
    first = world.subscribe()
    world.publish(*[RED] * 4)
    world.rest()
    second = world.subscribe()
    world.turn()
    assert (len(first.reader.sent), len(second.reader.sent)) == (2, 0)
    first.consumer.room_bytes = 0
    world.settle(first, 1, cumulative=True)
    world.rest()
    assert len(second.reader.sent) == 2
