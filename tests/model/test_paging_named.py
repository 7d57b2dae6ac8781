"""What the machine, and reading, found in pages: each a short story with its reason."""

from __future__ import annotations

import pytest

from artemis_py.core.pages import PageReader
from artemis_py.storage import pages as page_files
from tests.model.letters import Spec
from tests.model.paging_world import PagingWorld
from tests.model.plans import EXACT, LAST_VALUE, RING, SORTED, STICKY, TO_DISK, PagePlan, Plan, QueuePlan

pytestmark = [pytest.mark.model, pytest.mark.interpreted, pytest.mark.usefixtures("small_steps")]

RED, BLUE = Spec("red", persistent=True), Spec("blue", persistent=True)


def world_of(*queues: QueuePlan, messages_max: int = 2, page_bytes: int = 400) -> PagingWorld:
    """A world with these queues, one plain one if none is given."""
    return PagingWorld(Plan(queues or (QueuePlan(),), pages=PagePlan(messages_max, page_bytes)))


def test_what_no_queue_takes_opens_no_page() -> None:
    """A page without messages is never settled: the address would page for ever."""
    world = world_of(QueuePlan(red_only=True), messages_max=0)
    world.publish(BLUE)
    assert world.address.number_of_pages == 0


def test_a_page_is_not_kept_for_a_queue_that_has_nothing_in_it() -> None:
    """The first message for a second queue did not fit any more: a share of none in the full page was never settled."""
    world = world_of(QueuePlan(), QueuePlan(red_only=True), messages_max=0, page_bytes=200)
    world.publish(BLUE)
    world.publish(RED)
    for number in (0, 1):
        world.subscribe(number, settles=True)
    world.rest()
    assert world.address.number_of_pages == 0


def test_a_page_that_everybody_was_done_with_goes_when_it_is_not_the_last_any_more() -> None:
    """As the last page it had to stay; nobody looked again when it was full."""
    world = world_of(messages_max=0, page_bytes=200)
    world.publish(RED, RED)
    world.subscribe(settles=False)
    world.rest()
    seat = world.seats[0]
    world.settle(seat, len(seat.reader.sent) - 1)
    assert world.address.number_of_pages == 2
    world.publish(RED)
    assert world.address.number_of_pages == 2


def test_a_consumer_that_read_far_ahead_gets_what_comes_when_paging_is_over() -> None:
    """What it took out of pages had never stood in the order, whose next places were below those it had passed."""
    world = world_of()
    world.publish(*[RED] * 12)
    world.subscribe(selector="color = 'red'", settles=True)
    world.rest()
    assert not world.address.is_paging
    world.publish(Spec("red", priority=9))
    world.publish(RED)
    world.rest()
    assert not world.pairs[0].model.slots


def test_a_new_consumer_sees_what_is_read_between_its_coming_and_its_first_look() -> None:
    """Something given back from far behind had moved the end of the order, where a new cursor began."""
    world = world_of(messages_max=0)
    world.publish(*[BLUE] * 12 + [RED])
    far = world.subscribe(selector="color = 'red'")
    world.rest()
    world.unsubscribe(far)
    world.subscribe(browses=True, settles=True, room=0)
    world.subscribe(window=150)
    world.rest()
    world.set_room(world.seats[0], 1 << 30)
    world.rest()


def test_a_purge_between_dispatch_and_write_leaves_the_durable_count_right() -> None:
    """What was picked for a consumer that settles on send was taken for purged, and then counted out once more."""
    world = world_of()
    world.publish(*[RED] * 12)
    world.subscribe(settles=True, room=1)
    world.broker.dispatch(world.now_ms)
    assert world.seats[0].consumer.outbox
    world.purge(0)
    world.rest()
    assert world.pairs[0].queue.contents.counters.durable_count == 0


def test_a_page_that_goes_while_somebody_waits_for_it_is_not_damage() -> None:
    """Its file was gone when the turn of a second reader came."""
    world = world_of(messages_max=0)
    world.publish(*[RED] * 8)
    world.turn()
    world.writer.step()
    world.turn()
    stream = world.address.stream
    reader = PageReader(stream, world.pairs[0].queue.reference, None, stream.pages[0].first_place)
    assert reader.next() is None
    world.purge(0)
    world.turn()
    world.writer.stop()
    world.rest()
    assert (reader.waits, reader.next(), world.said) == (False, None, [])


def test_who_was_parked_for_lack_of_space_goes_on_when_another_settles() -> None:
    """What one consumer held filled the limits on reading ahead; settled, it woke nobody but that one."""
    world = PagingWorld(Plan(pages=PagePlan(messages_max=0, read_messages_max=2)))
    world.publish(*[RED] * 8)
    holder = world.subscribe(window=0)
    world.rest()
    other = world.subscribe(window=0)
    world.rest()
    world.subscribe(window=-1)
    world.rest()
    world.set_room(holder, 0)
    world.set_room(other, 0)
    for seat in (holder, other):
        world.settle(seat, 0)
    world.rest()


def test_consumers_go_on_when_a_turn_had_to_stop_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """So much had expired that a turn could not look through it: the consumer was parked as if nothing was left."""
    monkeypatch.setattr(page_files, "CHUNK_BYTES", 1 << 20)
    world = world_of(messages_max=0, page_bytes=1 << 20)
    world.publish(*[Spec(ttl_ms=100)] * 12 + [RED])
    world.now_ms += 1000
    world.subscribe(settles=True)
    world.rest()
    assert not world.pairs[0].model.slots


@pytest.mark.parametrize("kind", [SORTED, "plain"])
def test_a_browser_is_shown_what_comes_from_a_page_to_a_place_that_it_has_passed(kind: str) -> None:
    """It never saw it in the page: the queue took it out first, for a consumer."""
    world = world_of(QueuePlan(kind=kind), messages_max=1)
    world.publish(Spec(key="b", persistent=True))
    world.subscribe(browses=True)
    world.turn()
    world.set_room(world.seats[0], 0)
    world.publish(Spec(key="a", persistent=True))
    world.subscribe(room=1)
    world.rest()
    world.set_room(world.seats[0], 1 << 20)
    world.rest()
    assert world.seats[0].reader.shown == {1, 2}


def test_what_is_scheduled_and_held_waits_for_both_in_a_page() -> None:
    """A browser that found it there held it until it was valid, and forgot that it was not due."""
    world = world_of(QueuePlan(holds=True), messages_max=0)
    world.publish(Spec(persistent=True, held_ms=100), delay_ms=300)
    world.subscribe(browses=True)
    world.rest()
    world.turn(200)
    world.rest()
    assert not world.seats[0].reader.shown
    world.turn(100)
    world.rest()
    assert world.seats[0].reader.shown == {1}


@pytest.mark.parametrize("comes", ["before", "between", "after"])
def test_a_browser_of_a_view_is_shown_what_was_put_aside_from_a_page(comes: str) -> None:
    """A view has no order of places: it took everything before its reader for seen, and a browser never saw this."""
    world = world_of(QueuePlan(view=EXACT), messages_max=0)
    if comes == "before":
        world.subscribe(browses=True)
    world.publish(RED, delay_ms=100)
    world.publish(BLUE)
    if comes == "between":
        world.subscribe(browses=True)
        world.rest()
    world.subscribe(settles=True)
    world.rest()
    if comes == "after":
        world.subscribe(browses=True)
        world.rest()
    world.subscribe(selector="color = 'blue'")
    for seat in world.seats:
        if not seat.reader.browses:
            world.set_room(seat, 0)
    world.turn(100)
    world.rest()
    (browser,) = (seat for seat in world.seats if seat.reader.browses)
    assert 1 in browser.reader.shown


@pytest.mark.parametrize(
    "limit", [{"ring_size": 1}, {"policy": TO_DISK, "depth_messages": 1}], ids=["ring", "flow-to-disk"]
)
def test_what_is_delivered_makes_room_for_others(limit: dict[str, int | str]) -> None:
    """A group that is busy filled the ring, then went out: nobody read on for the consumers that had found nothing."""
    world = world_of(QueuePlan(groups=STICKY, **limit), messages_max=0)  # type: ignore[arg-type]
    for group in ("g", "h", "g"):
        world.publish(Spec(persistent=True, group=group, color="blue" if group == "g" else "red"))
    world.subscribe(selector="color = 'red'")
    world.turn()
    world.subscribe(window=0)
    world.rest()
    assert [len(seat.reader.sent) for seat in world.seats] == [1, 1]


def test_a_value_of_a_view_is_replaced_by_a_later_one_of_another_priority() -> None:
    """Sequences of two priorities tell nothing of each other: the later value had the lower one and was given up."""
    world = world_of(QueuePlan(kind=LAST_VALUE, view=EXACT, policy=TO_DISK, depth_messages=2), messages_max=5)
    world.publish(*[Spec("blue", key=key, priority=9, persistent=True) for key in ("b", "a")])
    world.publish(Spec("red", key="a", priority=0, persistent=True))
    world.subscribe(selector="color = 'red'")
    world.rest()
    assert [seat.consumer.held.keys() for seat in world.seats] == [{3}]
    assert [entry.message.id for entry in world.pairs[0].queue.contents.order] == [1]


def test_a_queue_is_deleted_while_some_of_its_pages_is_in_memory() -> None:
    """The pages go at once."""
    world = world_of(messages_max=0)
    world.publish(*[RED] * 6)
    world.subscribe(room=1)
    world.rest()
    world.delete(0)
    assert world.address.number_of_pages == 0


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_queue_is_deleted_while_a_transaction_has_something_of_its_page(is_committed: bool) -> None:
    """The page goes when the other queue is done with it. How the transaction ends does not matter to it."""
    world = world_of(QueuePlan(), QueuePlan(), messages_max=0)
    world.publish(RED)
    world.publish(RED)
    one, two = world.subscribe(0, connection=1), world.subscribe(1, connection=2)
    world.rest()
    world.begin(1)
    world.settle_in_transaction(one)
    world.delete(0)
    world.settle(two, 1, cumulative=True)
    assert world.address.number_of_pages == 0
    (world.commit if is_committed else world.abort)(1)
    world.finish()


def test_what_falls_due_lets_others_go_before_a_lease_ends_in_the_same_tick() -> None:
    """The last message goes to the consumer that has room, as the ring is full, and only then the first comes back."""
    world = world_of(QueuePlan(policy=RING, depth_messages=3, holds=True, lease_ms=400), messages_max=9)
    one, two = world.subscribe(window=0), world.subscribe(window=0)
    world.publish(RED, RED, RED)
    world.publish(*[Spec("red", persistent=True, held_ms=100)] * 2)
    world.turn()
    world.settle(two)
    world.turn(1000)
    assert [list(seat.consumer.held) for seat in (one, two)] == [[1], [3]]
