"""Python's collector walks little at once, however much a broker holds."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections import deque
from collections.abc import Iterator

import pytest

from artemis_py.core.budget import TURN_UNITS
from artemis_py.server import garbage_collector as collector
from artemis_py.server.garbage_collector import GarbageCollector
from tests.kit.loops import called_back


class Node:
    """Something that can be part of a cycle."""

    other: Node | None = None


def cycle() -> weakref.ref[Node]:
    one, other = Node(), Node()
    one.other, other.other = other, one
    return weakref.ref(one)


def note_turn(held: GarbageCollector, spent_units: int, message_count: int) -> None:
    """As a turn does."""
    held.message_count = message_count
    held.work += spent_units
    if held.work >= collector.WORK_MAX:
        held.search_young()


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    thresholds, callbacks = gc.get_threshold(), gc.callbacks.copy()
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()
    gc.callbacks[:] = callbacks
    gc.set_threshold(*thresholds)
    gc.unfreeze()
    gc.enable()
    gc.collect()


def test_what_has_lived_for_a_while_is_not_walked_again(loop: asyncio.AbstractEventLoop) -> None:
    GarbageCollector(loop).begin()
    walked: list[int] = []
    generations = set()

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            walked.append(len(gc.get_objects(generation=0)) + len(gc.get_objects(generation=1)))
            generations.add(info["generation"])

    gc.callbacks.append(note)
    kept = [Node() for _ in range(600_000)]
    assert len(walked) > 20
    assert max(walked) < 25_000, "of 600,000"
    assert max(generations) < 2, "not of all there is"
    assert gc.get_freeze_count() > len(kept) // 2


@pytest.mark.parametrize("message_count", [collector._MESSAGES_MIN, collector._MESSAGES_MIN - 1])
def test_where_as_much_comes_as_goes_it_is_searched_as_well(
    loop: asyncio.AbstractEventLoop, message_count: int
) -> None:
    """Python counts what goes against what comes, and would not search at all, until it is very much at once."""
    held = GarbageCollector(loop)
    kept = deque(Node() for _ in range(100_000))
    held.begin()
    searched: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            searched.append(len(gc.get_objects(generation=0)))

    gc.callbacks.insert(0, note)
    for _ in range(100):
        for _ in range(1000):
            kept.popleft()
            kept.append(Node())
        note_turn(held, TURN_UNITS, message_count)
    if message_count < collector._MESSAGES_MIN:
        assert not searched, "there is little to search"
    else:
        assert 40 <= len(searched) <= 60
        assert max(searched) < 5_000
    held.stop()
    searched.clear()
    for _ in range(10):
        note_turn(held, TURN_UNITS, message_count)
    assert not searched, "the broker has ended"


def test_young_cycles_go(loop: asyncio.AbstractEventLoop) -> None:
    GarbageCollector(loop).begin()
    young = cycle()
    kept = [Node() for _ in range(30_000)]
    assert young() is None
    assert kept


@pytest.mark.parametrize("has_few", [True, False])
def test_old_cycles_go_where_little_is_held(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch, has_few: bool
) -> None:
    old = cycle()
    monkeypatch.setattr(collector, "_OBJECTS_MAX", 10**9 if has_few else 0)
    monkeypatch.setattr(collector, "_CHECK_EVERY_S", 0)
    GarbageCollector(loop).begin()
    assert old() is not None
    for _ in range(2):  # it is a timer that is due at once
        loop.run_until_complete(called_back())
    assert (old() is None) is has_few


def test_objects_are_not_counted_where_there_are_many(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python goes through all of them to count them. With very many messages they need no count, and with much else
    they are counted ever more seldom.
    """
    counted: list[int] = []
    waits: list[float] = []
    monkeypatch.setattr(gc, "get_freeze_count", lambda: counted.append(1) or collector._OBJECTS_MAX + 1)
    monkeypatch.setattr(loop, "call_later", lambda wait_s, _call: waits.append(wait_s))
    held = GarbageCollector(loop)
    held.begin()
    note_turn(held, 1, collector._MESSAGES_MAX + 1)
    held._check()
    assert (len(counted), waits[-1]) == (0, collector._CHECK_EVERY_S)
    note_turn(held, 1, collector._MESSAGES_MAX)
    for _ in range(9):
        held._check()
    assert len(counted) == 9
    assert waits[-1] == collector._CHECK_SELDOM_S
    assert waits == sorted(waits)
