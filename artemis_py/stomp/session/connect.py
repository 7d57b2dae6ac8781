"""CONNECT: version, login, heart-beats, and the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from artemis_py.core.consumer import client_fields
from artemis_py.core.events import ERROR
from artemis_py.core.notifications import LOGIN_REFUSED, SESSION_CREATED
from artemis_py.errors import LimitError
from artemis_py.record_log import RecordLog
from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.login import WRONG, Login
from artemis_py.stomp.client import ROUTING
from artemis_py.stomp.heartbeat import Heartbeat, HeartbeatIntervals, negotiate
from artemis_py.stomp.service import StompService
from artemis_py.stomp.session.state import SessionState
from artemis_py.stomp.wire import writer
from artemis_py.stomp.wire.frames import VERSIONS, AckRun, AnyFrame, Frame, FrameError

# ---- greeting --------------------------------------------------------------------------------------------------------
#
# CONNECT and its response.


@dataclass(frozen=True, slots=True)
class Greeting:
    """An accepted session: its version, client-id, login, heart-beats, and CONNECTED frame."""

    version: str
    client_id: str | None
    login: str | None
    beats: HeartbeatIntervals
    frame: bytes
    tells_routing: bool = False
    """Do RECEIPTs say on which queues a message is?"""


def choose_version(accept_version: str | None) -> str | None:
    """The highest common version; 1.0 if the client names none; None if there is none in common."""
    if accept_version is None:
        return "1.0"
    offered = {part.strip() for part in accept_version.split(",")}
    common = [version for version in VERSIONS if version in offered]
    return common[-1] if common else None


def introduce(greeting: Greeting, login: str | None, address: str, origin: int, log: RecordLog) -> None:
    """Record in a retained log who the client is."""
    fields = {"client": address, "login": login, "client_id": greeting.client_id}
    known = {name: value for name, value in fields.items() if value}
    log.audit.session_opened(origin, {**known, "protocol": f"STOMP {greeting.version}"})


def greet(frame: AnyFrame, state: SessionState) -> Greeting | None:
    """Look at a client's first frame. Returns a greeting, or None if the client was refused with an ERROR."""
    if not isinstance(frame, Frame) or frame.command not in ("CONNECT", "STOMP"):
        name, receipt = "SEND", None
        if isinstance(frame, Frame):
            name, receipt = frame.command, frame.headers.get("receipt")
        elif not isinstance(frame, AckRun):
            receipt = frame.receipt
        reason = f"The first frame must be CONNECT or STOMP, not {name}"
        state.note(ERROR, reason)
        state.answer_error(reason, receipt)
        return None
    state.service.traffic.frames_in[frame.command] += 1
    state.service.foreign.check("CONNECT", frame.headers, _who(frame, state))
    greeting = _greet(frame, state.service, state.name)
    if isinstance(greeting, Greeting):
        return greeting
    state.note(ERROR, greeting.reason)
    state.out.parts().append(greeting.frame)
    state.service.traffic.frames_out["ERROR"] += 1
    return None


@dataclass(frozen=True, slots=True)
class _Refused:
    """Why a client is not greeted, and the ERROR frame that says so."""

    reason: str
    frame: bytes


def _refused(reason: str, version: str, receipt: str | None, headers: list[tuple[str, str]] | None = None) -> _Refused:
    return _Refused(reason, writer.error(reason, version, receipt, headers or []))


def _who(frame: Frame, state: SessionState) -> dict[str, str | int]:
    """For a line of the log: the client, by the name that it gives."""
    return client_fields(
        state.origin, frame.headers.get("login"), frame.headers.get("client-id"), state.address,
        state.service.acceptor.name,
    )  # fmt: skip


def _greet(frame: Frame, service: StompService, session_name: str) -> Greeting | _Refused:
    """Answer CONNECT or STOMP with a greeting, or with why the client is refused.

    login and passcode are checked later. A passcode alone may be a token.
    """
    headers = frame.headers
    receipt = headers.get("receipt")
    accept_version = headers.get("accept-version")
    version = choose_version(accept_version)
    if version is None:
        message = f"No common STOMP version: the client offers {accept_version}, supported are {', '.join(VERSIONS)}"
        return _refused(message, "1.0", receipt, [("version", ",".join(VERSIONS))])
    if frame.command == "STOMP" and version == "1.0":
        return _refused(
            "A STOMP frame needs an accept-version of 1.1 or 1.2; STOMP 1.0 has only CONNECT", "1.0", receipt
        )
    if "passcode" in headers and "login" not in headers and service.logins is None:
        return _refused("CONNECT has a passcode but no login", version, receipt)
    try:
        beats = negotiate(headers.get("heart-beat") if version != "1.0" else None, service.beat_rules)
    except FrameError as error:
        return _refused(str(error), version, receipt)
    connected = _connected(headers, service, session_name, version, beats)
    login = headers.get("login")
    if service.logins is None:
        login = login or None
    tells_routing = headers.get(ROUTING) == "true"
    return Greeting(version, headers.get("client-id") or None, login, beats, connected, tells_routing)


def _connected(
    headers: dict[str, str], service: StompService, session_name: str, version: str, beats: HeartbeatIntervals
) -> bytes:
    answer: list[tuple[str, str]] = []
    if "accept-version" in headers:
        answer.append(("version", version))
    answer.append(("session", session_name))
    if service.server_header is not None:
        answer.append(("server", service.server_header))
    if beats.header is not None:
        answer.append(("heart-beat", beats.header))
    if headers.get(ROUTING) == "true":
        answer.append((ROUTING, "true"))
    if "request-id" in headers:
        answer.append(("response-id", headers["request-id"]))
    if "receipt" in headers:
        answer.append(("receipt-id", headers["receipt"]))
    return writer.connected(answer)


# ---- entry -----------------------------------------------------------------------------------------------------------
#
# From CONNECT to CONNECTED: the login in between, and what a client is told when it is refused.


_USER_MAX: Final = 200


@final
class PendingLogin:
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
        a wrong name or password in all versions of STOMP, with null for a name that is missing. Of a token it names
        what is wrong.
        """
        login = self.login
        if login is None or login.identity is not None:
            return ""
        if login.is_open:
            return login.refusal
        if login.refusal != WRONG:
            return f"Security Error occurred: {login.refusal}"
        name = self.greeting.login
        shown = "null" if name is None else name[:_USER_MAX]
        return f"Security Error occurred: User name [{shown}] or password is invalid"

    def admit(self, state: SessionState) -> str:
        """Count the client and note who it is; returns why it is refused, or an empty text."""
        if self.refusal:
            if state.broker.notifications.is_heard:
                refused = {"user": self.greeting.login or "", "remoteAddress": state.address, "reason": self.refusal}
                state.broker.notifications.note(LOGIN_REFUSED, {**refused})
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

    def welcome(self, state: SessionState, heartbeat: Heartbeat, now_ms: int) -> None:
        """The session is open: answer CONNECTED."""
        greeting, identity = self.greeting, self.identity
        state.admit(identity)
        heartbeat.begin(greeting.beats, now_ms, 0 if identity is None else identity.expires_ms)
        introduce(greeting, state.user, state.address, state.origin, state.broker.log)
        state.out.parts().append(greeting.frame)
        state.service.traffic.frames_out["CONNECTED"] += 1
        state.notify(SESSION_CREATED)

    def give_up(self) -> None:
        """The client has left, or took too long."""
        if self.login is not None:
            self.login.is_given_up = True


def enter(frame: AnyFrame, state: SessionState) -> PendingLogin | None:
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
        return PendingLogin(greeting, None)
    passcode, certificate = frame.headers.get("passcode"), state.certificate
    credentials = Credentials(
        greeting.login,
        passcode,
        certificate,
        service.security_domain,
        state.peer,
        address=state.address,
        acceptor=service.acceptor.name,
    )
    return PendingLogin(greeting, service.logins.begin(credentials, service.wake))
