"""Hundreds of logins at once, each with a hash of 100,000 iterations, beside a client that sends and receives."""

from __future__ import annotations

import selectors
import socket
from pathlib import Path

import pytest

from artemis_py.security.users.passwords import ITERATIONS, hashed
from tests.e2e.login_actors import secured
from tests.kit.client import StompSocket, frame
from tests.kit.process import HTTP, LOOPBACK, STOMP, needs_descriptors, running

pytestmark = pytest.mark.e2e

LOGINS = 500
TRIPS = 50


def test_hashes_do_not_stop_the_river(tmp_path: Path) -> None:
    """Each hash takes longer than a message there and back, on any machine: in turns, the trips would wait for them."""
    needs_descriptors(1_000)
    names = [f"user{number}" for number in range(LOGINS)]
    password = hashed("password", ITERATIONS)
    (tmp_path / "artemis-users.properties").write_text("".join(f"{name} = {password}\n" for name in ("ann", *names)))
    (tmp_path / "artemis-roles.properties").write_text(f"amq = ann,{','.join(names)}\n")
    text = secured({"stomp": STOMP + ";maxConnectionsBeforeLogin=-1;handshakeTimeout=600000", "http": HTTP})
    logins: list[socket.socket] = []
    with running(text, tmp_path) as broker, StompSocket(broker.port) as client:
        client.connect(login="ann", passcode="password")
        client.send("SUBSCRIBE", {"destination": "/queue/q", "id": 1})
        for number in range(TRIPS):
            while len(logins) < (number + 1) * LOGINS // TRIPS:
                headers = {"accept-version": "1.2", "host": "x", "login": names[len(logins)], "passcode": "password"}
                logins.append(socket.create_connection((LOOPBACK, broker.port)))
                logins[-1].sendall(frame("CONNECT", headers))
            client.send("SEND", {"destination": "/queue/q"}, b"hello")
            client.expect("MESSAGE")
        assert broker.metric("artemis_logins_verified_total") < LOGINS / 2
        with selectors.DefaultSelector() as answered:  # select() takes no descriptor above 1,023
            for login in logins:
                answered.register(login, selectors.EVENT_READ, login)
            decided = [key.data.recv(65536) for key, _ in answered.select()]
        assert all(answer.startswith(b"CONNECTED") or b"Too many logins are waiting" in answer for answer in decided)
        for login in logins:
            login.close()
