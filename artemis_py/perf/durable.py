"""Scenarios 3 and 3i: durable messages with receipts, read with acknowledgements."""

from __future__ import annotations

import re
import selectors
import time
from collections.abc import Iterator
from typing import ClassVar, Final

from artemis_py.errors import PerfError
from artemis_py.perf.link import Headers, Link, Target, raise_if_error
from artemis_py.perf.pump import BLOCK_NUMBER, body_of, numbered, send_headers
from artemis_py.perf.scenario import Run, Scenario, warm_up
from artemis_py.stomp.client import FrameReader, frame

PERSISTENT: Final[Headers] = (("persistent", "true"),)
GROUP: Final = 100
RECEIPTS_OPEN_MAX: Final = 100
# Room for a thousand messages and more that are not acknowledged yet, in the words of each broker.
WINDOW: Final[Headers] = (
    ("consumer-window-size", "1048576"),
    ("prefetch-count", "1000"),
    ("activemq.prefetchSize", "1000"),
)
LAST_BODY: Final = b"the last one"
RECEIVE_BYTES: Final = 256 * 1024
UNSENT_BYTES_MIN: Final = 256 * 1024
"""This many bytes are kept ready for the socket while more receipts may be awaited. With one group at a time, the
broker would wait for the next one.
"""
POLL_S: Final = 0.25
_ACK_ID: Final = re.compile(rb"\nack:([^\n]*)")
_MESSAGE_ID: Final = re.compile(rb"\nmessage-id:([^\n]*)")


class Durable(Scenario):
    """A receipt for every hundredth message and one ACK for every hundred. The clock stops when the last message is
    acknowledged and every receipt has arrived, including that of the last ACK.
    """

    id = "3"
    title = "durable 100 B, receipts and acks per 100"
    link: ClassVar[type[Link]] = Link
    mode: ClassVar[str] = "client"
    acks_each: ClassVar[bool] = False

    def run(self, run: Run) -> dict[str, float]:
        """Messages per second, messages per sync where that is known, the broker's CPU time and memory."""
        run.need_receipts(self.id)
        if run.target.version == "1.0":
            raise PerfError(f"scenario {self.id} needs STOMP 1.1 or 1.2")
        body = body_of(run.options.size or 100)
        queue = run.queue()
        with self.link(run.target) as consumer, self.link(run.target) as producer:
            sink = self.sink(run, consumer, queue)
            source = self.source(run, producer, queue, body)
            traffic = Traffic(run, source, sink)
            count = -(-warm_up(run, traffic.send) // GROUP) * GROUP
            metrics: dict[str, float] = {"messages": count}
            with run.cpu(metrics) as counted, run.syncs(metrics, lambda: count):
                metrics["messages_per_second"] = count / traffic.send(count)
                counted(count)
            metrics |= run.resident_mb()
            producer.goodbye()
            surplus = consumer.goodbye()
        if surplus:
            raise PerfError(f"the consumer received {surplus:,} more messages than were sent")
        self.nothing_left(run, queue)
        return metrics

    def source(self, run: Run, producer: Link, queue: str, body: bytes) -> Source:
        """Where messages come from."""
        return Source(producer, group_of(run.target, queue, body))

    def sink(self, run: Run, consumer: Link, queue: str) -> Sink:
        """Where they go to: it has subscribed."""
        headers = (("id", "0"), ("destination", queue), ("ack", self.mode), *WINDOW, *run.target.subscribe_headers)
        consumer.confirmed("SUBSCRIBE", headers)
        return Sink(consumer, self.acks_each)

    def nothing_left(self, run: Run, queue: str) -> None:
        """Sends one more message. Raises PerfError if an already acknowledged message arrives before it."""
        surplus = 0
        with Link(run.target) as late:
            late.confirmed("SEND", send_headers(run.target, queue, LAST_BODY), LAST_BODY)
            late.subscribe(queue, confirm=False)
            while (found := late.next_frame("the last message")).body != LAST_BODY:
                surplus += found.command == "MESSAGE"
            surplus += late.goodbye()
        if surplus:
            raise PerfError(f"{surplus:,} acknowledged messages were delivered again")


class DurableIndividual(Durable):
    """An ACK for each message."""

    id = "3i"
    title = "durable 100 B, receipts per 100, an ack each"
    mode = "client-individual"
    acks_each = True


def group_of(target: Target, queue: str, body: bytes) -> bytes:
    """A hundred durable SENDs, of which the last asks for a receipt."""
    headers = (*send_headers(target, queue, body), *PERSISTENT)
    others = [frame("SEND", headers, numbered(body, place), target.version) for place in range(GROUP - 1)]
    receipt = ("receipt", BLOCK_NUMBER.decode())
    last = frame("SEND", (*headers, receipt), numbered(body, GROUP - 1), target.version)
    return b"".join((*others, last))


class Wire:
    """One connection in non-blocking mode: whole frames in, bytes out as far as the socket takes them."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.unsent = bytearray()
        self._tail = b""

    def read(self) -> bytes:
        """The complete frames so far. Bodies have no NUL, so the last NUL ends a frame. Raises PerfError."""
        data = self._tail + self.receive()
        end = data.rfind(b"\0") + 1
        self._tail = data[end:]
        return data[:end]

    def receive(self) -> bytes:
        """What has arrived, if anything has. Raises PerfError."""
        try:
            data = self.link.sock.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise PerfError(f"the broker broke the connection: {error.strerror}") from error
        if not data:
            self._raise_last_words()
            raise PerfError("the broker closed the connection")
        return data

    def write(self) -> None:
        """Send what the socket takes. Raises PerfError."""
        try:
            del self.unsent[: self.link.sock.send(self.unsent)]
        except BlockingIOError:
            return
        except OSError as error:
            raise PerfError(f"the broker broke the connection: {error.strerror}") from error

    def look_at(self, data: bytes) -> int:
        """Parse frames; returns the number of receipts. Raises PerfError for an ERROR."""
        reader = FrameReader()
        reader.feed(data)
        receipts = 0
        for found in reader.frames():
            raise_if_error(found)
            receipts += found.command == "RECEIPT"
        return receipts

    def _raise_last_words(self) -> None:
        text = " ".join(self._tail.decode(errors="replace").split())
        if text:
            raise PerfError(f"the broker closed the connection after {text[:300]}")


class Source(Wire):
    """The producer: groups of a hundred, while not too many receipts are awaited."""

    def __init__(self, link: Link, group: bytes) -> None:
        super().__init__(link)
        self._group = group
        self.awaited = 0

    def fill(self, groups: Iterator[int]) -> None:
        """Add groups to send, if more may be under way."""
        while len(self.unsent) < UNSENT_BYTES_MIN and self.awaited < RECEIPTS_OPEN_MAX:
            number = next(groups, None)
            if number is None:
                return
            self.unsent += self._group.replace(BLOCK_NUMBER, b"%08d" % number)
            self.awaited += 1

    def take(self) -> bool:
        """Read receipts; True if any arrived."""
        data = self.read()
        if not data:
            return False
        receipts = data.count(b"RECEIPT\n")
        if receipts != data.count(b"\0"):
            receipts = self.look_at(data)
        self.awaited -= receipts
        return True


class Sink(Wire):
    """The consumer: acknowledges each message, or the hundredth and with it those before."""

    def __init__(self, link: Link, acks_each: bool) -> None:
        super().__init__(link)
        self._acks_each = acks_each
        modern = link.target.version == "1.2"
        self._pattern = _ACK_ID if modern else _MESSAGE_ID
        self._before = b"ACK\nid:" if modern else b"ACK\nsubscription:0\nmessage-id:"
        self._between = b"\n\n\0" + self._before
        self.expected = 0
        self.received = 0
        self.awaited = 0

    def take(self) -> bool:
        """Read messages and receipts, and prepare the ACKs; True if any arrived."""
        data = self.read()
        if not data:
            return False
        ids = self._pattern.findall(data)
        if len(ids) != data.count(b"\0"):
            self.awaited -= self.look_at(data)
        self._acknowledge(ids)
        return True

    def _acknowledge(self, ids: list[bytes]) -> None:
        seen, self.received = self.received, self.received + len(ids)
        if self.received > self.expected:
            raise PerfError(f"the consumer received {self.received - self.expected:,} more messages than were sent")
        wanted = ids if self._acks_each else ids[GROUP - 1 - seen % GROUP :: GROUP]
        if not wanted:
            return
        self.unsent += self._before + self._between.join(wanted)
        if self.received == self.expected:
            self.unsent += b"\nreceipt:last"
            self.awaited += 1
        self.unsent += b"\n\n\0"


class Traffic:
    """Moves messages from source to sink, with one selector."""

    def __init__(self, run: Run, source: Source, sink: Sink) -> None:
        self._run = run
        self._source = source
        self._sink = sink

    def send(self, count: int) -> float:
        """Send ``count`` messages, rounded up to whole groups; returns the seconds until all are acknowledged."""
        groups = iter(range(-(-count // GROUP)))
        source, sink = self._source, self._sink
        sink.expected += -(-count // GROUP) * GROUP
        started = time.perf_counter()
        with selectors.DefaultSelector() as selector:
            for wire in (source, sink):
                wire.link.sock.setblocking(False)
                selector.register(wire.link.sock, selectors.EVENT_READ, wire)
            try:
                self._loop(selector, groups, started)
                return time.perf_counter() - started
            finally:
                for wire in (source, sink):
                    wire.link.sock.settimeout(self._run.target.stall_s)

    def _loop(self, selector: selectors.BaseSelector, groups: Iterator[int], started: float) -> None:
        source, sink = self._source, self._sink
        moved_at = started
        while True:
            source.fill(groups)
            if sink.received == sink.expected and not (source.awaited or sink.awaited or sink.unsent):
                return
            for wire in (source, sink):
                if wire.unsent:
                    wire.write()
                events = selectors.EVENT_READ | (selectors.EVENT_WRITE if wire.unsent else 0)
                if selector.get_key(wire.link.sock).events != events:
                    selector.modify(wire.link.sock, events, wire)
            moved = False
            for key, events in selector.select(POLL_S):
                if events & selectors.EVENT_READ:
                    moved |= key.data.take()
                moved |= bool(events & selectors.EVENT_WRITE)
            moved_at = self._watch(moved, moved_at, started)

    def _watch(self, moved: bool, moved_at: float, started: float) -> float:
        run, sink = self._run, self._sink
        now = time.perf_counter()
        how_far = f"{sink.received:,} of {sink.expected:,} received, {self._source.awaited} receipts awaited"
        if not moved and now - moved_at > run.target.stall_s:
            raise PerfError(f"stalled: no progress for {run.target.stall_s:g} s; {how_far}")
        if now - started > run.options.limit_s:
            raise PerfError(f"not finished after {run.options.limit_s:g} s; {how_far}")
        run.progress.show(lambda: how_far)
        return now if moved else moved_at


def fill(run: Run, queue: str, body: bytes, count: int) -> None:
    """Send so many durable messages, a multiple of ``GROUP``. The receipts prove that all are on disk."""
    with Link(run.target) as link:
        source = Source(link, group_of(run.target, queue, body))
        groups = iter(range(count // GROUP))
        source.fill(groups)
        while source.awaited:
            if source.unsent:
                link.send(bytes(source.unsent))
                source.unsent.clear()
            else:
                source.take()
            source.fill(groups)
            run.progress.show(lambda: "filling")
        link.goodbye()
