"""What operators ask for goes on in turns, a little in each."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from itertools import count
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import Mock

import pytest

from artemis_py.core.clock import NEVER_MS, Clock
from artemis_py.core.tasks import WAIT, Until
from artemis_py.errors import StorageError
from artemis_py.management.managed import Steps
from artemis_py.server import operator_requests as module
from artemis_py.server.operator_requests import OperatorRequests


class Desk(NamedTuple):
    """Calls with a loop that does not run, a clock that moves with each look, and a disk that is asked to sync."""

    calls: OperatorRequests
    loop: asyncio.AbstractEventLoop
    clock: Clock
    turn_wanted: Mock
    unsynced: list[Callable[[], None]]


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setattr(module, "perf_counter_ns", count(0, 100_000).__next__)
    loop, clock, turn_wanted, unsynced = asyncio.new_event_loop(), Clock(), Mock(), list[Callable[[], None]]()
    yield Desk(OperatorRequests(loop, clock, turn_wanted, unsynced.append), loop, clock, turn_wanted, unsynced)
    loop.close()


def counting(done: list[str], name: str, steps: int, result: Any = None, step: Any = None) -> Steps:
    for _ in range(steps):
        done.append(name)
        yield step
    return {"result": result}


def failing(error: Exception, *before: Any) -> Steps:
    yield from before
    raise error


def test_a_turn_makes_only_so_many_steps(desk: Desk) -> None:
    done: list[str] = []
    future = desk.calls.begin(counting(done, "a", 100, 7), changes=False)
    assert desk.turn_wanted.call_count == 1
    desk.calls.run(0)
    assert 5 < len(done) < 25
    assert len(desk.calls) == 1
    for _ in range(30):
        desk.calls.run(0)
    assert future.result() == {"result": 7}
    assert len(done) == 100
    assert len(desk.calls) == 0


def test_several_take_turns(desk: Desk) -> None:
    """Each gets its share of a turn, so a long one does not hold up a short one."""
    done: list[str] = []
    desk.calls.begin(counting(done, "long", 10_000), changes=False)
    short = desk.calls.begin(counting(done, "short", 3), changes=False)
    desk.calls.run(0)
    assert short.done()
    assert 5 < done.count("long") < 25


def test_who_waits_for_another_turn_does_not_use_up_this_one(desk: Desk) -> None:
    looks: list[str] = []
    done: list[str] = []
    desk.calls.begin(counting(looks, "look", 3, step=WAIT), changes=False)
    other = desk.calls.begin(counting(done, "other", 2), changes=False)
    desk.calls.run(0)
    assert looks == ["look"]
    assert other.done()


def test_a_change_is_answered_when_it_is_durable(desk: Desk) -> None:
    future = desk.calls.begin(counting([], "change", 1), changes=True)
    desk.calls.run(0)
    assert not future.done()
    [synced] = desk.unsynced
    synced()
    assert future.done()


@pytest.mark.parametrize("changes", [False, True])
def test_nobody_waits_any_more(desk: Desk, changes: bool) -> None:
    """A change goes on all the same."""
    done: list[str] = []
    future = desk.calls.begin(counting(done, "a", 100), changes=changes)
    desk.calls.run(0)
    future.cancel()
    for _ in range(30):
        desk.calls.run(0)
    assert len(desk.calls) == 0
    assert (len(done) == 100) == changes
    for synced in desk.unsynced:
        synced()


def test_a_failure_is_told_to_who_asked_and_to_nobody_else(desk: Desk) -> None:
    broken = desk.calls.begin(failing(ValueError("no"), None), changes=True)
    other = desk.calls.begin(counting([], "a", 1), changes=False)
    desk.calls.run(0)
    assert isinstance(broken.exception(), ValueError)
    assert other.done()


def test_a_disk_that_fails_ends_the_broker(desk: Desk) -> None:
    desk.calls.begin(failing(StorageError("the disk is gone")), changes=True)
    with pytest.raises(StorageError, match="the disk is gone"):
        desk.calls.run(0)


def test_a_work_that_pauses_costs_no_turns(desk: Desk) -> None:
    future = desk.calls.begin(counting([], "it", 1, 1, Until(20)), changes=False)
    desk.calls.run(0)
    assert (desk.calls.is_due, desk.calls.have_ready, desk.clock.due_ms) == (False, False, 20)
    desk.clock.ring(19, 1)
    desk.calls.run(19)
    assert not future.done()
    desk.clock.ring(20, 1)
    desk.calls.run(20)
    assert future.result() == {"result": 1}
    assert desk.clock.due_ms == NEVER_MS


def test_a_work_that_waits_for_something_costs_no_turns(desk: Desk) -> None:
    """And one for which nobody waits any more is given up meanwhile."""
    wait = SimpleNamespace(may_go_on=False)
    future, vain = (desk.calls.begin(counting([], "it", 1, 1, wait), changes=False) for _ in range(2))
    desk.calls.run(0)
    assert (len(desk.calls), desk.calls.have_ready) == (2, False)
    vain.cancel()
    assert desk.calls.have_ready
    desk.calls.run(0)
    assert (len(desk.calls), desk.calls.have_ready) == (1, False)
    wait.may_go_on = True
    assert desk.calls.have_ready
    desk.calls.run(0)
    assert future.result() == {"result": 1}


def test_a_work_sleeps_until_something_comes_from_elsewhere(desk: Desk) -> None:
    coming: asyncio.Future[None] = desk.loop.create_future()
    future = desk.calls.begin(counting([], "it", 1, 1, coming), changes=False)
    desk.calls.run(0)
    assert len(desk.calls) == 0
    coming.set_result(None)
    desk.loop.call_soon(desk.loop.stop)
    desk.loop.run_forever()
    desk.calls.run(0)
    assert future.result() == {"result": 1}


def test_what_nobody_waits_for_any_more_waits_for_nothing_itself(desk: Desk) -> None:
    begun: list[str] = []
    elsewhere: asyncio.Future[int] = desk.loop.create_future()
    steps = [counting(begun, "a time", 2, step=Until(1_000_000)), counting(begun, "a thread", 2, step=elsewhere)]
    works = [desk.calls.begin(each, changes=False) for each in steps]
    desk.calls.run(0)
    before = desk.turn_wanted.call_count
    for work in works:
        work.cancel()
    desk.loop.run_until_complete(asyncio.sleep(0))  # the loop calls what is to be called
    assert desk.turn_wanted.call_count > before, "nothing else would have one run"
    assert elsewhere.done(), "it was cancelled"
    assert desk.calls.is_due
    desk.calls.run(0)
    assert begun == ["a time", "a thread"]
    assert [inspect.getgeneratorstate(each) for each in steps] == [inspect.GEN_CLOSED] * 2
    assert len(desk.calls) == 0
