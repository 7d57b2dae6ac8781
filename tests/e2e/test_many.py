"""The measurement of very many queues and subscriptions makes what it says, against a real broker."""

from __future__ import annotations

import pytest

from bench.many import KINDS, STEPS, measure

COUNT = 2000

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.mark.parametrize("name", KINDS)
def test_as_many_are_made_as_were_asked_for(name: str) -> None:
    steps, longest_s, start_bytes = measure(KINDS[name], COUNT, 1 << 40)
    assert [step.count for step in steps] == [COUNT * number // STEPS for number in range(1, STEPS + 1)]
    assert steps[-1].memory_bytes > start_bytes
    assert longest_s > 0


def test_it_stops_before_it_takes_too_much_memory() -> None:
    steps, _, _ = measure(KINDS["queues"], COUNT, 1)
    assert len(steps) == 1
