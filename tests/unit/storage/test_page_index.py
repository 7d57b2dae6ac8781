"""What a restart finds of pages."""

from __future__ import annotations

from time import process_time

from artemis_py.paged_messages import Page, PageShare
from artemis_py.storage.pages import PageIndex
from tests.kit.core import lines_run

A, B = 1, 2
COUNT = 10


def filled(pages: int = 2, queues: tuple[int, ...] = (A, B)) -> tuple[PageIndex, list[Page]]:
    """Pages of ten messages of 3 bytes, each for all queues."""
    index, made = PageIndex(), []
    for number in range(1, pages + 1):
        page = Page(1, number, 1 + COUNT * (number - 1))
        page.count = page.kept_count = COUNT
        page.durable = {queue_id: PageShare(COUNT, 3 * COUNT) for queue_id in queues}
        index.open(page, "a")
        index.note_queues(page)
        made.append(page)
    return index, made


def test_a_page_is_left_until_every_queue_is_done() -> None:
    index, (page, _) = filled()
    index.settle(A, page, list(range(1, 11)), 30)
    index.settle(B, page, [1, 2], 6)
    assert (index.left_of(A, page), index.left_of(B, page), index.left(page)) == (0, 8, 8)
    assert (index.needs(B, page, 2), index.needs(B, page, 3)) == (False, True)


def test_settling_twice_counts_once() -> None:
    index, (page, _) = filled()
    index.settle(A, page, [1], 3)
    index.settle(A, page, [1], 0)
    assert index.left_of(A, page) == COUNT - 1


def test_a_purge_leaves_what_was_kept() -> None:
    """What is settled of it afterwards counts from there."""
    index, (page, _) = filled()
    index.settle(A, page, [1], 3)
    index.attempt(A, page, 4, 1, 0)
    index.attempt(A, page, 5, 2, 0)
    index.purge(A, page, [5, 6], 6)
    assert index.left_of(A, page) == 2
    assert index.streams[1].attempts == {(A, 5): (2, 0)}
    index.settle(A, page, [5], 3)
    assert (index.left_of(A, page), index.needs(A, page, 6), index.needs(A, page, 7)) == (1, True, False)
    assert index.streams[1].attempts == {}


def test_a_queue_goes_at_the_same_cost_beside_many_pages() -> None:
    """Those of other addresses are not looked at, whatever it never had in them."""
    costs = []
    for others in (2, 2000):
        index, _ = filled()
        for number in range(others):
            page = Page(10 + number, 1, 1)
            page.durable = {B: PageShare(COUNT, 3 * COUNT)}
            index.open(page, f"other{number}")
            index.note_queues(page)
            index.settle(B, page, [1], 3)
        for page in index.pages():
            index.note_queues(page)
        costs.append(lines_run(lambda index=index: index.delete_queue(A)))  # type: ignore[misc]
        assert not any(A in page.durable for page in index.pages())
    assert costs[0] == costs[1]


def test_a_deleted_queue_needs_nothing() -> None:
    index, (page, _) = filled()
    index.settle(A, page, [1], 3)
    index.attempt(A, page, 2, 1, 0)
    index.delete_queue(A)
    assert (index.left_of(A, page), index.left(page)) == (0, COUNT)
    assert (index.streams[1].settled, index.streams[1].attempts) == ({}, {})


def test_a_dropped_page_leaves_nothing_behind() -> None:
    index, (first, second) = filled()
    index.settle(A, first, [1], 3)
    index.settle(A, second, [11], 3)
    index.drop(1, 1)
    assert list(index.streams[1].settled) == [(A, 2)]
    index.drop(1, 2)
    assert (bool(index), index.streams) == (False, {})
    index.drop(1, 2)


def test_pages_come_back_in_order() -> None:
    """Told again when a journal file went, they come in another one."""
    index = PageIndex()
    for number in (3, 1, 2):
        index.open(Page(1, number, number), "a")
    assert [page.number for page in index.recovered_state()[0].pages] == [1, 2, 3]


def test_what_nobody_needs_is_dropped_and_remembered() -> None:
    index, (first, _) = filled()
    for queue_id in (A, B):
        index.settle(queue_id, first, list(range(1, 11)), 30)
    index.drop_orphans()
    assert index.orphans == [(1, 1)]
    assert [page.number for page in index.pages()] == [2]


def test_dropping_costs_the_same_however_many_pages_there_are() -> None:
    """It went through everything that is settled in all pages: minutes for some thousands of them."""

    def cost_s(pages: int) -> float:
        index, made = filled(pages, queues=tuple(range(20)))
        for page in made:
            for queue_id in range(20):
                index.settle(queue_id, page, [page.first_place], 3)
        started = process_time()
        for page in made:
            index.drop(1, page.number)
        return (process_time() - started) / pages

    assert min(cost_s(2000) for _ in range(3)) < 10 * min(cost_s(50) for _ in range(3))
