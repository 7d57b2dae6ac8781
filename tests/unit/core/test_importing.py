"""An import puts a message on the queues that it names, whatever the turn has left, and nowhere else."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from artemis_py.core.operations.import_messages import Import, QueueResult, Shares
from artemis_py.core.queue.arrivals import Arrivals
from artemis_py.core.queue_reference import AutoDelete
from tests.kit.core import head_of, queue_config
from tests.kit.paged_bench import PagedBench

pytestmark = pytest.mark.interpreted  # a method of a compiled class cannot be replaced


def _message(*queues: str, number: int = 1, **due_ms: int) -> Import:
    return Import(f"x-{number}", head_of("q", persistent=True), b"body", 77, 0, queues, due_ms)


def test_a_message_for_more_queues_than_the_turn_has_units_for_is_there_at_once() -> None:
    bench = PagedBench(-1)
    names = ["q", *(f"q{number}" for number in range(100))]
    for name in names[1:]:
        queue = queue_config(name, "q", "ANYCAST")
        bench.broker.queue_changes.create(queue, AutoDelete(), creates_address=False, auto_created=False)
    bench.broker.begin_turn(1, bench.now_ms)
    bench.broker.budget.spend(100_000)
    shares = Shares()
    bench.broker.importing.put(_message(*names), shares, bench.now_ms)
    assert {name: share.placed for name, share in shares.items()} == dict.fromkeys(names, 1)
    assert {bench.broker.queues[name].message_count for name in names} == {1}
    assert bench.broker.addresses["q"].account.message_count == 1, "it is there once"


def test_what_broke_off_can_come_again() -> None:
    """The id of what is not on its queue is not known."""
    bench = PagedBench(-1)
    importing, shares = bench.broker.importing, Shares()
    with patch.object(Arrivals, "arrive", side_effect=ZeroDivisionError), pytest.raises(ZeroDivisionError):
        importing.put(_message("q"), shares, bench.now_ms)
    importing.put(_message("q"), shares, bench.now_ms)
    importing.put(_message("q"), shares, bench.now_ms)
    assert shares == {"q": QueueResult(placed=1, known=1)}
    assert bench.broker.queues["q"].message_count == 1


def test_queues_that_wait_for_other_times_have_messages_of_their_own() -> None:
    bench = PagedBench(-1)
    queue = queue_config("then", "q", "ANYCAST")
    bench.broker.queue_changes.create(queue, AutoDelete(), creates_address=False, auto_created=False)
    shares = Shares()
    bench.broker.importing.put(_message("q", "then", "q", "none", then=bench.now_ms + 5000), shares, bench.now_ms)
    assert {name: share.placed for name, share in shares.items()} == {"q": 1, "then": 1, "none": 0}
    contents = bench.broker.queues["then"].contents
    (number,) = contents.scheduled
    assert contents.scheduled_dates.of(number) == bench.now_ms + 5000
    assert bench.broker.queues["q"].contents.ready_count == 1
    assert shares["none"].reason == "there is no queue none"
