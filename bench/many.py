"""``python -m bench.many``: how a broker of its own bears very many queues and subscriptions, made by STOMP clients.

It tells memory and the broker's CPU time for each, in the first and the last tenth of them, and the longest turn.
"""

from __future__ import annotations

import argparse
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from artemis_py.perf.link import Link
from artemis_py.terminal_output import say
from bench.own import ArtemisPy, Own, started

STEPS: Final = 10
_BATCH: Final = 500
_CONNECTIONS: Final = 4
_TOPICS: Final = 1000
_WAIT_S: Final = 120.0
_PERSISTENT: Final = "persistent:true\n"

_MORE: Final = """\
  <max-addresses>-1</max-addresses><max-queues>-1</max-queues>
  <address-queue-scan-period>-1</address-queue-scan-period>
  <message-expiry-scan-period>-1</message-expiry-scan-period>
"""


@dataclass(frozen=True, slots=True)
class Kind:
    """What is made many times: the frame that makes number N on one of the connections."""

    persistent: bool
    frame: str
    what: str


KINDS: Final = {
    "queues": Kind(False, "SEND\ndestination:/queue/q.{n}\n{receipt}\nx\0", "a queue with a message"),
    "queues-persistent": Kind(
        True, "SEND\ndestination:/queue/q.{n}\n" + _PERSISTENT + "{receipt}\nx\0", "a queue with a persistent message"
    ),
    "durable": Kind(
        True,
        "SUBSCRIBE\nid:{n}\ndestination:/topic/t.{topic}\ndurable-subscription-name:s{n}\n{receipt}\n\0",
        "a durable subscription and its consumer",
    ),
    "subscriptions": Kind(
        False, "SUBSCRIBE\nid:{n}\ndestination:/topic/t.{topic}\n{receipt}\n\0", "a subscription of a topic"
    ),
}


@dataclass(frozen=True, slots=True)
class Step:
    """A tenth of them: how many there were then, what memory the process had, and what each took of CPU time."""

    count: int
    memory_bytes: int
    cpu_us_each: float


def make_many(broker: Own, kind: Kind, count: int, memory_bytes_max: int) -> Iterator[Step]:
    """Makes so many, a tenth at a time; stops early when the process takes more memory than it may."""
    targets = [replace(broker.target, connect_headers=(("client-id", f"c{one}"),)) for one in range(_CONNECTIONS)]
    links = [Link(target) for target in targets]
    made = 0
    for step in range(1, STEPS + 1):
        cpu_s, before = broker.cpu_s, made
        while made < count * step // STEPS:
            size = min(_BATCH, count * step // STEPS - made)
            frames = [
                kind.frame.format(n=n, topic=n % _TOPICS, receipt="" if n < made + size - 1 else f"receipt:{n}\n")
                for n in range(made, made + size)
            ]
            made += size
            link = links[made // _BATCH % _CONNECTIONS]
            link.send("".join(frames).encode())
            link.next_frame("RECEIPT")
        yield Step(made, broker.memory_bytes, (broker.cpu_s - cpu_s) * 1e6 / max(made - before, 1))
        if broker.memory_bytes > memory_bytes_max:
            break
    for link in links:
        link.close()


def scrape(broker: Own) -> tuple[float, int]:
    """The longest turn so far in seconds, and how many bytes the scrape had."""
    longest_s = -1.0
    size_bytes = 0
    with urllib.request.urlopen(f"{broker.url}/metrics", timeout=_WAIT_S) as answer:
        for line in answer:
            size_bytes += len(line)
            if line.startswith(b"artemis_turn_duration_seconds_max{"):
                longest_s = float(line.split()[-1])
    return longest_s, size_bytes


def measure(kind: Kind, count: int, memory_bytes_max: int) -> tuple[list[Step], float, int]:
    """The steps, the memory before them in bytes, and the longest turn in seconds; told as they come."""
    many = ArtemisPy(_MORE, parameters=";maxSubscriptions=10000000", persistent=kind.persistent)
    with started(many) as broker:
        start_bytes = broker.memory_bytes
        steps: list[Step] = []
        for step in make_many(broker, kind, count, memory_bytes_max):
            steps.append(step)
            each_bytes = (step.memory_bytes - start_bytes) / step.count
            memory_mib = step.memory_bytes >> 20
            say(f"{step.count:>9}  {memory_mib:>6} MiB  {each_bytes:7.0f} B  {step.cpu_us_each:6.1f} us")
        longest_s, _ = scrape(broker)
        began = time.monotonic()
        again_s, scrape_bytes = scrape(broker)
        took_s = time.monotonic() - began
        say(f"a scrape of {scrape_bytes >> 20} MiB took {took_s:.1f} s")
        say(f"the longest turn beside it {again_s * 1e3:.1f} ms")
    return steps, longest_s, start_bytes


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code: 1 when the last tenth took half as much again as the first."""
    parser = argparse.ArgumentParser(prog="python -m bench.many", description=__doc__)
    parser.add_argument("--kind", choices=KINDS, default="queues")
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--memory-max-mib", type=int, default=5500, help="stop early at this (default %(default)s)")
    options = parser.parse_args(argv)
    kind = KINDS[options.kind]
    say(f"{options.count} times {kind.what}")
    steps, longest_s, start_bytes = measure(kind, options.count, options.memory_max_mib << 20)
    each_bytes = (steps[-1].memory_bytes - start_bytes) / steps[-1].count
    ratio = steps[-1].cpu_us_each / steps[0].cpu_us_each
    say(f"{steps[-1].count} x {kind.what}: {each_bytes:.0f} B each, {steps[0].cpu_us_each:.1f} us each first,")
    say(f"{steps[-1].cpu_us_each:.1f} us last (ratio {ratio:.2f}), longest turn {longest_s * 1e3:.1f} ms")
    return int(ratio > 1.5)


if __name__ == "__main__":
    sys.exit(main())
