"""A broker with a retained log on a disk in memory, and clients that replay it: frames in, frames out."""

from __future__ import annotations

from typing import Any

from artemis_py.storage.format.log_events import Published
from artemis_py.storage.format.reader import events_of
from tests.kit.bench import ONE_AT_A_TIME
from tests.kit.crash.retained import Archive
from tests.kit.frames import ServerFrame
from tests.kit.life import Life
from tests.kit.named_clients import NamedClients

QUEUE = "destination:/queue/q"
ADDRESSES = """<address name="far"><anycast>
<queue name="near"><filter string="colour='red'"/></queue></anycast></address>
<address name="news"><multicast/></address>"""


class Stage(NamedClients):
    """Its clients by name. ``attributes`` are those of the queue ``q``. A message is persistent unless a header says
    otherwise.
    """

    address = "/queue/q"
    """Where messages go."""

    def __init__(
        self,
        attributes: str = "",
        *,
        life: Life | None = None,
        cut: bool = False,
        settings: str = "",
        more: str = "",
        core: str = "",
        retained: bool = True,
    ) -> None:
        archive = Archive() if retained else None
        self.life = life or Life(attributes, settings=settings, more=more, core=core, archive=archive)
        broker = self.life.broker
        super().__init__(broker.broker, lambda _: broker.connect(), broker.drain, cut)
        self.replays: Any = broker.replays
        self.archive: Any = self.life.archive
        """The segments that the journal does not need any more."""

    def again(self, attributes: str | None = None) -> Stage:
        """The next life of the broker."""
        return Stage(life=self.life.again(attributes), cut=self.cut)

    def advance(self, duration_ms: int) -> None:
        """Let time pass."""
        self.life.broker.advance(duration_ms)
        self.rest()

    # ---- messages --------------------------------------------------------------------------------

    def send(self, *bodies: str, headers: tuple[str, ...] = (), to: str = "", by: str = "producer") -> None:
        """Messages of one client, each alone."""
        for body in bodies:
            self.write(by, "SEND", f"destination:{to or self.address}", *headers, "persistent:true", body=body)

    def replay(self, name: str, bookmark: str, *headers: str, of: str = QUEUE, id: str = "1") -> None:
        """A client subscribes with a bookmark."""
        self.write(name, "SUBSCRIBE", f"id:{id}", of, f"bookmark:{bookmark}", *headers)

    def text(self, name: str) -> str:
        """The bodies of the messages that a client got since it was asked last, one behind the other."""
        return "".join(self.got(name))

    def take(self, queue: str, count: int = 1000, *, name: str = "taker") -> list[str]:
        """What a client gets of a queue and acknowledges, one by one."""
        self.subscribe(name, ONE_AT_A_TIME, to=f"{self.queue(queue).address.name}::{queue}")
        bodies: list[str] = []
        while len(bodies) < count and (frames := self.messages(name)):
            for frame in frames:
                bodies.append(frame.body.decode())
                self.settle(name, frame)
        self.write(name, "UNSUBSCRIBE", "id:1")
        self.frames(name)
        return bodies

    # ---- the log ---------------------------------------------------------------------------------

    def offsets(self, address: str = "q") -> list[int]:
        """The lsns of the messages published to an address, as every reader of its files finds them: the column
        ``offset`` of Spark.
        """
        files = self.archive.files(self.life.disk)
        events = [
            event
            for name in sorted(files)
            if any(files[name])
            for event in events_of(name, files[name], [], is_last=name == max(files))
        ]
        return [
            event.lsn for event in events if isinstance(event, Published) and event.kept.message.head.address == address
        ]


def bookmarks(frames: list[ServerFrame]) -> list[int]:
    """The bookmarks of messages: every one has its own."""
    return [int(frame.header("bookmark") or "none") for frame in frames]


def stage(cut: bool, *bodies: str) -> Stage:
    """A broker whose log has these messages."""
    made = Stage(cut=cut, more=ADDRESSES)
    made.send(*bodies)
    return made


def timed(cut: bool) -> tuple[Stage, list[int]]:
    """A message in each of three minutes, and the dates of them in whole seconds."""
    here = Stage(cut=cut)
    dates: list[int] = []
    for body in "abc":
        here.advance(60_000 - here.life.broker.loop.clock_ms() % 1000)
        dates.append(here.life.broker.loop.clock_ms())
        here.send(body)
    return here, dates
