"""When a bridge tries to connect, and to which connector."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from artemis_py.server.bridges import bridge as module
from artemis_py.server.bridges.bridge import Bridge, Bridges, Link
from artemis_py.server.failures import RateLimitedLog
from artemis_py.server.tls import context
from tests.kit.bridged import QUEUES
from tests.kit.in_process import InProcessBroker, configuration

WAIT_S = 60.0
NOBODY = "tcp://127.0.0.1:1"


class World:
    """A broker with a bridge that tries to connect, on a real loop."""

    def __init__(self, settings: str, *uris: str) -> None:
        connectors = "".join(f'<connector name="c{place}">{uri}</connector>' for place, uri in enumerate(uris))
        refs = "".join(f"<connector-ref>c{place}</connector-ref>" for place in range(len(uris)))
        self.config = configuration(
            f'{QUEUES}<connectors>{connectors}</connectors><bridges><bridge name="b"><queue-name>orders</queue-name>'
            f"{settings}<static-connectors>{refs}</static-connectors></bridge></bridges>"
        )
        self.world = InProcessBroker(self.config)
        self.lines: list[str] = []
        log = RateLimitedLog(self.lines.append)
        self.bridges = Bridges(asyncio.get_running_loop(), self.world.turns, log, "log")
        self.bridges.use(self.config)
        self.bridge: Bridge = self.bridges.by_name["b"]

    async def until(self, condition: Callable[[Bridge], bool]) -> None:
        """Waits until the bridge is so."""
        async with asyncio.timeout(WAIT_S):
            while not condition(self.bridge):
                await asyncio.sleep(0.001)


def test_pauses_grow_up_to_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> None:
        settings = (
            "<retry-interval>4</retry-interval><retry-interval-multiplier>3</retry-interval-multiplier>"
            "<max-retry-interval>30</max-retry-interval><initial-connect-attempts>5</initial-connect-attempts>"
        )
        loop = asyncio.get_running_loop()
        pauses_s: list[float] = []
        call_later = loop.call_later

        def noted(delay_s: float, callback: Callable[..., object], *arguments: object) -> asyncio.TimerHandle:
            if isinstance(getattr(callback, "__self__", None), Link):
                pauses_s.append(delay_s)
            return call_later(delay_s, callback, *arguments)

        monkeypatch.setattr(loop, "call_later", noted)
        it = World(settings, NOBODY)
        await it.until(lambda bridge: bridge.state == module.STOPPED)
        assert pauses_s == [0.004, 0.012, 0.03, 0.03]
        assert it.bridge.reason == "gave up after 5 attempts: 127.0.0.1:1: nothing listens there"
        assert len(it.lines) == 2, "it is told once that it is not connected, and once that it has given up"

    asyncio.run(play())


def test_all_connectors_are_tried_before_a_pause() -> None:
    async def play() -> None:
        it = World("<retry-interval>2000</retry-interval>", NOBODY, "tcp://127.0.0.1:2", "tcp://127.0.0.1:3")
        await it.until(lambda bridge: bridge.state == module.WAITING)
        assert it.bridge.reason == "127.0.0.1:3: nothing listens there"
        it.bridge.stop(it.world.now_ms)
        assert (it.bridge.state, it.bridge.next_ms) == (module.STOPPED, 0)
        assert it.bridges.have_ended

    asyncio.run(play())


def test_a_failure_that_nobody_foresaw_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("told so")

    monkeypatch.setattr(context, "connector_context", fail)

    async def play() -> None:
        it = World("", "tcp://127.0.0.1:1?sslEnabled=true")
        await it.until(lambda bridge: bridge.state == module.WAITING)
        assert it.bridge.reason == "127.0.0.1:1: RuntimeError: told so"
        assert it.world.stats.faults.counts["loop"] == 1
        it.bridges.cut()
        assert it.bridge.next_ms == 0

    asyncio.run(play())


def test_a_changed_bridge_begins_when_the_old_one_has_ended() -> None:
    async def play() -> None:
        it = World("", NOBODY)
        await it.until(lambda bridge: bridge.state == module.WAITING)
        before = it.bridge
        it.bridges.use(it.config)
        assert it.bridges.by_name["b"] is before, "nothing has changed"
        other = World("<concurrency>2</concurrency>", NOBODY)
        it.bridges.use(other.config)
        after = it.bridges.by_name["b"]
        assert after is not before
        assert (before.state, after.is_started, len(after.links)) == (module.STOPPED, True, 2)
        it.bridges.use(configuration(QUEUES))
        assert not list(it.bridges)
        assert it.bridges.have_ended
        other.bridges.cut()

    asyncio.run(play())
