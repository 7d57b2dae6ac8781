"""Steps that send frames, and what is expected in answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from tests.kit.frames import ServerFrame
from tests.oracle.scenario_run import ScenarioRun, is_closed
from tests.oracle.steps.base import Either, Step
from tests.oracle.values import Expected, Value, check_headers, given

ONE_BY_ONE = 0
"""The window of a consumer that gets the next message when it has acknowledged the one before."""

OneFrame = tuple[str, dict[str, str], bytes]
"""Command, headers and body."""


@dataclass(frozen=True)
class Request(Step):
    """Frames of one command that are answered by RECEIPT when all is well: one for each body, or one for each message
    that ``Messages`` has taken and ``settled`` names by its body.
    """

    command: str
    headers: Mapping[str, Value] = field(default_factory=dict)
    who: str = "c"
    bodies: tuple[str | bytes, ...] = (b"",)
    settled: tuple[str, ...] = ()

    def frames(self, stage: ScenarioRun) -> list[OneFrame]:
        """All of them, for now."""
        headers, client = given(self.headers, stage), stage.client(self.who)
        if self.settled:
            named = (_names(stage.delivered[client, body]) for body in self.settled)
            return [(self.command, one | headers, b"") for one in named]
        return [(self.command, headers, body if isinstance(body, bytes) else body.encode()) for body in self.bodies]

    def play(self, stage: ScenarioRun) -> None:
        client = stage.client(self.who)
        for command, headers, body in self.frames(stage):
            before_ms = stage.broker.now_ms()
            answer = client.request(command, headers, body)
            assert answer.command == "RECEIPT", f"refused: {answer.text}"
            if command == "SEND":
                stage.sent_ms = (before_ms, stage.broker.now_ms())


def _names(message: ServerFrame) -> dict[str, str]:
    """The headers by which a version names a message in ACK and NACK."""
    headers = message.headers
    if message.version == "1.2":
        return {"id": headers.get("ack", headers["message-id"])}
    named = {"message-id": headers["message-id"]}
    if message.version == "1.1":
        named["subscription"] = headers["subscription"]
    return named


def send(
    to: str, *bodies: str | bytes, who: str = "c", headers: Mapping[str, Value] | None = None, type: str = ""
) -> Request:
    """SEND of one or more bodies, each with a receipt."""
    typed = {"destination-type": type} if type else {}
    return Request("SEND", {"destination": to, **typed, **(headers or {})}, who, bodies)


anycast = partial(send, type="ANYCAST")


def subscribe(
    to: str,
    who: str = "c",
    id: str | None = "s",
    ack: str | None = "client-individual",
    window: int | None = -1,
    headers: Mapping[str, Value] | None = None,
) -> Request:
    """SUBSCRIBE; without other word each message is acknowledged by itself, and the window has no bound."""
    named = {"id": id, "ack": ack, "consumer-window-size": window}
    shown = {name: str(value) for name, value in named.items() if value is not None}
    return Request("SUBSCRIBE", {"destination": to, **shown, **(headers or {})}, who)


def unsubscribe(id: str = "s", who: str = "c") -> Request:
    """UNSUBSCRIBE by id."""
    return Request("UNSUBSCRIBE", {"id": id}, who)


def of_transaction(command: str, name: str = "t", who: str = "c") -> Request:
    """One of the frames that begin and end it."""
    return Request(command, {"transaction": name}, who)


begin, commit, abort = (partial(of_transaction, command) for command in ("BEGIN", "COMMIT", "ABORT"))


def settle(command: str, *bodies: str, who: str = "c", headers: Mapping[str, Value] | None = None) -> Request:
    """ACK or NACK of these messages."""
    return Request(command, headers or {}, who, settled=bodies)


ack, nack = partial(settle, "ACK"), partial(settle, "NACK")


@dataclass(frozen=True)
class Refused(Step):
    """A request that the broker answers with ERROR, and then closes the connection or not."""

    request: Request
    closes: bool
    answer: Mapping[str, Expected] = field(default_factory=dict)
    has_receipt: bool = True

    def play(self, stage: ScenarioRun) -> None:
        client = stage.client(self.request.who)
        ((command, headers, body),) = self.request.frames(stage)
        answer = client.request(command, headers, body)
        assert answer.command == "ERROR", f"accepted: {answer.text}"
        assert ("receipt-id" in answer.headers) == self.has_receipt, f"receipt-id is wrong: {answer.text}"
        check_headers(answer, self.answer, stage)
        assert is_closed(client) == self.closes, f"the connection {'stays open' if self.closes else 'is closed'}"


def unnamed(request: Request, *, closes: bool = False) -> Either:
    """A request that both refuse, but Artemis without saying which receipt the ERROR stands for."""
    return Either(ours=(Refused(request, closes),), artemis=(Refused(request, closes, has_receipt=False),))


@dataclass(frozen=True)
class Raw(Step):
    """Bytes as they are; ``pieces`` sends them one at a time."""

    data: bytes
    who: str = "c"
    pieces: bool = False

    def play(self, stage: ScenarioRun) -> None:
        client = stage.client(self.who)
        for piece in (self.data[i : i + 1] for i in range(len(self.data))) if self.pieces else (self.data,):
            client.raw(piece)


@dataclass(frozen=True)
class Answer(Step):
    """The next frame that is no MESSAGE."""

    command: str
    headers: Mapping[str, Expected] = field(default_factory=dict)
    who: str = "c"

    def play(self, stage: ScenarioRun) -> None:
        client = stage.client(self.who)
        answer = client.answer()
        assert answer.command == self.command, f"not {self.command}: {answer.text}"
        check_headers(answer, self.headers, stage)
