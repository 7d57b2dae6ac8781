"""From CONNECT to CONNECTED: the login in between, and what a client is told when it is refused."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.notices import LOGIN_REFUSED, SESSION_CREATED
from artemis_py.errors import LimitError
from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.login import Login
from artemis_py.stomp.heartbeat import Pulse
from artemis_py.stomp.session.greeting import Greeting, greet, introduce
from artemis_py.stomp.session.state import SessionState
from artemis_py.stomp.wire.frames import AnyFrame, Frame

_USER_MAX: Final = 200


@final
class Entry:
    """A client whose CONNECT is good, and its login: None where nobody logs in. The session waits for it."""

    __slots__ = ("greeting", "login")

    def __init__(self, greeting: Greeting, login: Login | None) -> None:
        self.greeting = greeting
        self.login = login

    @property
    def may_go_on(self) -> bool:
        """Is it decided?"""
        return self.login is None or self.login.may_go_on

    @property
    def identity(self) -> Identity | None:
        """Who logged in."""
        return None if self.login is None else self.login.identity

    @property
    def user(self) -> str | None:
        """The user's name: the authenticator's, or what CONNECT says where nobody logs in."""
        identity = self.identity
        return self.greeting.login if identity is None else identity.user

    @property
    def refusal(self) -> str:
        """Why the client is refused, once that is decided; empty for one who is welcome. Artemis has the same text for
        a wrong name or password in all versions of STOMP, with null for a name that is missing.
        """
        login = self.login
        if login is None or login.identity is not None:
            return ""
        if login.is_open:
            return login.refusal
        name = self.greeting.login
        shown = "null" if name is None else name[:_USER_MAX]
        return f"Security Error occurred: User name [{shown}] or password is invalid"

    def admit(self, state: SessionState) -> str:
        """Count the client and note who it is; returns why it is refused, or an empty text."""
        if self.refusal:
            if state.broker.notices.is_heard:
                refused = {"user": self.greeting.login or "", "remoteAddress": state.address, "reason": self.refusal}
                state.broker.notices.note(LOGIN_REFUSED, {**refused})
            return self.refusal
        try:
            state.broker.quota.connected(self.user or "")
        except LimitError as error:
            return str(error)
        traffic = state.service.traffic
        traffic.sessions_open += 1
        traffic.sessions_total += 1
        state.client_id = self.greeting.client_id
        state.user = self.user
        return ""

    def welcome(self, state: SessionState, pulse: Pulse, now_ms: int) -> None:
        """The session is open: answer CONNECTED."""
        greeting, identity = self.greeting, self.identity
        state.admit(identity)
        pulse.begin(greeting.beats, now_ms, 0 if identity is None else identity.expires_ms)
        introduce(greeting, state.user, state.address, state.origin, state.broker.log)
        state.out.parts().append(greeting.frame)
        state.service.traffic.count_out("CONNECTED")
        state.tell(SESSION_CREATED)

    def give_up(self) -> None:
        """The client has left, or took too long."""
        if self.login is not None:
            self.login.is_given_up = True


def enter(frame: AnyFrame, state: SessionState) -> Entry | None:
    """Take a client's first frame, and begin its login where clients must log in. None if the client was refused with
    an ERROR.
    """
    greeting = greet(frame, state)
    if greeting is None or not isinstance(frame, Frame):
        return None
    state.version = greeting.version
    state.tells_routing = greeting.tells_routing
    service = state.service
    if service.logins is None:
        return Entry(greeting, None)
    passcode, certificate = frame.headers.get("passcode"), state.certificate
    credentials = Credentials(greeting.login, passcode, certificate, service.security_domain, state.peer)
    return Entry(greeting, service.logins.begin(credentials, service.wake))
