"""No operation on messages makes a turn long, however many there are. The processor's time is measured, which other
processes do not lengthen.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import parse_qs

import pytest

from artemis_py.management.given import given_of
from artemis_py.management.steps import Until
from artemis_py.management.table import OPERATIONS
from tests.unit.core.paged_desk import PagedDesk
from tests.unit.core.parts import head_of, send

COUNT: Final = 200_000
TURN_MS_MAX: Final = 5.0
SLICE_MS: Final = 2.0
"""For how long steps of an operation are made in a turn (``server/calls.py``)."""
SPIKES_MAX: Final = 3
"""So many turns may be longer: the machine's caches are cold, or a table of Python grows."""
BY_ID: Final = {operation.id: operation for operation in OPERATIONS}


@pytest.fixture(scope="module")
def desk() -> Iterator[PagedDesk]:
    """A broker with 200,000 messages on q."""
    desk = PagedDesk(-1)
    for start in range(0, COUNT, 1000):
        send(desk.broker, "q", 999, head=head_of("q", persistent=True, region="eu"))
        send(desk.broker, "q", 1, head=head_of("q", persistent=True, region=str(start)))
    gc.disable()  # as the broker does, which collects when it has nothing else to do
    yield desk
    gc.enable()


def carried_out(desk: PagedDesk, id: str, query: str) -> tuple[Any, list[float]]:
    """What an operation answers, and the time of each turn, in ms of the processor."""
    given = given_of(BY_ID[id], parse_qs(query, keep_blank_values=True))
    work, took_ms = BY_ID[id].begin(desk.managed, given), []
    while True:
        begun_ns = time.thread_time_ns()
        try:
            while time.thread_time_ns() - begun_ns < SLICE_MS * 1e6:
                said = next(work)
                if said is True or isinstance(said, Until):
                    break
        except StopIteration as ended:
            return ended.value, took_ms
        desk.turn()
        desk.now_ms += 1
        took_ms.append((time.thread_time_ns() - begun_ns) / 1e6)


@pytest.mark.timeout(120)
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
def test_each_turn_is_short(desk: PagedDesk, id: str, query: str) -> None:
    """The longest of thousands, in memory, with one client's filters and without."""
    _, took_ms = carried_out(desk, id, query)
    longer = sorted((each for each in took_ms if each > TURN_MS_MAX), reverse=True)
    assert len(took_ms) > 10
    assert len(longer) <= SPIKES_MAX, f"of {len(took_ms)} turns {len(longer)} took longer: {longer[:5]} ms"


def test_an_export_costs_the_same_at_any_depth() -> None:
    """Its turns are short, and a page looks at what it shows."""
    desk = PagedDesk(-1)
    send(desk.broker, "q", COUNT, head=head_of("q", persistent=True))
    took_ms: list[float] = []
    found, after = 0, ""
    while after is not None:
        lines, took = carried_out(desk, "queue.exportMessages", f"queue=q&after={after}")
        took_ms += took
        found += len(lines.parts) - 1
        after = json.loads(lines.parts[-1])["next"]["after"]
        if found < COUNT and found % 10_000 == 0:
            page, _ = carried_out(desk, "queue.browse", f"queue=q&size=10&after={after}")
            assert (len(page.owners), page.extra["lookedAt"]) == (10, 10)
    assert found == COUNT
    longer = sorted((each for each in took_ms if each > TURN_MS_MAX), reverse=True)
    assert len(longer) <= SPIKES_MAX, f"of {len(took_ms)} turns {len(longer)} took longer: {longer[:5]} ms"
