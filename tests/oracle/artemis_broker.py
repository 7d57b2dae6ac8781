"""A real Apache Artemis, when its distribution is at hand: one small JVM, counted through management messages."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.oracle.brokers import BrokerUnderTest, Counts, free_ports, stop, wait_until_listening
from tests.oracle.client import WAIT_S, Client, Frame
from tests.oracle.configuration import ACCEPTORS, Profile, broker_xml

START_S = 90.0
CACHE = Path(__file__).resolve().parents[2] / ".cache"
MANAGEMENT = "activemq.management"
REPLIES = "oracle.replies"
LISTINGS_MAX = 20

_COLUMNS = {
    "messages": "messageCount", "delivering": "deliveringCount", "scheduled": "scheduledCount",
    "added": "messagesAdded", "acknowledged": "messagesAcked", "killed": "messagesKilled",
    "expired": "messagesExpired", "consumers": "consumerCount",
}  # fmt: skip
_BOOTSTRAP = """\
<broker xmlns="http://activemq.apache.org/schema">
  <jaas-security domain="oracle"/>
  <server configuration="file:{folder}/broker.xml"/>
</broker>
"""
_MANAGEMENT = '<management-context xmlns="http://activemq.apache.org/schema"/>\n'


def artemis_home() -> Path | None:
    """``ARTEMIS_HOME``, or the newest ``apache-artemis-*`` in a folder of the cache; None without it, or Java."""
    if shutil.which("java") is None:
        return None
    named = os.environ.get("ARTEMIS_HOME")
    found = [Path(named)] if named else sorted(CACHE.glob("*/apache-artemis-*"))
    usable = [path for path in found if (path / "lib" / "artemis-boot.jar").exists()]
    return usable[-1] if usable else None


class ArtemisBroker(BrokerUnderTest):
    """Counts and operations by management messages over STOMP (Artemis manual, "Management")."""

    name = "artemis"
    quiet_s = 0.3
    counts_twice = True

    def __init__(self, ports: dict[str, int]) -> None:
        super().__init__(ports)
        self._client = Client(ports["stomp"], "1.2")
        self._client.send("CONNECT", {"accept-version": "1.2", "host": "oracle", "heart-beat": "0,0"})
        assert self._client.answer().command == "CONNECTED"
        headers = {"destination": REPLIES, "id": "replies", "ack": "auto", "subscription-type": "ANYCAST"}
        assert self._client.request("SUBSCRIBE", headers).command == "RECEIPT"

    def counts(self, kind: str, name: str) -> Counts | None:
        row = self._row("listQueues" if kind == "queue" else "listAddresses", name)
        if row is None:
            return None
        if kind == "address":
            shown = {"routed": "routedMessageCount", "unrouted": "unRoutedMessageCount"}
            return {key: self._ask(f"address.{name}", attribute=attribute) for key, attribute in shown.items()}
        found = {key: int(row[column]) for key, column in _COLUMNS.items()}
        # Artemis counts what a ring gave up, but shows it nowhere.
        left = sum(found[key] for key in ("acknowledged", "killed", "expired", "messages"))
        return {**found, "replaced": found["added"] - left}

    def _row(self, operation: str, name: str) -> dict[str, Any] | None:
        options = json.dumps({"field": "name", "operation": "EQUALS", "value": name})
        for _ in range(LISTINGS_MAX):
            reply = self._request("broker", operation, options, 1, 10)
            # A listing fails when a queue is deleted under it.
            if reply.headers.get("_AMQ_OperationSucceeded") == "true":
                rows = json.loads(json.loads(reply.body)[0])["data"]
                return rows[0] if rows else None
        raise AssertionError(f"{operation} failed {LISTINGS_MAX} times: {reply}")

    def operate(self, operation: str, queue: str, *arguments: int) -> None:
        if operation == "resize":
            self._ask("broker", "updateQueue", json.dumps({"name": queue, "ring-size": arguments[0]}))
        else:
            self._ask(f"queue.{queue}", operation)

    def _ask(self, resource: str, operation: str = "", *arguments: object, attribute: str = "") -> Any:
        reply = self._request(resource, operation, *arguments, attribute=attribute)
        assert reply.headers.get("_AMQ_OperationSucceeded") == "true", f"{resource} {operation}{attribute}: {reply}"
        return json.loads(reply.body)[0] if reply.body else None

    def _request(self, resource: str, operation: str = "", *arguments: object, attribute: str = "") -> Frame:
        headers = {"destination": MANAGEMENT, "reply-to": REPLIES, "_AMQ_ResourceName": resource}
        headers["_AMQ_Attribute" if attribute else "_AMQ_OperationName"] = attribute or operation
        self._client.send("SEND", headers, json.dumps(arguments).encode())
        reply = self._client.message(WAIT_S)
        assert reply is not None, f"no answer to {resource} {operation}{attribute}"
        return reply


@contextmanager
def artemis_broker(profile: Profile, folder: Path, home: Path) -> Iterator[ArtemisBroker]:
    """A real Artemis with the configuration of a profile, from its first open port to its end."""
    ports = free_ports(tuple(ACCEPTORS))
    process = start_artemis(broker_xml(profile, ports, ACCEPTORS), folder, home)
    try:
        wait_until_listening(process, ports, START_S, log_of(folder))
        yield ArtemisBroker(ports)
    finally:
        stop(process)


def log_of(folder: Path) -> Path:
    """What it prints."""
    return folder / "log" / "artemis.log"


def start_artemis(
    text: str, folder: Path, home: Path, bootstrap: str = _BOOTSTRAP, options: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    """A real Artemis with this configuration, in this folder, which may have its files already; ``options`` are those
    of Java.
    """
    etc = folder / "etc"
    for path in (etc, folder / "data", folder / "tmp", folder / "log"):
        path.mkdir(exist_ok=True, parents=True)
    (etc / "broker.xml").write_text(text)
    (etc / "bootstrap.xml").write_text(bootstrap.format(folder=etc))
    (etc / "management.xml").write_text(_MANAGEMENT)
    with log_of(folder).open("ab") as output:
        return subprocess.Popen(
            java_command(folder, home, *options),
            cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip


def java_command(folder: Path, home: Path, *options: str) -> list[str]:
    """Runs the instance in this folder."""
    return [
        "java", "-Xmx512M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        f"-Dartemis.home={home}", f"-Dartemis.instance={folder}", f"-Dartemis.instance.etc={folder / 'etc'}",
        f"-Djava.io.tmpdir={folder / 'tmp'}", f"-Ddata.dir={folder / 'data'}", *options,
        "-cp", str(home / "lib" / "artemis-boot.jar"), "org.apache.activemq.artemis.boot.Artemis", "run",
    ]  # fmt: skip
