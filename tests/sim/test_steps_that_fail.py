"""Whatever step of an operation raises, no message is lost, hidden until a restart, or counted twice: it is on its
queue again, and is delivered when the queue is resumed.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import artemis_py
from artemis_py.core.operations.scan import MessageFilter
from tests.kit.crash.failing_steps import World
from tests.kit.crash.incarnation import Incarnation
from tests.kit.crash.retained import Archive, Untrue
from tests.kit.frames import ServerFrame

pytestmark = pytest.mark.interpreted

_CORE = str(Path(artemis_py.__file__).parent)


class Fault(Exception):
    """What a step raises."""


# ---- operations ------------------------------------------------------------------------------------

Operation = tuple[Callable[[World], Any], Callable[[World, Any], Any]]
"""What comes before, without a fault, and the operation itself, which gets what the first returned."""


def _held(queue: str, count: int = 3, *headers: str) -> Callable[[World], list[ServerFrame]]:
    def prepare(world: World) -> list[ServerFrame]:
        for _ in range(count):
            world.send(queue, *headers)
        return world.subscribe("consumer", queue)

    return prepare


def _filled(queue: str, count: int = 3, *headers: str) -> Callable[[World], None]:
    def prepare(world: World) -> None:
        for _ in range(count):
            world.send(queue, *headers)

    return prepare


def _refused_once(world: World) -> list[ServerFrame]:
    """The next failure is the last."""
    frames = _held("q", 2)(world)
    for frame in frames:
        world.settle("consumer", "NACK", frame)
    world.advance(70)
    return world.messages("consumer")


def _ack_all(world: World, frames: list[ServerFrame]) -> None:
    world.settled |= {frame.body.decode() for frame in frames}
    for frame in frames:
        world.settle("consumer", "ACK", frame)


def _ack_to(world: World, frames: list[ServerFrame]) -> None:
    world.settled |= {frame.body.decode() for frame in frames}
    world.settle("consumer", "ACK", frames[-1])


def _prepare_cumulative(world: World) -> list[ServerFrame]:
    _filled("q")(world)
    return world.subscribe("consumer", "q", "client")


def _lose(world: World, _: Any) -> None:
    world.clients["consumer"].drop()
    world.drain()


def _in_transaction(world: World) -> list[ServerFrame]:
    frames = _held("q")(world)
    world.write("consumer", "BEGIN", "transaction:t")
    for frame in frames[:2]:
        world.settle("consumer", "ACK", frame, "transaction:t")
    world.write("consumer", "SEND", "destination:other", "persistent:true", "transaction:t", body="in t")
    return frames


def _in_transaction_into_pages(world: World) -> list[ServerFrame]:
    _filled("paged")(world)
    frames = _held("q")(world)
    world.write("consumer", "BEGIN", "transaction:t")
    for frame in frames[:2]:
        world.settle("consumer", "ACK", frame, "transaction:t")
    world.write("consumer", "SEND", "destination:paged", "persistent:true", "transaction:t", body="in t")
    return frames


def _commit(world: World, frames: list[ServerFrame]) -> None:
    world.settled |= {frame.body.decode() for frame in frames[:2]}
    world.write("consumer", "COMMIT", "transaction:t")


def _expiring(world: World) -> None:
    for _ in range(3):
        world.send("q", f"expires:{world.life.loop.clock_ms() + 50}")


def _scheduled(world: World) -> None:
    for delay in (30, 50, 50):
        world.send("q", f"AMQ_SCHEDULED_DELAY:{delay}")


def _handled(begin: Callable[[World], Any], ends: str = "") -> Callable[[World, Any], None]:
    def act(world: World, _: Any) -> None:
        if ends:
            world.settled |= {body for body in world.sent if body.startswith(f"{ends} ")}
        begin(world)
        world.finish()

    return act


def _purge_of(name: str) -> Callable[[World, Any], None]:
    def purge(world: World, _: Any) -> None:
        world.settled |= set(world.sent)
        world.queue(name).purge("purged", world.life.loop.clock_ms())
        world.life.turns.schedule()
        world.drain()

    return purge


def _read_due(world: World, _: Any) -> None:
    world.advance(60)
    world.subscribe("consumer", "paged")


def _by_filter(command: str, queue: str, *headers: str) -> Callable[[World, Any], None]:
    def settle(world: World, _: Any) -> None:
        if command == "ACK":
            world.settled |= set(world.sent)
        world.write("other", "SUBSCRIBE", "id:1", f"destination:{queue}", "ack:client", "selector:key = 'none'")
        world.write("other", command, f"destination:{queue}", "filter:key = 'a'", *headers)

    return settle


def _barrier(world: World) -> list[ServerFrame]:
    """Two messages are held, and a barrier and another message wait behind them."""
    _filled("barriers", 2)(world)
    frames = world.subscribe("consumer", "barriers")
    world.send("barriers", "bar:1")
    world.send("barriers")
    return frames


def _after_barrier(world: World, given: Any) -> None:
    """Let the barrier go to everybody: it is settled by that."""
    world.settled |= set(world.sent[-2:-1])
    if isinstance(given, list):
        _ack_all(world, given)
    else:
        world.subscribe("consumer", "barriers")


def _dead(world: World) -> None:
    for frame in _refused_once(world):
        world.settle("consumer", "NACK", frame)
    world.advance(10)
    assert world.queue("dead").message_count == 2


def _send_key(queue: str) -> Callable[[World, Any], None]:
    def act(world: World, _: Any) -> None:
        world.settled |= {body for body in world.sent if body.startswith(f"{queue} ")}  # what a newer one replaces
        world.send(queue, "key:a")
        world.send(queue, "key:b")

    return act


def _begun(verb: str, *arguments: Any, of: str = "q") -> Callable[[World, Any], None]:
    def begin(world: World) -> None:
        getattr(world.life.broker.message_operations, verb)(world.queue(of), MessageFilter(), *arguments)

    return _handled(begin)


OPERATIONS: dict[str, Operation] = {
    "nack": (_held("q"), lambda world, frames: world.settle("consumer", "NACK", frames[1])),
    "last nack": (_refused_once, lambda world, frames: world.settle("consumer", "NACK", frames[0])),
    "nack in a group": (
        _held("groups", 3, "group:g"), lambda world, frames: world.settle("consumer", "NACK", frames[0])
    ),
    "connection lost": (_held("q"), _lose),
    "last connection lost": (_refused_once, _lose),
    "unsubscribe": (_held("q"), lambda world, _: world.write("consumer", "UNSUBSCRIBE", "id:1")),
    "unsubscribe a ring": (_held("ring", 2), lambda world, _: world.write("consumer", "UNSUBSCRIBE", "id:1")),
    "ack": (_held("q"), _ack_all),
    "cumulative ack": (_prepare_cumulative, _ack_to),
    "commit": (_in_transaction, _commit),
    "abort": (_in_transaction, lambda world, _: world.write("consumer", "ABORT", "transaction:t")),
    "transaction lost": (_in_transaction, _lose),
    "lease ends": (_held("leased"), lambda world, _: world.advance(500)),
    "second attempt": (_refused_once, lambda world, _: world.advance(100)),
    "schedule is due": (_scheduled, lambda world, _: world.advance(60)),
    "expiry": (_expiring, lambda world, _: world.advance(200)),
    "publish": (_filled("q"), lambda world, _: world.send("q")),
    "publish to subscriptions": (_filled("news"), lambda world, _: world.send("news")),
    "publish to a ring": (_filled("ring"), _send_key("ring")),
    "publish to a ring by depth": (_filled("depth"), _send_key("depth")),
    "publish a newer value": (_filled("values", 2, "key:a"), _send_key("values")),
    "schedule": (_filled("q"), lambda world, _: world.send("q", "AMQ_SCHEDULED_DELAY:1000")),
    "subscribe": (_filled("q"), lambda world, _: world.subscribe("consumer", "q")),
    "subscribe at most once": (_filled("q"), lambda world, _: _take(world, "q")),
    "subscribe with a selector": (
        _filled("q", 3, "key:a"),
        lambda world, _: world.subscribe("consumer", "q", "client", "selector:key = 'a'"),
    ),
    "subscribe to groups": (_filled("groups", 3, "group:g"), lambda world, _: world.subscribe("consumer", "groups")),
    "purge": (_filled("q"), _purge_of("q")),
    "remove": (
        _filled("q"),
        _handled(
            lambda world: world.life.broker.message_operations.remove(world.queue("q"), MessageFilter(ids=(1, 2, 3))),
            "q",
        ),
    ),
    "move": (_filled("q"), _begun("move", "other")),
    "copy": (_filled("q"), _begun("copy", "other")),
    "expire": (_filled("q"), _begun("expire")),
    "dead": (_filled("q"), _begun("send_to_dead_letters")),
    "retry": (_dead, _begun("retry", of="dead")),
    "prioritize": (_filled("q"), _begun("prioritize", 9)),
    "publish into pages": (_filled("paged"), lambda world, _: world.send("paged")),
    "publish to several in pages": (_filled("paged.news"), lambda world, _: world.send("paged.news", "key:a")),
    "commit into pages": (_in_transaction_into_pages, _commit),
    "last nack into pages": (
        lambda world: world.send("paged.late") and _held("doomed")(world),
        lambda world, frames: world.settle("consumer", "NACK", frames[0]),
    ),
    "expiry into pages": (
        lambda world: world.send("paged.late")
        and [world.send("doomed", f"expires:{world.life.loop.clock_ms() + 50}") for _ in range(3)],
        lambda world, _: world.advance(200),
    ),
    "publish values into pages": (_filled("paged.values", 3, "key:a"), _send_key("paged.values")),
    "read ahead": (_filled("paged", 5), lambda world, _: world.subscribe("consumer", "paged")),
    "read values ahead": (
        lambda world: [world.send("paged.values", f"key:{key}") for key in ("a", "b")],
        lambda world, _: world.subscribe("consumer", "paged.values"),
    ),
    "read pages by choice": (
        _filled("paged", 5, "key:a"),
        lambda world, _: world.subscribe("consumer", "paged", "client", "selector:key = 'a'"),
    ),
    "read what is scheduled in pages": (
        lambda world: [world.send("paged", f"AMQ_SCHEDULED_DELAY:{delay}") for delay in (30, 50, 50)],
        _read_due,
    ),
    "expiry in pages": (
        lambda world: [world.send("paged", f"expires:{world.life.loop.clock_ms() + 50}") for _ in range(3)],
        lambda world, _: world.advance(200),
    ),
    "ack of paged messages": (_held("paged"), _ack_all),
    "nack of a paged message": (_held("paged"), lambda world, frames: world.settle("consumer", "NACK", frames[0])),
    "connection lost with paged messages": (_held("paged"), _lose),
    "purge of pages": (_filled("paged"), _purge_of("paged")),
    "move out of pages": (_filled("paged"), _begun("move", "other", of="paged")),
    "move into pages": (_filled("q"), _begun("move", "paged")),
    "settle by filter": (_filled("leased", 3, "key:a"), _by_filter("ACK", "leased")),
    "settle what is leased by filter": (_held("leased", 3, "key:a"), _by_filter("ACK", "leased")),
    "expire by filter": (_filled("leased", 3, "key:a"), _by_filter("ACK", "leased", "options:expire")),
    "expire what is leased by filter": (_held("leased", 3, "key:a"), _by_filter("ACK", "leased", "options:expire")),
    "give back by filter": (_held("leased", 3, "key:a"), _by_filter("NACK", "leased")),
    "settle what waits by filter": (
        lambda world: [world.send("leased", f"AMQ_SCHEDULED_DELAY:{delay}", "key:a") for delay in (300, 500, 500)],
        _by_filter("ACK", "leased"),
    ),
    "a barrier comes": (_filled("barriers"), lambda world, _: world.send("barriers", "bar:1")),
    "a barrier goes out": (_barrier, _after_barrier),
    "a barrier is done": (
        lambda world: world.send("barriers", "bar:1") and world.send("barriers"), _after_barrier
    ),
    "deliver scheduled": (
        _scheduled,
        lambda world, _: world.life.broker.message_operations.deliver(
            world.queue("q"), (1, 2, 3), world.life.loop.clock_ms()
        ),
    ),
}  # fmt: skip


def _take(world: World, queue: str) -> None:
    world.settled |= set(world.sent)
    world.subscribe("consumer", queue, "auto")


# ---- faults ----------------------------------------------------------------------------------------

_BOOKKEEPING = (
    "core/order/", "core/budget.py", "core/queue/groups.py", "core/queue/distribution.py", "core/queue/leases.py",
    "core/queue_host.py", "core/queue/distribution.py", "core/queue/barriers.py", "core/publish_outcome.py",
)  # fmt: skip
"""Plain moves of one entry and its counts, which take no number and no text of anybody: nothing raises in between."""
_COUNTS = frozenset(
    {
        "Counters", "DeletedQueueCounters", "_measured", "ScheduledDates", "ScheduledCursor", "RoundCursor",
        "ConsumerStatistics", "ExpiryWatch", "Lifetime",
        "Holdings",
        "DeliveryAttempts",
        "keep", "release", "selector_bytes",
    }
)  # fmt: skip
"""The same: classes and functions that only count, or note dates."""
_MOVES = frozenset(
    {
        "Contents.come_back", "Contents.put_back", "Contents.reclaim", "Contents.take_from_aside", "Contents.stands",
        "Contents.expires_ms", "Contents.deliver_run", "Contents.deliver", "Contents.put_at_head", "Contents.is_aside",
        "Contents.end_waiting", "Contents.has_more", "Copies.note_dead", "Copies.note_expired", "Copies.note_forced",
        "Copies._open", "Delivery._note_taken", "Delivery._end_run", "Queue.consumer_count", "Queue.deleted",
        "_by_consumer", "RecordWriter._number", "Consumer._note_eased", "selector_bytes",
        "Contents.message_count", "Contents.memory_count", "Contents.standing_count", "Consumer.take_asked",
        "Contents.unpick", "Delivery._deliver", "Queue.sent", "PagedContents.count", "FullRecording.begin_paged",
        "FullRecording.end_paged",
    }
)  # fmt: skip
"""The same in a part that does more."""
_PAGED = frozenset(
    {
        "PageReader.place", "PageReader.page_number", "PageReader.skip_all", "Backlog.add", "Backlog.take",
        "Backlog.came_back", "Backlog.drop_all", "PagedContents._correct", "PagedContents.fetch", "PagedContents._add",
        "PagedContents.arrive", "PagedContents.came_back", "PagedContents.forget", "PageStream.settle",
        "PageStream._reduce", "PageStream._let_go", "PageStream._drop", "PageStream._purge_page", "PageStream.purge",
        "PageStream.next_place", "PageStream._note_end",
        "_by_stream", "_by_page", "_let_bodies_go", "_number", "RecordWriter.page_dropped", "RecordWriter.paged",
    }
)  # fmt: skip
"""The same for pages, with all that they call: counts and places, and records of numbers alone."""
_VERBS = frozenset(
    {
        "Queue.release", "Queue.acknowledge", "Queue.expire_held", "QueueState.acknowledge", "QueueTasks.begin",
        "QueueTasks._is_done", "TaskLine.may_go_on", "Release._take_back", "Release.add", "Broker.detach",
        "Queue.detach", "ConsumerRegistry.detach", "ConsumerRegistry._remove",
        "Transaction.abort", "Transaction._release", "_put_all", "put",
        "Queue.release_due", "Enqueuer._hand_over", "Enqueuer._put_on_several", "Arrivals._append", "Removal._kill",
        "Contents.count_added", "Arrivals.arrive", "Delivery._react", "Agenda.add", "Depager.bring_in",
        "Depager.give_back", "AcknowledgeByFilter._settle", "AcknowledgeByFilter._settle_held",
        "QueueState.expire_held", "Arrivals.arrive_paged", "QueuePages.arrive",
        "PageStream._count", "Contents.take_back_pending",
    }
)  # fmt: skip
"""What is called while entries are in hand, and puts them back if it fails."""
Site = tuple[str, int, str]


def _site_of(frame: FrameType) -> Site | None:
    """Who calls whom, where; None: no step of the core or its log."""
    name = frame.f_code.co_filename
    if not name.startswith(_CORE) or frame.f_code.co_name.startswith("<") or frame.f_back is None:
        return None
    place = name[len(_CORE) + 1 :]
    if not place.startswith(("core/", "storage/journal/record_writer")):
        return None
    called = frame.f_code.co_qualname
    if called.partition(".")[0] in _COUNTS:
        return None
    if place.startswith(_BOOKKEEPING) or called in _MOVES | _PAGED | _VERBS or called.endswith(".__init__"):
        return None
    caller = frame.f_back.f_code.co_filename
    if not caller.startswith((f"{_CORE}/core/", f"{_CORE}/stomp/", f"{_CORE}/storage/journal/record_writer")):
        return None  # a step of a whole turn: the broker ends, and a restart has everything
    if caller.startswith(f"{_CORE}/core/queue/groups.py") or frame.f_back.f_code.co_qualname in _PAGED:
        return None
    return caller[len(_CORE) + 1 :], frame.f_back.f_lineno, frame.f_code.co_qualname


def _names(node: ast.AST, within: str = "") -> Iterator[str]:
    """The classes and functions below a node, as ``__qualname__`` has them."""
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.ClassDef | ast.FunctionDef):
            yield within + part.name
            yield from _names(part, f"{within}{part.name}.")
        else:
            yield from _names(part, within)


def test_every_exclusion_is_about_something() -> None:
    """One that names nothing any more would hide a new function of that name."""
    files = [*Path(_CORE, "core").rglob("*.py"), Path(_CORE, "storage/journal/record_writer.py")]
    there = {name for file in files for name in _names(ast.parse(file.read_text("utf-8")))}
    assert sorted((_COUNTS | _MOVES | _PAGED | _VERBS) - there) == []
    assert [place for place in _BOOKKEEPING if not Path(_CORE, place).exists()] == []


@contextmanager
def _calls(see: Callable[[Site], None]) -> Iterator[None]:
    def trace(frame: FrameType, event: str, _: object) -> None:
        site = _site_of(frame)
        if site is not None:
            see(site)

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)


def sites_of(operation: Operation, *, retains: bool) -> list[Site]:
    """Every place of the core that an operation passes."""
    prepare, act = operation
    world = World(retains=retains)
    given = prepare(world)
    found: dict[Site, None] = {}
    with _calls(lambda site: found.setdefault(site)):
        act(world, given)
    return list(found)


def run(operation: Operation, at: Site, *, retains: bool) -> World:
    """Carry out an operation that raises at this place, once."""
    prepare, act = operation
    world = World(retains=retains)
    given = prepare(world)
    has_raised = [False]

    def see(site: Site) -> None:
        if site == at and not has_raised[0]:
            has_raised[0] = True
            raise Fault(str(at))

    with _calls(see):
        try:
            act(world, given)
        except Fault:  # an operator's request is answered with it
            world.life.broker.step_broke_off(world.life.loop.clock_ms())
    return world


def check(world: World) -> list[str]:
    """What is wrong after the fault, once everybody has left and each queue was resumed."""
    wrong: list[str] = []
    life = world.life
    projection = life.projection()
    if life.failure is not None:  # a step of no single queue or connection: a restart finds everything
        found = {item.identity[3].decode() for number in projection.queues for item in projection.items(number)}
        lost = [body for body in world.sent if body not in found and body not in world.settled]
        return [f"the broker ends, and a restart misses {lost}"] if lost else []
    world.lose_all()
    for queue in life.broker.queues.values():
        if queue.gate.paused:
            queue.resume()
    world.finish()
    before = len(world.sent)
    world.send("other")
    if len(world.sent) == before:
        wrong.append("nothing becomes durable any more")
    world.advance(2000)
    world.finish()
    projection = life.projection()
    there: Counter[str] = Counter()
    for queue in list(life.broker.queues.values()):
        contents = queue.contents
        if contents.counters.held_count:
            wrong.append(f"{queue.name}: {contents.counters.held_count} count as in delivery, and nobody has them")
        if contents.scheduled:
            wrong.append(f"{queue.name}: {len(contents.scheduled)} are still put aside")
        written = Counter(item.identity[3].decode() for item in projection.items(queue.id))
        got: Counter[str] = Counter()
        full_name = f"{queue.address.name}\\c\\c{queue.name}"
        frames = world.subscribe("reader", full_name, "client-individual")
        while frames:
            for frame in frames:
                got[frame.body.decode()] += 1
                if frame.header("ack"):  # a barrier needs none
                    world.settle("reader", "ACK", frame)
            frames = world.messages("reader")
        world.drain()
        left = queue.message_count
        if left:
            wrong.append(f"{queue.name}: {left} are counted and not delivered")
        if written != got:
            wrong.append(f"{queue.name}: delivered {dict(got)}, written down {dict(written)}")
        there += got
        world.lose_all()
    lost = [body for body in world.sent if body not in there and body not in world.settled]
    if lost:
        wrong.append(f"lost: {lost}")
    if world.retains:
        wrong += _told_wrongly(life)
    return wrong


def _told_wrongly(life: Incarnation) -> list[str]:
    """What a retained log says of queues that are all empty."""
    try:
        telling = Archive().read(life.disk)
    except Untrue as wrong:
        return [f"the log tells: {wrong}"]
    left = {life.broker.by_id[number].name: list(live) for number, live in telling.live.items() if live}
    return [f"the log still has {left}"] if left else []


_OFTEN = ("nack", "last nack", "connection lost", "commit", "lease ends", "schedule is due")
"""Of the others each run has one; ``make soak`` has all."""


_PAGING = (
    "publish into pages", "publish to several in pages", "publish values into pages", "move into pages",
    "commit into pages", "last nack into pages", "expiry into pages", "ack of paged messages", "purge of pages",
)  # fmt: skip
"""With a retained log messages in pages are in the log, too."""


@pytest.mark.parametrize(
    ("name", "retains"),
    [
        pytest.param(
            name,
            retains,
            marks=pytest.mark.thirds if name in _OFTEN and not retains else pytest.mark.takes_turns("steps that fail"),
        )
        for retains, names in ((False, OPERATIONS), (True, _PAGING))
        for name in names
    ],
)
def test_wherever_an_operation_fails_every_message_is_there(name: str, retains: bool) -> None:
    """The fault comes at each place in turn."""
    operation = OPERATIONS[name]
    failures: list[str] = []
    sites = sites_of(operation, retains=retains)
    for site in sites:
        wrong = check(run(operation, site, retains=retains))
        if wrong:
            failures.append(f"{site[0]}:{site[1]} {site[2]}: {'; '.join(wrong)}")
    assert not failures, f"{len(failures)} of {len(sites)}\n" + "\n".join(failures)
