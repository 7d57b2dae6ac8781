"""Throughput scenarios: producers write blocks as fast as the broker reads them, consumers count."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import ClassVar, Final

from artemis_py.errors import PerfError
from artemis_py.perf.link import Link, message
from artemis_py.perf.pump import (
    BLOCK_BYTES,
    Pump,
    Receiver,
    Sender,
    blocks,
    body_of,
    marker_of,
    numbered,
    send_frame,
    unique_frame,
)
from artemis_py.perf.scenario import Run, Scenario, warm_up

SINGLE_BURST: Final = 64


class Stream(Scenario):
    """Producers, destinations and consumers side by side: producer i sends to destination i, which consumer i reads."""

    size: ClassVar[int] = 100
    lanes: ClassVar[int] = 1
    link: ClassVar[type[Link]] = Link
    block_bytes: ClassVar[int] = BLOCK_BYTES
    burst: ClassVar[int] = 1
    """How many blocks at most are sent per turn."""

    def run(self, run: Run) -> dict[str, float]:
        """Deliveries per second from the first send to the last arrival, the broker's CPU time and memory."""
        body = body_of(run.options.size or self.size)
        with ExitStack() as stack:
            traffic = self._open(run, body, stack)
            count = warm_up(run, traffic.batch)
            metrics: dict[str, float] = {}
            with run.cpu(metrics) as counted:
                elapsed = traffic.batch(count)
                counted(traffic.delivered)
            metrics["messages"] = traffic.delivered
            metrics["messages_per_second"] = traffic.delivered / elapsed
            metrics |= run.resident_mb()
            traffic.finish()
        return metrics

    def _open(self, run: Run, body: bytes, stack: ExitStack) -> Traffic:
        traffic = Traffic(self, run, body)
        for _ in range(self.lanes):
            destination = self.destination(run)
            for place in range(self.consumers(run)):
                link = stack.enter_context(self.link(run.target))
                link.subscribe(destination, self.subscription(run, place))
                traffic.receivers.append(Receiver(link, self.marker(body)))
            traffic.producers.append((stack.enter_context(self.link(run.target)), destination))
        return traffic

    def destination(self, run: Run) -> str:
        """Where one lane sends to."""
        return run.queue()

    def consumers(self, run: Run) -> int:
        """How many consumers read each lane; each gets all of it."""
        return 1

    def subscription(self, run: Run, place: int) -> str:
        """The subscription id of one consumer."""
        return "0"

    def marker(self, body: bytes) -> bytes:
        """How each message ends at the consumer."""
        return marker_of(body)

    def frame(self, run: Run, destination: str, body: bytes, place: int) -> bytes:
        """The SEND at a place of a block."""
        return send_frame(run.target, destination, numbered(body, place))

    def sender(self, run: Run, link: Link, destination: str, body: bytes, total: int) -> Sender:
        """A producer of ``total`` messages."""
        found = blocks(lambda place: self.frame(run, destination, body, place), total, self.block_bytes)
        return Sender(link, found, self.burst)


class Traffic:
    """The open connections of a stream scenario; each ``batch`` is one use of them."""

    def __init__(self, stream: Stream, run: Run, body: bytes) -> None:
        self._stream = stream
        self._run = run
        self._body = body
        self.producers: list[tuple[Link, str]] = []
        self.receivers: list[Receiver] = []
        self.delivered = 0

    def batch(self, deliveries: int) -> float:
        """Sends messages for ``deliveries`` deliveries in total, rounded up to equal shares; returns the seconds it
        took.
        """
        share = -(-deliveries // len(self.receivers))
        self.delivered = share * len(self.receivers)
        for receiver in self.receivers:
            receiver.expected += share
        senders = [
            self._stream.sender(self._run, link, destination, self._body, share) for link, destination in self.producers
        ]
        return Pump(
            senders,
            self.receivers,
            frame_bytes=len(self._stream.frame(self._run, self.producers[0][1], self._body, 0)),
            limit_s=self._run.options.limit_s,
            progress=self._run.progress,
        ).run()

    def finish(self) -> None:
        """Disconnects. Raises PerfError if a consumer got more than was sent."""
        for link, _destination in self.producers:
            link.goodbye()
        surplus = sum(receiver.link.goodbye() for receiver in self.receivers)
        if surplus:
            raise PerfError(f"the consumers received {surplus:,} more messages than were sent")


class Transient(Stream):
    """The basic case."""

    id = "1"
    title = "transient 100 B"


class TransientSingle(Transient):
    """Each frame is its own ``send()``: this measures system calls more than parsing. The generator is near its
    limit.
    """

    id = "1s"
    title = "transient 100 B, one send per frame"
    block_bytes = 1
    burst = SINGLE_BURST


class TransientUnique(Transient):
    """No two header blocks are equal, so a broker cannot reuse cached ones."""

    id = "1u"
    title = "transient 100 B, unique header"

    def frame(self, run: Run, destination: str, body: bytes, place: int) -> bytes:
        """A SEND with a ``correlation-id`` of its own within the batch."""
        return unique_frame(run.target, destination, numbered(body, place), place)


class TransientTls(Transient):
    """The basic case, encrypted."""

    id = "1t"
    title = "transient 100 B over TLS"
    over_tls = True


class TransientWebSocket(Transient):
    """The basic case over WebSocket: each SEND is a text message, as clients in browsers do it."""

    id = "1w"
    title = "transient 100 B over WebSocket"

    def run(self, run: Run) -> dict[str, float]:
        """As plain STOMP."""
        return super().run(replace(run, target=replace(run.target, over_websocket=True)))

    def frame(self, run: Run, destination: str, body: bytes, place: int) -> bytes:
        """A SEND as a message."""
        return message(super().frame(run, destination, body, place))


class TransientLarge(Transient):
    """More bytes per message."""

    id = "2"
    title = "transient 1 KiB"
    size = 1024


class FanOut(Stream):
    """A topic: each message to every consumer; deliveries are counted."""

    id = "5"
    title = "topic 1 to n"

    def destination(self, run: Run) -> str:
        """A topic."""
        return run.topic()

    def consumers(self, run: Run) -> int:
        """As many as asked for."""
        return run.options.consumers

    def subscription(self, run: Run, place: int) -> str:
        """The same id on each connection unless ``--distinct`` asks for different ones."""
        return f"s{place}" if run.options.distinct else "0"


class Lanes(Stream):
    """Many queues at once."""

    id = "6"
    title = "20 producers, 20 queues, 20 consumers"
    lanes = 20


class LanesSingle(Lanes, TransientSingle):
    """Many queues, and a ``send()`` for each frame."""

    id = "6s"
    title = "20 × 20 × 20, one send per frame"
