"""Queues for streams that consume them, and such a stream as Spark runs it, without a JVM."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from pyspark.sql.streaming.datasource import ReadLimit

from artemis_py.spark.consume.link import Link
from artemis_py.spark.consume.reader import QueueStreamReader
from artemis_py.spark.read.options import read_options
from tests.kit.client import StompSocket
from tests.kit.frames import ServerFrame
from tests.kit.proxy import Proxy
from tests.spark.live import LiveBroker, live_broker
from tests.spark.readers import rows_of, rows_read

ROOMY = 'max-per-subscription-backlog="1000000"'
QUEUES = f"""\
<address name="DLQ"><anycast><queue name="DLQ"/></anycast></address>
<address name="jobs"><anycast><queue name="jobs"/></anycast></address>
<address name="lent"><anycast><queue name="lent" {ROOMY}/></anycast></address>
<address name="leased"><anycast><queue name="leased" lease-period="1500ms" {ROOMY}/></anycast></address>
<address name="strict"><anycast><queue name="strict" lease-period="1s" leasing="strict" {ROOMY}/></anycast></address>
<address name="narrow"><anycast><queue name="narrow" max-per-subscription-backlog="3"/></anycast></address>
<address name="paged"><anycast><queue name="paged"/></anycast></address>
<address name="urgent"><anycast><queue name="urgent" queue-type="priority" {ROOMY}/></anycast></address>
<address name="news"><multicast><queue name="reports" {ROOMY}/></multicast></address>
<address name="brief"><anycast><queue name="brief"><durable>false</durable></queue></anycast></address>
<address name="flow"><anycast><queue name="flow" delivery-semantics="at-most-once"/></anycast></address>
<address name="shown"><anycast><queue name="shown" non-destructive="true"/></anycast></address>
<address name="mine"><anycast><queue name="mine" {ROOMY} max-consumers="1"/></anycast></address>
"""
SETTINGS = """\
      <address-setting match="#">
        <dead-letter-address>DLQ</dead-letter-address><max-delivery-attempts>-1</max-delivery-attempts>
        <redelivery-delay>0</redelivery-delay><auto-delete-queues>false</auto-delete-queues>
        <auto-delete-addresses>false</auto-delete-addresses>
        <default-address-routing-type>ANYCAST</default-address-routing-type>
        <default-queue-routing-type>ANYCAST</default-queue-routing-type>
      </address-setting>
      <address-setting match="paged">
        <max-size-messages>5</max-size-messages><page-size-bytes>10000</page-size-bytes>
        <max-read-page-messages>5</max-read-page-messages><address-full-policy>PAGE</address-full-policy>
      </address-setting>
"""


queue_broker = partial(live_broker, addresses=QUEUES, settings=SETTINGS)
"""A broker with these queues; gone in the end."""


def source(broker: LiveBroker, queue: str, stomp_port: int | None = None, **options: object) -> dict[str, Any]:
    """The options of a stream that consumes a queue."""
    port = broker.process.port if stomp_port is None else stomp_port
    given = {"url": broker.url, "stompUrl": f"tcp://127.0.0.1:{port}", "queue": queue, **options}
    return {name: str(value) for name, value in given.items()}


def held(broker: LiveBroker, queue: str) -> int:
    """How many of them consumers hold."""
    return int(broker.process.metric("artemis_delivering_message_count", queue=queue))


def attempts(broker: LiveBroker, queue: str) -> Counter[str]:
    """The failed attempts of a queue's messages by their reasons, as the log tells them."""
    rows = rows_read({"url": broker.url, "table": "events", "columns": "event,queue,reason"})
    return Counter(row["reason"] for row in rows if (row["event"], row["queue"]) == ("attempted", queue))


def taken(client: StompSocket, queue: str, number: int, *, acks: bool = True, **headers: str) -> list[ServerFrame]:
    """An ordinary consumer takes so many messages."""
    client.subscribe(f"::{queue}", ack="client-individual", **{"max-backlog": str(number), **headers})
    found = [client.message() for _ in range(number)]
    for message in found if acks else []:
        client.ask("ACK", {"id": message.header("ack")})
    return found


@dataclass
class Checkpoint:
    """What Spark notes: the offsets that it planned, and how many batches are done."""

    offsets: list[dict[str, Any]] = field(default_factory=list)
    done: int = 0


@dataclass
class Query:
    """Calls a reader in the order in which Spark does. Its STOMP connection can be cut if it goes by the proxy."""

    reader: QueueStreamReader
    checkpoint: Checkpoint
    proxy: Proxy

    @cached_property
    def _initial(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(json.dumps(self.reader.initialOffset()))
        return found

    def plan(self, limit: ReadLimit | None = None) -> bool:
        """Ask for the next batch; returns whether there is one."""
        assert len(self.checkpoint.offsets) == self.checkpoint.done, "a batch is to be run first"
        start = (self.checkpoint.offsets or [self._initial])[-1]
        end = json.dumps(self.reader.latestOffset(start, limit or self.reader.getDefaultReadLimit()))
        if end == json.dumps(start):
            return False
        self.checkpoint.offsets.append(json.loads(end))
        return True

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the batch that is planned."""
        offsets, done = self.checkpoint.offsets, self.checkpoint.done
        start = (offsets[:done] or [self._initial])[-1]
        return rows_of(self.reader, self.reader.partitions(start, offsets[done]))

    def run(self) -> list[str]:
        """Run the batch that is planned; its bodies."""
        return [row["value"].decode().strip() for row in self.rows()]

    def finish(self) -> None:
        """The batch is done."""
        self.checkpoint.done += 1

    def called_before(self, seconds: float) -> Link:
        """As if Spark had made its last call so much earlier; returns the connection, which is there."""
        link = self.reader._link
        assert link is not None
        link._called_s -= seconds
        return link

    def trigger(self) -> list[str]:
        """Plan a batch, run it and be done with it; its bodies, none if there is nothing."""
        if len(self.checkpoint.offsets) == self.checkpoint.done and not self.plan():
            return []
        bodies = self.run()
        self.finish()
        return bodies

    def drain(self) -> list[str]:
        """Trigger until there is nothing."""
        return [body for bodies in iter(self.trigger, []) for body in bodies]


@contextmanager
def query(
    broker: LiveBroker,
    queue: str = "jobs",
    checkpoint: Checkpoint | None = None,
    *,
    proxied: bool = False,
    **options: object,
) -> Iterator[Query]:
    """A query that is stopped in the end. ``proxied``: its STOMP connection can be cut, also for good."""
    with closing(Proxy(broker.process.port)) as proxy:
        given = source(broker, queue, proxy.port if proxied else None, **options)
        found = Query(QueueStreamReader(read_options(given, streaming=True)), checkpoint or Checkpoint(), proxy)
        try:
            yield found
        finally:
            found.reader.stop()
