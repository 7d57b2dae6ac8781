"""What clients watch is looked at once a second, in turns, as long as somebody watches."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

from artemis_py.management.managed import Managed, Steps
from artemis_py.management.operation import Operation
from artemis_py.server.events.watched_lists import ListWatches, Topic
from tests.kit.in_process import START_MS, InProcessBroker, configuration
from tests.unit.management.operated import Operated


class Watched:
    """Watches of one operation of a broker, and when it was carried out."""

    def __init__(self) -> None:
        self.world = InProcessBroker(configuration())
        operated = Operated(self.world)
        self.calls = operated.calls
        self.looks_ms: list[int] = []
        self.watches = ListWatches(operated.managed, operated.calls)
        self.topic = Topic("queues", cast(Operation, SimpleNamespace(begin=self.look)), {}, "")

    def look(self, managed: Managed, _: Any) -> Steps:
        self.looks_ms.append(managed.now_ms() - START_MS)
        yield None
        return {}


def test_many_share_the_looks() -> None:
    watched = Watched()
    watched.watches.join(Mock(), [watched.topic])
    watched.world.advance(500)
    assert watched.looks_ms == [0]
    watched.watches.join(Mock(), [watched.topic])
    watched.world.advance(2_000)
    assert watched.looks_ms == [0, 500, 1_000, 2_000]


def test_nobody_watches_any_more() -> None:
    watched, here = Watched(), Mock()
    watched.watches.join(here, [watched.topic])
    watched.world.advance(1_500)
    watched.watches.leave(here)
    watched.world.advance(5_000)
    assert (watched.looks_ms, len(watched.calls)) == ([0, 1_000], 0)
    watched.watches.join(here, [watched.topic])
    watched.world.advance(1_500)
    assert watched.looks_ms == [0, 1_000, 6_500, 7_500]
