"""Turns on asyncio's own loop: who is alone is served at once, and who comes together is served together."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from artemis_py.core.broker import Broker
from artemis_py.record_log import MemoryLog
from artemis_py.server.connection import StompAcceptor
from artemis_py.server.failures import RateLimitedLog
from artemis_py.server.garbage_collector import WORK_MAX
from artemis_py.server.stats import ServerStats
from artemis_py.server.turns import Turns
from artemis_py.stomp.service import StompService
from tests.kit.in_process import START_MS, configuration, counted_names

CONNECT = b"CONNECT\naccept-version:1.2\nhost:x\n\n\0"
SEND = b"SEND\ndestination:/queue/q\nreceipt:1\n\n\0"


@dataclass
class SocketPairBroker:
    """A broker on a real loop, with clients on socket pairs."""

    loop: asyncio.AbstractEventLoop
    turns: Turns
    acceptance: StompAcceptor

    def client(self) -> socket.socket:
        """A connected client that was greeted."""
        ours, theirs = socket.socketpair()
        ours.settimeout(5)
        theirs.setblocking(False)
        self.loop.run_until_complete(self.loop.connect_accepted_socket(self.acceptance.connect, theirs))
        ours.sendall(CONNECT)
        self.settle()
        assert ours.recv(1000).startswith(b"CONNECTED")
        return ours

    def settle(self) -> None:
        """Let the loop make some rounds, by a timer: it has nothing else at hand meanwhile, which is what is tested."""
        for _ in range(5):
            self.loop.run_until_complete(asyncio.sleep(0.001))  # a timer that is due is what ends a round

    def turns_of(self, *clients: socket.socket) -> int:
        """How many turns serve clients whose frames arrive at the same time."""
        before = self.turns.stats.turns
        for client in clients:
            client.sendall(SEND)
        self.settle()
        for client in clients:
            assert client.recv(1000).startswith(b"RECEIPT")
        return self.turns.stats.turns - before


@pytest.fixture
def stage() -> Iterator[SocketPairBroker]:
    """Closed afterwards, its connections too."""
    loop, log, config = asyncio.new_event_loop(), MemoryLog(), configuration()
    broker = Broker(config, log, START_MS)
    turns = Turns(loop, broker, log, ServerStats(), lambda: START_MS)
    service = StompService(broker, config.acceptors[0], turns.stats.traffic, counted_names())
    stage = SocketPairBroker(loop, turns, StompAcceptor(turns, service, -1, -1))
    yield stage
    for connection in list(stage.turns.stats.connections):
        connection.cut()
    stage.settle()
    stage.turns.stop()
    stage.loop.close()


def test_who_is_alone_is_served_in_the_callback_that_read(
    stage: SocketPairBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = stage.client()
    asked: list[None] = []
    monkeypatch.setattr(stage.turns, "schedule", lambda: asked.append(None))
    assert stage.turns_of(client) == 1
    assert not asked, "a round of the loop was waited for"
    client.close()


def test_who_comes_together_is_served_in_one_turn(stage: SocketPairBroker) -> None:
    clients = [stage.client() for _ in range(5)]
    assert stage.turns_of(*clients) == 1
    for client in clients:
        client.close()


def test_another_loop_is_asked_for_a_round() -> None:
    """One that does not show what it will call next. Several clients have a turn together; one alone has it at once."""
    calls: list[object] = []
    other: Any = SimpleNamespace(call_soon=calls.append, call_later=Mock(return_value=None))
    log = MemoryLog()
    broker = Broker(configuration(), log, START_MS)
    turns = Turns(other, broker, log, ServerStats(), lambda: START_MS)
    service = StompService(broker, configuration().acceptors[0], turns.stats.traffic, counted_names())
    connection = StompAcceptor(turns, service, -1, -1).connect()
    ran: list[None] = []
    turns.on_end = lambda: ran.append(None)
    turns.stats.connections.update([connection, StompAcceptor(turns, service, -1, -1).connect()])
    turns.arrived(connection)
    turns.arrived(connection)
    assert (calls, ran) == ([turns.run], [])
    turns.run()
    turns.stats.connections.remove(connection)
    turns.arrived(connection)
    assert (calls, ran) == ([turns.run], [None, None])


@pytest.mark.parametrize("fails", ["is_reading", "write"])
def test_a_connection_that_breaks_off_while_it_is_attended_ends_alone(stage: SocketPairBroker, fails: str) -> None:
    """Past the event loop, too: with nothing else at hand the turn reads the socket itself."""
    victim, bystander = stage.client(), stage.client()
    connection = next(one for one in stage.turns.stats.connections if one.session.state.origin == 1)
    transport = connection.socket.transport
    assert transport is not None
    breaking = Mock(wraps=transport, **{f"{fails}.side_effect": OSError(9, "Bad file descriptor")})
    connection.socket.transport = breaking
    said: list[str] = []
    stage.turns.stats.faults._limited_log = RateLimitedLog(said.append)
    if fails == "is_reading":
        stage.turns._attend(connection)
    else:
        victim.sendall(SEND)
    stage.settle()
    assert len(said) == 1
    assert stage.turns_of(bystander) == 1
    assert len(stage.turns.stats.connections) == 1
    assert victim.recv(1000) == b""
    bystander.close()


def test_who_waits_for_what_is_durable_already_is_called_in_the_next_turn(stage: SocketPairBroker) -> None:
    """Not only when the disk has synced something else."""
    called: list[str] = []
    stage.turns.when_durable(stage.turns.broker.log.last_lsn, lambda: called.append("it is"))
    assert not called
    stage.settle()
    assert called == ["it is"]


def test_the_collector_counts_the_work_of_each_turn(stage: SocketPairBroker) -> None:
    searched: list[int] = []
    collector: Any = SimpleNamespace(work=0, message_count=0, search_young=lambda: searched.append(collector.work))
    client = stage.client()
    stage.turns.collector = collector
    stage.turns_of(client)
    assert 0 < collector.work < WORK_MAX
    assert collector.message_count == stage.turns.broker.memory.account.message_count == 1
    assert not searched
    collector.work = WORK_MAX
    stage.turns_of(client)
    assert searched
