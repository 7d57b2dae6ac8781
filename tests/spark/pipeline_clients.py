"""Producers and a consumer that go on through every life of a broker, and write the ledger."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from threading import Event, Thread
from typing import Any
from zlib import crc32

from tests.kit.client import Closed, StompSocket, frame
from tests.oracle.client import ESCAPES
from tests.spark.pipeline_ledger import PipelineLedger, Sent

PAUSE_S = 0.4
"""Between two batches of a producer: the load leaves Spark a part of two processors."""
LARGE_SHARE = 0.1
NOTES = ("plain", "with: colon", "wörter", "数字", "back\\slash", "two\nlines", " blanks ", "")


@dataclass
class Served:
    """A broker for clients: where it is, whether it is up, and what it has promised them."""

    port: int
    seed: int
    ledger: PipelineLedger = field(default_factory=PipelineLedger)
    up: Event = field(default_factory=Event)
    done: Event = field(default_factory=Event)
    clients: list[PipelineClient] = field(default_factory=list)

    @property
    def trouble(self) -> list[str]:
        """What went wrong in its clients."""
        return [text for client in self.clients for text in client.trouble]


class PipelineClient(ABC, Thread):
    """Connects whenever the broker is there, and works until the connection ends. ``trouble``: what else went wrong."""

    pause_s = PAUSE_S

    def __init__(self, name: str, served: Served) -> None:
        super().__init__(name=name, daemon=True)
        self.served = served
        self.ledger = served.ledger
        self.random = Random(f"{served.seed} {name}")
        self.trouble: list[str] = []

    def run(self) -> None:
        up, done = self.served.up, self.served.done
        while not done.is_set():
            if not up.wait(PAUSE_S):
                continue
            try:
                with StompSocket(self.served.port) as client:
                    client.connect(login="ann", passcode="x")
                    while not done.is_set():
                        self.work(client)
                        done.wait(self.pause_s)
            except (OSError, Closed):
                done.wait(PAUSE_S)
            except Exception as error:  # a thread has nobody to raise to: the run asks afterwards
                self.trouble.append(f"{self.name}: {error!r}")
                return

    @abstractmethod
    def work(self, client: StompSocket) -> None:
        """One step."""


class PipelineProducer(PipelineClient):
    """Sends numbered messages with headers of all kinds; every tenth body has ``large_bytes``, if there are any."""

    def __init__(self, name: str, served: Served, *, addresses: Sequence[str], large_bytes: int = 0) -> None:
        super().__init__(name, served)
        self.addresses = addresses
        self._large_bytes = large_bytes
        self._numbers = itertools.count(1)

    def made(self, address: str, group: str = "") -> tuple[Sent, bytes]:
        """A message, and its body."""
        number = next(self._numbers)
        is_large = self._large_bytes and self.random.random() < LARGE_SHARE
        size_bytes = self._large_bytes if is_large else self.random.randrange(600)
        body = f"{self.name}-{number} ".encode() + self.random.randbytes(size_bytes)
        headers = {"x-id": f"{self.name}-{number}", "x-note": self.random.choice(NOTES), "x-group": group}
        return Sent(headers["x-id"], address, self.name, number, crc32(body), headers, group), body

    @staticmethod
    def framed(one: Sent, body: bytes, **more: object) -> bytes:
        """Its SEND."""
        own = {name: value.translate(ESCAPES["1.2"]) for name, value in one.headers.items()}
        return frame("SEND", {"destination": f"/queue/{one.address}", "persistent": "true", **own, **more}, body)


class Receipted(PipelineProducer):
    """Asks for a receipt with each message; several are under way."""

    def work(self, client: StompSocket) -> None:
        batch = [self.made(self.addresses[0]) for _ in range(self.random.choice((1, 2, 5, 20)))]
        self.ledger.sending(one for one, _ in batch)
        client.raw(b"".join(self.framed(one, body, receipt=one.id) for one, body in batch))
        for one, _ in batch:
            assert client.expect("RECEIPT").header("receipt-id") == one.id
            self.ledger.confirmed([one])


class Transacted(PipelineProducer):
    """Sends to several addresses in transactions, some of which it aborts. ``repeats``: what was not confirmed is sent
    to the next life again under the same id, and has to happen once.
    """

    def __init__(self, name: str, served: Served, *, repeats: bool, **options: Any) -> None:
        super().__init__(name, served, **options)
        self._repeats = repeats
        self._open: list[tuple[Sent, bytes]] = []
        self._groups = itertools.count(1)
        self.repeated_count = 0

    def work(self, client: StompSocket) -> None:
        if self._open:
            self.repeated_count += 1
        else:
            self._open = self._begun()
        group, aborts = self._open[0][0].group, not self._repeats and self.random.random() < 0.2
        sent = [one for one, _ in self._open]
        frames = [frame("BEGIN", {"transaction": group})]
        frames += [self.framed(one, body, transaction=group) for one, body in self._open]
        ids = {"_AMQ_DUPL_ID": group, "digest": len(sent)} if self._repeats else {}
        frames.append(frame("ABORT" if aborts else "COMMIT", {"transaction": group, "receipt": group, **ids}))
        if aborts:
            self.ledger.dropped(sent)
        if not self._repeats:
            self._open = []
        client.raw(b"".join(frames))
        assert client.expect("RECEIPT").header("receipt-id") == group
        self._open = []
        if not aborts:
            self.ledger.confirmed(sent)

    def _begun(self) -> list[tuple[Sent, bytes]]:
        group = f"{self.name}.{next(self._groups)}"
        count = self.random.choice((1, 2, 6, 30))
        made = [self.made(address, group) for _ in range(count) for address in self.addresses]
        self.ledger.sending(one for one, _ in made)
        return made


class Acknowledger(PipelineClient):
    """Takes messages of one address and acknowledges most of them: every hundredth stays."""

    pause_s = 0.0

    def __init__(self, name: str, served: Served, *, address: str) -> None:
        super().__init__(name, served)
        self._address = address
        self._subscribed: StompSocket | None = None

    def work(self, client: StompSocket) -> None:
        if self._subscribed is not client:
            client.subscribe(f"/queue/{self._address}", consumer_window_size="200000")
            self._subscribed = client
        message = client.message()
        name = str(message.header("x-id"))
        if int(name.rpartition("-")[2]) % 100 == 0:
            return
        self.ledger.acking([name])
        client.acknowledge(message)
        self.ledger.acked([name])
