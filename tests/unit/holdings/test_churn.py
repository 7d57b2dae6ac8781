"""Clients of every kind come and go: no object is left behind. Its long sister is tests/e2e/test_churn.py."""

from __future__ import annotations

import gc

import pytest

from artemis_py.stomp.service import Routes
from tests.kit.churn_scripts import visits
from tests.kit.live_server import Client, LiveServer, census, no_collector
from tests.unit.holdings.test_freed import settled

ROUNDS = 3
ACCEPTOR = "stompMinLargeMessageSize=100000"
"""A broker that remembers few ids."""
CORE = """<id-cache-size>20</id-cache-size>
<address-settings><address-setting match="#"><dead-letter-address>DLQ</dead-letter-address>
<max-delivery-attempts>1</max-delivery-attempts><id-cache-size>20</id-cache-size></address-setting></address-settings>
<addresses><address name="DLQ"><anycast><queue name="DLQ" ring-size="2"/></anycast></address></addresses>"""


def nobody_is_here(stage: LiveServer) -> bool:
    """Has everybody left?"""
    stage.server.turns.schedule()
    return not stage.server.stats.connections_open + stage.server.ports.http.acceptors[0].connections_open


def clear(stage: LiveServer) -> None:
    """Delete what visitors have left on the broker; else that would be counted."""
    broker = stage.broker
    for queue in list(broker.queues.values()):
        if queue.name != "DLQ":
            broker.registry.delete_queue(queue, 0)
    for address in list(broker.addresses.values()):
        if address.name != "DLQ":
            broker.registry.delete_address(address)
    for dialect in stage.dialects():  # these tables have a bound of their own
        dialect._shapes.clear()
        dialect.memo.clear()
    for routes in [
        each for each in gc.get_objects() if isinstance(each, Routes)
    ]:  # this one, too; routes know the addresses that they lead to
        routes.by_target.clear()


@pytest.mark.timeout(120)
def test_nothing_is_left_behind(stage: LiveServer, request: pytest.FixtureRequest) -> None:
    """All kinds of visits, each with names that were never there before, a few times over."""
    rounds = visits(request.config.option.seed)
    with no_collector():
        for number in range(2 * ROUNDS):
            if number == ROUNDS:
                before, held_before = census(), stage.broker.holdings.by_kind()
            for visit in next(rounds):
                client = Client(stage, http=visit.http)
                for step in visit.steps:
                    client.send(step.send)
                    if step.awaited:
                        client.expect(step.awaited)
                client.socket.close()
            stage.until(lambda: nobody_is_here(stage), "everybody has left")
            settled(stage)
            clear(stage)
            settled(stage)
        grown = census()
        grown.subtract(before)
    left = {name: count for name, count in grown.items() if count >= ROUNDS}
    assert not left, f"left behind: {left}"
    held = stage.broker.holdings.by_kind()
    assert {kind for kind in held if held[kind] > held_before[kind] + 2000} == set(), (held_before, held)
