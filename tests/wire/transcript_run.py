"""What steps work with: a broker, the client frames seen so far, and captured values."""

from __future__ import annotations

from collections.abc import Callable

from tests.kit.frames import ServerFrame
from tests.kit.in_process import InProcessBroker
from tests.wire.cutting import Cutting
from tests.wire.matching import Captures, ExpectedFrame, difference
from tests.wire.transcript import unescaped


class TranscriptRun:
    """A broker with which a transcript is played in one version of STOMP, with one way of cutting what clients send."""

    def __init__(self, world: InProcessBroker, version: str, cutting: Cutting) -> None:
        self.world = world
        self.version = version
        self.captures = Captures()
        self.captures.values["version"] = version
        self.delivered: dict[str, dict[str, ServerFrame]] = {}
        """The last MESSAGE of each client by its body, for acknowledgements."""
        self.claimed_beats: dict[str, int] = {}
        """How many heart-beats of each client the transcript has accounted for."""
        self._cutting = cutting

    def fill(self, text: str) -> str:
        """Put in captured values and the time."""
        return self.captures.fill(text, self.world.now_ms)

    def write(self, name: str, data: bytes) -> None:
        """Have a client write bytes, cut as this stage cuts."""
        client = self.world.client(name)
        for part in self._cutting.parts(data):
            client.send(part)

    def frame(self, name: str, command: str, headers: list[str], body: str = "") -> None:
        """Have a client write one frame."""
        self.write(name, unescaped("\n".join([command, *headers]) + "\n\n" + body) + b"\0")

    def take(self, name: str, expected: list[ExpectedFrame], mode: str) -> None:
        """The client's next frames are these: in this order, with ``?`` in any; with ``=`` with no header more."""
        frames = self.world.client(name).collect()
        for wanted in expected:
            assert frames, f"{name} got nothing; expected {wanted}"
            if mode == "?":
                index = self._index_of(wanted, frames)
            else:
                index = 0
                wrong = difference(wanted, frames[0], self.captures, exact=mode == "=")
                assert wrong is None, f"{name}: {wrong} in\n{frames[0].text}"
            self._remember(name, frames.pop(index))

    def _index_of(self, wanted: ExpectedFrame, frames: list[ServerFrame]) -> int:
        for index, frame in enumerate(frames):
            if difference(wanted, frame, self.captures, exact=False) is None:
                return index
        raise AssertionError(f"{wanted} is not among\n" + "\n".join(frame.text for frame in frames))

    def _remember(self, name: str, frame: ServerFrame) -> None:
        if frame.command == "MESSAGE":
            self.delivered.setdefault(name, {})[frame.body.decode("utf-8", "backslashreplace")] = frame


StepFunction = Callable[[TranscriptRun, list[str], list[str]], None]
"""One line of a transcript: its words, and the headers behind its bar."""
