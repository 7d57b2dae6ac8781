"""A broker with a retained log on a disk in memory, and clients that replay it: frames in, frames out."""

from __future__ import annotations

from artemis_py.core.replay.manager import Replays
from artemis_py.storage.format.log_events import Event, Published
from artemis_py.storage.format.reader import events_of
from tests.kit.crash.retained import Archive
from tests.kit.frames import ServerFrame
from tests.kit.life import Life, OnLife

QUEUE = "destination:/queue/q"
ADDRESSES = """<address name="far"><anycast>
<queue name="near"><filter string="colour='red'"/></queue></anycast></address>
<address name="news"><multicast/></address>"""


class Stage(OnLife):
    """Its clients by name. A message is persistent unless a header says otherwise."""

    def __init__(self, life: Life | None = None, *, cut: bool = False, core: str = "", settings: str = "") -> None:
        super().__init__(life or Life("", more=ADDRESSES, core=core, settings=settings, archive=Archive()), cut=cut)

    @property
    def replays(self) -> Replays:
        """The replays of the broker."""
        replays = self.life.broker.replays
        assert replays is not None
        return replays

    @property
    def archive(self) -> Archive:
        """The segments that the journal does not need any more."""
        archive = self.life.archive
        assert archive is not None
        return archive

    def again(self) -> Stage:
        """The next life of the broker."""
        return Stage(self.life.again(), cut=self.cut)

    # ---- messages --------------------------------------------------------------------------------

    def send(self, *bodies: str, headers: tuple[str, ...] = (), to: str = "/queue/q", by: str = "producer") -> None:
        """Messages of one client, each alone."""
        for body in bodies:
            self.write(by, "SEND", f"destination:{to}", "persistent:true", *headers, body=body)

    def replay(self, name: str, bookmark: str, *headers: str, of: str = QUEUE, id: str = "1") -> None:
        """A client subscribes with a bookmark."""
        self.write(name, "SUBSCRIBE", f"id:{id}", of, f"bookmark:{bookmark}", *headers)

    def got(self, name: str) -> list[str]:
        """Their bodies; of one that says that everything was sent, ``completed``."""
        return ["completed" if frame.header("completed") else frame.body.decode() for frame in self.messages(name)]

    # ---- the log ---------------------------------------------------------------------------------

    def logged(self) -> list[Event]:
        """The events of the log, as every reader of its files finds them."""
        files = self.archive.files(self.life.disk)
        found: list[Event] = []
        for name in sorted(files):
            found += events_of(name, files[name], [], is_last=name == max(files)) if any(files[name]) else []
        return found

    def offsets(self, address: str = "q") -> list[int]:
        """The lsns of the messages published to an address: the column ``offset`` of Spark."""
        return [
            event.lsn
            for event in self.logged()
            if isinstance(event, Published) and event.kept.message.head.address == address
        ]


def bookmarks(frames: list[ServerFrame]) -> list[int]:
    """The bookmarks of messages."""
    return [int(frame.header("bookmark") or -1) for frame in frames]


def stage(cut: bool, *bodies: str) -> Stage:
    """A broker whose log has these messages."""
    made = Stage(cut=cut)
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
