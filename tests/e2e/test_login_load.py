"""A hundred logins a second, each with a hash of 100,000 iterations, beside a client that sends and receives."""

from __future__ import annotations

import select
import socket
import time
from pathlib import Path

import pytest

from tests.e2e.broker_process import LOOPBACK, running
from tests.e2e.login_actors import hashed, secured, write_users
from tests.e2e.stomp_socket import StompSocket, frame

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

LOGINS_PER_S = 100
LASTS_S = 5.0
TURN_MS_MAX = 1000
"""In turns, the hashes of these logins would take 45 s. A busy machine may stop a process for tenths of a second."""


def test_hashes_do_not_stop_the_river(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"user{number}" for number in range(int(LOGINS_PER_S * LASTS_S))]
    write_users(tmp_path, ["ann", *names], hashed("password"))
    text = secured(acceptor=";maxConnectionsBeforeLogin=-1;handshakeTimeout=60000")
    logins: list[socket.socket] = []
    with running(text, tmp_path) as broker, StompSocket(broker.port) as client:
        client.connect(login="ann", passcode="password")
        client.send("SUBSCRIBE", {"destination": "/queue/q", "id": 1})
        alone = _trips(client, 1.0, lambda passed_s: None)
        turn_alone_s = broker.metric("artemis_turn_duration_seconds_max")

        def begin(passed_s: float) -> None:
            while len(logins) < min(passed_s * LOGINS_PER_S, len(names)):
                headers = {"accept-version": "1.2", "host": "x", "login": names[len(logins)], "passcode": "password"}
                logins.append(socket.create_connection((LOOPBACK, broker.port)))
                logins[-1].sendall(frame("CONNECT", headers))

        beside = _trips(client, LASTS_S, begin)
        decided = [login.recv(65536) for login in select.select(logins, [], [], 0)[0]]
        turn_s = broker.metric("artemis_turn_duration_seconds_max")
        verified = broker.metric("artemis_logins_verified_total")
        assert len(logins) > 0.9 * len(names)
        assert verified >= 2  # as many as the rest of the machine allows
        assert all(answer.startswith(b"CONNECTED") or b"Too many logins are waiting" in answer for answer in decided)
        admitted = sum(answer.startswith(b"CONNECTED") for answer in decided)
        for login in logins:
            login.close()
        with capsys.disabled():
            print(
                f"\nalone: {alone[0]} round trips/s, longest {alone[1]:.1f} ms, "
                f"longest turn {turn_alone_s * 1000:.1f} ms; "
                f"beside {LOGINS_PER_S} logins/s: {beside[0]} round trips/s, longest {beside[1]:.1f} ms, longest turn "
                f"{turn_s * 1000:.1f} ms, {admitted} let in "
                f"after {LASTS_S:g} s, {len(decided) - admitted} told to come later"
            )
        assert turn_s * 1000 < TURN_MS_MAX


def _trips(client: StompSocket, lasts_s: float, between: object) -> tuple[int, float]:
    """Messages there and back, one after the other: how many a second, and the longest in ms."""
    assert callable(between)
    began_s, count, longest_s = time.monotonic(), 0, 0.0
    while (passed_s := time.monotonic() - began_s) < lasts_s:
        between(passed_s)
        sent_s = time.monotonic()
        client.send("SEND", {"destination": "/queue/q"}, b"hello")
        client.expect("MESSAGE")
        longest_s = max(longest_s, time.monotonic() - sent_s)
        count += 1
    return int(count / lasts_s), longest_s * 1000
