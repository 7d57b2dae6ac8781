"""Steps that do what STOMP has no frame for: operations, the clock, many clients at once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tests.oracle.client import Client
from tests.oracle.scenario_run import ScenarioRun
from tests.oracle.steps.base import Step


@dataclass(frozen=True)
class Pause(Step):
    """Stops dispatch from a queue, or starts it again."""

    queue: str
    paused: bool = True

    def play(self, stage: ScenarioRun) -> None:
        stage.broker.operate("pause" if self.paused else "resume", self.queue)


@dataclass(frozen=True)
class Resize(Step):
    """Changes the size of a ring while it runs."""

    queue: str
    ring_size: int

    def play(self, stage: ScenarioRun) -> None:
        stage.broker.operate("resize", self.queue, self.ring_size)


@dataclass(frozen=True)
class PassTime(Step):
    """Lets the clock go on, where only the clock changes and nothing can be seen to change."""

    ms: int

    def play(self, stage: ScenarioRun) -> None:
        if stage.waits:
            time.sleep(self.ms / 1000)  # a foreign broker has no clock that a test could move


@dataclass(frozen=True)
class ManySenders(Step):
    """So many connections send so many messages each, all at the same time."""

    to: str
    senders: int
    each: int

    def play(self, stage: ScenarioRun) -> None:
        clients = [stage.open(f"sender {number}", "stomp", "1.2") for number in range(self.senders)]
        for client in clients:
            client.send("CONNECT", {"accept-version": "1.2", "host": "oracle"})
            assert client.answer().command == "CONNECTED"
        with ThreadPoolExecutor(self.senders) as pool:
            assert all(pool.map(self._send, clients))

    def _send(self, client: Client) -> bool:
        headers = {"destination": self.to, "destination-type": "ANYCAST"}
        return all(client.request("SEND", headers, b"%d" % number).command == "RECEIPT" for number in range(self.each))
