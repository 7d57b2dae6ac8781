"""What steps work with: a broker, the client frames seen so far, and captured values."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.kit.frames import ServerFrame
from tests.kit.in_process import InProcessBroker
from tests.wire.cutting import Cutting
from tests.wire.matching import PLACEHOLDER, ExpectedFrame, difference
from tests.wire.transcript import unescaped


@dataclass
class TranscriptRun:
    """A broker with which a transcript is played in one version of STOMP, with one way of cutting what clients send."""

    world: InProcessBroker
    version: str
    cutting: Cutting
    values: dict[str, str] = field(default_factory=dict)
    """What was captured, by name."""
    delivered: dict[str, dict[str, ServerFrame]] = field(default_factory=dict)
    """The last MESSAGE of each client by its body, for acknowledgements."""
    claimed_beats: dict[str, int] = field(default_factory=dict)
    """How many heart-beats of each client the transcript has accounted for."""
    longest_bytes: int = 0
    """How long the longest write of a client was."""

    def fill(self, text: str) -> str:
        """Replace ``{name}``, ``{now}``, ``{now+500}``. Raises KeyError for a name that nothing captured."""
        if "{" not in text:
            return text
        now_ms = self.world.now_ms
        text = re.sub(r"\{now([+-]\d+)?\}", lambda match: str(now_ms + int(match[1] or 0)), text)
        return PLACEHOLDER.sub(lambda match: self.values[match[1]], text)

    def fresh_beats(self, name: str) -> int:
        """How many heart-beats a client got since the last look."""
        client = self.world.client(name)
        client.collect()
        fresh = client.stream.beats - self.claimed_beats.get(name, 0)
        self.claimed_beats[name] = client.stream.beats
        return fresh

    def write(self, name: str, data: bytes) -> None:
        """Have a client write bytes, cut as this stage cuts."""
        client = self.world.client(name)
        self.longest_bytes = max(self.longest_bytes, len(data))
        for part in self.cutting(data):
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
                wrong = difference(wanted, frames[index], self.values, exact=mode == "=")
                if wrong is None:
                    break
            else:
                raise AssertionError(f"{name}: {wrong} in\n" + "\n".join(one.text for one in frames[: index + 1]))
            frame = frames.pop(index)
            if frame.command == "MESSAGE":
                self.delivered.setdefault(name, {})[frame.body.decode("utf-8", "backslashreplace")] = frame


StepFunction = Callable[[TranscriptRun, list[str], list[str]], object]
"""One line of a transcript: its words, and the headers behind its bar."""
