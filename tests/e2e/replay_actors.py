"""Clients for replays of the log: some that publish in every way there is, one that consumes, one that replays."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path

from artemis_py.storage.format.log_events import Published
from artemis_py.storage.format.reader import LogReader
from tests.kit.client import Closed, StompSocket, connected, frame
from tests.kit.frames import ServerFrame
from tests.kit.process import BrokerProcess

DESTINATION = "/queue/orders"
PERSISTENT = {"destination": DESTINATION, "persistent": "true"}
LARGE_BYTES = 150_000
"""More than a body may have in memory by default: it gets a file of its own."""
TRANSACTION_MESSAGES = 4
SMALL, GROUPED, LARGE = range(3)


def kind_of(step: int) -> int:
    """What a publisher does in a step."""
    return LARGE if step % 20 == 9 else GROUPED if step % 3 == 0 else SMALL


class Publisher:
    """Sends in steps: a message, a transaction of several, or a large message; one step after the other's receipt."""

    def __init__(self, broker: BrokerProcess, name: str, first_step: int = 0) -> None:
        self._broker = broker
        self._name = name
        self.step = first_step
        """The next step; the one before it may have been carried out or not, if the broker was killed."""
        self.confirmed: list[bytes] = []
        """The beginnings of the bodies whose receipts came, without repetitions, in order."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> Publisher:
        """Begin."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End after the step that is under way, or when the broker is gone."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            with connected(self._broker.port) as client:
                while not self._stopping.is_set():
                    sent = self._take_step(client, self.step)
                    self.confirmed += sent
                    self.step += 1
        except (OSError, Closed):
            return  # the broker was killed

    def _take_step(self, client: StompSocket, step: int) -> list[bytes]:
        mark = f"{self._name} {step}"
        kind = kind_of(step)
        if kind == GROUPED:
            bodies = [f"{mark} {place} ".encode() + b"x" * 500 for place in range(TRANSACTION_MESSAGES)]
            named = {"transaction": "t"}
            data = b"".join(frame("SEND", PERSISTENT | named, body) for body in bodies)
            client.raw(frame("BEGIN", named) + data)
            client.ask("COMMIT", named)
        else:
            bodies = [f"{mark} 0 ".encode() + b"x" * (LARGE_BYTES if kind == LARGE else 700)]
            client.ask("SEND", PERSISTENT, bodies[0])
        return [mark_of(body) for body in bodies]


def mark_of(body: bytes) -> bytes:
    """What tells a message from all others: its publisher, step and place in the step."""
    return b" ".join(body.split(b" ", 3)[:3])


class Consumer:
    """Takes everything from the queue, until the broker is gone or it is told to stop."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._client = connected(broker.port)
        self._client.subscribe(DESTINATION, ack="auto")
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while self._client.read_some():
                pass
        except OSError:
            return

    def stop(self) -> None:
        """End."""
        self._client.socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._client.close()


class Seen:
    """What a client has seen of a replay, over all of its connections."""

    def __init__(self) -> None:
        self.bookmarks: list[int] = []
        self.marks: list[bytes] = []
        self.problems: list[str] = []

    @property
    def last(self) -> str:
        """Where to go on."""
        return str(self.bookmarks[-1]) if self.bookmarks else "EPOCH"

    def take(self, message: ServerFrame) -> None:
        """Note a message, and whether its body is whole."""
        mark = mark_of(message.body)
        self.bookmarks.append(int(message.header("bookmark") or -1))
        self.marks.append(mark)
        if message.header("body-removed") is not None:
            self.problems.append(f"{mark!r} has no body")
        elif kind_of(int(mark.split()[1])) == LARGE and not LARGE_BYTES < len(message.body) < LARGE_BYTES + 50:
            self.problems.append(f"{mark!r} has {len(message.body)} bytes")


class Replayer:
    """Replays from where ``seen`` ends, in a thread: until the broker is gone, or ``is_complete``."""

    def __init__(self, broker: BrokerProcess, seen: Seen, **headers: object) -> None:
        self.seen = seen
        self.is_complete = threading.Event()
        """Did the broker say that it has everything?"""
        self._client = connected(broker.port)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._client.send("SUBSCRIBE", {"id": "r", "destination": DESTINATION, "bookmark": seen.last, **named})
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while True:
                got = self._client.receive()
                if got.command != "MESSAGE":
                    self.seen.problems.append(got.text)
                elif got.header("completed") is not None:
                    self.is_complete.set()
                else:
                    self.seen.take(got)
        except (OSError, Closed):
            return

    def stop(self) -> None:
        """End, whether or not the broker is gone."""
        with suppress(OSError):
            self._client.socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._client.close()


def logged(folder: Path) -> tuple[list[int], list[bytes]]:
    """The offsets of all messages in the log, as every reader of its files finds them, and what tells them apart."""
    log = LogReader([folder / "kept", folder / "journal"], bodies=[folder / "large"])
    offsets: list[int] = []
    marks: list[bytes] = []
    for event in log.events():
        if isinstance(event, Published):
            body = event.kept.message.body
            if not isinstance(body, bytes):
                path = log.body_path(body)
                assert path is not None, event
                body = path.read_bytes()
            offsets.append(event.lsn)
            marks.append(mark_of(body))
    assert [damage for damage in log.damages if not damage.torn] == []
    return offsets, marks
