"""Seeded worlds in which queues are filled from the log, and brokers crash meanwhile.

The log itself is the witness, besides what every world checks: each message that it has of the addresses a queue reads
must have come to the queue once, however it came there, and in order.
"""

from __future__ import annotations

from dataclasses import replace

from artemis_py.config.settings import BrokerConfig
from artemis_py.storage.format.log_events import Published, Recalled
from artemis_py.storage.format.reader import events_of
from tests.kit.crash.incarnation import Incarnation
from tests.kit.crash.projection import Projection
from tests.kit.crash.retained import Archive, Telling
from tests.kit.crash.traffic import Fact, Trader
from tests.kit.crash.world import DUPLICATE_IDS_KEPT, CrashWorld
from tests.kit.in_process import Client, configuration
from tests.kit.views import addresses, view

RETAINED = """<journal-retention-directory unit="DAYS" period="7">retained</journal-retention-directory>"""
DESK = "<address name='a.x'><anycast><queue name='desk'/></anycast></address>"
ALL = view("underlying-address='a.#' default-publish-target='a.x'", "all")
RED = view("underlying-address='a.x' recovery-point='epoch'", "red", "<filter string=\"colour = 'red'\"/>")
VALUES = view(
    "underlying-address='a.x,a.y' default-publish-target='a.y' queue-type='lvq' last-value-key='colour'", "values"
)
VIEWS = (ALL, RED, VALUES)
TAKEN = ("desk", "all", "red")
LITTLE_ROOM = "<max-size-messages>4</max-size-messages><page-size-bytes>2000</page-size-bytes>"


class Lost(AssertionError):
    """A queue misses a message, or had it twice, or out of order."""


class FillWorld(CrashWorld):
    """Some lives without views, then some with them."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, lives=4, steps=40)
        self.settings = replace(self.settings, file_bytes=self.rng.choice((4096, 8192, 32768)), retains=True)
        self.archive = self._archive = Archive()
        self._views: tuple[str, ...] = ()
        self._number = 0
        self.arrivals = 0
        """How many messages came to views."""
        self.recalled = 0
        """How many of these came from the log."""

    def configuration(self) -> BrokerConfig:
        return configuration(RETAINED + addresses(DESK, *self._views, settings=LITTLE_ROOM if self._pages else ""))

    def fill(self) -> FillWorld:
        """All lives, and one in which all queues are filled. Raises Lost."""
        store, base = self.open(), Projection(DUPLICATE_IDS_KEPT)
        first = self.rng.randrange(1, 3)
        for number in range(self._lives + first):
            self._views = VIEWS[: self.rng.randrange(1, 4)] if number == first else VIEWS if number > first else ()
            store, base = self.live(store, base)
        life = Incarnation(self.configuration(), store, base, self._now_ms)
        life.drain()
        if life.broker.registry.unfilled or any(queue.filling for queue in life.broker.queues.values()):
            life.advance(1000)
            client = life.client().greet()
            for name in (*TAKEN, "values"):  # a consumer for each queue that waits for room
                queue = life.broker.queues[name]
                client.frame("SUBSCRIBE", f"id:{name}", f"destination:{queue.address.name}::{name}", "ack:auto")
        life.drain()
        Telling().read(self.archive.files(self.disk))
        filling = [queue.name for queue in life.broker.queues.values() if queue.filling is not None]
        if filling:
            raise Lost(f"{filling} are still being filled")
        for name, reads, colour in (("all", "xy", ""), ("red", "x", "red"), ("values", "xy", "")):
            self._check_queue(life.broker.queues[name].id, name, reads, colour)
        return self

    def _step(self, life: Incarnation, traders: list[Trader], promised: list[Fact]) -> None:
        rng = self.rng
        clients = [client for client in life.clients.values() if not client.is_closed]
        if not clients or rng.random() < 0.1:
            clients.append(life.client().greet())
        move = rng.random()
        if move < 0.6:
            self._publish(rng.choice(clients))
        elif move < 0.9:
            self._take(life, rng.choice(clients))
        else:
            life.advance(rng.choice((1, 100)))
        life.settle()
        while rng.random() < 0.6 and life.step(rng):
            life.settle()

    def _publish(self, client: Client) -> None:
        rng = self.rng
        in_transaction = rng.random() < 0.2
        if in_transaction:
            client.frame("BEGIN", "transaction:t")
        for _ in range(rng.randrange(1, 8)):
            self._number += 1
            headers = ["transaction:t"] if in_transaction else []
            client.frame("SEND", f"destination:{rng.choice(('a.x', 'a.x', 'a.y'))}", "persistent:true",
                f"colour:{rng.choice(('red', 'blue'))}", *headers, body=f"{self._number} " + "x" * rng.choice((5, 300)),
            )  # fmt: skip
        if in_transaction:
            client.frame("COMMIT", "transaction:t")

    def _take(self, life: Incarnation, client: Client) -> None:
        """A consumer takes a few messages of a queue."""
        name = self.rng.choice(TAKEN)
        queue = life.broker.queues.get(name)
        if queue is None:
            return
        where = f"destination:{queue.address.name}::{name}"
        client.frame("SUBSCRIBE", f"id:{name}", where, "ack:client-individual", "consumer-window-size:900")
        life.settle()
        for frame in client.heard():
            if frame.command == "MESSAGE" and self.rng.random() < 0.8:
                client.frame("ACK", f"id:{frame.header('ack')}")
        client.collect().clear()
        client.frame("UNSUBSCRIBE", f"id:{name}")

    def _check_queue(self, number: int, name: str, reads: str, colour: str) -> None:
        files = self.archive.files(self.disk)
        wanted: list[int] = []
        came: list[int] = []
        for file in sorted(one for one in files if any(files[one])):
            for event in events_of(file, files[file], [], is_last=file == max(files)):
                if not isinstance(event, Published | Recalled):
                    continue
                head = event.kept.message.head
                is_read = head.address.removeprefix("a.") in reads and colour in ("", head.properties["colour"])
                if isinstance(event, Published) and is_read:
                    wanted.append(event.kept.lsn)
                if number in event.kept.queue_ids:
                    came.append(event.kept.lsn)
                    self.recalled += isinstance(event, Recalled)
        self.arrivals += len(came)
        if came != wanted:
            twice = sorted({lsn for lsn in came if came.count(lsn) > 1})
            missing, more = sorted(set(wanted) - set(came)), sorted(set(came) - set(wanted))
            raise Lost(f"{name}: twice {twice}, missing {missing}, beyond {more}, in order: {came == sorted(came)}")
