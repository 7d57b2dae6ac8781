"""Two brokers under one query, and what is done to them and to it all the time, ``OFTEN``."""

from __future__ import annotations

import json
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final

from artemis_py.log_codes import CLOCK
from artemis_py.storage.format.scan import log_files
from tests.kit.process import STOMP, eventually
from tests.kit.set_clock import SettableClock
from tests.spark.live import SETTINGS, LiveBroker, live_broker, send_many
from tests.spark.pipeline_clients import Acknowledger, Receipted, Served, Transacted
from tests.spark.pipeline_driver import ADDRESSES, COPIED
from tests.spark.pipeline_kills import START_S, ApplicationRun, Driver, copies_in, delivered_rows
from tests.spark.pipeline_ledger import PipelineLedger

NAMES: Final = ("one", "two")
_LIMITS: Final = 'unit="HOURS" period="1" storage-limit="400K"'
"""Of the retained log: less than it gets in a minute. What the query has not read stays all the same."""
_LARGE_BYTES: Final = 30_000
_STOMP: Final = STOMP + f";stompMinLargeMessageSize={_LARGE_BYTES // 2}"
_SETTINGS: Final = SETTINGS.replace("<max-delivery-attempts>2<", "<max-delivery-attempts>-1<")
_ROLLED: Final = 400
"""So many messages of a kB fill some segments; they are of a ring, and of no address that the query reads."""
_SET_S: Final = (-7200.0, -600.0, -2.0, 0.0, 2.0, 600.0, 7200.0)


class ChaosBroker:
    """One broker and its later lives, its clock, its clients, and what these were promised."""

    def __init__(self, live: LiveBroker, key: str, clock: SettableClock, seed: int) -> None:
        self.live = live
        self.key = key
        """Its first name, under which the query goes on."""
        self.clock = clock
        self.names = 1
        self.served = served = Served(live.process.port, seed)
        self.ledger = served.ledger
        served.clients += [
            Receipted(f"{key}.plain", served, addresses=["orders"], large_bytes=_LARGE_BYTES),
            Transacted(f"{key}.pair", served, addresses=["left", "right"], repeats=False),
            Transacted(f"{key}.again", served, addresses=["again"], repeats=True, large_bytes=_LARGE_BYTES),
            *(Acknowledger(f"{key}.{address}", served, address=address) for address in ADDRESSES),
        ]

    def start_again(self, name: str | None = None) -> None:
        """After SIGKILL, from its files."""
        self.served.up.clear()
        self.live.kill()
        self.live.start_again(name)
        self.served.up.set()

    def fail_over(self) -> None:
        """To its stand-by, on another port; the next time back."""
        self.served.up.clear()
        self.live.fail_over()
        self.served.up.set()

    def cursors(self) -> list[str]:
        """The names of those that hold its log."""
        with urllib.request.urlopen(f"{self.live.active_url}/log/cursors", timeout=START_S) as answer:
            return [one["name"] for one in json.load(answer)["cursors"]]

    def dropped(self) -> int:
        """How many segments retention has removed so far."""
        return log_files([self.live.retained, self.live.folder / "journal"])[0].number - 1

    def problems(self, rows_folder: Path) -> list[str]:
        """What is wrong with the rows and the queues."""
        rows = delivered_rows(rows_folder, self.key)
        found = self.ledger.problems(rows) + self.ledger.transaction_problems(rows) + self.ledger.order_problems(rows)
        process = self.live.process
        depths = {name: int(process.metric("artemis_durable_message_count", queue=name)) for name in ADDRESSES}
        return found + self.ledger.depth_problems({"the broker": depths})


class ChaosRun(ApplicationRun):
    """For some minutes; then the query reads to the end, and is judged."""

    def __init__(self, folder: Path, brokers: list[ChaosBroker], seed: int) -> None:
        urls = ",".join(broker.live.url for broker in brokers)
        stomp = f"tcp://127.0.0.1:{brokers[0].live.process.port}"
        super().__init__(folder, Driver(folder, (urls, stomp), ["url"]), seed)
        self.brokers = brokers
        self.disturbed: Counter[str] = Counter()
        self.rows = self.copies = 0

    def run(self, minutes: float) -> None:
        """All of it. What went wrong is in ``problems``."""
        for broker in self.brokers:  # what comes before that, retention may take
            eventually("a cursor", broker.cursors, bool, START_S)
        self.loop([broker.served for broker in self.brokers], self._kinds(time.monotonic() + minutes * 60))
        self._judge()

    def disturb(self, kind: str) -> None:
        """One of the brokers, or the query."""
        DISTURBANCES[kind](self, self.random.choice(self.brokers))
        self.disturbed[kind] += 1

    def _kinds(self, until: float) -> Iterator[str]:
        """Of disturbances: each as often as it stands in ``OFTEN``, in any order, again and again."""
        while True:
            for kind in self.random.sample(OFTEN, len(OFTEN)):
                if time.monotonic() > until:
                    return
                yield kind

    def _judge(self) -> None:
        folder = self.folder / "out" / "url"
        for broker in self.brokers:
            self.problems += [f"{broker.key}: {text}" for text in broker.problems(folder)]
        self.rows = len(delivered_rows(folder))
        known = len(delivered_rows(folder, *(broker.key for broker in self.brokers)))
        if known != self.rows:
            self.problems.append(f"{self.rows - known} of {self.rows} rows are of brokers of other names")
        both = PipelineLedger({name: one for broker in self.brokers for name, one in broker.ledger.sent.items()})
        copied = [one for one in both.sent.values() if one.address == COPIED and one.promised]
        copies = copies_in(self.brokers[0].live, len(copied))
        self.copies = len(copies)
        self.problems += [f"copied: {text}" for text in both.problems(copies, addresses=[COPIED])]

    @property
    def promised(self) -> int:
        """How many messages got their receipt."""
        return sum(one.promised for broker in self.brokers for one in broker.ledger.sent.values())

    @property
    def clock_steps(self) -> int:
        """How often a broker noticed that its clock was set."""
        logs = [path for broker in self.brokers for path in broker.live.folder.glob("broker*.log")]
        return sum(path.read_text("utf-8").count(f" {CLOCK} ") for path in logs)

    def summary(self) -> str:
        """One line about the run."""
        disturbed = ", ".join(f"{count} x {name}" for name, count in sorted(self.disturbed.items()))
        dropped = " and ".join(str(broker.dropped()) for broker in self.brokers)
        return (
            f"seed {self.seed}: {disturbed}; {self.clock_steps} steps of clocks noticed, {self.driver.lives} lives of"
            f" the application ({self.ended_by_itself} ended by themselves),"
            f" {sum(self.driver.commits().values()):,} batches, {self.promised:,} receipted messages,"
            f" {self.rows:,} rows, {self.copies:,} copies, {dropped} segments removed by retention,"
            f" {len(self.problems)} problems"
        )


def _rename(_run: ChaosRun, broker: ChaosBroker) -> None:
    broker.names += 1
    broker.start_again(f"{broker.key}-{broker.names}")


def _roll(_run: ChaosRun, broker: ChaosBroker) -> None:
    with broker.live.client() as client:
        send_many(client, "ring", 0, _ROLLED, 1000)


def _set_clock(run: ChaosRun, broker: ChaosBroker) -> None:
    broker.clock.set(run.random.choice(_SET_S))


DISTURBANCES: Final[dict[str, Callable[[ChaosRun, ChaosBroker], None]]] = {
    "a broker killed": lambda _run, broker: broker.start_again(),
    "a broker killed and renamed": _rename,
    "a broker killed and its stand-by active": lambda _run, broker: broker.fail_over(),
    "a clock set": _set_clock,
    "a log rolled": _roll,
    "the JVM killed": lambda run, _broker: run.kill_in_application("jvm"),
    "a worker killed": lambda run, _broker: run.kill_in_application("worker"),
    "the application killed": lambda run, _broker: run.kill_in_application("application"),
}
"""What can be done to one of the brokers, or to the query."""
OFTEN: Final = (
    *3 * ("a broker killed",),
    *2 * ("a broker killed and renamed",),
    *3 * ("a broker killed and its stand-by active",),
    *5 * ("a clock set",),
    *4 * ("a log rolled",),
    *2 * ("a worker killed",),
    "the JVM killed",
    "the application killed",
)


@contextmanager
def chaos_broker(folder: Path, key: str, seed: int) -> Iterator[ChaosBroker]:
    """One that is gone in the end."""
    clock = SettableClock(folder / "clock")
    options = {
        "settings": _SETTINGS,
        "limits": _LIMITS,
        "stomp": _STOMP,
        "environment": clock.environment,
        "is_pair": True,
    }
    with live_broker(folder, name=key, start_s=START_S, **options) as live:
        yield ChaosBroker(live, key, clock, Random(f"{seed} {key}").getrandbits(32))
