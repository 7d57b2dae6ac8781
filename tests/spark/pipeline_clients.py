"""Producers and consumers that go on through every life of a broker, and write the ledger."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from threading import Event, Thread
from typing import ClassVar
from zlib import crc32

from tests.kit.client import Closed, StompSocket, frame
from tests.kit.frames import ESCAPES
from tests.spark.pipeline_ledger import PipelineLedger, Sent

PAUSE_S = 0.4
"""Between two batches of a producer: the load leaves Spark a part of two processors."""
LARGE_SHARE = 0.1
NOTES = ("plain", "with: colon", "wörter", "数字", "back\\slash", "two\nlines", " blanks ", "")


@dataclass
class Served:
    """A broker for clients: where it is, whether it is up, and what it has promised them. ``trouble``: what else went
    wrong in them.
    """

    port: int
    seed: int
    ledger: PipelineLedger = field(default_factory=PipelineLedger)
    up: Event = field(default_factory=Event)
    trouble: list[str] = field(default_factory=list)
    done: Event = field(default_factory=Event)

    @contextmanager
    def by(self, *clients: PipelineClient) -> Iterator[None]:
        """The clients are at work. The broker is up."""
        threads = [Thread(target=self._serve, args=[client], daemon=True) for client in clients]
        self.up.set()
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.done.set()
            for thread in threads:
                thread.join()

    def _serve(self, client: PipelineClient) -> None:
        """Connects whenever the broker is there, and works until the connection ends."""
        while not self.done.is_set():
            if not self.up.wait(PAUSE_S):
                continue
            try:
                with StompSocket(self.port) as socket:
                    socket.connect(login="ann", passcode="x")
                    while not self.done.is_set():
                        client.work(socket)
                        self.done.wait(client.pause_s)
            except (OSError, Closed):
                self.done.wait(PAUSE_S)
            except Exception as error:  # a thread has nobody to raise to: the run asks afterwards
                self.trouble.append(f"{client.name}: {error!r}")
                return


@dataclass
class PipelineClient(ABC):
    """Does one step after the other, for as long as the broker serves it."""

    name: str
    served: Served
    addresses: Sequence[str]
    pause_s: ClassVar[float] = PAUSE_S

    def __post_init__(self) -> None:
        self.ledger = self.served.ledger
        self.random = Random(f"{self.served.seed} {self.name}")
        self.numbers = itertools.count(1)

    @abstractmethod
    def work(self, client: StompSocket) -> None:
        """One step."""


@dataclass
class PipelineProducer(PipelineClient):
    """Sends numbered messages with headers of all kinds; every tenth body has ``large_bytes``, if there are any."""

    large_bytes: int = 0

    def made(self, address: str, group: str = "", **more: object) -> tuple[Sent, bytes]:
        """A message, and its SEND."""
        number = next(self.numbers)
        is_large = self.large_bytes and self.random.random() < LARGE_SHARE
        size_bytes = self.large_bytes if is_large else self.random.randrange(600)
        body = f"{self.name}-{number} ".encode() + self.random.randbytes(size_bytes)
        headers = {"x-id": f"{self.name}-{number}", "x-note": self.random.choice(NOTES), "x-group": group}
        one = Sent(headers["x-id"], address, self.name, number, crc32(body), headers, group)
        own = {name: value.translate(ESCAPES["1.2"]) for name, value in headers.items()}
        self.ledger.sent[one.id] = one
        return one, frame("SEND", {"destination": f"/queue/{address}", "persistent": "true", **own, **more}, body)


@dataclass
class Receipted(PipelineProducer):
    """Asks for a receipt with each message; several are under way."""

    def work(self, client: StompSocket) -> None:
        count = self.random.choice((1, 2, 5, 20))
        batch = [self.made(self.addresses[0], receipt=number) for number in range(count)]
        client.raw(b"".join(data for _, data in batch))
        for number, (one, _) in enumerate(batch):
            assert client.expect("RECEIPT").header("receipt-id") == str(number)
            one.promised = True


@dataclass
class Transacted(PipelineProducer):
    """Sends to several addresses in transactions, some of which it aborts. ``repeats``: what was not confirmed is sent
    to the next life again under the same id, and has to happen once.
    """

    repeats: bool = False
    repeated_count: int = 0
    _open: list[tuple[Sent, bytes]] = field(default_factory=list)
    _groups: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def work(self, client: StompSocket) -> None:
        self.repeated_count += bool(self._open)
        if not self._open:
            group, count = f"{self.name}.{next(self._groups)}", self.random.choice((1, 2, 6, 30))
            pairs = itertools.product(range(count), self.addresses)
            self._open = [self.made(address, group, transaction=group) for _, address in pairs]
        sent = [one for one, _ in self._open]
        group, aborts = sent[0].group, not self.repeats and self.random.random() < 0.2
        if aborts:
            self.ledger.aborted.update(one.id for one in sent)
        ids = {"_AMQ_DUPL_ID": group, "digest": len(sent)} if self.repeats else {}
        frames = [frame("BEGIN", {"transaction": group}), *(data for _, data in self._open)]
        frames.append(frame("ABORT" if aborts else "COMMIT", {"transaction": group, "receipt": group, **ids}))
        if not self.repeats:
            self._open = []
        client.raw(b"".join(frames))
        assert client.expect("RECEIPT").header("receipt-id") == group
        self._open = []
        for one in sent:
            one.promised = not aborts


@dataclass
class Acknowledger(PipelineClient):
    """Takes messages of one address and acknowledges most of them: every hundredth stays."""

    pause_s: ClassVar[float] = 0.0
    subscribed: StompSocket | None = None

    def work(self, client: StompSocket) -> None:
        if self.subscribed is not client:
            client.subscribe(f"/queue/{self.addresses[0]}", consumer_window_size="200000")
            self.subscribed = client
        message = client.message()
        name = str(message.header("x-id"))
        if int(name.rpartition("-")[2]) % 100 == 0:
            return
        self.ledger.acks_asked.add(name)
        client.acknowledge(message)
        self.ledger.acks_confirmed.add(name)
