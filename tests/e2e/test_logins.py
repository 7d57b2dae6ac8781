"""Logins at a real broker: who gets in, what the others are told, and that nobody waits for somebody else's."""

from __future__ import annotations

import select
import socket
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.e2e.login_actors import secured, write_authenticator
from tests.kit.client import StompSocket, connected, frame, refused
from tests.kit.process import BOTH, LOOPBACK, STOMP, WAIT_S, running
from tests.kit.users import give_user

pytestmark = pytest.mark.e2e

OWN = '<authentication><authenticator name="own"><option name="role" value="amq"/></authenticator></authentication>'


def test_users_of_a_file_log_in_and_others_do_not(tmp_path: Path) -> None:
    give_user(tmp_path, "ann", "secret of ann")
    with running(secured(), tmp_path) as broker:
        with connected(broker.port, login="ann", passcode="secret of ann") as client:
            client.send("SUBSCRIBE", {"destination": "/queue/q", "id": 1})
            client.send("SEND", {"destination": "/queue/q"}, b"hello")
            assert client.expect("MESSAGE").body == b"hello"
        said = "Security Error occurred: User name [{}] or password is invalid"
        assert refused(broker.port, login="ann", passcode="wrong") == said.format("ann")
        assert refused(broker.port) == said.format("null")
        assert refused(broker.port, login="bob", passcode="secret of ann") == said.format("bob")
        assert broker.metric("artemis_authentication_count", result="success") == 1
        assert broker.metric("artemis_authentication_count", result="failure") == 3
        assert broker.metric("artemis_login_refusals_total", reason="invalid") == 3
        broker.await_said("login of 'bob' refused")
        assert "secret" not in broker.said
        assert "wrong" not in broker.said


def test_a_login_that_takes_long_stops_nobody(tmp_path: Path) -> None:
    environment = write_authenticator(tmp_path)
    with (
        running(secured(core=OWN), tmp_path, environment) as broker,
        StompSocket(broker.port) as client,
        StompSocket(broker.port) as slow,
    ):
        client.connect(login="ann", passcode="ann")
        client.send("SUBSCRIBE", {"destination": "/queue/q", "id": 1})
        slow.send("CONNECT", {"accept-version": "1.2", "host": "x", "login": "slow", "passcode": "slow"})
        broker.await_metric(1, "artemis_logins_waiting")
        for _ in range(100):
            client.send("SEND", {"destination": "/queue/q"}, b"hello")
            client.expect("MESSAGE")
        with StompSocket(broker.port) as other:  # other logins do not wait either
            other.connect(login="bob", passcode="bob")
        assert select.select([slow.socket], [], [], 0)[0] == []
        (tmp_path / "open").touch()
        slow.expect("CONNECTED")


def test_strangers_hold_little(tmp_path: Path) -> None:
    environment = write_authenticator(tmp_path)
    limits = ";maxConnectionsBeforeLogin=3;handshakeTimeout=4000;maxConnectBytes=1000"
    with running(secured({**BOTH, "stomp": STOMP + limits}, core=OWN), tmp_path, environment) as broker:
        with StompSocket(broker.port) as first, StompSocket(broker.port) as second, StompSocket(broker.port) as late:
            first.connect(login="ann", passcode="ann")
            second.send("CONNECT", {"accept-version": "1.2", "host": "x", "login": "slow", "passcode": "slow"})
            idle = StompSocket(broker.port)
            with StompSocket(broker.port) as one_too_many:
                error = one_too_many.expect("ERROR")
                assert "3 connections from your address have not logged in yet" in str(error.header("message"))
                assert one_too_many.read_to_end() == []
            assert "The login was not decided within 4000 ms" in str(second.expect("ERROR").header("message"))
            assert "No CONNECT frame within 4000 ms" in str(idle.expect("ERROR").header("message"))
            late.expect("ERROR")
            idle.close()
        (tmp_path / "open").touch()
        with socket.create_connection((LOOPBACK, broker.port), WAIT_S) as large:
            large.sendall(b"CONNECT\nx:" + b"y" * 2000)
            assert b"maxConnectBytes" in large.recv(65536)
        assert broker.metric("artemis_login_refusals_total", reason="connections") == 1
        assert broker.metric("artemis_login_refusals_total", reason="deadline") == 3
        broker.await_metric(0, "artemis_logins_waiting")


def test_guesses_become_slow_and_others_do_not(tmp_path: Path) -> None:
    environment = write_authenticator(tmp_path)
    with running(secured(core=OWN), tmp_path, environment) as broker:
        connected(broker.port, login="ann", passcode="ann").close()
        began_s = time.monotonic()
        for number in range(7):
            refused(broker.port, login="ann", passcode=f"guess {number}")
        assert time.monotonic() - began_s > 0.2 + 0.4 + 0.8
        with StompSocket(broker.port) as guess, StompSocket(broker.port) as known:
            guess.send("CONNECT", {"accept-version": "1.2", "host": "x", "login": "ann", "passcode": "guess 8"})
            known.connect(login="ann", passcode="ann")  # it would have to wait for as long were it not remembered
            assert select.select([guess.socket], [], [], 0)[0] == []


def test_a_token_is_a_login(tmp_path: Path) -> None:
    jwt = pytest.importorskip("jwt", reason="PyJWT is not installed (extra jwt)")
    secret = "0123456789abcdef0123456789abcdef"
    (tmp_path / "secret").write_text(secret)
    options = {"issuer": "me", "audience": "broker", "secret-file": str(tmp_path / "secret"), "leeway": "0"}
    named = "".join(f'<option name="{name}" value="{value}"/>' for name, value in options.items())
    text = secured(core=f'<authentication><authenticator name="jwt">{named}</authenticator></authentication>')

    def token(lasts_s: float) -> str:
        claims = {"iss": "me", "aud": "broker", "sub": "ann", "roles": "amq"}
        return str(jwt.encode({**claims, "exp": datetime.now(UTC) + timedelta(seconds=lasts_s)}, secret, "HS256"))

    with running(text, tmp_path) as broker:
        with connected(broker.port, passcode=token(60)) as client:
            client.send("SUBSCRIBE", {"destination": "/queue/q", "id": 1})
            client.send("SEND", {"destination": "/queue/q"}, b"hello")
            assert client.expect("MESSAGE").body == b"hello"
        assert "Security Error" in refused(broker.port, login="ann", passcode=token(-1))
        assert "Security Error" in refused(broker.port, login="bob", passcode=token(60))


def test_a_client_that_leaves_meanwhile_is_forgotten(tmp_path: Path) -> None:
    environment = write_authenticator(tmp_path)
    with running(secured(core=OWN), tmp_path, environment) as broker:
        with socket.create_connection((LOOPBACK, broker.port), WAIT_S) as client:
            client.sendall(
                frame("CONNECT", {"accept-version": "1.2", "host": "x", "login": "slow", "passcode": "slow"})
            )
            broker.await_metric(1, "artemis_logins_waiting")
        (tmp_path / "open").touch()
        broker.await_metric(0, "artemis_connection_count")
        broker.await_metric(0, "artemis_logins_waiting")
        assert broker.metric("artemis_session_count") == 0
