"""The two clocks of the machine: what one is set by is told and counted, and moves nothing but dates."""

from __future__ import annotations

import asyncio
import time

import pytest

from artemis_py.core.broker import Broker
from artemis_py.core.clock import Clock
from artemis_py.record_log import MemoryLog
from artemis_py.server.connection import StompAcceptor
from artemis_py.server.stats import ServerStats
from artemis_py.server.turns import Turns
from artemis_py.server.wall_clock import WallClock
from artemis_py.stomp.service import StompService
from tests.kit.frames import ServerStream
from tests.kit.in_process import START_MS, configuration, counted_names

MS = 1_000_000
HOUR_MS = 3_600_000


class Pair:
    """Two clocks under the test's control, and what reads them."""

    def __init__(self) -> None:
        self.wall_ns = START_MS * MS
        self.steady_ns = 7_000 * MS
        self.pauses_ns: list[int] = []
        self.said: list[str] = []
        self.clock = Clock()
        self.clocks = WallClock(self.clock, wall_ns=self._wall, steady_ns=lambda: self.steady_ns, tell=self.said.append)

    def _wall(self) -> int:
        read_ns = self.wall_ns
        if self.pauses_ns:  # the machine does something else between this reading and the next
            self.pass_ns(self.pauses_ns.pop(0))
        return read_ns

    def pass_ns(self, duration_ns: int) -> None:
        """Time passes on both."""
        self.wall_ns += duration_ns
        self.steady_ns += duration_ns


def test_dates_are_what_the_wall_clock_says_and_steady_time_runs_on() -> None:
    pair = Pair()
    for step_ms in (0, HOUR_MS, -2 * HOUR_MS, 300, -300):
        steady_ms = pair.clock.steady_ms(pair.clocks.date_ms())
        pair.wall_ns += step_ms * MS
        pair.pass_ns(50 * MS)
        now_ms = pair.clocks.date_ms()
        assert now_ms == pair.wall_ns // MS
        assert pair.clock.steady_ms(now_ms) == steady_ms + 50
        assert pair.clock.date_ms(steady_ms + 50) == now_ms


@pytest.mark.parametrize(("step_ms", "direction"), [(HOUR_MS, "forward"), (-HOUR_MS, "back"), (1000, "forward")])
def test_a_step_is_told_once_and_counted(step_ms: int, direction: str) -> None:
    pair = Pair()
    pair.wall_ns += step_ms * MS
    assert pair.clocks.check()
    for _ in range(5):
        pair.pass_ns(MS)
        assert not pair.clocks.check()
    assert pair.clocks.steps == {"forward": 0, "back": 0, direction: 1}
    way = "forward" if step_ms > 0 else "back"
    assert [line.partition(": expires")[0] for line in pair.said] == [
        f"warning: the wall clock was set {way} by {abs(step_ms) / 1000:.3f} s"
        + (" (or the machine was asleep)" if step_ms > 0 else "")  # no sleep sets a clock back
    ]


def test_a_look_finds_a_step_that_somebody_else_has_noticed() -> None:
    pair = Pair()
    pair.wall_ns += HOUR_MS * MS
    pair.clocks.date_ms()
    assert pair.clocks.check()
    pair.clocks.date_ms()
    assert not pair.clocks.check()


def test_small_steps_are_followed_and_told_when_they_add_up() -> None:
    pair = Pair()
    for _ in range(9):
        pair.wall_ns += 100 * MS
        assert not pair.clocks.check()
    assert pair.clock.shift_ms == 900
    assert pair.said == []
    pair.wall_ns += 100 * MS
    pair.clocks.check()
    assert len(pair.said) == 1


def test_a_pause_between_two_readings_is_no_step() -> None:
    """The process was stopped for an hour between the reading of the one clock and of the other."""
    pair = Pair()
    pair.pauses_ns = [HOUR_MS * MS]
    assert pair.clocks.date_ms() == pair.wall_ns // MS
    assert pair.clock.shift_ms == 0
    assert pair.said == []


def test_readings_that_differ_by_little_move_nothing() -> None:
    """Else the timer of the server would be set anew in each turn."""
    pair = Pair()
    for jitter_ns in (900, -900, 50_000, -50_000):
        pair.wall_ns += jitter_ns
        pair.clocks.date_ms()
        assert pair.clock.shift_ms == 0


@pytest.mark.asyncio
@pytest.mark.parametrize("step_ms", [HOUR_MS, -HOUR_MS])
async def test_heart_beats_go_on_over_real_sockets(step_ms: int) -> None:
    """The broker goes on sending them, and does not miss those of the client."""
    loop = asyncio.get_running_loop()
    config = configuration()
    log = MemoryLog()
    broker = Broker(config, log, time.time_ns() // MS)
    ahead_ns = [0]
    clocks = WallClock(broker.clock, wall_ns=lambda: time.time_ns() + ahead_ns[0], tell=lambda line: None)
    turns = Turns(loop, broker, log, ServerStats(), clocks.date_ms)
    service = StompService(broker, config.acceptors[0], turns.stats.traffic, counted_names())
    acceptance = StompAcceptor(turns, service, -1, 1000)
    server = await loop.create_server(acceptance.connect, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
    stream = ServerStream()

    writer.write(b"CONNECT\naccept-version:1.2\nhost:x\nheart-beat:600,500\n\n\0")
    for ahead_ns[0], count in ((0, 1), (step_ms * MS, 2)):
        wanted = stream.beats + count
        while stream.beats < wanted:
            data = await asyncio.wait_for(reader.read(1000), 5)
            assert data, f"cut off: {stream.frames}"
            stream.take(data)
            writer.write(b"\n")
    assert clocks.steps["forward" if step_ms > 0 else "back"] == 1
    assert [frame.command for frame in stream.frames] == ["CONNECTED"]
    silent = stream.beats
    while data := await asyncio.wait_for(reader.read(1000), 5):  # and who falls silent is cut off in his time
        stream.take(data)
    assert stream.frames[-1].command == "ERROR"
    assert stream.beats - silent <= 4
    writer.close()
    server.close()
    turns.stop()


def test_the_clocks_cost_two_readings_a_turn() -> None:
    pair = Pair()
    read: list[str] = []
    clocks = WallClock(
        Clock(),
        wall_ns=lambda: read.append("wall") or pair.wall_ns,
        steady_ns=lambda: read.append("steady") or pair.steady_ns,
    )
    read.clear()
    clocks.date_ms()
    assert read == ["wall", "steady"]
