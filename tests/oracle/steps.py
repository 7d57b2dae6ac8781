"""What a scenario can do and expect. Each step is data and knows how it is played."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from tests.oracle.brokers import eventually
from tests.oracle.client import WAIT_S, Client
from tests.oracle.stage import Stage, is_closed, now_ms
from tests.oracle.values import Expected, Value, check_headers, given


class Step(ABC):
    """One line of a scenario."""

    @abstractmethod
    def play(self, stage: Stage) -> None:
        """Does it. Raises AssertionError when the broker does not do its part."""


# ---- connections -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Connect(Step):
    """Connects and demands CONNECTED with these headers. A version of None leaves ``accept-version`` out."""

    who: str = "c"
    version: str | None = "1.2"
    headers: Mapping[str, Value] = field(default_factory=dict)
    answer: Mapping[str, Expected] = field(default_factory=dict)
    acceptor: str = "stomp"
    command: str = "CONNECT"

    def play(self, stage: Stage) -> None:
        client = stage.open(self.who, self.acceptor, "1.0")
        offered = {} if self.version is None else {"accept-version": self.version}
        client.send(self.command, {**offered, "host": "oracle", **given(self.headers)})
        answer = client.answer()
        assert answer.command == "CONNECTED", f"not connected: {answer}"
        client.version = answer.headers.get("version", "1.0")
        check_headers(answer, self.answer, stage)


@dataclass(frozen=True)
class Open(Step):
    """Opens a socket and says nothing."""

    who: str = "c"
    acceptor: str = "stomp"
    version: str = "1.2"

    def play(self, stage: Stage) -> None:
        stage.open(self.who, self.acceptor, self.version)


@dataclass(frozen=True)
class Disconnect(Step):
    """DISCONNECT, its receipt, and the end."""

    who: str = "c"

    def play(self, stage: Stage) -> None:
        client = stage.client(self.who)
        answer = client.request("DISCONNECT", {})
        assert answer.command == "RECEIPT", f"no receipt for DISCONNECT: {answer}"
        client.wait_for_end()
        client.close()


@dataclass(frozen=True)
class Drop(Step):
    """The connection breaks, as when a client crashes."""

    who: str = "c"

    def play(self, stage: Stage) -> None:
        stage.client(self.who).reset()


@dataclass(frozen=True)
class HalfClose(Step):
    """The client says that it sends nothing more, and goes on reading."""

    who: str = "c"

    def play(self, stage: Stage) -> None:
        stage.client(self.who).shut_output()


@dataclass(frozen=True)
class Closed(Step):
    """The broker closes the connection."""

    who: str = "c"

    def play(self, stage: Stage) -> None:
        stage.client(self.who).wait_for_end()


@dataclass(frozen=True)
class StaysOpen(Step):
    """The connection is still of use."""

    who: str = "c"

    def play(self, stage: Stage) -> None:
        assert not is_closed(stage.client(self.who)), "the broker closed the connection"


@dataclass(frozen=True)
class Beat(Step):
    """The broker sends a heart-beat."""

    who: str = "c"

    def play(self, stage: Stage) -> None:
        stage.client(self.who).read_beat()


# ---- frames ----------------------------------------------------------------------------------------------------------


class Request(Step):
    """Frames that are answered by RECEIPT when all is well."""

    who: str

    @abstractmethod
    def frames(self, client: Client) -> list[tuple[str, dict[str, str], bytes]]:
        """Command, headers and body of each frame."""

    def play(self, stage: Stage) -> None:
        client = stage.client(self.who)
        before_ms = now_ms()
        for command, headers, body in self.frames(client):
            answer = client.request(command, headers, body)
            assert answer.command == "RECEIPT", f"refused: {answer}"
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


def send(to: str, *bodies: str | bytes, who: str = "c", headers: Mapping[str, Value] | None = None) -> Send:
    """A ``Send`` that reads well in a table."""
    return Send(to, bodies, headers or {}, who)


def anycast(to: str, *bodies: str | bytes, who: str = "c", headers: Mapping[str, Value] | None = None) -> Send:
    """The same with ``destination-type:ANYCAST``."""
    return Send(to, bodies, {"destination-type": "ANYCAST", **(headers or {})}, who)


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


def begin(name: str = "t", who: str = "c") -> Plain:
    """BEGIN."""
    return Plain("BEGIN", {"transaction": name}, who)


def commit(name: str = "t", who: str = "c") -> Plain:
    """COMMIT."""
    return Plain("COMMIT", {"transaction": name}, who)


def abort(name: str = "t", who: str = "c") -> Plain:
    """ABORT."""
    return Plain("ABORT", {"transaction": name}, who)


@dataclass(frozen=True)
class Settle(Request):
    """ACK or NACK of messages that ``Messages`` has taken, named by their bodies."""

    command: str
    bodies: tuple[str, ...]
    who: str = "c"
    headers: Mapping[str, Value] = field(default_factory=dict)

    def frames(self, client: Client) -> list[tuple[str, dict[str, str], bytes]]:
        return [(self.command, _names(client, body) | given(self.headers), b"") for body in self.bodies]


def ack(*bodies: str, who: str = "c", headers: Mapping[str, Value] | None = None) -> Settle:
    """ACK each of these messages."""
    return Settle("ACK", bodies, who, headers or {})


def nack(*bodies: str, who: str = "c", headers: Mapping[str, Value] | None = None) -> Settle:
    """NACK each of these messages."""
    return Settle("NACK", bodies, who, headers or {})


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

    def play(self, stage: Stage) -> None:
        client = stage.client(self.request.who)
        ((command, headers, body),) = self.request.frames(client)
        answer = client.request(command, headers, body)
        assert answer.command == "ERROR", f"accepted: {answer}"
        assert ("receipt-id" in answer.headers) == self.has_receipt, f"receipt-id is wrong: {answer}"
        check_headers(answer, self.answer, stage)
        _check_end(client, self.closes)


def unnamed(request: Request, *, closes: bool = False) -> Either:
    """A request that both refuse, but Artemis without saying which receipt the ERROR stands for."""
    return Either(ours=(Refused(request, closes),), artemis=(Refused(request, closes, has_receipt=False),))


def _check_end(client: Client, closes: bool) -> None:
    assert is_closed(client) == closes, "the connection is closed" if not closes else "the connection stays open"


@dataclass(frozen=True)
class Raw(Step):
    """Bytes as they are; ``pieces`` sends them one at a time."""

    data: bytes
    who: str = "c"
    pieces: bool = False

    def play(self, stage: Stage) -> None:
        client = stage.client(self.who)
        for piece in (self.data[i : i + 1] for i in range(len(self.data))) if self.pieces else (self.data,):
            client.write(piece)


@dataclass(frozen=True)
class Answer(Step):
    """The next frame that is no MESSAGE."""

    command: str
    headers: Mapping[str, Expected] = field(default_factory=dict)
    who: str = "c"

    def play(self, stage: Stage) -> None:
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

    def play(self, stage: Stage) -> None:
        frame = stage.client(self.who).message(stage.broker.quiet_s)
        assert frame is None, f"not silent: {frame}"


# ---- messages --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Messages(Step):
    """The next messages of a connection are these, in this order, each with these headers."""

    bodies: tuple[str | bytes, ...]
    who: str = "c"
    headers: Mapping[str, Expected] = field(default_factory=dict)

    def play(self, stage: Stage) -> None:
        client = stage.client(self.who)
        for body in self.bodies:
            frame = client.message(WAIT_S)
            assert frame is not None, f"{body!r} does not come"
            seen = frame.body if isinstance(body, bytes) else frame.text
            assert seen == body, f"{_short(body)} should come next, not {_short(seen)}: {dict(frame.headers)}"
            check_headers(frame, self.headers, stage)
            client.delivered[frame.text] = frame


def messages(*bodies: str | bytes, who: str = "c", headers: Mapping[str, Expected] | None = None) -> Messages:
    """``Messages`` that read well in a table."""
    return Messages(bodies, who, headers or {})


def _short(body: str | bytes) -> str:
    return repr(body if len(body) < 80 else body[:80])


@dataclass(frozen=True)
class AnyOrder(Step):
    """The next messages of a connection are these, in any order."""

    bodies: tuple[str, ...]
    who: str = "c"

    def play(self, stage: Stage) -> None:
        client = stage.client(self.who)
        seen: list[str] = []
        for _ in self.bodies:
            frame = client.message(WAIT_S)
            assert frame is not None, f"only {seen} come"
            client.delivered[frame.text] = frame
            seen.append(frame.text)
        assert sorted(seen) == sorted(self.bodies), f"others come: {seen}"


@dataclass(frozen=True)
class Nothing(Step):
    """No message comes."""

    who: str = "c"

    def play(self, stage: Stage) -> None:
        stage.nothing_comes(stage.client(self.who))


# ---- what the broker counts ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Counts(Step):
    """The numbers of a queue become these; None is not looked at."""

    queue: str
    messages: int | None = None
    delivering: int | None = None
    scheduled: int | None = None
    replaced: int | None = None
    added: int | None = None
    acknowledged: int | None = None
    killed: int | None = None
    expired: int | None = None
    consumers: int | None = None

    def play(self, stage: Stage) -> None:
        wanted = {name: value for name, value in asdict(self).items() if value is not None and name != "queue"}
        seen: dict[str, int] = {}
        times = 0

        def reached() -> bool:
            nonlocal seen, times
            counts = stage.broker.queue(self.queue)
            assert counts is not None, f"there is no queue {self.queue}"
            seen = {name: value for name, value in asdict(counts).items() if name in wanted}
            times = times + 1 if seen == wanted else 0
            return times > int(stage.broker.counts_twice)

        try:
            eventually("counts", WAIT_S, reached)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.queue} has {seen}, expected {wanted}") from None


@dataclass(frozen=True)
class Routed(Step):
    """The numbers of an address become these."""

    address: str
    routed: int
    unrouted: int = 0

    def play(self, stage: Stage) -> None:
        seen: object = None

        def reached() -> bool:
            nonlocal seen
            seen = stage.broker.address(self.address)
            return seen is not None and asdict(seen) == {"routed": self.routed, "unrouted": self.unrouted}  # type: ignore[call-overload]

        try:
            eventually("counts", WAIT_S, reached)
        except AssertionError as error:
            raise AssertionError(f"{error}: {seen}, expected {self}") from None


@dataclass(frozen=True)
class Exists(Step):
    """There comes to be such a queue, or no longer."""

    queue: str
    yes: bool = True

    def play(self, stage: Stage) -> None:
        eventually(f"{self}", WAIT_S, lambda: (stage.broker.queue(self.queue) is not None) == self.yes)


@dataclass(frozen=True)
class AddressExists(Step):
    """There comes to be such an address, or no longer."""

    address: str
    yes: bool = True

    def play(self, stage: Stage) -> None:
        eventually(f"{self}", WAIT_S, lambda: (stage.broker.address(self.address) is not None) == self.yes)


# ---- the world around ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pause(Step):
    """Stops dispatch from a queue, or starts it again."""

    queue: str
    paused: bool = True

    def play(self, stage: Stage) -> None:
        (stage.broker.pause if self.paused else stage.broker.resume)(self.queue)


@dataclass(frozen=True)
class Resize(Step):
    """Changes the size of a ring while it runs."""

    queue: str
    ring_size: int

    def play(self, stage: Stage) -> None:
        stage.broker.set_ring_size(self.queue, self.ring_size)


@dataclass(frozen=True)
class PassTime(Step):
    """Lets the clock go on, where only the clock changes and nothing can be seen to change."""

    ms: int

    def play(self, stage: Stage) -> None:
        time.sleep(self.ms / 1000)


@dataclass(frozen=True)
class ManySenders(Step):
    """So many connections send so many messages each, all at the same time."""

    to: str
    senders: int
    each: int

    def play(self, stage: Stage) -> None:
        clients = [stage.open(f"sender {number}", "stomp", "1.2") for number in range(self.senders)]
        for client in clients:
            client.send("CONNECT", {"accept-version": "1.2", "host": "oracle"})
            assert client.answer().command == "CONNECTED"
        failures: list[BaseException] = []
        threads = [threading.Thread(target=self._send, args=(client, failures)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures

    def _send(self, client: Client, failures: list[BaseException]) -> None:
        try:
            for number in range(self.each):
                answer = client.request("SEND", {"destination": self.to, "destination-type": "ANYCAST"}, b"%d" % number)
                assert answer.command == "RECEIPT", answer
        except (AssertionError, OSError) as error:
            failures.append(error)


@dataclass(frozen=True)
class Either(Step):
    """Steps for our broker, and others for Artemis, which departs on purpose."""

    ours: tuple[Step, ...]
    artemis: tuple[Step, ...]

    def play(self, stage: Stage) -> None:
        play(self.ours if stage.broker.name == "ours" else self.artemis, stage)


def play(steps: tuple[Step, ...], stage: Stage) -> None:
    """Plays steps in order; a failure says which step it was."""
    for number, step in enumerate(steps, 1):
        try:
            step.play(stage)
        except (AssertionError, OSError) as error:
            raise AssertionError(f"step {number}, {step}: {error}") from error
