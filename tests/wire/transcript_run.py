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
        self.longest_bytes = 0
        """How long the longest write of a client was."""
        self._cutting = cutting

    def fill(self, text: str) -> str:
        """Put in captured values and the time."""
        return self.captures.fill(text, self.world.now_ms)

    def write(self, name: str, data: bytes) -> None:
        """Have a client write bytes, cut as this stage cuts."""
        client = self.world.client(name)
        self.longest_bytes = max(self.longest_bytes, len(data))
        for part in self._cutting(data):
            client.send(part)

    def frame(self, name: str, command: str, headers: list[str], body: str = "") -> None:
        """Have a client write one frame."""
        self.write(name, unescaped("\n".join([command, *headers]) + "\n\n" + body) + b"\0")

    def take(self, name: str, expected: list[ExpectedFrame], mode: str) -> None:
        """The client's next frames are these: in this order, with ``?`` in any; with ``=`` with no header more."""
        frames = self.world.client(name).collect()
        for wanted in expected:
            assert frames, f"{name} got nothing; expected {wanted}"
            for index in range(len(frames) if mode == "?" else 1):
                wrong = difference(wanted, frames[index], self.captures, exact=mode == "=")
                if wrong is None:
                    break
            else:
                raise AssertionError(f"{name}: {wrong} in\n" + "\n".join(one.text for one in frames[: index + 1]))
            frame = frames.pop(index)
            if frame.command == "MESSAGE":
                self.delivered.setdefault(name, {})[frame.body.decode("utf-8", "backslashreplace")] = frame


StepFunction = Callable[[TranscriptRun, list[str], list[str]], object]
"""One line of a transcript: its words, and the headers behind its bar."""
