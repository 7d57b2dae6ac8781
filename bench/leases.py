"""Part ``leases``: what leases cost a broker of its own, over sockets.

A client fills a queue and another one acknowledges each message by itself: on a queue with leases and on one without,
in turns. Then a client that acknowledges nothing has leases run out, as many in a second as it is told.
"""

from __future__ import annotations

import re
import select
import time
import urllib.request
from dataclasses import dataclass
from typing import Final

from artemis_py.errors import PerfError
from artemis_py.perf.link import Link, Target
from artemis_py.stomp.client import frame
from bench.own import ArtemisPy, Own, fill, started
from bench.part import Extent, Finding, Findings, Say

MESSAGES: Final = 50_000
RATE: Final = 100_000
"""So many leases are to end in a second."""
_BACKLOG: Final = 1000
_WAIT_S: Final = 120.0
_BODY: Final = b"x" * 100
_ACK: Final = re.compile(rb"\nack:([^\n]+)\n")
_LAPSING_MS: Final = 200
_SHARE_MIN: Final = 80
"""Percent of the throughput that must be left with leases."""
_QUEUES: Final = f"""\
    <addresses>
      <address name="plain"><anycast><queue name="plain"/></anycast></address>
      <address name="leased"><anycast>
        <queue name="leased" lease-period="1h" max-per-subscription-backlog="-1"/>
      </anycast></address>
      <address name="lapsing"><anycast>
        <queue name="lapsing" lease-period="{_LAPSING_MS}ms" max-per-subscription-backlog="-1"
          max-delivery-attempts="-1"/>
      </anycast></address>
    </addresses>
"""


class Reader:
    """A consumer with a backlog."""

    def __init__(self, target: Target, queue: str, backlog: int, ack: str = "client-individual") -> None:
        self._link = Link(target)
        headers = (("id", "1"), ("destination", f"/queue/{queue}"), ("ack", ack), ("consumer-window-size", "-1"))
        self._link.send(frame("SUBSCRIBE", (*headers, ("max-backlog", str(backlog)))))
        self._tail = b""

    def receive(self) -> list[bytes]:
        """The headers ``ack`` of what has come."""
        data = self._link.receive("messages")
        if b"ERROR\n" in data:
            raise PerfError(f"the broker answers {data[:300]!r}")
        whole = self._tail + data
        end = whole.rfind(b"\0") + 1
        self._tail = whole[end:]
        return _ACK.findall(whole, 0, end)

    def acknowledge(self, acks: list[bytes]) -> None:
        """Acknowledges these."""
        self._link.send(b"".join([b"ACK\nid:%s\n\n\0" % ack for ack in acks]))

    def leave(self) -> None:
        """Disconnects; the broker has settled everything then."""
        self._link.give_back(self._tail)
        self._link.goodbye()

    def drain(self, count: int) -> None:
        """Reads so many messages and acknowledges each; returns when the broker has settled all."""
        done = 0
        while done < count:
            acks = self.receive()
            done += len(acks)
            self.acknowledge(acks)
        self.leave()

    def watch(self, seconds: float) -> int:
        """Reads for so long and acknowledges nothing. Returns how many messages came."""
        count = 0
        until = time.monotonic() + seconds
        while (left_s := until - time.monotonic()) > 0:
            if select.select([self._link.sock], [], [], left_s)[0]:
                count += len(self.receive())
        return count


@dataclass(frozen=True, slots=True)
class Drain:
    """One round on one queue."""

    rate: float
    """Messages in a second."""
    cpu_us: float
    """The broker's CPU time for each message."""


def drain(broker: Own, queue: str, count: int, *, persistent: bool) -> Drain:
    """Fills a queue, and has it emptied by acknowledgements one by one."""
    cpu_s, began_s = broker.cpu_s, time.monotonic()
    fill(broker.target, queue, count, _BODY, persistent=persistent)
    Reader(broker.target, queue, _BACKLOG).drain(count)
    return Drain(count / (time.monotonic() - began_s), (broker.cpu_s - cpu_s) * 1e6 / count)


def compare(broker: Own, count: int, rounds: int, *, persistent: bool) -> list[Finding]:
    """Messages in a second with and without leases, by turns, and what is left of the throughput with them."""
    kind = "persistent" if persistent else "transient"
    plain, leased = Finding(f"{kind}, without leases", "/s"), Finding(f"{kind}, with leases", "/s")
    by_rate = Finding(f"{kind}, throughput with leases of that without", "%")
    by_cpu = Finding(f"{kind}, the same by CPU time", "%", at_least=_SHARE_MIN)
    for queue in ("plain", "leased"):
        drain(broker, queue, count // 5, persistent=persistent)
    for _ in range(rounds):
        without, with_leases = (drain(broker, queue, count, persistent=persistent) for queue in ("plain", "leased"))
        plain.values.append(without.rate)
        leased.values.append(with_leases.rate)
        by_rate.values.append(100 * with_leases.rate / without.rate)
        by_cpu.values.append(100 * without.cpu_us / with_leases.cpu_us)
    return [plain, leased, by_rate, by_cpu]


def ended(broker: Own) -> int:
    """How many leases have ended so far."""
    with urllib.request.urlopen(f"{broker.url}/metrics", timeout=_WAIT_S) as answer:
        for line in answer:
            if line.startswith(b"artemis_leases_ended{") and b'queue="lapsing"' in line:
                return int(float(line.split()[-1]))
    raise PerfError("no metric artemis_leases_ended")


def have_lapse(broker: Own, rate: int, seconds: float) -> list[Finding]:
    """How many leases ended in a second, and what each cost."""
    count = rate * _LAPSING_MS // 1000
    fill(broker.target, "lapsing", count, _BODY)
    reader = Reader(broker.target, "lapsing", count)
    reader.watch(1)
    before, cpu_s, began_s = ended(broker), broker.cpu_s, time.monotonic()
    reader.watch(seconds)
    took_s = time.monotonic() - began_s
    lapsed, used_s = ended(broker) - before, broker.cpu_s - cpu_s
    return [
        Finding(f"leases of {_LAPSING_MS} ms that end, {count:,} at a time", "/s", values=[lapsed / took_s]),
        Finding("broker CPU for each, with the next delivery", "µs", 2, values=[used_s * 1e6 / max(lapsed, 1)]),
    ]


def measure_leases(extent: Extent, say: Say) -> Findings:
    """All of it, on one broker. Raises PerfError."""
    count = extent.messages or (MESSAGES // 5 if extent.quick else MESSAGES)
    leases = Findings("leases")
    with started(ArtemisPy(_QUEUES)) as broker:
        for persistent in (False, True):
            say(f"leases: {count:,} messages, {'persistent' if persistent else 'transient'}")
            leases.found += compare(broker, count, extent.rounds + 1, persistent=persistent)
        say("leases: have them end")
        leases.found += have_lapse(broker, RATE, extent.seconds)
    return leases
