"""At the limit on all that clients make the broker hold: what is new is refused and told why, what piles up is cut off,
and everything else goes on.
"""

from __future__ import annotations

import json
import logging
import re
from types import SimpleNamespace
from typing import cast
from unittest.mock import create_autospec

import pytest

from artemis_py.core.clock import Clock
from artemis_py.core.memory import (
    CONNECTIONS,
    HTTP,
    HTTP_CONNECTION_BYTES,
    INPUT,
    OUTPUT,
    SETTING,
    TRANSACTIONS,
    Holdings,
)
from artemis_py.message import Account
from artemis_py.server.connection import Connection
from artemis_py.server.http.monitoring_routes import CONNECTIONS_SHOWN
from artemis_py.server.memory import CUT_OFF_BYTES_MIN, MemoryGuard
from artemis_py.server.turn_client import LIGHT_BYTES, NOTHING, Weight
from tests.kit.frames import frame
from tests.kit.live_server import Client, LiveServer

LIMIT = 1_000_000
MEBIBYTE = 1 << 20
ACCEPTOR = "stompMinLargeMessageSize=-1"
"""A broker with little room for its clients; large bodies stay in memory."""
CORE = f"""<{SETTING}>{LIMIT}</{SETTING}><address-settings>
<address-setting match="block"><address-full-policy>BLOCK</address-full-policy></address-setting>
<address-setting match="fail"><address-full-policy>FAIL</address-full-policy></address-setting>
<address-setting match="page"><address-full-policy>PAGE</address-full-policy></address-setting>
</address-settings>
<addresses><address name="page"><anycast><queue name="page"/></anycast></address></addresses>"""


def fill(stage: LiveServer, name: str = "q") -> Client:
    """A client whose transaction holds as much as there may be: nobody can take that away but itself."""
    client = stage.greeted()
    client.send(frame("BEGIN", "transaction:full"))
    body = b"x" * 10_000
    while not stage.broker.holdings.is_full:
        kept = stage.broker.holdings.of(TRANSACTIONS)
        client.send(frame("SEND", f"destination:/queue/{name}", "transaction:full", body=body))
        stage.until(lambda kept=kept: stage.broker.holdings.of(TRANSACTIONS) > kept, "it is kept")  # type: ignore[misc]
    return client


ASKED = {
    "SUBSCRIBE": frame("SUBSCRIBE", "id:1", "destination:/queue/q", "receipt:7"),
    "BEGIN": frame("BEGIN", "transaction:1", "receipt:7"),
    "SEND to the new address": frame("SEND", "destination:/queue/new", "receipt:7"),
    "a temporary destination": frame("SEND", "destination:/temp-queue/t", "receipt:7"),
}


@pytest.mark.parametrize("asked", ASKED.items(), ids=ASKED.keys())
def test_what_is_new_is_refused_and_told_why(stage: LiveServer, asked: tuple[str, bytes]) -> None:
    what, data = asked
    client = stage.greeted()
    full = fill(stage)
    refused = stage.broker.holdings.refused_count
    client.send(data)
    answer = client.expect(b"\0")
    assert answer.startswith(b"ERROR"), answer
    assert what.encode() in answer
    assert f"{SETTING} allows {LIMIT}".encode() in answer
    assert f"or raise {SETTING}".encode() in answer
    assert b"receipt-id:7" in answer
    assert stage.broker.holdings.refused_count == refused + 1
    full.socket.close()


def test_a_transaction_takes_no_more_and_can_be_committed(stage: LiveServer) -> None:
    full = fill(stage)
    other = stage.broker.holdings
    full.send(frame("SEND", "destination:/queue/q", "transaction:full", body=b"y"))
    assert b"SEND in a transaction is refused" in full.expect(b"\0")
    stage.until(lambda: not other.is_full, "what it held is free")


def test_a_commit_does_not_wait_for_the_room_that_it_takes_itself(stage: LiveServer) -> None:
    full = fill(stage, "block")
    full.send(frame("COMMIT", "transaction:full", "receipt:1"))
    full.expect(b"RECEIPT")


def test_a_connection_is_refused(stage: LiveServer) -> None:
    full = fill(stage)
    late = Client(stage)
    answer = late.expect(b"\0")
    assert answer.startswith(b"ERROR")
    assert b"CONNECT is refused" in answer
    full.socket.close()
    stage.until(lambda: len(stage.server.stats.connections) == 0 or not stage.broker.holdings.is_full, "room")
    assert stage.greeted()


def test_messages_go_by_the_policy_of_their_address(stage: LiveServer) -> None:
    """As when ``global-max-size`` is reached: by what is not in transactions."""
    sender = stage.greeted()
    for name in ("block", "fail", "page"):
        sender.send(frame("SEND", f"destination:/queue/{name}", f"receipt:{name}"))
        sender.expect(name.encode())
    stage.broker.holdings.move(CONNECTIONS, LIMIT)
    sender.send(frame("SEND", "destination:/queue/page", "receipt:1"))
    sender.expect(b"receipt-id:1")
    assert stage.broker.addresses["page"].is_paging
    sender.send(frame("SEND", "destination:/queue/fail", "receipt:2"))
    assert b"Address fail is full" in sender.expect(b"\0")
    stage.broker.holdings.move(CONNECTIONS, -LIMIT)
    blocked = stage.greeted()
    stage.broker.holdings.move(CONNECTIONS, LIMIT)
    blocked.send(frame("SEND", "destination:/queue/block", "receipt:3"))
    stage.until(lambda: stage.server.stats.connections_by_state()["blocked"] == 1, "it waits")
    stage.broker.holdings.move(CONNECTIONS, -LIMIT)
    stage.server.turns.schedule()
    blocked.expect(b"receipt-id:3")


def test_messages_alone_keep_nobody_from_taking_them(stage: LiveServer) -> None:
    sender, reader = stage.greeted(), stage.greeted()
    for number in range(2 * LIMIT // 50_000):
        sender.send(frame("SEND", "destination:/queue/q", f"receipt:{number}", body=b"x" * 50_000))
        sender.expect(b"receipt-id:%d" % number)
    assert stage.broker.holdings.total_bytes > LIMIT
    reader.send(frame("SUBSCRIBE", "id:1", "destination:/queue/q", "ack:auto"))
    reader.expect(b"MESSAGE")


def test_who_holds_most_that_is_not_finished_goes_first(stage: LiveServer, caplog: pytest.LogCaptureFixture) -> None:
    small, large = stage.greeted(), stage.greeted()
    begun = b"SEND\ndestination:/queue/q\n\n"
    small.send(begun + b"x" * (LIMIT // 4))
    stage.until(lambda: stage.broker.holdings.of(INPUT) >= LIMIT // 4, "the small one is counted")
    with caplog.at_level(logging.WARNING):
        large.send(begun + b"x" * LIMIT)
        answer = large.expect(b"\0")
    assert f"{SETTING} allows {LIMIT}".encode() in answer
    assert answer.startswith(b"ERROR")
    assert stage.broker.holdings.cut_off_count == 1
    assert SETTING in caplog.text
    small.send(b"\0" + frame("SEND", "destination:/queue/q", "receipt:here"))
    small.expect(b"receipt-id:here")


def test_headers_that_are_not_finished(stage: LiveServer) -> None:
    """Many clients, each with less than one may have, before they have said who they are."""
    clients = []
    for _ in range(LIMIT // 13_000):
        client = Client(stage)
        clients.append(client)
        read = stage.server.stats.bytes_in
        client.socket.send(b"CONNECT\nx:" + b"y" * 7_000 + b"\nz:" + b"y" * 7_000)
        stage.until(lambda read=read: stage.server.stats.bytes_in > read, "it was read")  # type: ignore[misc]
    stage.until(lambda: not stage.broker.holdings.is_full, "some are cut off")
    assert 0 < stage.broker.holdings.cut_off_count + stage.broker.holdings.refused_count < len(clients)
    for client in clients:
        client.socket.close()


def test_who_does_not_read_goes_and_others_read_on(stage: LiveServer) -> None:
    """What was not confirmed to the broker is on the queue again, and the next reader has it."""
    deaf = [stage.greeted(unread=True) for _ in range(8)]
    for number, client in enumerate(deaf):
        client.send(frame("SUBSCRIBE", "id:1", f"destination:/queue/n{number}", "ack:client", "receipt:1"))
        client.expect(b"RECEIPT")
    stage.broker.holdings.bytes_max = LIMIT * 100
    sender = stage.greeted()
    for number in range(len(deaf)):
        sender.send(frame("SEND", f"destination:/queue/n{number}", body=b"x" * (5 * MEBIBYTE)))
    stage.until(lambda: stage.broker.holdings.of(OUTPUT) > 5 * MEBIBYTE, "it waits")
    stage.broker.holdings.bytes_max = LIMIT
    stage.server.turns.schedule()
    stage.until(lambda: stage.broker.holdings.of(OUTPUT) < CUT_OFF_BYTES_MIN * len(deaf), "they are cut off")
    assert stage.broker.holdings.cut_off_count > 0
    stage.until(lambda: len(stage.server.stats.connections) < len(deaf) + 1, "they are gone")
    stage.broker.holdings.bytes_max = LIMIT * 100
    reader = stage.greeted()
    reader.send(frame("SUBSCRIBE", "id:1", "destination:/queue/n0", "ack:auto"))
    reader.expect(b"MESSAGE")


def test_nobody_is_cut_off_for_what_others_hold(stage: LiveServer) -> None:
    """Messages fill the memory: connections that are about to send would not help."""
    client = stage.greeted()
    client.send(b"SEND\ndestination:/queue/q\n\n" + b"x" * (LIMIT // 32))
    stage.until(lambda: stage.broker.holdings.of(INPUT) >= LIMIT // 32, "it is counted")
    stage.broker.holdings.move(CONNECTIONS, LIMIT)
    turns = stage.server.stats.turns
    stage.server.turns.schedule()
    stage.until(lambda: stage.server.stats.turns > turns, "a turn")
    stage.broker.holdings.move(CONNECTIONS, -LIMIT)
    assert not stage.broker.holdings.cut_off_count
    client.send(b"\0" + frame("SEND", "destination:/queue/q", "receipt:1"))
    client.expect(b"RECEIPT")


def test_everything_is_given_back(stage: LiveServer) -> None:
    """When all clients are gone, and what they left is deleted, the account is where it was."""
    before = stage.broker.holdings.by_kind()
    client = stage.greeted()
    client.send(frame("SUBSCRIBE", "id:1", "destination:/queue/q", "ack:client", "selector:a = 'b'"))
    client.send(frame("SUBSCRIBE", "id:2", "destination:/topic/t", "selector:a = 'b'"))
    client.send(frame("SUBSCRIBE", "id:3", "destination:/temp-queue/t"))
    client.send(frame("BEGIN", "transaction:1"))
    client.send(frame("SEND", "destination:/queue/q", "transaction:1", body=b"x" * 1000))
    client.send(frame("SEND", "destination:/queue/q", "_AMQ_DUPL_ID:1", "JMSXGroupID:g", "a:b"))
    client.send(frame("SEND", "destination:/queue/q", "receipt:1") + b"SEND\nx")
    client.expect(b"receipt-id:1")
    http = Client(stage, http=True)
    http.send(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
    http.expect(b"UP")
    stage.until(lambda: stage.broker.holdings.of(INPUT) > 0, "everything is counted")
    held = stage.broker.holdings.by_kind()
    counted_elsewhere = "output", "http", "tls", "replays"
    assert all(held[kind] > before[kind] for kind in held if kind not in counted_elsewhere), held
    client.socket.close()
    http.socket.close()
    stage.until(lambda: not stage.server.stats.connections, "it is gone")
    stage.until(lambda: not stage.server.ports.http.acceptors[0].connections_open, "both are gone")
    queue = stage.broker.queues["q"]
    stage.broker.registry.delete_queue(queue, 0)
    for address in list(stage.broker.addresses.values()):
        if not address.queues and address.auto_created:
            stage.broker.registry.delete_address(address)
    assert stage.broker.holdings.by_kind() == before


def test_http_connections_that_make_room_for_others(stage: LiveServer) -> None:
    """Those that go for others are counted no longer."""
    acceptor = stage.server.ports.http.acceptors[0]
    clients = [Client(stage, http=True) for _ in range(acceptor.limits.connections_max + 10)]
    stage.until(lambda: acceptor.connections_total == len(clients), "all were accepted")
    assert stage.broker.holdings.of(HTTP) == acceptor.connections_open * HTTP_CONNECTION_BYTES
    for client in clients:
        client.socket.close()
    stage.until(lambda: not acceptor.connections_open, "they are gone")
    assert stage.broker.holdings.of(HTTP) == 0


def test_who_holds_what_is_told(stage: LiveServer) -> None:
    """In the metrics by kind, and by connection in JSON; the labels are few whoever comes."""
    client = stage.greeted("client-id:c", "login:me", "passcode:x")
    client.send(frame("SUBSCRIBE", "id:1", "destination:/queue/q") + b"SEND\ndestination:/queue/q\n\n" + b"x" * 30_000)
    others = [stage.greeted() for _ in range(25)]
    for other in others:
        other.send(b"SEND\nx:" + b"y" * LIGHT_BYTES)
    stage.until(lambda: len(stage.server.turns.guard.largest(100)) == 26, "all are counted")
    http = Client(stage, http=True)
    http.send(b"GET /memory HTTP/1.1\r\nHost: localhost\r\n\r\n")
    told = json.loads(http.expect(b"]}\n").partition(b"\r\n\r\n")[2])
    assert told["limit_bytes"] == LIMIT
    assert told["held_bytes"] == sum(told["kinds"].values()) == stage.broker.holdings.total_bytes
    assert len(told["connections"]) == CONNECTIONS_SHOWN
    first = told["connections"][0]
    assert (first["client_id"], first["login"], first["subscriptions"]) == ("c", "me", 1)
    assert 30_000 <= first["input_bytes"] <= 32_000
    http.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    text = http.expect(b"artemis_scrape_duration_seconds{").decode()
    assert re.search(r'artemis_held_bytes{broker="[^"]*",kind="input"} [1-9]', text)
    assert f'artemis_held_bytes_max{{broker="localhost"}} {LIMIT}.0' in text.replace("1e+06", f"{LIMIT}.0")
    assert text.count("artemis_held_bytes{") == len(told["kinds"])
    assert "artemis_held_refusals_total{" in text
    assert "artemis_held_cut_offs_total{" in text
    for one in (http, client, *others):
        one.socket.close()


def test_lines_about_connections_that_are_closed_go_by_the_steady_clock(caplog: pytest.LogCaptureFixture) -> None:
    """A wall clock that is set back by an hour does not keep them quiet for so long."""
    clock = Clock()
    guard = MemoryGuard(Holdings(Account(), 1), clock)
    client = SimpleNamespace(name="s1", address="somewhere")
    connection = cast(Connection, SimpleNamespace(session=SimpleNamespace(state=client)))
    now_ms, hour_ms = 10**12, 3_600_000
    with caplog.at_level(logging.WARNING):
        guard._tell(connection, 1, now_ms)
        clock.set_ahead(-hour_ms)
        guard._tell(connection, 1, now_ms - hour_ms + 9_000)
        assert len(caplog.records) == 1
        guard._tell(connection, 1, now_ms - hour_ms + 11_000)
    assert len(caplog.records) == 2


def test_what_waits_for_its_client_is_weighed_again_at_most_every_10_ms() -> None:
    """However many turns there are meanwhile; also where the wall clock is set back."""
    guard = MemoryGuard(Holdings(Account(), 1 << 30), Clock())
    connection = create_autospec(Connection)
    guard.weighed(connection, NOTHING, Weight(output_bytes=1))
    looks = []
    for after_ms in (0, 1, 9, 10, 19, 20, -3_600_000):
        guard.check(10**12 + after_ms, lambda *_: None)
        looks.append(connection.weigh.call_count)
    assert looks == [1, 1, 1, 2, 2, 3, 4]


def test_what_every_connection_counts_for_holds_a_little_more(stage: LiveServer) -> None:
    """A frame that has just begun moves nothing in the account; a greater one is counted whole, and goes whole."""
    holdings = stage.broker.holdings
    client = stage.greeted()
    stage.until(lambda: not stage.server.turns.guard.largest(100), "nothing is held")
    before, came = holdings.total_bytes, stage.server.stats.bytes_in
    client.send(b"SEND\ndestination:/queue/q\nreceipt:1\n\n" + b"x" * 50)
    stage.until(lambda: stage.server.stats.bytes_in > came + 50, "some of it came")
    assert holdings.total_bytes == before
    client.send(b"x" * LIGHT_BYTES)
    stage.until(lambda: holdings.total_bytes > before + LIGHT_BYTES, "all that came is counted")
    client.send(b"\0")
    client.expect(b"RECEIPT")
    stage.until(lambda: not stage.server.turns.guard.largest(100), "nothing is held again")
    client.socket.close()
