"""Clients of every kind are gone at any moment, in the middle of anything: every account is as before."""

from __future__ import annotations

import random
import socket
import struct

import pytest

from artemis_py.core.order.entry import PURGED
from tests.kit.churn_scripts import visits
from tests.kit.frames import frame
from tests.kit.live_server import Client, LiveServer
from tests.unit.holdings.test_churn import CORE as CORE_OF_CHURN
from tests.unit.holdings.test_churn import clear, nobody_is_here
from tests.unit.holdings.test_freed import settled

ACCEPTOR = "stompMinLargeMessageSize=100000"
"""A broker on which somebody stays who gets what others publish."""
CORE = CORE_OF_CHURN
VISITS = 150
OPEN_MAX = 12
RESET = struct.pack("ii", 1, 0)
OF_CLIENTS = ("connections", "input", "output", "transactions", "subscriptions", "selectors", "groups", "http")


def leave(client: socket.socket, chance: random.Random) -> None:
    """In one of the ways in which a socket ends."""
    way = chance.randrange(3)
    if way == 0:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    elif way == 1:
        client.shutdown(socket.SHUT_WR)
    client.close()


@pytest.mark.timeout(120)
def test_accounts_return_to_nothing(stage: LiveServer, request: pytest.FixtureRequest) -> None:
    chance = random.Random(request.config.option.seed)
    rounds = visits(request.config.option.seed)
    declared = stage.broker.holdings.by_kind()
    here: list[socket.socket] = []
    for _ in range(VISITS):
        visit = chance.choice(next(rounds))
        data = b"".join(step.send for step in visit.steps) + chance.choice([b"", frame("DISCONNECT")])
        client = Client(stage, http=visit.http, unread=chance.random() < 0.5)
        client.send(data[: chance.randrange(len(data) + 1)])
        here.append(client.socket)
        if len(here) > OPEN_MAX:
            leave(here.pop(chance.randrange(len(here))), chance)
    for each in here:
        leave(each, chance)
    stage.until(lambda: nobody_is_here(stage), "everybody has left")
    settled(stage)
    held = stage.broker.holdings.by_kind()
    assert {kind: held[kind] - declared[kind] for kind in OF_CLIENTS if held[kind] != declared[kind]} in (
        {},
        {"selectors": held["selectors"] - declared["selectors"]},  # of durable subscriptions, which stay
    )
    clear(stage)
    for queue in stage.broker.queues.values():
        queue.purge(PURGED, stage.broker.host.log.now_ms)
    settled(stage)
    held = stage.broker.holdings.by_kind()
    of_ids = {"ids"}  # commits are remembered whoever is there
    assert {kind for kind in held if held[kind] != declared[kind]} <= of_ids, (declared, held)
    broker, turns, stats = stage.broker, stage.server.turns, stage.server.stats
    assert (broker.memory.account.message_count, broker.memory.account.size_bytes) == (0, 0)
    assert broker.quota._connections == {}
    assert (len(turns.watches._connections), len(turns.output.waiting)) == (0, 0)
    assert (len(turns.input.blocked), turns.input.scheduler.count) == (0, 0)
    assert stats.traffic.sessions_open == 0
    assert stats.connections_by_state() == {"new": 0, "open": 0, "blocked": 0, "stalled": 0, "closing": 0}
    assert not turns.guard.holders
    assert not broker.agenda
    assert (stage.server.ports.temporaries._by_key, stage.server.ports.temporaries._held) == ({}, {})
