"""Three brokers in trouble of every kind that an alert is about, and the load that keeps them there."""

from __future__ import annotations

import os
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.kit.certificates import DAY, Authority
from tests.kit.client import Closed, StompSocket, connected
from tests.kit.process import HTTP, LOOPBACK, STOMP, WAIT_S, BrokerProcess
from tests.kit.small_disk import free_bytes
from tests.kit.tls import uri
from tests.kit.users import give_user

GIBIBYTE = 1 << 30
SYNC_S = 0.2
"""How long each sync of the slow broker takes."""
STEP_S = 0.02
_LATE_SYNCS = f"""\
import os, time
def late(sync):
    def wait(descriptor):
        time.sleep({SYNC_S})  # a slow disk: its time is the trouble
        return sync(descriptor)
    return wait
os.fsync, os.fdatasync = late(os.fsync), late(os.fdatasync)
"""
_CONFIGURATION = """\
<?xml version="1.0"?>
<configuration xmlns="urn:activemq">
  <core xmlns="urn:activemq:core">
    <name>{name}</name>
    <journal-directory>{folder}/journal</journal-directory>
    <bindings-directory>{folder}/bindings</bindings-directory>
    <paging-directory>{folder}/paging</paging-directory>
    <large-messages-directory>{folder}/large</large-messages-directory>
    <journal-retention-directory unit="DAYS" period="1">{folder}/kept</journal-retention-directory>
    <journal-file-size>1M</journal-file-size>
    <disk-scan-period>100</disk-scan-period>
    <message-expiry-scan-period>100</message-expiry-scan-period>
    <address-queue-scan-period>100</address-queue-scan-period>
    <configuration-file-refresh-period>100</configuration-file-refresh-period>
    {core}
    <acceptors>
{acceptors}
    </acceptors>
    <addresses>
      <address name="ring"><anycast><queue name="ring" ring-size="2"/></anycast></address>
      <address name="nowhere"><multicast/></address>
      <address name="DLQ"><anycast><queue name="DLQ"/></anycast></address>
      <address name="held"><anycast><queue name="held"/></anycast></address>
    </addresses>
    <address-settings>
      <address-setting match="#">
        <default-queue-routing-type>ANYCAST</default-queue-routing-type>
        <default-address-routing-type>ANYCAST</default-address-routing-type>
        <dead-letter-address>DLQ</dead-letter-address>
        <max-delivery-attempts>1</max-delivery-attempts>
        <auto-delete-queues>false</auto-delete-queues><auto-delete-addresses>false</auto-delete-addresses>
      </address-setting>
      <address-setting match="blocks">
        <max-size-messages>3</max-size-messages><address-full-policy>BLOCK</address-full-policy>
      </address-setting>
      <address-setting match="drops">
        <max-size-messages>3</max-size-messages><address-full-policy>DROP</address-full-policy>
      </address-setting>
      <address-setting match="pages">
        <max-size-bytes>20K</max-size-bytes><page-size-bytes>20K</page-size-bytes>
        <address-full-policy>PAGE</address-full-policy>
      </address-setting>
    </address-settings>
  </core>
</configuration>
"""


_BRIDGES = """\
    <connectors>
      <connector name="nobody">tcp://127.0.0.1:1</connector>
      <connector name="slow">tcp://127.0.0.1:{port}</connector>
    </connectors>
    <bridges>
      <bridge name="unconnected">
        <queue-name>lonely</queue-name><static-connectors><connector-ref>nobody</connector-ref></static-connectors>
      </bridge>
      <bridge name="unwanted">
        <queue-name>refused</queue-name><forwarding-address>$schedules</forwarding-address>
        <retry-interval>100</retry-interval>
        <static-connectors><connector-ref>slow</connector-ref></static-connectors>
      </bridge>
    </bridges>
"""
"""To a broker that is not there, and to an address to which nobody may send."""


def _started(
    opened: ExitStack,
    folder: Path,
    name: str,
    core: str,
    acceptors: dict[str, str] | None = None,
    environment: dict[str, str] | None = None,
) -> BrokerProcess:
    """A broker with a journal; its process is gone when the stack is closed."""
    folder.mkdir(exist_ok=True)
    uris = {"stomp": STOMP, "http": HTTP, **(acceptors or {})}
    lines = "\n".join(f'      <acceptor name="{key}">{text}</acceptor>' for key, text in uris.items())
    file = folder / "broker.xml"
    file.write_text(_CONFIGURATION.format(name=name, folder=folder, core=core, acceptors=lines), "utf-8")
    broker = BrokerProcess(["run", str(file)], folder / "broker.log", environment=environment)
    opened.callback(broker.kill)
    return broker


@dataclass
class Troubles:
    """``busy`` is used in every wrong way, ``slow`` has a slow disk and a bad certificate, ``full`` a full disk, a
    broken edit of its file, and somebody who guesses passwords.
    """

    busy: BrokerProcess
    slow: BrokerProcess
    full: BrokerProcess

    @property
    def targets(self) -> dict[str, int]:
        """The HTTP ports by broker."""
        return {name: getattr(self, name).ports["http"] for name in ("busy", "slow", "full")}


@contextmanager
def troubles(folder: Path) -> Iterator[Troubles]:
    """The brokers under load, until the end."""
    authority = Authority()
    slow_folder, full_folder = folder / "slow", folder / "full"
    slow_folder.mkdir()
    full_folder.mkdir()
    authority.issue("soon gone", until=DAY).pem(slow_folder / "broker.pem")
    (slow_folder / "late").mkdir()
    (slow_folder / "late" / "sitecustomize.py").write_text(_LATE_SYNCS)
    give_user(full_folder, "ann", "ann's secret")
    # As if the disk had two gibibytes left: then what is written here in seconds fills it within hours.
    nearly_full = f"<security-enabled>false</security-enabled><min-disk-free>{_kept_bytes(folder)}</min-disk-free>"
    with ExitStack() as opened:
        slow = _started(
            opened,
            slow_folder,
            "slow",
            "<security-enabled>false</security-enabled>",
            {"tls": uri("STOMP", keyStorePath="broker.pem", sslAutoReload="true")},
            {**os.environ, "PYTHONPATH": str(slow_folder / "late")},
        )
        slow.await_ready()
        bridges = _BRIDGES.format(port=slow.port)
        busy = _started(opened, folder / "busy", "busy", nearly_full + bridges)
        full = _started(opened, full_folder, "full", "<max-disk-usage>1</max-disk-usage>")
        for broker in (busy, slow, full):
            broker.await_ready()
        opened.enter_context(_load(busy, slow, full))
        (slow_folder / "broker.pem").write_text("no certificate")
        (full_folder / "broker.xml").write_text("no configuration")
        yield Troubles(busy, slow, full)


def _kept_bytes(folder: Path) -> int:
    return max(free_bytes(folder) - 2 * GIBIBYTE, 1)


@contextmanager
def _load(busy: BrokerProcess, slow: BrokerProcess, full: BrokerProcess) -> Iterator[None]:
    """Clients that stay, and clients that do the same again and again in threads of their own."""
    with ExitStack() as opened:
        holder, blocked, reader, killer, worker, sender, slow_sender = (
            opened.enter_context(connected(port)) for port in (*[busy.port] * 6, slow.port)
        )
        _set_cursor(busy)
        holder.subscribe("held", consumer_window_size=1)
        holder.subscribe("ring", id="2", consumer_window_size=1)
        reader.subscribe("read", ack="auto")
        killer.subscribe("deadly")
        worker.subscribe("worked", consumer_window_size=1)
        for _ in range(6):
            blocked.send("SEND", {"destination": "blocks"})
            sender.send("SEND", {"destination": "held"})
        for _ in range(60):
            sender.send("SEND", {"destination": "pages"}, bytes(1000))

        def send() -> None:
            for name in ("lonely", "ring", "nowhere", "drops", "read", "refused"):
                sender.send("SEND", {"destination": name}, b"x")
            sender.send("SEND", {"destination": "expires", "expires": int(time.time() * 1000) + 50})
            sender.ask("SEND", {"destination": "stored", "persistent": "true"}, bytes(50_000))
            reader.message()

        def work() -> None:
            for _ in range(2):
                worker.ask("SEND", {"destination": "worked"})
            worker.acknowledge(worker.message())

        def die() -> None:
            killer.ask("SEND", {"destination": "deadly"})
            killer.send("NACK", {"id": killer.message().header("ack")})

        def come_and_go() -> None:
            connected(busy.port).close()

        def guess() -> None:
            with suppress(OSError, Closed), StompSocket(full.port) as guesser:  # this broker may be killed
                guesser.send("CONNECT", {"accept-version": "1.2", "host": "b", "login": "ann", "passcode": "guess"})
                guesser.receive()

        def store_slowly() -> None:
            for _ in range(10):  # one after the other: the broker has hardly time for a scrape
                slow_sender.ask("SEND", {"destination": "stored", "persistent": "true"})

        with _repeating(send, work, die, come_and_go, guess, store_slowly):
            yield


@contextmanager
def _repeating(*steps: Callable[[], None]) -> Iterator[None]:
    """Carries out each step again and again, in threads of their own; none may fail."""
    ended = threading.Event()
    failures: list[BaseException] = []

    def repeat(step: Callable[[], None]) -> None:
        try:
            while not ended.wait(STEP_S):
                step()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=repeat, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert not failures, failures


def _set_cursor(broker: BrokerProcess) -> None:
    """A reader of the log that has read nothing and does not move."""
    url = f"http://{LOOPBACK}:{broker.ports['http']}/log/cursors/reader"
    request = urllib.request.Request(url, b'{"lsn": 0}', {"Content-Type": "application/json"}, method="PUT")
    with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
        assert answer.status == 201
