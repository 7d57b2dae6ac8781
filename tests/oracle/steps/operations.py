"""Steps that do what STOMP has no frame for: operations, the clock, many clients at once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from tests.oracle.client import Client
from tests.oracle.scenario_run import ScenarioRun
from tests.oracle.steps.base import Step


@dataclass(frozen=True)
class Operate(Step):
    """An operation on a queue: dispatch stops or starts again, or a ring gets another size while it runs."""

    operation: str
    queue: str
    ring_size: int | None = None

    def play(self, stage: ScenarioRun) -> None:
        stage.broker.operate(self.operation, self.queue, *([] if self.ring_size is None else [self.ring_size]))


Pause, Resume, Resize = (partial(Operate, operation) for operation in ("pause", "resume", "resize"))


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
        clients = [stage.open(f"sender {number}", "stomp") for number in range(self.senders)]
        for client in clients:
            client.send("CONNECT", {"accept-version": "1.2", "host": "oracle"})
            assert client.answer().command == "CONNECTED"
        with ThreadPoolExecutor(self.senders) as pool:
            assert all(pool.map(self._send, clients))

    def _send(self, client: Client) -> bool:
        headers = {"destination": self.to, "destination-type": "ANYCAST"}
        return all(client.request("SEND", headers, b"%d" % number).command == "RECEIPT" for number in range(self.each))
