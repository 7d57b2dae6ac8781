"""Producers and a consumer that go on through every life of a broker, and write the ledger."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from random import Random
from threading import Event, Thread
from zlib import crc32

from tests.kit.client import Closed, StompSocket, frame
from tests.spark.pipeline_ledger import PipelineLedger, Sent

PAUSE_S = 0.4
"""Between two batches of a producer: the load leaves Spark a part of two processors."""
LARGE_SHARE = 0.1
NOTES = ("plain", "with: colon", "wörter", "数字", "back\\slash", "two\nlines", " blanks ", "")


class PipelineClient(ABC, Thread):
    """Connects whenever a broker is there, and works until the connection ends. ``trouble``: what else went wrong."""

    def __init__(self, name: str, port: int, ledger: PipelineLedger, seed: int, up: Event, done: Event) -> None:
        super().__init__(name=name, daemon=True)
        self.ledger = ledger
        self.random = Random(f"{seed} {name}")
        self.trouble: list[str] = []
        self._port = port
        self._up = up
        self._done = done

    def run(self) -> None:
        while not self._done.is_set():
            if not self._up.wait(PAUSE_S):
                continue
            try:
                with StompSocket(self._port) as client:
                    client.connect(login="ann", passcode="x")
                    while not self._done.is_set():
                        self.work(client)
            except (OSError, Closed):
                self._done.wait(PAUSE_S)
            except Exception as error:  # a thread has nobody to raise to: the run asks afterwards
                self.trouble.append(f"{self.name}: {error!r}")
                return

    def rest(self) -> None:
        """Until the next batch."""
        self._done.wait(PAUSE_S)

    @abstractmethod
    def work(self, client: StompSocket) -> None:
        """One step."""


class PipelineProducer(PipelineClient):
    """Sends numbered messages with headers of all kinds; every tenth body has ``large_bytes``, if there are any."""

    def __init__(
        self,
        name: str,
        port: int,
        ledger: PipelineLedger,
        seed: int,
        up: Event,
        done: Event,
        *,
        addresses: Sequence[str],
        large_bytes: int = 0,
    ) -> None:
        super().__init__(name, port, ledger, seed, up, done)
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
        own = {name: escaped(value) for name, value in one.headers.items()}
        return frame("SEND", {"destination": f"/queue/{one.address}", "persistent": "true", **own, **more}, body)


def escaped(text: str) -> str:
    """A header's value as STOMP 1.2 writes it."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace(":", "\\c")


class Receipted(PipelineProducer):
    """Asks for a receipt with each message; several are under way."""

    def work(self, client: StompSocket) -> None:
        batch = [self.made(self.addresses[0]) for _ in range(self.random.choice((1, 2, 5, 20)))]
        self.ledger.sending(one for one, _ in batch)
        client.raw(b"".join(self.framed(one, body, receipt=one.id) for one, body in batch))
        for one, _ in batch:
            assert client.expect("RECEIPT").header("receipt-id") == one.id
            self.ledger.confirmed([one])
        self.rest()


class Transacted(PipelineProducer):
    """Sends to several addresses in transactions, some of which it aborts. ``repeats``: what was not confirmed is sent
    to the next life again under the same id, and has to happen once.
    """

    def __init__(
        self, name: str, port: int, ledger: PipelineLedger, seed: int, up: Event, done: Event,
        *, addresses: Sequence[str], repeats: bool, large_bytes: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(name, port, ledger, seed, up, done, addresses=addresses, large_bytes=large_bytes)
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
        self.rest()

    def _begun(self) -> list[tuple[Sent, bytes]]:
        group = f"{self.name}.{next(self._groups)}"
        count = self.random.choice((1, 2, 6, 30))
        made = [self.made(address, group) for _ in range(count) for address in self.addresses]
        self.ledger.sending(one for one, _ in made)
        return made


class Acknowledger(PipelineClient):
    """Takes messages of one address and acknowledges most of them: every hundredth stays."""

    def __init__(
        self, name: str, port: int, ledger: PipelineLedger, seed: int, up: Event, done: Event, *, address: str
    ) -> None:
        super().__init__(name, port, ledger, seed, up, done)
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
