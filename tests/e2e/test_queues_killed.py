"""Queues of every type under SIGKILL in the middle of traffic: what stands on them after the restart is what their
rules (docs/queues.md) promise of the messages that were confirmed, and acknowledged, before.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.kit.client import StompSocket, connected, frame
from tests.kit.frames import ServerFrame
from tests.kit.process import BrokerProcess, configuration, eventually, retained, started

pytestmark = pytest.mark.e2e

ADDRESSES = """\
      <address name="q"><anycast><queue name="q" {attributes}/></anycast></address>
      <address name="news"><multicast/></address>
"""
SETTINGS = """\
      <address-setting match="#"><page-size-bytes>1K</page-size-bytes>
        <max-read-page-bytes>1M</max-read-page-bytes></address-setting>
      <address-setting match="news"><retroactive-message-count>5</retroactive-message-count></address-setting>
"""
BURST = 5
ACKNOWLEDGED = 10
HELD_MS = 1500
KEYS, GROUPS = 7, 5


def group_of(number: int) -> int:
    """Three messages that follow each other are of one group."""
    return number // 3 % GROUPS


def headers_of(number: int, held_until_ms: int) -> dict[str, object]:
    """What the message with this number is sent with; every third is held where the queue holds."""
    held = {"x-qpid-not-valid-before": held_until_ms} if number % 3 == 0 else {}
    return {"persistent": "true", "priority": number % 10, "k": number * 5 % KEYS,
            "JMSXGroupID": f"g{group_of(number)}", **held}  # fmt: skip


@dataclass
class Traffic:
    """What clients know: numbers of messages by what became of them."""

    sent: set[int] = field(default_factory=set)
    promised: set[int] = field(default_factory=set)
    refused: set[int] = field(default_factory=set)
    acknowledging: set[int] = field(default_factory=set)
    acknowledged: set[int] = field(default_factory=set)
    in_hand: set[int] = field(default_factory=set)
    """With the consumer, and not acknowledged."""
    held_until_ms: int = 0

    @property
    def must_be_there(self) -> set[int]:
        """Confirmed, and nobody tried to acknowledge them."""
        return self.promised - self.acknowledging


def produce(port: int, destination: str, traffic: Traffic) -> None:
    """Sends bursts of messages with receipts until the broker is gone."""
    number = 0
    with connected(port, "1.1") as client:
        while True:
            numbers = range(number + 1, number + 1 + BURST)
            number += BURST
            traffic.sent.update(numbers)
            client.raw(
                b"".join(
                    frame(
                        "SEND",
                        {"destination": destination, "receipt": one, **headers_of(one, traffic.held_until_ms)},
                        b"%d" % one,
                    )
                    for one in numbers
                )
            )
            for _ in numbers:
                answer = client.receive()
                taken = traffic.promised if answer.command == "RECEIPT" else traffic.refused
                taken.add(int(answer.header("receipt-id") or 0))


def consume(port: int, destination: str, traffic: Traffic, acks_max: int) -> None:
    """Acknowledges so many messages, each with a receipt, and keeps the next one."""
    with connected(port) as client:
        client.subscribe(destination, consumer_window_size="0")
        while True:
            message = client.message()
            number = int(message.body)
            if len(traffic.acknowledged) >= acks_max:
                traffic.in_hand.add(number)
                continue
            traffic.acknowledging.add(number)
            client.acknowledge(message)
            traffic.acknowledged.add(number)


@contextmanager
def at_work(task: Callable[..., None], *arguments: object) -> Iterator[None]:
    """A client in a thread, which ends with the broker's end of the connection."""

    def run() -> None:
        try:
            task(*arguments)
        except (AssertionError, OSError) as error:
            ended.append(error)

    ended: list[BaseException] = []
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        thread.join(120)
        assert not thread.is_alive()


class JournalFolder:
    """A folder with a journal, and the brokers that run on it one after the other."""

    def __init__(self, folder: Path, attributes: str, more: str = "") -> None:
        self.folder = folder
        self.file = folder / "broker.xml"
        core = f"<journal-file-size>64K</journal-file-size>{more}"
        addresses = ADDRESSES.format(attributes=attributes)
        text = configuration(folder=folder, core=core, addresses=addresses, settings=SETTINGS)
        self.file.write_text(text, "utf-8")

    def broker(self) -> AbstractContextManager[BrokerProcess]:
        """The next one, killed in the end if it still runs."""
        return started(self.file)

    def killed_in_traffic(self, destination: str, acks_max: int, promised_min: int) -> Traffic:
        """A first life: clients at work until so many messages are confirmed and acknowledged, then SIGKILL."""
        traffic = Traffic(held_until_ms=int(time.time() * 1000) + HELD_MS)
        with (
            self.broker() as broker,
            at_work(consume, broker.port, destination, traffic, acks_max),
            at_work(produce, broker.port, destination, traffic),
        ):
            try:
                broker.eventually(
                    "traffic",
                    lambda: (len(traffic.promised), len(traffic.acknowledged), len(traffic.in_hand)),
                    lambda seen: (
                        seen[0] >= promised_min
                        and seen[1] >= ACKNOWLEDGED
                        and (seen[2] > 0 or acks_max > ACKNOWLEDGED)  # else it would be on its way, and nobody knew
                    ),
                )
            finally:
                broker.kill()
        return traffic


def everything(broker: BrokerProcess, client: StompSocket, queue: str = "q") -> list[int]:
    """What the queue gives a consumer that acknowledges nothing, when all its messages are with it."""
    broker.eventually(
        "delivered",
        lambda: [broker.metric(f"artemis_{kind}message_count", queue=queue) for kind in ("", "delivering_")],
        lambda seen: seen[0] == seen[1],
    )
    return [int(message.body) for message in client.messages_here()]


def check_whole(traffic: Traffic, found: list[int]) -> None:
    """Nothing that was confirmed is lost, nothing that was acknowledged or refused is there, nothing is there twice."""
    assert len(found) == len(set(found))
    assert traffic.must_be_there <= set(found) <= traffic.sent - traffic.acknowledged - traffic.refused


def in_order(key: Callable[[int], object]) -> Callable[[Traffic, list[int]], None]:
    """A judge of queues that lose nothing: all is there, in this order."""

    def judge(traffic: Traffic, found: list[int]) -> None:
        check_whole(traffic, found)
        assert found == sorted(found, key=key)  # type: ignore[arg-type]

    return judge


def check_suffix(traffic: Traffic, found: list[int]) -> None:
    """A ring: the newest are there without a gap; what the consumer had is older, and may have found no place."""
    assert len(found) == len(set(found))
    assert set(found) <= traffic.sent - traffic.acknowledged
    ready = [number for number in found if number not in traffic.in_hand]
    assert ready == list(range(ready[0], ready[-1] + 1))
    assert ready[-1] >= max(traffic.promised)


def check_ring(traffic: Traffic, found: list[int]) -> None:
    """Of 8."""
    check_suffix(traffic, found)
    assert len(found) == 8


def check_values(traffic: Traffic, found: list[int]) -> None:
    """The newest value of each key, in order of arrival; an older one never comes instead of a newer one."""
    assert found == sorted(found)
    newest = {number * 5 % KEYS: number for number in sorted(traffic.promised)}
    there = {number * 5 % KEYS: number for number in found}
    assert len(there) == len(found)
    assert set(found) <= traffic.sent - traffic.acknowledged
    for key, number in newest.items():
        assert there.get(key, 0) >= number or number in traffic.acknowledging


def check_full(traffic: Traffic, found: list[int]) -> None:
    """Never more than the depth, and nothing of what was confirmed is missing."""
    check_whole(traffic, found)
    assert len(found) <= 12
    assert traffic.refused


FIFO = in_order(lambda number: number)
CASES: Mapping[str, tuple[str, Callable[[Traffic, list[int]], None]]] = {
    "standard": ("queue-type='standard'", FIFO),
    "artemis": ("", in_order(lambda number: (-(number % 10), number))),
    "priority": ("priority-levels='2'", in_order(lambda number: (number % 10 < 5, number))),
    "sorted": ("sort-key='k'", in_order(lambda number: (number * 5 % KEYS, number))),
    "last-value": ("queue-type='lvq' last-value-key='k'", check_values),
    "ring-size": ("queue-type='standard' ring-size='8'", check_ring),
    "ring by count": ("queue-type='standard' overflow-policy='RING' max-depth-messages='8'", check_ring),
    "ring by bytes": ("queue-type='standard' overflow-policy='RING' max-depth-bytes='1500'", check_suffix),
    "reject": ("queue-type='standard' overflow-policy='REJECT' max-depth-messages='12'", check_full),
    "flow control": ("queue-type='standard' overflow-policy='PRODUCER_FLOW_CONTROL' max-depth-messages='9'", FIFO),
    "flow to disk": ("queue-type='standard' overflow-policy='FLOW_TO_DISK' max-depth-messages='9'", FIFO),
}
ENDLESS = {"reject", "flow control"}
"""Queues on which traffic stands still without a consumer."""


@pytest.mark.parametrize("name", CASES)
def test_a_queue_after_a_kill(name: str, tmp_path: Path) -> None:
    attributes, judge = CASES[name]
    journal = JournalFolder(tmp_path, attributes)
    traffic = journal.killed_in_traffic("/queue/q", 1_000_000 if name in ENDLESS else ACKNOWLEDGED, 60)
    with journal.broker() as broker, connected(broker.port) as client:
        if "max-depth-bytes" in attributes:
            assert 0 < broker.metric("artemis_persistent_size", queue="q") <= 1500
        client.subscribe("/queue/q")
        found = everything(broker, client)
        judge(traffic, found)
        assert broker.metric("artemis_messages_acknowledged", queue="q") == 0


@pytest.mark.parametrize("kind", ["STANDARD", "SHARED_GROUPS"])
def test_groups_after_a_kill(kind: str, tmp_path: Path) -> None:
    """Two consumers share them out; no group is with both at once, and each is in order. A sticky one stays."""
    journal = JournalFolder(tmp_path, f"queue-type='standard' group-type='{kind}'")
    traffic = journal.killed_in_traffic("/queue/q", ACKNOWLEDGED, 60)
    with journal.broker() as broker, connected(broker.port) as first, connected(broker.port) as second:
        for client in (first, second):
            client.subscribe("/queue/q", consumer_window_size="0")
        shares: list[list[int]] = [[], []]
        found: list[int] = []
        left = int(broker.metric("artemis_message_count", queue="q"))
        while len(found) < left:
            here = [(client, message) for client in (first, second) for message in client.messages_here()]
            numbers = [int(message.body) for _, message in here]
            assert len({group_of(number) for number in numbers}) == len(numbers)
            found += numbers
            for client, message in here:
                shares[client is second].append(int(message.body))
                client.acknowledge(message)
        check_whole(traffic, found)
        assert sorted(found, key=group_of) == sorted(found, key=lambda number: (group_of(number), number))
        assert all(shares)
        if kind == "STANDARD":
            assert not {group_of(number) for number in shares[0]} & {group_of(number) for number in shares[1]}


def test_held_messages_after_a_kill(tmp_path: Path) -> None:
    """Others overtake them until their time is past, also after the restart; then they come in order."""
    journal = JournalFolder(tmp_path, "queue-type='standard' hold-on-publish='true'")
    traffic = journal.killed_in_traffic("/queue/q", ACKNOWLEDGED, 60)
    with journal.broker() as broker, connected(broker.port) as client:
        client.subscribe("/queue/q")
        held = broker.metric("artemis_scheduled_message_count", queue="q")
        broker.await_metric(0, "artemis_scheduled_message_count", queue="q")
        assert time.time() * 1000 > traffic.held_until_ms
        found = everything(broker, client)
        check_whole(traffic, found)
        overtaken = held > 0  # else the machine was so slow that nothing was held any more when the consumer came
        assert found == sorted(found, key=lambda number: (overtaken and number % 3 == 0, number))


LEASES = (
    "queue-type='standard' lease-period='300ms' max-per-subscription-backlog='30' max-delivery-attempts='-1' "
    "group-buckets='0'"
)
"""On a slow machine leases end often: no message dies of that. And who hangs keeps no groups from others: what waits
for its group takes part of the memory, so with pages the others might get nothing.
"""


def hang(port: int, destination: str) -> None:
    """Takes what it gets and says nothing, so that its leases end."""
    with connected(port) as client:
        client.subscribe(destination, max_backlog="7")
        while True:
            client.message()


def settle_by_bookmarks(client: StompSocket, destination: str, messages: list[ServerFrame], traffic: Traffic) -> None:
    """One ACK for all, with a receipt. It counts for what was leased until after the receipt: else it may be late. What
    counts does not come again.
    """
    numbers = {int(message.body) for message in messages}
    assert not numbers & traffic.acknowledged
    traffic.acknowledging |= numbers
    marks = ",".join(message.header("bookmark") or "" for message in messages)
    client.ask("ACK", {"destination": destination, "bookmarks": marks})
    now = datetime.now(UTC)
    traffic.acknowledged |= {
        int(message.body) for message in messages if datetime.fromisoformat(message.header("lease-expires") or "") > now
    }


def consume_by_bookmarks(port: int, destination: str, traffic: Traffic, acks_min: int) -> None:
    """Acknowledges what is there by bookmarks until so many count. In the end it keeps what it gets."""
    with connected(port) as client:
        client.subscribe(destination, max_backlog="30")
        while True:
            messages = [client.message(), *client.messages_here()]
            if len(traffic.acknowledged) < acks_min:
                settle_by_bookmarks(client, destination, messages, traffic)


@pytest.mark.parametrize(
    "depth", ["", "overflow-policy='FLOW_TO_DISK' max-depth-messages='9'"], ids=["memory", "pages"]
)
def test_leases_after_a_kill(depth: str, tmp_path: Path) -> None:
    """Killed while leases end and while messages are acknowledged by bookmark: what was acknowledged does not come
    again, and the rest comes until it is.
    """
    journal = JournalFolder(tmp_path, f"{LEASES} {depth}", retained(tmp_path))
    traffic = Traffic()
    with (
        journal.broker() as broker,
        at_work(hang, broker.port, "/queue/q"),
        at_work(consume_by_bookmarks, broker.port, "/queue/q", traffic, 20),
        at_work(produce, broker.port, "/queue/q", traffic),
    ):
        try:
            broker.eventually(
                "traffic",
                lambda: (len(traffic.promised), len(traffic.acknowledged)),
                lambda seen: seen[0] >= 60 and seen[1] >= 20,
            )
        finally:
            broker.kill()
    with journal.broker() as broker, connected(broker.port) as client:
        left = int(broker.metric("artemis_message_count", queue="q"))
        client.subscribe("/queue/q", max_backlog="30")
        found = Traffic()
        while len(found.acknowledging) < left:
            settle_by_bookmarks(client, "/queue/q", [client.message(), *client.messages_here()], found)
        check_whole(traffic, list(found.acknowledging))

        def settle_what_came_again() -> float:
            if again := client.messages_here():
                settle_by_bookmarks(client, "/queue/q", again, found)
            return broker.metric("artemis_message_count", queue="q")

        broker.eventually("an empty queue", settle_what_came_again, lambda left: left == 0)
        assert len(found.acknowledging) == left


def is_barrier(number: int) -> bool:
    """Every seventh, by its header ``k``."""
    return number * 5 % KEYS == 0


def consume_between_barriers(port: int, destination: str, traffic: Traffic, acks_max: int, wrong: list[str]) -> None:
    """Acknowledges messages, each with a receipt, and in the end keeps what it gets. Says what was not in order."""
    last = 0
    with connected(port) as client:
        client.subscribe(destination, max_backlog="5")
        while True:
            message = client.message()
            number = int(message.body)
            if number <= last:
                wrong.append(f"{number} behind {last}")
            last = number
            if is_barrier(number):
                early = {one for one in range(1, number) if not is_barrier(one)} - traffic.acknowledging
                if early or message.header("ack") is not None:
                    wrong.append(f"barrier {number} before {early}")
                traffic.acknowledging.add(number)
            elif len(traffic.acknowledged) < acks_max:
                traffic.acknowledging.add(number)
                client.acknowledge(message)
                traffic.acknowledged.add(number)


@pytest.mark.parametrize(
    "depth", ["", "overflow-policy='FLOW_TO_DISK' max-depth-messages='9'"], ids=["memory", "pages"]
)
def test_barriers_after_a_kill(depth: str, tmp_path: Path) -> None:
    """Killed while barriers wait and go out: each came when all before it was done. After the restart those that had
    not gone out wait again; none comes again that something behind it was acknowledged after.
    """
    journal = JournalFolder(tmp_path, f"barrier-expression=\"k = '0'\" max-per-subscription-backlog='5' {depth}")
    traffic, wrong = Traffic(), list[str]()
    with (
        journal.broker() as broker,
        at_work(consume_between_barriers, broker.port, "/queue/q", traffic, 25, wrong),
        at_work(consume_between_barriers, broker.port, "/queue/q", traffic, 25, wrong),
        at_work(produce, broker.port, "/queue/q", traffic),
    ):
        try:
            broker.eventually(
                "traffic",
                lambda: (len(traffic.promised), len(traffic.acknowledged)),
                lambda seen: seen[0] >= 60 and seen[1] >= 25,
            )
        finally:
            broker.kill()
    assert not wrong
    assert sum(map(is_barrier, traffic.acknowledging)) >= 2
    with journal.broker() as broker, connected(broker.port) as client:
        client.subscribe("/queue/q", max_backlog="5")
        left = int(broker.metric("artemis_message_count", queue="q"))
        found: list[int] = []
        while len(found) < left:
            message = client.message()
            found.append(int(message.body))
            if not is_barrier(found[-1]):
                client.acknowledge(message)
        assert found == sorted(found)
        check_whole(traffic, found)
        assert found[0] >= max(filter(is_barrier, traffic.acknowledging)), "a crash undid what a barrier had told"
        again = [number for number in found if is_barrier(number)]
        assert again
        assert again[0] > max(traffic.acknowledged)
        broker.await_metric(0, "artemis_message_count", queue="q")


def test_a_retroactive_address_after_a_kill(tmp_path: Path) -> None:
    """Who comes after the restart gets the last five."""
    journal = JournalFolder(tmp_path, "")
    traffic = journal.killed_in_traffic("/topic/news", ACKNOWLEDGED, 60)
    with journal.broker() as broker, connected(broker.port) as client:
        client.subscribe("/topic/news")
        found = sorted(int(message.body) for message in eventually("five", client.messages_here, bool))
        assert found == list(range(found[0], found[0] + 5))
        assert max(traffic.promised) <= found[-1] <= max(traffic.sent)
