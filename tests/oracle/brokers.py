"""What a scenario needs of a broker, whichever it is."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.kit.forks import ROOT
from tests.kit.frames import ServerFrame
from tests.kit.process import LOOPBACK, eventually
from tests.oracle.client import WAIT_S, Client

START_S = 120.0
STOP_S = 20.0
MANAGEMENT = "activemq.management"
REPLIES = "oracle.replies"
LISTINGS_MAX = 20

_DONE = "_AMQ_OperationSucceeded"
_COLUMNS = {
    "messages": "messageCount", "delivering": "deliveringCount", "scheduled": "scheduledCount",
    "added": "messagesAdded", "acknowledged": "messagesAcked", "killed": "messagesKilled",
    "expired": "messagesExpired", "consumers": "consumerCount",
}  # fmt: skip

Counts = dict[str, int]
"""The numbers of a queue: messages, delivering, scheduled, replaced (what a ring gave up), added, acknowledged, killed,
expired and consumers; or those of an address: routed and unrouted.
"""


@dataclass(frozen=True)
class Kind:
    """Which broker it is, and how far it can be believed."""

    name: str
    quiet_s: float
    """How long nothing must come before a step believes that nothing comes; 0 where a round trip proves it."""
    counts_twice: bool
    """Do counts lag behind, so that a step believes them only when it has seen them twice?"""


OURS: Final = Kind("ours", 0.0, False)
ARTEMIS: Final = Kind("artemis", 0.3, True)


@dataclass
class BrokerUnderTest:
    """A running broker: where it listens, and what it counts and does by management messages (Artemis manual,
    "Management"), for which STOMP itself has no frame.
    """

    kind: Kind
    ports: dict[str, int]
    manager: Client
    """It gets the replies."""

    def now_ms(self) -> int:
        """The date, as both brokers read it on this machine."""
        return time.time_ns() // 1_000_000

    def open(self, acceptor: str, wait_s: float) -> Client:
        """A new connection."""
        return Client(self.ports[acceptor], wait_s=wait_s)

    def counts(self, kind: str, name: str) -> Counts | None:
        """The numbers of a ``queue`` or an ``address``, None when there is none of this name."""
        operation = "listQueues" if kind == "queue" else "listAddresses"
        options = json.dumps({"field": "name", "operation": "EQUALS", "value": name})
        for _ in range(LISTINGS_MAX):
            reply = self._request("broker", operation, options, 1, 10)
            if reply.headers.get(_DONE) == "true":  # it fails when a queue is deleted under it
                break
        else:
            raise AssertionError(f"{operation} failed {LISTINGS_MAX} times: {reply.text}")
        rows = json.loads(json.loads(reply.body)[0])["data"]
        if not rows:
            return None
        if kind == "address":
            shown = {"routed": "routedMessageCount", "unrouted": "unRoutedMessageCount"}
            replies = {key: self._request(f"address.{name}", attribute=one) for key, one in shown.items()}
            if any(reply.headers.get(_DONE) != "true" for reply in replies.values()):
                return None  # it has gone since
            return {key: json.loads(reply.body)[0] for key, reply in replies.items()}
        found = {key: int(rows[0][column]) for key, column in _COLUMNS.items()}
        # Artemis counts what a ring gave up, but shows it nowhere.
        left = sum(found[key] for key in ("acknowledged", "killed", "expired", "messages"))
        return {**found, "replaced": found["added"] - left}

    def operate(self, operation: str, queue: str, *arguments: int) -> None:
        """``pause`` and ``resume`` dispatch from a queue, or ``resize`` a ring."""
        if operation == "resize":
            settings = json.dumps({"name": queue, "ring-size": arguments[0]})
            reply = self._request("broker", "updateQueue", settings)
        else:
            reply = self._request(f"queue.{queue}", operation)
        assert reply.headers.get(_DONE) == "true", f"{operation} {queue}: {reply.text}"

    def _request(self, resource: str, operation: str = "", *arguments: object, attribute: str = "") -> ServerFrame:
        headers = {"destination": MANAGEMENT, "reply-to": REPLIES, "_AMQ_ResourceName": resource}
        headers["_AMQ_Attribute" if attribute else "_AMQ_OperationName"] = attribute or operation
        self.manager.send("SEND", headers, json.dumps(arguments).encode())
        return self.manager.message()


def under_test(kind: Kind, ports: dict[str, int]) -> BrokerUnderTest:
    """A broker that listens on these ports, by acceptor."""
    manager = Client(ports["stomp"], wait_s=WAIT_S)
    manager.connect()
    headers = {"destination": REPLIES, "id": "replies", "ack": "auto", "subscription-type": "ANYCAST"}
    manager.ask("SUBSCRIBE", headers)
    return BrokerUnderTest(kind, ports, manager)


def wait_until_listening(process: subprocess.Popen[bytes], ports: Iterable[int], log: Path) -> None:
    """Returns when every port is open. Fails, with the end of the log, when the process ends or takes too long."""

    def is_listening() -> bool:
        assert process.poll() is None, f"ended with {process.returncode}"
        try:
            for port in ports:
                socket.create_connection((LOOPBACK, port), timeout=1).close()
        except OSError:
            return False
        return True

    try:
        eventually("the broker listens", is_listening, bool, START_S)
    except AssertionError as error:
        last = log.read_text(errors="replace").splitlines()[-40:]
        raise AssertionError("\n".join([str(error), *last])) from None


@contextmanager
def listening(command: Sequence[str], ports: Iterable[int], log: Path, folder: Path = ROOT) -> Iterator[None]:
    """A broker that was configured already, while it listens on these ports. Its end is asked for, then insisted on."""
    with log.open("ab") as output:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        wait_until_listening(process, ports, log)
        yield
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
