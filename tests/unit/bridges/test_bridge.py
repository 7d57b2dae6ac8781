"""When a bridge tries to connect, and to which connector."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from unittest.mock import Mock

import pytest

from artemis_py.config.settings import BrokerConfig
from artemis_py.server.bridges import bridge as module
from artemis_py.server.bridges.bridge import Bridge, Bridges, Link
from artemis_py.server.failures import RateLimitedLog
from artemis_py.server.tls import context
from tests.kit.bridged import QUEUES
from tests.kit.fake_broker import FakeBroker
from tests.kit.in_process import InProcessBroker, configuration
from tests.kit.process import for_each_test

WAIT_S = 60.0
NOBODY = "tcp://127.0.0.1:1"


peer = for_each_test(lambda _: FakeBroker())


def declared(settings: str, *uris: str) -> BrokerConfig:
    """A broker with a bridge to these connectors."""
    connectors = "".join(f'<connector name="c{place}">{uri}</connector>' for place, uri in enumerate(uris))
    refs = "".join(f"<connector-ref>c{place}</connector-ref>" for place in range(len(uris)))
    return configuration(
        f'{QUEUES}<connectors>{connectors}</connectors><bridges><bridge name="b"><queue-name>orders</queue-name>'
        f"{settings}<static-connectors>{refs}</static-connectors></bridge></bridges>"
    )


class World:
    """A broker with a bridge that tries to connect, on a real loop."""

    def __init__(self, settings: str, *uris: str) -> None:
        self.config = declared(settings, *uris)
        self.world = InProcessBroker(self.config)
        self.lines: list[str] = []
        log = RateLimitedLog(self.lines.append)
        self.bridges = Bridges(asyncio.get_running_loop(), self.world.turns, log, "log")
        self.bridges.use(self.config)
        self.bridge: Bridge = self.bridges.by_name["b"]
        self.sender = self.world.client("sender").greet()

    async def until(self, condition: Callable[[Bridge], bool]) -> None:
        """Waits until the bridge is so, while the broker runs its turns."""
        async with asyncio.timeout(WAIT_S):
            while not condition(self.bridge):
                await asyncio.sleep(0.001)
                self.world.settle()


@pytest.mark.asyncio
async def test_pauses_grow_up_to_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = (
        "<retry-interval>4</retry-interval><retry-interval-multiplier>3</retry-interval-multiplier>"
        "<max-retry-interval>30</max-retry-interval><initial-connect-attempts>5</initial-connect-attempts>"
    )
    loop = asyncio.get_running_loop()
    call_later = Mock(wraps=loop.call_later)
    monkeypatch.setattr(loop, "call_later", call_later)
    it = World(settings, NOBODY)
    await it.until(lambda bridge: bridge.state == module.STOPPED)
    calls = [call.args for call in call_later.call_args_list]
    pauses_s = [delay_s for delay_s, callback, *_ in calls if isinstance(getattr(callback, "__self__", None), Link)]
    assert pauses_s == [0.004, 0.012, 0.03, 0.03]
    assert it.bridge.reason == "gave up after 5 attempts: 127.0.0.1:1: nothing listens there"
    assert len(it.lines) == 2, "it is told once that it is not connected, and once that it has given up"


@pytest.mark.asyncio
async def test_all_connectors_are_tried_before_a_pause() -> None:
    it = World("<retry-interval>2000</retry-interval>", NOBODY, "tcp://127.0.0.1:2", "tcp://127.0.0.1:3")
    await it.until(lambda bridge: bridge.state == module.WAITING)
    assert it.bridge.reason == "127.0.0.1:3: nothing listens there"
    it.bridge.stop(it.world.now_ms)
    assert (it.bridge.state, it.bridge.next_ms) == (module.STOPPED, 0)
    assert it.bridges.have_ended


@pytest.mark.asyncio
async def test_a_failure_that_nobody_foresaw_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "connector_context", Mock(side_effect=RuntimeError("told so")))
    it = World("", "tcp://127.0.0.1:1?sslEnabled=true")
    await it.until(lambda bridge: bridge.state == module.WAITING)
    assert it.bridge.reason == "127.0.0.1:1: RuntimeError: told so"
    assert it.world.stats.faults.counts["loop"] == 1
    it.bridges.cut()
    assert it.bridge.next_ms == 0


@pytest.mark.asyncio
async def test_a_changed_bridge_begins_when_the_old_one_has_ended() -> None:
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


@pytest.mark.asyncio
async def test_a_message_over_which_the_peer_closes_the_connection_stops_no_other(peer: FakeBroker) -> None:
    peer.faults.closes_over = b"bad"
    it = World("<retry-interval>1</retry-interval>", f"tcp://127.0.0.1:{peer.port}")
    for body in ("1", "bad", "2"):
        it.sender.frame("SEND", "destination:/queue/orders", body=body)
    await it.until(lambda bridge: bridge.forwarded_count == 2)
    assert (it.world.queue("orders").message_count, it.world.queue("dead").message_count, it.bridge.refused_count) == (
        0,
        1,
        2,
    )
    assert any("was refused message " in line and " on the way" in line for line in it.lines)
    it.bridges.cut()


async def with_a_message_on_the_way(peer: FakeBroker) -> World:
    """A bridge that has sent a message to a peer that has not confirmed it."""
    peer.faults.receipts = False
    it = World("", f"tcp://127.0.0.1:{peer.port}")
    it.sender.frame("SEND", "destination:/queue/orders", body="1")
    await it.until(lambda bridge: bool(peer.sends))
    return it


@pytest.mark.asyncio
async def test_a_start_during_a_stop_is_not_lost(peer: FakeBroker) -> None:
    it = await with_a_message_on_the_way(peer)
    it.bridge.stop(it.world.now_ms)
    assert it.bridge.state == module.STOPPING
    it.bridge.start()
    assert it.bridge.state == module.STOPPING, "what is on the way is confirmed first"
    peer.confirm()
    await it.until(lambda bridge: bridge.state == module.CONNECTED)
    assert (len(peer.connects), it.world.queue("orders").message_count) == (2, 0)
    it.bridges.cut()


@pytest.mark.asyncio
async def test_a_bridge_that_waits_for_the_one_before_it_may_be_removed(peer: FakeBroker) -> None:
    """Nothing connects when the first one has ended."""
    it = await with_a_message_on_the_way(peer)
    first = it.bridge
    it.bridges.use(declared("<concurrency>2</concurrency>", f"tcp://127.0.0.1:{peer.port}"))
    waits = it.bridges.by_name["b"]
    assert (waits.before, waits.state) == (first, module.STOPPED)
    it.bridges.use(configuration(QUEUES))
    peer.confirm()
    await it.until(lambda bridge: bridge.state == module.STOPPED)
    assert it.bridges.have_ended
    assert ([link.state for link in waits.links], len(peer.connects)) == ([module.STOPPED] * 2, 1)
    it.bridges.cut()


@pytest.mark.asyncio
@pytest.mark.parametrize("stops", [False, True])
async def test_two_reloads_while_the_first_bridge_waits_for_confirmations(peer: FakeBroker, *, stops: bool) -> None:
    """One bridge at a time, so that messages keep their order; and none if an operator has stopped the last one."""
    it = await with_a_message_on_the_way(peer)
    first = it.bridge
    for count in (2, 3):
        it.bridges.use(declared(f"<concurrency>{count}</concurrency>", f"tcp://127.0.0.1:{peer.port}"))
        it.bridge = it.bridges.by_name["b"]
        it.bridge.start()  # by an operator, too
        assert (first.state, it.bridge.state) == (module.STOPPING, module.STOPPED)
    if stops:
        it.bridge.stop(it.world.now_ms)
    peer.confirm()
    await it.until(lambda bridge: first.state == module.STOPPED)
    if stops:
        assert (it.bridge.state, len(peer.connects)) == (module.STOPPED, 1)
    else:
        await it.until(lambda bridge: bridge.connected_count == 3)
        assert len(peer.connects) == 1 + 3
    it.bridges.cut()
