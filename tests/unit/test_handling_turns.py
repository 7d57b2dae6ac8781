"""No operation on messages makes a turn long, however many there are: a step, and the turn behind it, run so many lines
of Python on any machine.
"""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import parse_qs

import pytest

from artemis_py.core.tasks import Until
from artemis_py.management.operation import arguments_of
from artemis_py.management.table import OPERATIONS
from tests.kit.core import head_of, lines_run, send
from tests.kit.paged_bench import PagedBench

COUNT: Final = 5_000
STEP_LINES_MAX: Final = 12_000
"""What the longest step runs, with room for a third more. After a step a turn may end
(``server/operator_requests.py``).
"""
TURN_LINES_MAX: Final = 65_000
"""The same of the work in a turn."""
BY_ID: Final = {operation.id: operation for operation in OPERATIONS}


@pytest.fixture(scope="module")
def bench() -> PagedBench:
    """A broker with 5,000 messages on q."""
    bench = PagedBench(-1)
    for start in range(0, COUNT, 1000):
        send(bench.broker, "q", 999, head=head_of("q", persistent=True, region="eu"))
        send(bench.broker, "q", 1, head=head_of("q", persistent=True, region=str(start)))
    return bench


def carried_out(bench: PagedBench, id: str, query: str) -> tuple[Any, int]:
    """What an operation answers, and how many steps it made; each must be short, and so must the turns between."""
    given = arguments_of(BY_ID[id], parse_qs(query, keep_blank_values=True))
    work, said = BY_ID[id].begin(bench.managed, given), []
    count, ended = 0, False

    def step() -> None:
        nonlocal ended
        try:
            said.append(next(work))
        except StopIteration as end:
            said.append(end.value)
            ended = True

    while True:
        lines = lines_run(step)
        assert lines <= STEP_LINES_MAX, f"a step of {id} ran {lines:,} lines"
        count += 1
        if ended:
            return said[-1], count
        if said[-1] is True or isinstance(said[-1], Until):
            lines = lines_run(bench.turn)
            assert lines <= TURN_LINES_MAX, f"a turn beside {id} ran {lines:,} lines"
            bench.now_ms += 1


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("id", "query"),
    [
        ("queue.browse", f"queue=q&size=1&page={COUNT}"),
        ("queue.browse", "queue=q&size=1000&filter=region = '1000'"),
        ("queue.countMessages", "queue=q&group-by=region"),
        ("queue.getMessage", f"queue=q&message={COUNT}"),
        ("listDeadLetters", "queue=q"),
        ("queue.copyMessages", "queue=q&target=late&filter=region = '1000'"),
        ("queue.changeMessagesPriority", "queue=q&priority=4"),
        ("queue.moveMessages", "queue=q&target=other&filter=region = 'eu'"),
        ("queue.removeMessages", "queue=other&filter=region = 'eu'"),
    ],
)
def test_each_step_is_short(bench: PagedBench, id: str, query: str) -> None:
    """In memory, with one client's filters and without."""
    _, count = carried_out(bench, id, query)
    assert count > 10


@pytest.mark.interpreted
def test_an_export_costs_the_same_at_any_depth() -> None:
    """Its steps are short, and a page looks at what it shows."""
    bench = PagedBench(-1)
    send(bench.broker, "q", COUNT, head=head_of("q", persistent=True))
    found, after = 0, ""
    while after is not None:
        lines, _ = carried_out(bench, "queue.exportMessages", f"queue=q&after={after}")
        found += len(lines.parts) - 1
        after = json.loads(lines.parts[-1])["next"]["after"]
        if found < COUNT and found % 1_000 == 0:
            page, _ = carried_out(bench, "queue.browse", f"queue=q&size=10&after={after}")
            assert (len(page.owners), page.extra["lookedAt"]) == (10, 10)
    assert found == COUNT
