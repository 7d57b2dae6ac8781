"""Steps that send frames, and what is expected in answer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from tests.oracle.client import Client
from tests.oracle.scenario_run import ScenarioRun, is_closed, now_ms
from tests.oracle.steps.base import Either, Step
from tests.oracle.values import Expected, Value, check_headers, given

ONE_BY_ONE = 0
"""The window of a consumer that gets the next message when it has acknowledged the one before."""


class Request(Step):
    """Frames that are answered by RECEIPT when all is well."""

    who: str

    @abstractmethod
    def frames(self, client: Client) -> list[tuple[str, dict[str, str], bytes]]:
        """Command, headers and body of each frame."""

    def play(self, stage: ScenarioRun) -> None:
        client = stage.client(self.who)
        for command, headers, body in self.frames(client):
            before_ms = now_ms()
            answer = client.request(command, headers, body)
            assert answer.command == "RECEIPT", f"refused: {answer}"
            if command == "SEND":
                stage.sent_ms = (before_ms, now_ms())


@dataclass(frozen=True)
class Send(Request):
    """SEND of one or more bodies, each with a receipt."""

    to: str
    bodies: tuple[str | bytes, ...]
    headers: Mapping[str, Value] = field(default_factory=dict)
    who: str = "c"

    def frames(self, client: Client) -> list[tuple[str, dict[str, str], bytes]]:
        headers = {"destination": self.to, **given(self.headers)}
        return [("SEND", headers, body if isinstance(body, bytes) else body.encode()) for body in self.bodies]


def send(
    to: str, *bodies: str | bytes, who: str = "c", headers: Mapping[str, Value] | None = None, type: str = ""
) -> Send:
    """A ``Send`` that reads well in a table."""
    return Send(to, bodies, {**({"destination-type": type} if type else {}), **(headers or {})}, who)


anycast = partial(send, type="ANYCAST")


@dataclass(frozen=True)
class Subscribe(Request):
    """SUBSCRIBE; without other word each message is acknowledged by itself, and the window has no bound."""

    to: str
    who: str = "c"
    id: str | None = "s"
    ack: str | None = "client-individual"
    window: int | None = -1
    headers: Mapping[str, Value] = field(default_factory=dict)

    def frames(self, client: Client) -> list[tuple[str, dict[str, str], bytes]]:
        headers = {"destination": self.to}
        for name, value in (("id", self.id), ("ack", self.ack), ("consumer-window-size", self.window)):
            if value is not None:
                headers[name] = str(value)
        return [("SUBSCRIBE", headers | given(self.headers), b"")]


@dataclass(frozen=True)
class Plain(Request):
    """Any other frame, headers as given."""

    command: str
    headers: Mapping[str, Value] = field(default_factory=dict)
    who: str = "c"
    body: bytes = b""

    def frames(self, client: Client) -> list[tuple[str, dict[str, str], bytes]]:
        return [(self.command, given(self.headers), self.body)]


def unsubscribe(id: str = "s", who: str = "c") -> Plain:
    """UNSUBSCRIBE by id."""
    return Plain("UNSUBSCRIBE", {"id": id}, who)


def of_transaction(command: str, name: str = "t", who: str = "c") -> Plain:
    """One of the frames that begin and end it."""
    return Plain(command, {"transaction": name}, who)


begin, commit, abort = (partial(of_transaction, command) for command in ("BEGIN", "COMMIT", "ABORT"))


@dataclass(frozen=True)
class Settle(Request):
    """ACK or NACK of messages that ``Messages`` has taken, named by their bodies."""

    command: str
    bodies: tuple[str, ...]
    who: str = "c"
    headers: Mapping[str, Value] = field(default_factory=dict)

    def frames(self, client: Client) -> list[tuple[str, dict[str, str], bytes]]:
        return [(self.command, _names(client, body) | given(self.headers), b"") for body in self.bodies]


def settle(command: str, *bodies: str, who: str = "c", headers: Mapping[str, Value] | None = None) -> Settle:
    """A ``Settle`` of each of these messages that reads well in a table."""
    return Settle(command, bodies, who, headers or {})


ack, nack = partial(settle, "ACK"), partial(settle, "NACK")


def _names(client: Client, body: str) -> dict[str, str]:
    """The headers by which a version names a message in ACK and NACK."""
    headers = client.delivered[body].headers
    if client.version == "1.2":
        return {"id": headers.get("ack", headers["message-id"])}
    named = {"message-id": headers["message-id"]}
    if client.version == "1.1":
        named["subscription"] = headers["subscription"]
    return named


@dataclass(frozen=True)
class Refused(Step):
    """A request that the broker answers with ERROR, and then closes the connection or not."""

    request: Request
    closes: bool
    answer: Mapping[str, Expected] = field(default_factory=dict)
    has_receipt: bool = True

    def play(self, stage: ScenarioRun) -> None:
        client = stage.client(self.request.who)
        ((command, headers, body),) = self.request.frames(client)
        answer = client.request(command, headers, body)
        assert answer.command == "ERROR", f"accepted: {answer}"
        assert ("receipt-id" in answer.headers) == self.has_receipt, f"receipt-id is wrong: {answer}"
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
            client.write(piece)


@dataclass(frozen=True)
class Answer(Step):
    """The next frame that is no MESSAGE."""

    command: str
    headers: Mapping[str, Expected] = field(default_factory=dict)
    who: str = "c"

    def play(self, stage: ScenarioRun) -> None:
        client = stage.client(self.who)
        answer = client.answer()
        assert answer.command == self.command, f"not {self.command}: {answer}"
        check_headers(answer, self.headers, stage)
        if self.command == "CONNECTED":
            client.version = answer.headers.get("version", "1.0")


@dataclass(frozen=True)
class Silent(Step):
    """The connection stays open, and no frame comes: the broker waits for something that never comes."""

    who: str = "c"

    def play(self, stage: ScenarioRun) -> None:
        frame = stage.client(self.who).message(stage.broker.quiet_s)
        assert frame is None, f"not silent: {frame}"
