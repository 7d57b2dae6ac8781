"""Pages of several addresses, and queues that get messages of more than one: each a short story with its reason."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from artemis_py.core.addresses.batch import Batch
from artemis_py.core.order.entry import PURGED
from artemis_py.core.queue.queue import Queue
from artemis_py.message import Head, LargeBody, Message, encode_headers
from artemis_py.storage.pages import PageFiles, SpillLog
from tests.kit.committer import SteppedCommitter
from tests.kit.core import NOW_MS, PLENTY, broker_of, consumer_on, head_of, ids, send, write
from tests.kit.disk import SimDisk

pytestmark = pytest.mark.model

PAGES_ALL = {"address_full_policy": "PAGE", "max_size_messages": 0}
PAGES_NONE = {"address_full_policy": "PAGE", "max_size_messages": -1}


class PagingBroker:
    """A broker with pages on a simulated disk; ``settings`` by match. ``got`` has the ids that consumers were sent."""

    def __init__(self, settings: dict[str, dict[str, Any]], **config: Any) -> None:
        self.now_ms = NOW_MS
        self.writer = SteppedCommitter(lambda: None)
        self.reader = SteppedCommitter(lambda: None)
        self.said: list[str] = []
        files = PageFiles(SimDisk(Random(0)), self.reader, self.said.append)
        self.log = SpillLog(self.writer, files)
        self.broker = broker_of(settings=settings, log=self.log, pages=files, **config)
        self.got: list[int] = []

    def queue(self, name: str, address: str, *, durable: bool = True) -> Queue:
        """A queue of its own on a multicast address."""
        found = self.broker.resolver.obtain_address(address, "MULTICAST")
        return self.broker.resolver.create_subscription_queue(name, found, durable=durable, selector=None)

    def turn(self, ms: int = 0) -> None:
        """A turn, as the server makes it; the disk does nothing in it."""
        self.now_ms += ms
        self.log.poll()
        self.broker.take_fetched_pages()
        self.broker.tick(self.now_ms)
        self.broker.dispatch(self.now_ms)
        for queue in self.broker.queues.values():
            for consumer in queue.distribution.consumers:
                self.got += ids(consumer.handed + consumer.outbox)
        write(self.broker)
        self.log.seal()

    def rest(self) -> None:
        """Turns and disk go on until nothing moves any more."""
        for _ in range(2000):
            worked = self.writer.step() | self.reader.step()
            self.turn()
            if not worked and not self.broker.has_ready and self.reader.idle and self.writer.idle:
                return
        raise AssertionError("it never comes to rest")


def test_a_queue_on_a_wildcard_gets_what_its_own_address_pages_and_what_others_do_not() -> None:
    """Messages from its own pages took the places of those that had come from another address meanwhile."""
    stage = PagingBroker({"news.#": PAGES_ALL, "news.b": PAGES_NONE})
    queue = stage.queue("q", "news.#")
    send(stage.broker, "news.#", 10, queue="q")
    send(stage.broker, "news.b", 10)
    stage.rest()
    consumer = consumer_on(stage.broker, queue, settles=True, room=1)
    stage.rest()
    consumer.room_bytes = PLENTY
    queue.wake(consumer)
    stage.rest()
    assert sorted(stage.got) == list(range(1, 21))
    assert queue.message_count == 0


def test_an_address_without_queues_stays_while_a_queue_on_a_wildcard_needs_its_pages() -> None:
    """It was swept away, and what was read of its pages reached nobody any more."""
    stage = PagingBroker({"news.#": PAGES_ALL}, address_queue_scan_period=1000)
    queue = stage.queue("q", "news.#")
    other = stage.queue("t", "news.b")
    send(stage.broker, "news.b", 10)
    stage.rest()
    stage.broker.registry.delete_queue(other, stage.now_ms)
    for _ in range(5):
        stage.turn(2000)
    consumer_on(stage.broker, queue, settles=True)
    stage.rest()
    assert stage.got == list(range(1, 11))
    for _ in range(5):
        stage.turn(2000)
    assert "news.b" not in stage.broker.addresses


def test_pages_of_a_temporary_address_are_for_nobody_else() -> None:
    """A queue on a wildcard address gets nothing of it, from memory or from pages, while it is there and afterwards."""
    stage = PagingBroker({"#": PAGES_ALL})
    queue = stage.queue("q", "#")
    address = stage.broker.resolver.create_temporary_address("reply", "MULTICAST")
    other = stage.broker.resolver.create_subscription_queue("t", address, durable=False, selector=None)
    assert send(stage.broker, "reply", 10) == 10
    stage.broker.registry.delete_queue(other, stage.now_ms)
    stage.rest()
    consumer_on(stage.broker, queue, settles=True)
    stage.rest()
    assert stage.got == []
    assert stage.broker.memory.account.message_count == 0


def test_a_queue_forgets_pages_of_addresses_that_page_no_more() -> None:
    """Each of them made every look at the queue's counts a little slower, for ever."""
    stage = PagingBroker({"news.#": PAGES_ALL})
    queue = stage.queue("q", "news.#")
    for number in range(50):
        stage.queue(f"t{number}", f"news.{number}")
        send(stage.broker, f"news.{number}")
    consumer_on(stage.broker, queue, settles=True)
    stage.rest()
    assert len(stage.got) == 50
    for number in range(50):
        stage.broker.registry.delete_queue(stage.broker.queues[f"t{number}"], stage.now_ms)
    queue.resume()
    stage.rest()
    assert not queue.contents.paged.backlogs


def test_a_consumer_that_chooses_finds_what_it_wants_in_pages_of_any_address() -> None:
    """On a queue bound to a wildcard it starved: what it did not want filled the memory that the queue may use."""
    stage = PagingBroker({"news.#": PAGES_ALL})
    queue = stage.queue("q", "news.#")
    for address in ("news.a", "news.b"):
        send(stage.broker, address, 3000)
        send(stage.broker, address, head=head_of(address, color="blue"))
    stage.rest()
    consumer_on(stage.broker, queue, settles=True, selector="color = 'blue'")
    stage.rest()
    assert sorted(stage.got) == [3001, 6002]
    assert queue.contents.order.count == 0
    consumer_on(stage.broker, queue, settles=True)
    stage.rest()
    assert sorted(stage.got) == list(range(1, 6003))
    assert queue.message_count == 0


@pytest.mark.parametrize("room", [1, PLENTY], ids=["taker-waits", "taker-takes"])
def test_a_browser_sees_each_message_in_pages_of_any_address_once(room: int) -> None:
    """It saw as many as the queue had in memory; and not again what a consumer brings there behind it."""
    stage = PagingBroker({"news.#": PAGES_ALL})
    queue = stage.queue("q", "news.#")
    for address in ("news.a", "news.b"):
        send(stage.broker, address, 1500)
    stage.rest()
    consumer_on(stage.broker, queue, settles=True, browses=True)
    stage.rest()
    assert sorted(stage.got) == list(range(1, 3001))
    taker = consumer_on(stage.broker, queue, settles=True, room=room)
    stage.rest()
    taker.room_bytes = PLENTY
    queue.wake(taker)
    stage.rest()
    assert sorted(stage.got) == sorted([*range(1, 3001), *range(1, 3001)])


def test_a_page_limit_of_minus_one_is_none() -> None:
    """As a more specific setting switches one off: every page was over that limit."""
    settings = {**PAGES_ALL, "page_limit_messages": -1, "page_limit_bytes": -1, "page_full_policy": "FAIL"}
    stage = PagingBroker({"a": settings})
    queue = stage.queue("q", "a")
    send(stage.broker, "a", 10)
    assert queue.message_count == 10


class Unwalked(dict[Any, Any]):
    """Nobody may look at all of it."""

    def __iter__(self) -> Any:
        raise AssertionError("all of it was looked at")

    values = items = keys = __iter__


def test_a_turn_costs_the_same_with_many_addresses_that_page() -> None:
    """Each turn looked at the last page of each of them, although nothing had come to it."""
    stage = PagingBroker({"#": PAGES_ALL})
    files = stage.broker.streams.files
    assert isinstance(files, PageFiles)
    files._tails = Unwalked()
    for number in range(3):
        stage.queue(f"q{number}", f"a{number}")
        send(stage.broker, f"a{number}")
    stage.rest()
    assert len(files._tails) == 3
    assert files.backlog_bytes == 0


@pytest.mark.parametrize("goes", [False, True], ids=["purged", "deleted"])
def test_a_page_keeps_no_body_that_only_a_purged_queue_needed(goes: bool) -> None:
    """It kept the files of all until the other queue had read its one message in the page."""
    stage = PagingBroker({"a": PAGES_ALL})
    queue, other = stage.queue("q", "a"), stage.queue("other", "a")
    send(stage.broker, "a")
    route = stage.broker.resolver.route("a", "q", "MULTICAST")
    head = Head(encode_headers([("destination", "a")]), "a")
    message = Message(
        head, LargeBody(7, 1_000_000), stage.broker.host.next_message_id(), 0, 0, route.address.account, 0
    )
    stage.broker.publisher.publish(Batch(route, [message], message.size_bytes, stage.now_ms, plain=True))
    stage.rest()
    stream = route.address.stream
    assert stream is not None
    assert len(stream.pages[0].large) == 1
    if goes:
        stage.broker.registry.delete_queue(queue, stage.now_ms)
    else:
        assert queue.unheld_count == 2
        queue.purge(PURGED, stage.now_ms)
    assert not stream.pages[0].large
    consumer_on(stage.broker, other, settles=True)
    stage.rest()
    assert stage.got == [1]


def test_paging_begins_behind_what_is_on_its_way_to_its_queues() -> None:
    """The last messages that found room are not on all of their queues yet when the first comes that finds none."""
    stage = PagingBroker({"#": {"address_full_policy": "PAGE", "max_size_messages": 2}})
    queues = [stage.queue(f"q{number}", "news") for number in range(200)]
    stage.broker.budget.refill(50)
    send(stage.broker, "news")
    send(stage.broker, "news")
    assert queues[-1].message_count == 0
    route = stage.broker.resolver.route("news", None, "MULTICAST")
    head = Head(encode_headers([("destination", "news")]), "news")
    message = Message(head, b"body", stage.broker.host.next_message_id(), stage.now_ms, 0, route.address.account, 0)
    batch = Batch(route, [message], message.size_bytes, stage.now_ms, plain=True)
    assert stage.broker.publisher.publish(batch) == 0
    assert batch.waits_for is route.address.fan_outs, "a client waits for what is on its way"
    assert stage.broker.publisher.publish(batch, admitted=True) == 1
    assert [queue.message_count for queue in queues] == [3] * 200
    assert [queue.contents.paged.count for queue in queues] == [1] * 200
    stage.broker.budget.refill(1 << 40)
    consumer_on(stage.broker, queues[-1], settles=True)
    stage.rest()
    assert stage.got == [1, 2, message.id]
