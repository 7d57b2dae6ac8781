"""Plays a transcript: each step by its verb, and at the end nothing is left over.

The verbs are in ``frame_steps`` and ``broker_steps``; ``repeat N STEP…`` carries out another step N times, with ``%i``
replaced by 1, 2, 3… A client connects (as a socket) when a step first names it.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.kit.in_process import Client, InProcessBroker, configuration
from tests.wire.broker_steps import BROKER_STEPS
from tests.wire.cutting import Cutting
from tests.wire.frame_steps import FRAME_STEPS
from tests.wire.transcript import Step, Transcript, expected_frames, lines_for, sent_bytes
from tests.wire.transcript_run import TranscriptRun

_STEPS = FRAME_STEPS | BROKER_STEPS


def play(
    transcript: Transcript,
    version: str,
    cutting: Cutting,
    connect: Callable[[InProcessBroker], Client] = Client,
    units: int | None = None,
) -> TranscriptRun:
    """Carry out all steps in a world of its own, then look for frames that nobody expected. ``units`` are those of each
    turn.
    """
    world = InProcessBroker(configuration(transcript.core, transcript.acceptor), connect=connect)
    world.turns.units = world.turns.units if units is None else units
    run = TranscriptRun(world, version, cutting, {"version": version})
    for step in transcript.steps:
        try:
            if version in step.versions:
                _perform(run, step)
        except AssertionError as error:
            raise AssertionError(f"line {step.line_number}, {step.verb}: {error}") from error
    for name, client in world.clients.items():
        left = client.collect()
        assert not left, f"{name} got more than the transcript expects:\n" + "\n".join(one.text for one in left)
        assert client.stream.is_whole, f"{name} got the beginning of a frame that does not end"
        beats = run.fresh_beats(name)
        assert beats == 0, f"{name} got {beats} heart-beats that the transcript does not expect"
    return run


def _perform(run: TranscriptRun, step: Step) -> None:
    """Carry out one step."""
    if step.verb == ">>>":
        run.write(step.words[0], sent_bytes([run.fill(line) for line in lines_for(run.version, step.block)]))
    elif step.verb.startswith("<<<"):  # only the time is filled in before: other names may be captured just now
        lines = [run.fill(line) if "{now" in line else line for line in lines_for(run.version, step.block)]
        run.take(step.words[0], expected_frames(lines), step.verb[3:])
    elif step.verb == "repeat":
        for index in range(1, int(step.words[0]) + 1):
            _perform_line(run, *(word.replace("%i", str(index)) for word in step.words[1:]))
    else:
        _perform_line(run, step.verb, *step.words)


def _perform_line(run: TranscriptRun, verb: str, *rest: str) -> None:
    bar = rest.index("|") if "|" in rest else len(rest)
    filled = [run.fill(word) for word in rest]
    _STEPS[verb](run, filled[:bar], filled[bar + 1 :])
