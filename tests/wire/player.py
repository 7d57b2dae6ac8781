"""Plays a transcript: each step by its verb, and at the end nothing is left over.

The verbs are in ``frame_steps`` and ``broker_steps``; ``repeat N STEP…`` carries out another step N times, with ``%i``
replaced by 1, 2, 3… A client connects (as a socket) when a step first names it.
"""

from __future__ import annotations

from tests.kit.in_process import InProcessBroker
from tests.wire.broker_steps import BROKER_STEPS
from tests.wire.cutting import Cutting
from tests.wire.frame_steps import FRAME_STEPS
from tests.wire.transcript import Step, expected_frames, lines_for, sent_bytes
from tests.wire.transcript_run import TranscriptRun

_STEPS = FRAME_STEPS | BROKER_STEPS


class Player:
    """Carries out steps on a stage."""

    def __init__(self, world: InProcessBroker, version: str, cutting: Cutting) -> None:
        self.stage = TranscriptRun(world, version, cutting)

    def play(self, steps: tuple[Step, ...]) -> None:
        """Carry out all steps, then look for frames that nobody expected."""
        for step in steps:
            try:
                self.perform(step)
            except AssertionError as error:
                raise AssertionError(f"line {step.line_number}, {step.verb}: {error}") from error
        for name, client in self.stage.world.clients.items():
            left = client.collect()
            assert not left, f"{name} got more than the transcript expects:\n" + "\n".join(one.text for one in left)
            assert client.stream.is_whole, f"{name} got the beginning of a frame that does not end"
            beats = client.stream.beats - self.stage.claimed_beats.get(name, 0)
            assert beats == 0, f"{name} got {beats} heart-beats that the transcript does not expect"

    def perform(self, step: Step) -> None:
        """Carry out one step, if it is one of this version."""
        stage = self.stage
        if stage.version not in step.versions:
            return
        if step.verb == ">>>":
            stage.write(step.words[0], sent_bytes([stage.fill(line) for line in lines_for(stage.version, step.block)]))
        elif step.verb.startswith("<<<"):
            lines = [self._with_time(line) for line in lines_for(stage.version, step.block)]
            stage.take(step.words[0], expected_frames(lines), step.verb[3:])
        elif step.verb == "repeat":
            for index in range(1, int(step.words[0]) + 1):
                self._perform_line(tuple(word.replace("%i", str(index)) for word in step.words[1:]))
        else:
            self._perform_line((step.verb, *step.words))

    def _perform_line(self, line: tuple[str, ...]) -> None:
        bar = line.index("|") if "|" in line else len(line)
        words = [self.stage.fill(word) for word in line[1:bar]]
        _STEPS[line[0]](self.stage, words, [self.stage.fill(header) for header in line[bar + 1 :]])

    def _with_time(self, text: str) -> str:
        """Only ``{now}`` is filled in beforehand: other names in expected text may be captured just now."""
        return self.stage.fill(text) if "{now" in text else text
