"""Where messages go that fail or expire, and how many are there."""

from __future__ import annotations

from tests.kit.bench import Bench
from tests.kit.frames import ServerFrame

TARGETS = """<address name="dead"><anycast><queue name="dead"/></anycast></address>
<address name="over"><anycast><queue name="over"/></anycast></address>"""
SETTINGS = "<dead-letter-address>dead</dead-letter-address><expiry-address>over</expiry-address>"


def opened(cut: bool, attributes: str = "") -> Bench:
    """A queue with somewhere to go for what fails and for what expires."""
    return Bench(attributes, settings=SETTINGS, more=TARGETS, cut=cut)


def counts(bench: Bench) -> tuple[int, int, int]:
    """Messages on the queue, on the expiry address and on the dead-letter address."""
    return bench.count(), bench.count("over"), bench.count("dead")


def shown(frames: list[ServerFrame]) -> str:
    """The bodies, one character each."""
    return b"".join(frame.body for frame in frames).decode()


def refused(bench: Bench, name: str, *headers: str) -> str:
    """A client whose SUBSCRIBE is refused; what the ERROR says."""
    bench.subscribe(name, *headers)
    return bench.error(name).header("message") or ""


def size_of(body: str, *headers: str) -> int:
    """Encoded bytes of a message."""
    bench = Bench()
    bench.send(body, *headers)
    return bench.queue().contents.counters.size_bytes
