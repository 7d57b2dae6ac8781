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
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from unittest.mock import Mock

from tests.oracle import scenario_run
from tests.oracle.brokers import BrokerUnderTest, Counts
from tests.oracle.client import Client, Ended, Frame
from tests.oracle.scenario import Scenario
from tests.oracle.scenario_run import ScenarioRun
from tests.oracle.steps import play

FOLDER: Final = Path(__file__).parent / "answers"
"""One file for each version of Artemis: a line for each scenario."""
_TIME: Final = re.compile(rb"\d{13}")
"""Epoch milliseconds, which differ with each run."""
_PACKED_BYTES: Final = 256
"""Bodies from this size on are compressed."""
_ENDS: Final = {"Ended": Ended, "ConnectionResetError": ConnectionResetError, "BrokenPipeError": BrokenPipeError}

Events = list[list[Any]]
"""What happened, in order: the kind, and what belongs to it."""


class StaleError(Exception):
    """A scenario does something that was not recorded."""

    def __init__(self, wanted: object, recorded: object) -> None:
        super().__init__(
            f"the recording has {recorded}, and the scenario asks for {wanted}: `make oracle` records it anew"
        )


def versions() -> list[str]:
    """The versions of Artemis that were recorded."""
    return sorted(path.stem for path in FOLDER.glob("*.jsonl"))


def load(version: str) -> dict[str, dict[str, Any]]:
    """The recordings of a version, by the names of scenarios."""
    lines = (FOLDER / f"{version}.jsonl").read_text(encoding="utf-8").splitlines()
    return {record["scenario"]: record for record in map(json.loads, lines)}


def store(version: str, records: dict[str, dict[str, Any]]) -> None:
    """Write the recordings of a version."""
    FOLDER.mkdir(exist_ok=True)
    lines = [json.dumps(records[name], separators=(",", ":"), sort_keys=True) for name in sorted(records)]
    (FOLDER / f"{version}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


# ---- recording -------------------------------------------------------------------------------------------------------


class _Recorder:
    """The events of a scenario: of each connection in the order of their opening, of the broker, and of the clock."""

    def __init__(self) -> None:
        self.connections: list[Events] = []
        self.broker: Events = []
        self.clock: list[int] = []

    def now_ms(self) -> int:
        self.clock.append(scenario_run.wall_ms())
        return self.clock[-1]


class _RecordingClient(Client):
    def __init__(self, port: int, version: str, wait_s: float, events: Events) -> None:
        super().__init__(port, version, wait_s)
        self._events = events

    def write(self, data: bytes) -> None:
        self._events.append(["write", _digest(data)])
        try:
            super().write(data)
        except OSError as error:
            self._events.append(["broken", type(error).__name__])
            raise

    def _read_frame(self, until: float) -> Frame | None:
        try:
            frame = super()._read_frame(until)
        except (Ended, OSError) as error:
            self._events.append(["end", type(error).__name__])
            raise
        self._events.append(["none"] if frame is None else _packed(frame))
        return frame

    def read_beat(self) -> None:
        super().read_beat()
        self._events.append(["beat"])


class RecordingBroker(BrokerUnderTest):
    """A broker, and a record of what it answers."""

    name = "artemis"
    quiet_s = 0.3
    counts_twice = True

    def __init__(self, broker: BrokerUnderTest, recorder: _Recorder) -> None:
        super().__init__(broker.ports)
        self._broker = broker
        self._recorder = recorder

    def open(self, acceptor: str, version: str, wait_s: float) -> Client:
        events: Events = [["open", acceptor]]
        self._recorder.connections.append(events)
        return _RecordingClient(self.ports[acceptor], version, wait_s, events)

    def counts(self, kind: str, name: str) -> Counts | None:
        counts = self._broker.counts(kind, name)
        self._note(kind, name, counts)
        return counts

    def operate(self, operation: str, queue: str, *arguments: int) -> None:
        self._broker.operate(operation, queue, *arguments)
        self._note(operation, queue, *arguments)

    def _note(self, *event: Any) -> None:
        """Whoever waits for a number asks often: the same answer again is counted."""
        events = self._recorder.broker
        if events and events[-1][:-1] == list(event):
            events[-1][-1] += 1
        else:
            events.append([*event, 1])


def record(scenario: Scenario, broker: BrokerUnderTest, wait_s: float) -> dict[str, Any]:
    """Play a scenario on a real broker. The record has ``failure``: empty if Artemis did what the table says."""
    recorder = _Recorder()
    failure = ""
    with _clock(recorder.now_ms), ScenarioRun(RecordingBroker(broker, recorder), wait_s) as run:
        try:
            play(scenario.steps, run)
        except AssertionError as error:
            failure = _shown(error)
    return {
        "scenario": scenario.name,
        "failure": failure,
        "connections": recorder.connections,
        "broker": recorder.broker,
        "clock": recorder.clock,
    }


# ---- playing it again ------------------------------------------------------------------------------------------------


class _RecordedClient(Client):
    def __init__(self, version: str, events: Events) -> None:
        self.version = version
        self.wait_s = 0.0
        self.messages = deque()
        self.delivered = {}
        self.beats = 0
        self._receipts = 0
        self._socket = Mock()  # what is done to it was not recorded
        self._events = deque(events)

    def write(self, data: bytes) -> None:
        self._next("write", _digest(data))
        if self._events and self._events[0][0] == "broken":
            name = self._events.popleft()[1]
            raise _ENDS[name](f"the connection is closed ({name})")

    def _read_frame(self, until: float) -> Frame | None:
        event: list[Any] = self._events.popleft() if self._events else ["nothing more"]
        match event:
            case ["frame", command, headers, body]:
                return Frame(command, headers, _unpacked(body))
            case ["none"]:
                return None
            case ["end", name]:
                raise _ENDS[name](f"the broker closed the connection ({name})")
        raise StaleError("a frame", event)

    def read_beat(self) -> None:
        self._next("beat")

    def _next(self, *wanted: object) -> None:
        recorded = self._events.popleft() if self._events else ["nothing more"]
        if recorded != list(wanted):
            raise StaleError(wanted, recorded)


class RecordedBroker(BrokerUnderTest):
    """Answers as Artemis did when it was recorded."""

    name = "artemis"
    quiet_s = 0.3
    counts_twice = True

    def __init__(self, recorded: dict[str, Any]) -> None:
        super().__init__({})
        self._connections = deque(recorded["connections"])
        self._events = deque([list(event) for event in recorded["broker"]])
        self._clock = deque(recorded["clock"])

    def now_ms(self) -> int:
        """The date, as it was."""
        if not self._clock:
            raise StaleError("the date", "nothing more")
        return int(self._clock.popleft())

    def open(self, acceptor: str, version: str, wait_s: float) -> Client:
        events = self._connections.popleft() if self._connections else [["nothing more"]]
        if events[0] != ["open", acceptor]:
            raise StaleError(f"a connection to {acceptor}", events[0])
        return _RecordedClient(version, events[1:])

    def counts(self, kind: str, name: str) -> Counts | None:
        counts: Counts | None = self._next(kind, name)[2]
        return counts

    def operate(self, operation: str, queue: str, *arguments: int) -> None:
        self._next(operation, queue, *arguments)

    def _next(self, *wanted: object) -> list[Any]:
        """The next event, which must be the wanted one; its answer and how often it came follow."""
        event: list[Any] = self._events[0] if self._events else ["nothing more"]
        if event[: len(wanted)] != list(wanted):
            raise StaleError(wanted, event)
        event[-1] -= 1
        if not event[-1]:
            self._events.popleft()
        return event


def play_again(scenario: Scenario, recorded: dict[str, Any]) -> str:
    """Play a scenario on what was recorded. Returns how it fails; empty if it does not. Raises StaleError."""
    broker = RecordedBroker(recorded)
    with _clock(broker.now_ms), ScenarioRun(broker, wait_s=1.0, waits=False) as run:
        try:
            play(scenario.steps, run)
        except AssertionError as error:
            return _shown(error)
    return ""


# ---- the form of what is kept ----------------------------------------------------------------------------------------


@contextmanager
def _clock(now_ms: Any) -> Iterator[None]:
    before, scenario_run.clock = scenario_run.clock, now_ms
    try:
        yield
    finally:
        scenario_run.clock = before


def _digest(data: bytes) -> str:
    return hashlib.sha256(_TIME.sub(b"#", data)).hexdigest()[:16]


def _packed(frame: Frame) -> list[Any]:
    body = frame.body
    if len(body) < _PACKED_BYTES:
        return ["frame", frame.command, dict(frame.headers), body.decode("latin-1")]
    return ["frame", frame.command, dict(frame.headers), [base64.b85encode(zlib.compress(body)).decode()]]


def _unpacked(body: str | list[str]) -> bytes:
    return body.encode("latin-1") if isinstance(body, str) else zlib.decompress(base64.b85decode(body[0]))


def _shown(error: BaseException) -> str:
    """The failed step, without what differs from run to run."""
    return re.sub(r"\d{6,}|[0-9a-f-]{36}", "#", str(error).partition(": ")[0])
