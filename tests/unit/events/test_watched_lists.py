"""What clients watch is looked at once a second, in turns, as long as somebody watches."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast
from unittest.mock import Mock

from artemis_py.core.clock import Clock
from artemis_py.core.tasks import Until
from artemis_py.management.managed import Managed, Steps
from artemis_py.management.operation import Operation
from artemis_py.server.events.watched_lists import ListWatches, Topic
from artemis_py.server.operator_requests import OperatorRequests
from tests.kit.fake_loop import FakeLoop


class Bench:
    """Watches of one operation, and what it works on, by a clock that a test moves."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.steady_ms = 0
        self.looks_ms: list[int] = []
        self.calls = OperatorRequests(FakeLoop(0).as_loop(), self.clock, lambda: None, lambda call: call())
        managed = SimpleNamespace(
            now_ms=lambda: self.steady_ms, after_ms=lambda span_ms: Until(self.steady_ms + span_ms)
        )
        self.watches = ListWatches(cast(Managed, managed), self.calls)
        self.topic = Topic("queues", cast(Operation, self), {}, "")

    def begin(self, managed: object, arguments: object) -> Steps:
        self.looks_ms.append(self.steady_ms)
        yield None
        return {}

    def advance(self, span_ms: int) -> None:
        """A turn now, and whenever something is due."""
        until_ms = self.steady_ms + span_ms
        while True:
            while self.calls.is_due or self.calls.alarms.due:
                self.calls.run(self.steady_ms)
            if self.clock.due_ms > until_ms:
                self.steady_ms = until_ms
                return
            self.steady_ms = max(self.clock.due_ms, self.steady_ms)
            self.clock.ring(self.steady_ms, 100)


def test_many_share_the_looks() -> None:
    bench = Bench()
    bench.watches.join(Mock(), [bench.topic])
    bench.advance(500)
    assert bench.looks_ms == [0]
    bench.watches.join(Mock(), [bench.topic])
    bench.advance(2_000)
    assert bench.looks_ms == [0, 500, 1_000, 2_000]


def test_nobody_watches_any_more() -> None:
    bench = Bench()
    here = Mock()
    bench.watches.join(here, [bench.topic])
    bench.advance(1_500)
    bench.watches.leave(here)
    bench.advance(5_000)
    assert (bench.looks_ms, len(bench.calls)) == ([0, 1_000], 0)
    bench.watches.join(here, [bench.topic])
    bench.advance(1_500)
    assert bench.looks_ms == [0, 1_000, 6_500, 7_500]
