"""Pages of messages that go on from a cursor, and cursors that make no sense."""

from __future__ import annotations

import json
from typing import Any

import pytest

from artemis_py.core.operations.scan import MessageFilter
from artemis_py.errors import BadRequestError
from artemis_py.management.listing import Selection
from artemis_py.management.managed import Cursors, InPieces, Lines
from tests.kit.core import head_of, send
from tests.kit.paged_bench import PagedBench
from tests.unit.management.operated import begun


def browse(bench: PagedBench, **arguments: object) -> tuple[list[int], Any, Selection[Any]]:
    """The numbers on a page, its cursor, and the page."""
    page = bench.result(begun(bench.managed, "queue.browse", queue="q", **arguments))
    return [row["messageID"] for row in page.owners], page.extra["next"], page


def filled(count: int, **queue: Any) -> PagedBench:
    bench = PagedBench(-1, queue=queue)
    for number in range(count):
        send(bench.broker, "q", head=head_of("q", persistent=True, parity=str(number % 2)))
    return bench


def test_pages_follow_each_other() -> None:
    bench = filled(10)
    first, after, page = browse(bench, size=4)
    assert (first, page.count) == ([1, 2, 3, 4], 10)
    second, after, page = browse(bench, size=4, after=after)
    assert (second, page.count, page.extra["lookedAt"]) == ([5, 6, 7, 8], 10, 4)
    assert browse(bench, size=4, after=after)[:2] == ([9, 10], None)


def test_a_cursor_may_be_used_again_and_what_it_stands_at_may_go() -> None:
    bench = filled(10)
    _, after, _ = browse(bench, size=4)
    assert bench.result(begun(bench.managed, "queue.removeMessage", queue="q", message=4))["removed"] == 1
    for _ in range(2):
        assert browse(bench, size=3, after=after)[0] == [5, 6, 7]
    send(bench.broker, "q", 5)
    assert browse(bench, size=100, after=after)[0] == [5, 6, 7, 8, 9, 10], "later ones are not shown"


def test_with_a_filter_a_page_ends_when_it_is_full() -> None:
    bench = filled(100)
    _, after, page = browse(bench, size=5, filter="parity = '1'")
    assert (page.count, page.extra["isWhole"]) == (50, True)
    numbers, after, page = browse(bench, size=5, filter="parity = '1'", after=after)
    assert numbers == [12, 14, 16, 18, 20]
    assert (page.count, page.extra["isWhole"], page.extra["lookedAt"]) == (5, False, 10)


def test_lines_and_rows_have_the_same_cursors() -> None:
    bench = filled(10)
    lines = bench.result(begun(bench.managed, "queue.exportMessages", queue="q", size=4))
    (told,) = json.loads(lines.parts[-1]).values()
    assert browse(bench, size=2, after=told["after"])[0] == [5, 6]


def test_a_long_body_ends_its_page() -> None:
    bench = filled(2)
    send(bench.broker, "q", body=b"x" * 100_000)
    send(bench.broker, "q", 2)
    lines = bench.result(begun(bench.managed, "queue.exportMessages", queue="q"))
    assert isinstance(lines, Lines)
    *_, message, body, told = lines.parts
    assert isinstance(message, bytes)
    assert json.loads(message)["message"]["piece_bytes"] == 100_000
    assert body == InPieces(b"x" * 100_000)
    assert isinstance(told, bytes)
    assert browse(bench, after=json.loads(told)["next"]["after"])[0] == [4, 5]


def test_a_megabyte_of_lines_fills_a_page() -> None:
    bench = PagedBench(-1)
    send(bench.broker, "q", 40, body=b"x" * 60_000)
    lines = bench.result(begun(bench.managed, "queue.exportMessages", queue="q"))
    assert len(lines.parts) == 18 + 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"after": "nonsense"}, "after is not a cursor of this broker, or of an earlier run of it"),
        ({"after": "ü" * 10}, "after is not a cursor"),
        ({"after": "x" * 10_000}, "after is not a cursor"),
        ({"after": "QUFBQUFBQUFBQUFBQUFBQUFBQUE"}, "after is not a cursor"),
        (
            {"page": 2, "after": "x"},
            "page counts from the beginning, and after goes on from a cursor: give one of them",
        ),
    ],
)
def test_what_makes_no_sense(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(BadRequestError, match=said):
        browse(filled(3), **arguments)


def test_a_cursor_belongs_to_its_run_queue_and_states() -> None:
    bench, other = filled(10), filled(10)
    _, after, _ = browse(bench, size=4)
    with pytest.raises(BadRequestError, match="or of an earlier run of it"):
        browse(other, after=after)
    with pytest.raises(BadRequestError, match="after is a cursor of another queue than other"):
        bench.result(begun(bench.managed, "queue.browse", queue="other", after=after))
    with pytest.raises(BadRequestError, match="give the same which"):
        browse(bench, after=after, which="ready")
    changed = after[:-2] + ("AA" if after[-2:] != "AA" else "BB")
    with pytest.raises(BadRequestError, match="after is not a cursor"):
        browse(bench, after=changed)


def test_a_cursor_of_another_order_is_refused() -> None:
    bench, other = filled(3, sort_key="parity"), filled(3)
    cursors = Cursors()
    scan = cursors.scan(bench.queue, ("ready",), MessageFilter(), "")
    text = cursors.text_of(other.queue, ("ready",), scan.scan_cursor)
    with pytest.raises(BadRequestError, match="the order of queue q is another one"):
        cursors.scan(other.queue, ("ready",), MessageFilter(), text)
