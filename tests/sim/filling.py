"""Seeded worlds in which queues are filled from the log, and brokers crash meanwhile.

The log itself is the witness: each message that it has of the addresses a queue reads must have come to the queue once,
however it came there, and in order.
"""

from __future__ import annotations

import random
from contextlib import suppress

from artemis_py.storage.format.log_events import Event, Published, Recalled
from artemis_py.storage.format.reader import events_of
from artemis_py.storage.journal.settings import JournalSettings
from tests.kit.crash.incarnation import Incarnation
from tests.kit.crash.opening import SimStore
from tests.kit.crash.projection import Projection
from tests.kit.crash.retained import Archive
from tests.kit.disk import PowerCut, SimDisk
from tests.kit.in_process import START_MS, Client, configuration
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


class FillWorld:
    """Some lives without views, then some with them. Everything follows from ``seed``."""

    def __init__(self, seed: int, *, lives: int = 4, steps: int = 40) -> None:
        self.rng = random.Random(seed)
        self.disk = SimDisk(self.rng)
        self.archive = Archive()
        self.settings = JournalSettings(
            file_bytes=self.rng.choice((4096, 8192, 32768)),
            compact_files_min=self.rng.choice((2, 3)),
            compact_percentage=self.rng.choice((30, 90)),
            duplicate_ids_kept=8,
            retains=True,
        )
        self._room = LITTLE_ROOM if self.rng.random() < 0.5 else ""
        self._lives, self._steps = lives, steps
        self._now_ms = START_MS
        self._number = 0
        self.arrivals = 0
        """How many messages came to views."""
        self.recalled = 0
        """How many of these came from the log."""

    def run(self) -> FillWorld:
        """All lives. Raises Lost."""
        first = self.rng.randrange(1, 3)
        for number in range(self._lives + first):
            shown = VIEWS[: self.rng.randrange(1, 4)] if number == first else VIEWS if number > first else ()
            self._live(shown)
        life = self._open(VIEWS)
        life.drain()
        if life.broker.registry.unfilled or any(queue.filling for queue in life.broker.queues.values()):
            life.advance(1000)
            self._empty(life)
        life.drain()
        self._check(life)
        return self

    def _open(self, shown: tuple[str, ...]) -> Incarnation:
        core = RETAINED + addresses(DESK, *shown, settings=self._room)
        while True:
            try:
                return Incarnation(
                    configuration(core), SimStore(self.disk, self.settings, self.archive), Projection(8), self._now_ms
                )
            except PowerCut:
                self.disk.crash()

    def _live(self, shown: tuple[str, ...]) -> None:
        life = self._open(shown)
        self.disk.cut_at = self.disk.operations + self.rng.randrange(1, 5 * self._steps)
        with suppress(PowerCut):
            self._act(life)
        self._now_ms = life.loop.now_ms + 1
        self.disk.crash()

    def _act(self, life: Incarnation) -> None:
        rng = self.rng
        clients: list[Client] = []
        for _ in range(rng.randrange(1, self._steps)):
            if not clients or rng.random() < 0.1:
                clients.append(life.connect().greet())
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
        for frame in client.collect():
            if frame.command == "MESSAGE" and self.rng.random() < 0.8:
                client.frame("ACK", f"id:{frame.header('ack')}")
        client.collect().clear()
        client.frame("UNSUBSCRIBE", f"id:{name}")

    def _empty(self, life: Incarnation) -> None:
        """A consumer for each queue that waits for room."""
        client = life.connect().greet()
        for name in (*TAKEN, "values"):
            queue = life.broker.queues[name]
            client.frame("SUBSCRIBE", f"id:{name}", f"destination:{queue.address.name}::{name}", "ack:auto")
        life.drain()

    # ---- what must be so -------------------------------------------------------------------------

    def _check(self, life: Incarnation) -> None:
        self.archive.read(self.disk)
        filling = [queue.name for queue in life.broker.queues.values() if queue.filling is not None]
        if filling:
            raise Lost(f"{filling} are still being filled")
        events = self.events()
        both = ("a.x", "a.y")
        for name, reads, colour in (("all", both, ""), ("red", ("a.x",), "red"), ("values", both, "")):
            self._check_queue(life.broker.queues[name].id, name, reads, colour, events)

    def events(self) -> list[Event]:
        """The events of the log."""
        files = self.archive.files(self.disk)
        found: list[Event] = []
        for name in sorted(files):
            found += events_of(name, files[name], [], is_last=name == max(files)) if any(files[name]) else []
        return found

    def _check_queue(self, number: int, name: str, reads: tuple[str, ...], colour: str, events: list[Event]) -> None:
        wanted: list[int] = []
        came: list[int] = []
        for event in events:
            if not isinstance(event, Published | Recalled):
                continue
            kept = event.kept
            if isinstance(event, Published):
                head = kept.message.head
                if head.address in reads and colour in ("", head.properties["colour"]):
                    wanted.append(kept.lsn)
            if number in kept.queue_ids:
                came.append(kept.lsn)
                self.recalled += isinstance(event, Recalled)
        self.arrivals += len(came)
        if came != wanted:
            twice = sorted({lsn for lsn in came if came.count(lsn) > 1})
            missing, more = sorted(set(wanted) - set(came)), sorted(set(came) - set(wanted))
            raise Lost(f"{name}: twice {twice}, missing {missing}, beyond {more}, in order: {came == sorted(came)}")
