"""What clients see while their login is under way, and what of theirs is carried out meanwhile: nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from unittest.mock import Mock, patch

import pytest

from artemis_py.errors import ArtemisError
from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.login import CONNECTIONS, DEADLINE, EXPIRED, WRONG, Login
from tests.kit.in_process import START_MS, InProcessBroker, configuration

CONNECT = b"CONNECT\naccept-version:1.2\nhost:x\nlogin:ann\npasscode:secret\n\n\0"
SEND = b"SEND\ndestination:/queue/q\n\nhello\0"


@dataclass
class LoginService:
    """Logins that the test decides."""

    begun: list[tuple[Credentials, Login, Callable[[], None]]] = field(default_factory=list)
    at_once: Identity | None = None

    def begin(self, credentials: Credentials, wake: Callable[[], None]) -> Login:
        login = Login()
        login.identity = self.at_once
        self.begun.append((credentials, login, wake))
        return login

    def admit(self, number: int = 0, user: str = "ann", expires_ms: int = 0) -> None:
        """The login with this number is good."""
        _, login, wake = self.begun[number]
        login.identity = Identity(user, frozenset({"amq"}), expires_ms)
        wake()

    def refuse(self, text: str = WRONG, *, is_open: bool = False) -> None:
        """The first login is not."""
        _, login, wake = self.begun[0]
        login.refusal, login.is_open = text, is_open
        wake()


class World(InProcessBroker):
    """A broker where everybody must log in."""

    def __init__(self, acceptor: str = "", core: str = "", before_login_max: int = -1) -> None:
        self.logins = LoginService()
        super().__init__(configuration(core, acceptor), logins=self.logins, before_login_max=before_login_max)


def test_nothing_is_carried_out_before_the_login_is_decided() -> None:
    world = World()
    client = world.client("a")
    assert client.says(CONNECT + SEND + SEND) == []
    assert client.connection.state == "new"
    assert "q" not in world.broker.queues
    assert world.stats.sessions_open == 0
    assert not client.transport.reading
    world.logins.admit()
    assert [frame.command for frame in client.says()] == ["CONNECTED"]
    assert world.queue("q").message_count == 2
    assert client.transport.reading
    credentials = world.logins.begun[0][0]
    assert (credentials.user, credentials.password, credentials.peer) == ("ann", "secret", "")


def test_what_comes_behind_connect_is_bounded() -> None:
    world = World()
    client = world.client("a")
    client.says(CONNECT)
    client.send(SEND * 20_000)
    assert sum(client.connection.session.held_bytes) <= 3 * 65536
    assert "q" not in world.broker.queues
    world.logins.admit()
    client.says()
    assert world.queue("q").message_count == 20_000


def test_a_login_decided_at_once_needs_no_second_turn() -> None:
    world = World()
    world.logins.at_once = Identity("ann", frozenset())
    assert [frame.command for frame in world.client("a").says(CONNECT)] == ["CONNECTED"]


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
@pytest.mark.parametrize(("login", "shown"), [("login:ann\n", "ann"), ("", "null"), ("login:\n", "")])
def test_a_refusal_has_artemis_text_in_every_version(version: str, login: str, shown: str) -> None:
    world = World()
    client = world.client("a")
    client.says(f"CONNECT\naccept-version:{version}\n{login}passcode:secret\n\n\0".encode())
    world.logins.refuse()
    (error,) = client.says()
    assert error.command == "ERROR"
    text = f"Security Error occurred: User name [{shown}] or password is invalid"
    assert str(error.header("message")).replace("\\c", ":") == text
    assert error.body == text.encode()
    assert client.is_closed
    assert world.stats.sessions_total == 0


def test_what_is_wrong_with_a_token_is_said() -> None:
    world = World()
    client = world.client("a")
    client.says(CONNECT)
    world.logins.refuse("the token expired at noon")
    (error,) = client.says()
    assert error.body == b"Security Error occurred: the token expired at noon"
    assert client.is_closed


def test_who_could_not_be_checked_is_told_so() -> None:
    world = World()
    client = world.client("a")
    client.says(CONNECT)
    world.logins.refuse("Too many logins are waiting; try again later", is_open=True)
    (error,) = client.says()
    assert error.header("message") == "Too many logins are waiting; try again later"


def test_a_token_may_come_without_a_name() -> None:
    world = World()
    world.client("a").says(b"CONNECT\naccept-version:1.2\nhost:x\npasscode:token\n\n\0")
    assert world.logins.begun[0][0].user is None


def test_the_user_is_who_the_authenticator_says() -> None:
    world = World(
        core='<resource-limit-settings><resource-limit-setting match="cn=ann"><max-connections>1'
        "</max-connections></resource-limit-setting></resource-limit-settings>"
    )
    for name in "ab":
        world.client(name).says(CONNECT)
    world.logins.admit(0, "cn=ann")
    world.logins.admit(1, "cn=ann")
    assert [frame.command for frame in world.client("a").says()] == ["CONNECTED"]
    (error,) = world.client("b").says()
    assert "max-connections" in str(error.header("message"))
    assert world.client("a").connection.session.state.user == "cn=ann"


def test_the_handshake_timeout_covers_the_login() -> None:
    world = World("handshakeTimeout=3000")
    client = world.client("a")
    client.says(CONNECT)
    world.advance(2999)
    assert client.heard() == []
    world.advance(2)
    (error,) = client.heard()
    assert error.header("message") == "The login was not decided within 3000 ms (handshakeTimeout of the acceptor)"
    assert world.logins.begun[0][1].is_given_up
    assert world.stats.logins.refusals[DEADLINE] == 1
    world.logins.admit()  # too late
    assert client.says() == []
    assert world.stats.sessions_total == 0


def test_the_handshake_timeout_does_not_touch_who_is_in() -> None:
    world = World("handshakeTimeout=3000")
    client = world.client("a")
    client.says(CONNECT)
    world.advance(2000)
    world.logins.admit()
    assert [frame.command for frame in client.says()] == ["CONNECTED"]
    world.advance(20_000)
    assert client.heard() == []


def test_a_client_that_leaves_gives_up_its_login() -> None:
    world = World()
    client = world.client("a")
    client.says(CONNECT)
    client.transport.abort()
    world.settle()
    assert world.logins.begun[0][1].is_given_up
    assert len(world.turns.input.blocked) == 0
    world.logins.admit()
    world.settle()
    assert world.stats.sessions_total == 0


def test_a_client_that_only_closes_its_side_is_still_answered() -> None:
    world = World()
    client = world.client("a")
    client.send(CONNECT + SEND)
    client.connection.eof_received()
    world.settle()
    world.logins.admit()
    assert [frame.command for frame in client.says()] == ["CONNECTED"]
    assert world.queue("q").message_count == 1
    assert client.is_closed


def test_a_session_ends_with_its_token() -> None:
    world = World()
    client = world.client("a")
    client.says(CONNECT)
    world.logins.admit(expires_ms=START_MS + 60_000)
    assert [frame.command for frame in client.says()] == ["CONNECTED"]
    world.advance(59_999 - (world.now_ms - START_MS))
    assert client.heard() == []
    world.advance(2)
    (error,) = client.heard()
    assert error.header("message") == "Your login has ended because its token expired; connect again with a new one"
    assert world.stats.logins.refusals[EXPIRED] == 1
    assert world.stats.sessions_open == 0


def test_a_session_with_heart_beats_ends_with_its_token() -> None:
    world = World()
    client = world.client("a")
    client.says(CONNECT.replace(b"host:x", b"host:x\nheart-beat:0,1000"))
    world.logins.admit(expires_ms=START_MS + 5_500)
    client.says()
    world.advance(5_400)
    assert client.heard() == []
    world.advance(101)
    assert [frame.command for frame in client.heard()] == ["ERROR"]


@pytest.mark.parametrize("step_ms", [3_600_000, -3_600_000])
def test_a_token_ends_at_its_date_also_when_the_clock_is_set(step_ms: int) -> None:
    """At the latest a minute later."""
    world = World()
    client = world.client("a")
    client.says(CONNECT)
    ends_ms = START_MS + 2 * 3_600_000
    world.logins.admit(expires_ms=ends_ms)
    client.says()
    world.set_clock(step_ms)
    world.advance(ends_ms - world.now_ms - 1)
    assert client.heard() == []
    world.advance(60_001)
    assert [frame.command for frame in client.heard()] == ["ERROR"]


def test_connections_without_a_login_are_limited_by_address() -> None:
    world = World(before_login_max=2)
    first, _, third = (world.client(name) for name in "abc")
    (error,) = third.heard()
    assert "2 connections from your address have not logged in yet" in str(error.header("message"))
    assert third.is_closed
    assert world.stats.logins.refusals[CONNECTIONS] == 1
    first.says(CONNECT)
    world.logins.admit()
    first.says()
    assert world.client("d").says(CONNECT) == []  # one has logged in, so there is room
    assert world.client("e").is_closed
    world.client("d").transport.abort()
    world.settle()
    assert not world.client("f").is_closed


def test_the_acceptor_sets_that_limit() -> None:
    world = World("maxConnectionsBeforeLogin=1", before_login_max=50)
    world.client("a")
    assert world.client("b").is_closed


def test_connect_is_small() -> None:
    world = World("maxConnectBytes=200;maxHeaderBytes=1000")
    long = b"x:%b\n" % (b"y" * 300)
    (error,) = world.client("a").says(CONNECT.replace(b"\n\n", b"\n" + long + b"\n"))
    assert "more than 200 bytes (maxConnectBytes of the acceptor)" in str(error.header("message"))
    other = world.client("b")
    other.says(CONNECT)
    world.logins.admit()
    other.says()
    assert other.says(SEND.replace(b"\n\n", b"\n" + long + b"\n")) == []
    assert world.queue("q").message_count == 1


def test_a_desk_that_fails_ends_only_this_connection() -> None:
    world = World()
    with patch.object(LoginService, "begin", Mock(side_effect=ArtemisError("no"))):
        world.client("a").says(CONNECT)
    assert world.client("a").is_closed
    assert world.client("b").says(CONNECT) == []
    world.logins.admit()
    assert [frame.command for frame in world.client("b").says()] == ["CONNECTED"]
