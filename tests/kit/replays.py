"""A broker with a retained log on a disk in memory, and clients that replay it: frames in, frames out."""

from __future__ import annotations

from tests.kit.crash.retained import Archive
from tests.kit.frames import ServerFrame
from tests.kit.life import Life

QUEUE = "destination:/queue/q"
ADDRESSES = """<address name="far"><anycast>
<queue name="near"><filter string="colour='red'"/></queue></anycast></address>
<address name="news"><multicast/></address>"""


def bookmarks(frames: list[ServerFrame]) -> list[int]:
    """The bookmarks of messages: every one has its own."""
    return [int(frame.header("bookmark") or "none") for frame in frames]


def stage(cut: bool, *bodies: str) -> Life:
    """A broker with a retained log that has these messages."""
    made = Life(more=ADDRESSES, archive=Archive(), cut=cut)
    made.send_all(bodies)
    return made


def timed(cut: bool) -> tuple[Life, list[int]]:
    """A message in each of three minutes, and the dates of them in whole seconds."""
    here = stage(cut)
    dates: list[int] = []
    for body in "abc":
        here.broker.advance(60_000 - here.broker.loop.clock_ms() % 1000)
        dates.append(here.broker.loop.clock_ms())
        here.send(body)
    return here, dates
