"""Three brokers in trouble of every kind that an alert is about, and the load that keeps them there."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

from tests.kit.certificates import DAY, Authority
from tests.kit.client import Closed, StompSocket, connected
from tests.kit.http import ask
from tests.kit.meanwhile import meanwhile
from tests.kit.process import BOTH, DAYS, BrokerProcess, configuration, started
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
_CORE = """\
    <journal-file-size>1M</journal-file-size>
    <disk-scan-period>100</disk-scan-period>
    <message-expiry-scan-period>100</message-expiry-scan-period>
    <address-queue-scan-period>100</address-queue-scan-period>
    <configuration-file-refresh-period>100</configuration-file-refresh-period>
"""
_ADDRESSES = """\
      <address name="ring"><anycast><queue name="ring" ring-size="2"/></anycast></address>
      <address name="nowhere"><multicast/></address>
      <address name="DLQ"><anycast><queue name="DLQ"/></anycast></address>
      <address name="held"><anycast><queue name="held"/></anycast></address>
"""
_SETTINGS = """\
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


@contextmanager
def troubles(folder: Path) -> Iterator[dict[str, BrokerProcess]]:
    """The brokers under load, until the end: ``busy`` is used in every wrong way, ``slow`` has a slow disk and a bad
    certificate, ``full`` a full disk, a broken edit of its file, and somebody who guesses passwords.
    """
    folders = {name: folder / name for name in ("busy", "slow", "full")}
    for made in folders.values():
        made.mkdir()
    late = folders["slow"] / "late"
    late.mkdir()
    (late / "sitecustomize.py").write_text(_LATE_SYNCS)
    Authority().issue("soon gone", until=DAY).pem(folders["slow"] / "broker.pem")
    give_user(folders["full"], "ann", "ann's secret")
    # As if the disk had two gibibytes left: then what is written here in seconds fills it within hours.
    kept_bytes = max(shutil.disk_usage(folder).free - 2 * GIBIBYTE, 1)
    tls = uri("STOMP", keyStorePath="broker.pem", sslAutoReload="true")
    with ExitStack() as opened:
        slow_environment = {**os.environ, "PYTHONPATH": str(late)}
        slow = opened.enter_context(_started(folders["slow"], "", slow_environment, tls=tls))
        nearly_full = f"<min-disk-free>{kept_bytes}</min-disk-free>"
        busy = opened.enter_context(_started(folders["busy"], nearly_full + _BRIDGES.format(port=slow.port)))
        full = opened.enter_context(_started(folders["full"], "<max-disk-usage>1</max-disk-usage>", has_users=True))
        opened.enter_context(_load(busy, slow, full))
        (folders["slow"] / "broker.pem").write_text("no certificate")
        (folders["full"] / "broker.xml").write_text("no configuration")
        yield {"busy": busy, "slow": slow, "full": full}


def _started(
    folder: Path, core: str, environment: dict[str, str] | None = None, *, has_users: bool = False, **acceptors: str
) -> AbstractContextManager[BrokerProcess]:
    """A broker with a journal, called as its folder."""
    text = configuration(
        BOTH | acceptors,
        folder=folder,
        name=folder.name,
        core=_CORE + core,
        addresses=_ADDRESSES,
        settings=_SETTINGS,
        kept=DAYS,
        security="<security-settings/>" if has_users else "",
    )
    file = folder / "broker.xml"
    file.write_text(text, "utf-8")
    return started(file, environment=environment)


@contextmanager
def _load(busy: BrokerProcess, slow: BrokerProcess, full: BrokerProcess) -> Iterator[None]:
    """Clients that stay, and clients that do the same again and again in threads of their own."""
    with ExitStack() as opened:
        holder, blocked, reader, killer, worker, sender, slow_sender = (
            opened.enter_context(connected(port)) for port in (*[busy.port] * 6, slow.port)
        )
        # A reader of the log that has read nothing and does not move.
        headers = {"Content_Type": "application/json"}
        assert ask(busy.ports["http"], "PUT", "/log/cursors/reader", {"lsn": 0}, **headers).status == 201
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

        def guess() -> None:
            with suppress(OSError, Closed), StompSocket(full.port) as guesser:  # this broker may be killed
                guesser.send("CONNECT", {"accept-version": "1.2", "host": "b", "login": "ann", "passcode": "guess"})
                guesser.receive()

        def store_slowly() -> None:
            for _ in range(10):  # one after the other: the broker has hardly time for a scrape
                slow_sender.ask("SEND", {"destination": "stored", "persistent": "true"})

        with ExitStack() as repeated:
            for step in (send, work, die, lambda: connected(busy.port).close(), guess, store_slowly):
                repeated.enter_context(meanwhile(step, pause_s=STEP_S))
            yield
