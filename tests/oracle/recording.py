"""What a real Artemis answered, kept in files, so that its part of the table is played without a JVM.

A recording has, for each scenario, what was written to each connection (as a digest, times left out), every frame that
came, the numbers of queues and addresses as they were asked for, and the clock. Played again, a scenario gets the same
answers in the same order. One that asks for something else fails, and says that it must be recorded anew.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
import zlib
from collections import deque
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import Mock, patch

from tests.kit import process
from tests.kit.client import Closed
from tests.kit.frames import ServerFrame, escaped_frame
from tests.oracle.brokers import ARTEMIS, BrokerUnderTest, Counts
from tests.oracle.client import Client
from tests.oracle.scenario import Scenario
from tests.oracle.steps import perform

FOLDER: Final = Path(__file__).parent / "answers"
"""One file for each version of Artemis: a line for each scenario."""
_TIME: Final = re.compile(rb"\d{13}")
"""Epoch milliseconds, which differ with each run."""
_PACKED_BYTES: Final = 256
"""Bodies from this size on are compressed."""
_ENDS: Final = {"Ended": Closed, "ConnectionResetError": ConnectionResetError, "BrokenPipeError": BrokenPipeError}
_STALE: Final = "the recording has {}, and the scenario asks for {}: `make oracle` records it anew"

Event = list[Any]
"""What happened: the kind, and what belongs to it."""


class StaleError(Exception):
    """A scenario does something that was not recorded."""


def recordings() -> dict[str, dict[str, dict[str, Any]]]:
    """What was recorded, by the version of Artemis and the name of the scenario."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.jsonl"))}
    return {
        version: {record["scenario"]: record for record in map(json.loads, text.splitlines())}
        for version, text in texts.items()
    }


def store(version: str, records: dict[str, dict[str, Any]]) -> None:
    """Write the recordings of a version."""
    FOLDER.mkdir(exist_ok=True)
    lines = [json.dumps(records[name], separators=(",", ":"), sort_keys=True) for name in sorted(records)]
    (FOLDER / f"{version}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _failure(scenario: Scenario, broker: BrokerUnderTest, wait_s: float, *, waits: bool = True) -> str:
    """The step that fails, without what differs from run to run; empty if none does."""
    try:
        perform(scenario.steps, broker, wait_s, waits=waits)
    except AssertionError as error:
        return re.sub(r"\d{6,}|[0-9a-f-]{36}", "#", str(error).partition(": ")[0])
    return ""


def _digest(data: bytes) -> str:
    return hashlib.sha256(_TIME.sub(b"#", data)).hexdigest()[:16]


# ---- recording -------------------------------------------------------------------------------------------------------


class _RecordingClient(Client):
    events: list[Event]

    def raw(self, data: bytes) -> None:
        self.events.append(["write", _digest(data)])
        try:
            super().raw(data)
        except OSError as error:
            self.events.append(["broken", type(error).__name__])
            raise

    def next_frame(self, wait_s: float | None = None) -> ServerFrame:
        try:
            frame = super().next_frame(wait_s)
        except TimeoutError:
            self.events.append(["none"])
            raise
        except (Closed, OSError) as error:
            self.events.append(["end", "Ended" if isinstance(error, Closed) else type(error).__name__])
            raise
        is_short = len(frame.body) < _PACKED_BYTES
        body = frame.body.decode("latin-1") if is_short else [base64.b85encode(zlib.compress(frame.body)).decode()]
        self.events.append(["frame", frame.command, frame.headers, body])
        return frame

    def await_beat(self) -> None:
        super().await_beat()
        self.events.append(["beat"])


@dataclass
class RecordingBroker(BrokerUnderTest):
    """A broker, and a record of what it answers: the events of each connection in the order of their opening, those of
    the broker, and of the clock.
    """

    connections: list[list[Event]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    clock: list[int] = field(default_factory=list)

    def now_ms(self) -> int:
        self.clock.append(super().now_ms())
        return self.clock[-1]

    def open(self, acceptor: str, wait_s: float) -> Client:
        self.connections.append([["open", acceptor]])
        client = _RecordingClient(self.ports[acceptor], wait_s=wait_s)
        client.events = self.connections[-1]
        return client

    def counts(self, kind: str, name: str) -> Counts | None:
        counts = super().counts(kind, name)
        self.events.append([kind, name, counts])
        return counts

    def operate(self, operation: str, queue: str, *arguments: int) -> None:
        super().operate(operation, queue, *arguments)
        self.events.append([operation, queue, *arguments])


def record(scenario: Scenario, broker: BrokerUnderTest, wait_s: float) -> dict[str, Any]:
    """Play a scenario on a real broker. The record has ``failure``: empty if Artemis did what the table says."""
    recorder = RecordingBroker(broker.kind, broker.ports, broker.manager)
    return {
        "scenario": scenario.name,
        "failure": _failure(scenario, recorder, wait_s),
        "connections": recorder.connections,
        # Whoever waits for a number asks often: the same answer again is counted.
        "broker": [[*event, len(list(same))] for event, same in groupby(recorder.events)],
        "clock": recorder.clock,
    }


# ---- playing it again ------------------------------------------------------------------------------------------------


def _next(events: deque[Event], *wanted: object) -> Event:
    """The next event, which begins so."""
    event = events.popleft() if events else ["nothing more"]
    if event[: len(wanted)] != list(wanted):
        raise StaleError(_STALE.format(event, wanted))
    return event


class _RecordedClient(Client):
    events: deque[Event]

    def raw(self, data: bytes) -> None:
        _next(self.events, "write", _digest(data))
        if self.events and self.events[0][0] == "broken":
            name = self.events.popleft()[1]
            raise _ENDS[name](f"the connection is closed ({name})")

    def next_frame(self, wait_s: float | None = None) -> ServerFrame:
        match event := _next(self.events):
            case ["frame", command, headers, body]:
                plain = body.encode("latin-1") if isinstance(body, str) else zlib.decompress(base64.b85decode(*body))
                self.stream.take(escaped_frame(command, headers, plain, self.stream.version) + b"\n")
                return super().next_frame()
            case ["none"]:
                raise TimeoutError("nothing came")
            case ["end", name]:
                raise _ENDS[name](f"the broker closed the connection ({name})")
        raise StaleError(_STALE.format(event, "a frame"))

    def await_beat(self) -> None:
        _next(self.events, "beat")


@dataclass
class RecordedBroker(BrokerUnderTest):
    """Answers as Artemis did when it was recorded."""

    connections: deque[deque[Event]] = field(default_factory=deque)
    events: deque[Event] = field(default_factory=deque)
    clock: deque[Event] = field(default_factory=deque)

    def now_ms(self) -> int:
        return int(_next(self.clock, "date")[1])

    def open(self, acceptor: str, wait_s: float) -> Client:
        events = self.connections.popleft() if self.connections else deque()
        _next(events, "open", acceptor)
        with patch.object(socket, "socket"):  # what is done to a socket was not recorded
            client = _RecordedClient(0)
        client.events = events
        return client

    def counts(self, kind: str, name: str) -> Counts | None:
        counts: Counts | None = _next(self.events, kind, name)[2]
        return counts

    def operate(self, operation: str, queue: str, *arguments: int) -> None:
        _next(self.events, operation, queue, *arguments)


def play_again(scenario: Scenario, recorded: dict[str, Any]) -> str:
    """Play a scenario on what was recorded; pauses take no time. Returns how it fails; empty if it does not. Raises
    StaleError.
    """
    connections = deque(map(deque, recorded["connections"]))
    events = deque(event for *event, times in recorded["broker"] for _ in range(times))
    dates = deque(["date", ms] for ms in recorded["clock"])
    broker = RecordedBroker(ARTEMIS, {}, Mock(), connections, events, dates)
    pauses_s: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: sum(pauses_s), sleep=pauses_s.append)
    with patch.object(process, "time", clock):
        return _failure(scenario, broker, wait_s=1.0, waits=False)
