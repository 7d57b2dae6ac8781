"""Our broker as a process of its own, counted through ``/metrics``."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.oracle.brokers import ROOT, BrokerUnderTest, Counts, free_ports, stop, wait_until_listening
from tests.oracle.client import LOOPBACK
from tests.oracle.configuration import ACCEPTORS, ACCEPTORS_OF_OURS, Profile, broker_xml

START_S = 20.0

_FAMILIES = {
    "queue": {
        "artemis_message_count": "messages",
        "artemis_delivering_message_count": "delivering",
        "artemis_scheduled_message_count": "scheduled",
        "artemis_messages_replaced": "replaced",
        "artemis_messages_added": "added",
        "artemis_messages_acknowledged": "acknowledged",
        "artemis_messages_killed": "killed",
        "artemis_messages_expired": "expired",
        "artemis_consumer_count": "consumers",
    },
    "address": {"artemis_routed_message_count": "routed", "artemis_unrouted_message_count": "unrouted"},
}
_LABELS = {"queue": 'queue="{}"', "address": 'address="{}",broker="[^"]*"'}


class OwnBroker(BrokerUnderTest):
    """A process that runs ``artemis_py`` as ``run`` does, and takes orders for operations on its standard input."""

    name = "ours"
    quiet_s = 0.0
    counts_twice = False

    def __init__(self, ports: dict[str, int], process: subprocess.Popen[bytes]) -> None:
        super().__init__(ports)
        self._process = process

    def counts(self, kind: str, name: str) -> Counts | None:
        labels, families = _LABELS[kind].format(re.escape(name)), _FAMILIES[kind]
        with urllib.request.urlopen(f"http://{LOOPBACK}:{self.ports['http']}/metrics", timeout=120) as answer:
            text = answer.read().decode()
        lines = re.findall(rf"^(\w+){{[^}}]*{labels}}} (\S+)$", text, re.MULTILINE)
        return {families[family]: int(float(value)) for family, value in lines if family in families} or None

    def operate(self, operation: str, queue: str, *arguments: int) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join([operation, queue, *map(str, arguments)]).encode() + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().decode().strip()
        assert answer == "done", f"{operation} {queue}: {answer}"


@contextmanager
def own_broker(profile: Profile, folder: Path) -> Iterator[OwnBroker]:
    """Our broker with the configuration of a profile, from its first open port to its end."""
    ports = free_ports((*ACCEPTORS, *ACCEPTORS_OF_OURS))
    file = folder / "broker.xml"
    file.write_text(broker_xml(profile, ports, ACCEPTORS | ACCEPTORS_OF_OURS))
    log = folder / "broker.log"
    command = [sys.executable, "-m", "tests.oracle.controlled", str(file)]
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, bufsize=0
        )
    try:
        wait_until_listening(process, ports, START_S, log)
        yield OwnBroker(ports, process)
    finally:
        stop(process)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
