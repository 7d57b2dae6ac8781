"""CONNECT and its response."""

from __future__ import annotations

from dataclasses import dataclass

from artemis_py.records import RecordLog
from artemis_py.stomp.client import ROUTING
from artemis_py.stomp.heartbeat import Beats, negotiate
from artemis_py.stomp.service import StompService
from artemis_py.stomp.session.state import SessionState
from artemis_py.stomp.wire import writer
from artemis_py.stomp.wire.frames import VERSIONS, AckRun, AnyFrame, Frame, FrameError


@dataclass(frozen=True, slots=True)
class Greeting:
    """An accepted session: its version, client-id, login, heart-beats, and CONNECTED frame."""

    version: str
    client_id: str | None
    login: str | None
    beats: Beats
    frame: bytes
    tells_routing: bool = False
    """Shall RECEIPTs tell on which queues a message is?"""


def choose_version(accept_version: str | None) -> str | None:
    """The highest common version; 1.0 if the client names none; None if there is none in common."""
    if accept_version is None:
        return "1.0"
    offered = {part.strip() for part in accept_version.split(",")}
    common = [version for version in VERSIONS if version in offered]
    return common[-1] if common else None


def introduce(greeting: Greeting, login: str | None, address: str, origin: int, log: RecordLog) -> None:
    """Tell a log that is retained who the client is."""
    fields = {"client": address, "login": login, "client_id": greeting.client_id}
    known = {name: value for name, value in fields.items() if value}
    log.story.session_opened(origin, {**known, "protocol": f"STOMP {greeting.version}"})


def greet(frame: AnyFrame, state: SessionState) -> Greeting | None:
    """Look at a client's first frame. Returns a greeting, or None if the client was refused with an ERROR."""
    if not isinstance(frame, Frame) or frame.command not in ("CONNECT", "STOMP"):
        name, receipt = "SEND", None
        if isinstance(frame, Frame):
            name, receipt = frame.command, frame.headers.get("receipt")
        elif not isinstance(frame, AckRun):
            receipt = frame.receipt
        state.answer_error(f"The first frame must be CONNECT or STOMP, not {name}", receipt)
        return None
    state.service.traffic.count_in(frame.command)
    state.service.foreign.look("CONNECT", frame.headers, state.name)
    greeting = _greet(frame, state.service, state.name)
    if isinstance(greeting, Greeting):
        return greeting
    state.out.parts().append(greeting)
    state.service.traffic.count_out("ERROR")
    return None


def _greet(frame: Frame, service: StompService, session_name: str) -> Greeting | bytes:
    """Answer CONNECT or STOMP with a greeting, or with the ERROR frame that refuses the client.

    login and passcode are checked later. A passcode alone may be a token.
    """
    headers = frame.headers
    receipt = headers.get("receipt")
    accept_version = headers.get("accept-version")
    version = choose_version(accept_version)
    if version is None:
        message = f"No common STOMP version: the client offers {accept_version}, supported are {', '.join(VERSIONS)}"
        return writer.error(message, "1.0", receipt, [("version", ",".join(VERSIONS))])
    if frame.command == "STOMP" and version == "1.0":
        return writer.error(
            "A STOMP frame needs an accept-version of 1.1 or 1.2; STOMP 1.0 has only CONNECT", "1.0", receipt
        )
    if "passcode" in headers and "login" not in headers and service.logins is None:
        return writer.error("CONNECT has a passcode but no login", version, receipt)
    try:
        beats = negotiate(headers.get("heart-beat") if version != "1.0" else None, service.beat_rules)
    except FrameError as error:
        return writer.error(str(error), version, receipt)
    connected = _connected(headers, service, session_name, version, beats)
    login = headers.get("login")
    if service.logins is None:
        login = login or None
    tells_routing = headers.get(ROUTING) == "true"
    return Greeting(version, headers.get("client-id") or None, login, beats, connected, tells_routing)


def _connected(headers: dict[str, str], service: StompService, session_name: str, version: str, beats: Beats) -> bytes:
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
