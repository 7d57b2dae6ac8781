"""Whatever step of an operation raises, no message is lost, hidden until a restart, or counted twice: it is on its
queue again, and is delivered when the queue is resumed.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

import artemis_py
from artemis_py.core.operations.scan import MessageFilter
from tests.kit.crash.failing_steps import World
from tests.kit.crash.incarnation import Incarnation
from tests.kit.crash.retained import Archive, Telling, Untrue
from tests.kit.frames import ServerFrame

pytestmark = pytest.mark.interpreted

_CORE = str(Path(artemis_py.__file__).parent)


class Fault(Exception):
    """What a step raises."""


# ---- operations ------------------------------------------------------------------------------------

Operation = tuple[Callable[[World], Any], Callable[[World, Any], Any]]
"""What comes before, without a fault, and the operation itself, which gets what the first returned."""


def _fill(world: World, queue: str, count: int = 3, *headers: str) -> None:
    for _ in range(count):
        world.send(queue, *headers)


def _hold(world: World, queue: str, count: int = 3, *headers: str, ack: str = "client-individual") -> list[ServerFrame]:
    _fill(world, queue, count, *headers)
    return world.read("consumer", queue, ack)


def _refused_once(world: World) -> list[ServerFrame]:
    """The next failure is the last."""
    for frame in _hold(world, "q", 2):
        world.settle("consumer", frame, "NACK")
    world.advance(70)
    return world.messages("consumer")


def _ack(world: World, frames: list[ServerFrame], *, cumulative: bool = False) -> None:
    world.settled |= {frame.body.decode() for frame in frames}
    for frame in frames[-1:] if cumulative else frames:
        world.settle("consumer", frame)


def _in_transaction(world: World, to: str = "other") -> list[ServerFrame]:
    frames = _hold(world, "q")
    world.write("consumer", "BEGIN", "transaction:t")
    for frame in frames[:2]:
        world.settle("consumer", frame, "ACK", "transaction:t")
    world.write("consumer", "SEND", f"destination:{to}", "persistent:true", "transaction:t", body="in t")
    return frames


def _commit(world: World, frames: list[ServerFrame]) -> None:
    world.settled |= {frame.body.decode() for frame in frames[:2]}
    world.write("consumer", "COMMIT", "transaction:t")


def _schedule(world: World, queue: str, *headers: str, delays: tuple[int, ...] = (30, 50, 50)) -> None:
    for delay in delays:
        world.send(queue, f"AMQ_SCHEDULED_DELAY:{delay}", *headers)


def _expire(world: World, queue: str) -> None:
    expires = f"expires:{world.life.loop.clock_ms() + 50}"
    _fill(world, queue, 3, expires)


def _purge(world: World, name: str) -> None:
    world.settled |= set(world.sent)
    world.life.broker.queues[name].purge("purged", world.life.loop.clock_ms())
    world.life.turns.schedule()
    world.life.drain()


def _filter(world: World, command: str, *headers: str) -> None:
    if command == "ACK":
        world.settled |= set(world.sent)
    world.write("other", "SUBSCRIBE", "id:1", "destination:leased", "ack:client", "selector:key = 'none'")
    world.write("other", command, "destination:leased", "filter:key = 'a'", *headers)


def _barrier(world: World) -> list[ServerFrame]:
    """Two messages are held, and a barrier and another message wait behind them."""
    frames = _hold(world, "barriers", 2)
    world.send("barriers", "bar:1")
    world.send("barriers")
    return frames


def _after_barrier(world: World, given: Any) -> None:
    """Let the barrier go to everybody: it is settled by that."""
    world.settled |= set(world.sent[-2:-1])
    if isinstance(given, list):
        _ack(world, given)
    else:
        world.read("consumer", "barriers")


def _dead(world: World) -> None:
    for frame in _refused_once(world):
        world.settle("consumer", frame, "NACK")
    world.advance(10)
    assert world.life.broker.queues["dead"].message_count == 2


def _replace(world: World, queue: str) -> None:
    world.settled |= {body for body in world.sent if body.startswith(f"{queue} ")}  # what a newer one replaces
    world.send(queue, "key:a")
    world.send(queue, "key:b")


def _change(world: World, verb: str, *arguments: Any, of: str = "q", which: MessageFilter | None = None) -> None:
    if verb == "remove":
        world.settled |= set(world.sent)
    getattr(world.life.broker.message_operations, verb)(
        world.life.broker.queues[of], which or MessageFilter(), *arguments
    )
    world.finish()


OPERATIONS: dict[str, Operation] = {
    "nack": (lambda world: _hold(world, "q"), lambda world, frames: world.settle("consumer", frames[1], "NACK")),
    "last nack": (_refused_once, lambda world, frames: world.settle("consumer", frames[0], "NACK")),
    "nack in a group": (
        lambda world: _hold(world, "groups", 3, "group:g"),
        lambda world, frames: world.settle("consumer", frames[0], "NACK"),
    ),
    "connection lost": (lambda world: _hold(world, "q"), lambda world, _: world.lose("consumer")),
    "last connection lost": (_refused_once, lambda world, _: world.lose("consumer")),
    "unsubscribe": (lambda world: _hold(world, "q"), lambda world, _: world.write("consumer", "UNSUBSCRIBE", "id:1")),
    "unsubscribe a ring": (
        lambda world: _hold(world, "ring", 2),
        lambda world, _: world.write("consumer", "UNSUBSCRIBE", "id:1"),
    ),
    "ack": (lambda world: _hold(world, "q"), _ack),
    "cumulative ack": (
        lambda world: _hold(world, "q", ack="client"),
        lambda world, frames: _ack(world, frames, cumulative=True),
    ),
    "commit": (_in_transaction, _commit),
    "abort": (_in_transaction, lambda world, _: world.write("consumer", "ABORT", "transaction:t")),
    "transaction lost": (_in_transaction, lambda world, _: world.lose("consumer")),
    "lease ends": (lambda world: _hold(world, "leased"), lambda world, _: world.advance(500)),
    "second attempt": (_refused_once, lambda world, _: world.advance(100)),
    "schedule is due": (lambda world: _schedule(world, "q"), lambda world, _: world.advance(60)),
    "expiry": (lambda world: _expire(world, "q"), lambda world, _: world.advance(200)),
    "publish": (lambda world: _fill(world, "q"), lambda world, _: world.send("q")),
    "publish to subscriptions": (lambda world: _fill(world, "news"), lambda world, _: world.send("news")),
    "publish to a ring": (lambda world: _fill(world, "ring"), lambda world, _: _replace(world, "ring")),
    "publish to a ring by depth": (lambda world: _fill(world, "depth"), lambda world, _: _replace(world, "depth")),
    "publish a newer value": (
        lambda world: _fill(world, "values", 2, "key:a"),
        lambda world, _: _replace(world, "values"),
    ),
    "schedule": (lambda world: _fill(world, "q"), lambda world, _: world.send("q", "AMQ_SCHEDULED_DELAY:1000")),
    "subscribe": (lambda world: _fill(world, "q"), lambda world, _: world.read("consumer", "q")),
    "subscribe at most once": (
        lambda world: _fill(world, "q"),
        lambda world, _: world.settled.update(world.sent) or world.read("consumer", "q", "auto"),
    ),
    "subscribe with a selector": (
        lambda world: _fill(world, "q", 3, "key:a"),
        lambda world, _: world.read("consumer", "q", "client", "selector:key = 'a'"),
    ),
    "subscribe to groups": (
        lambda world: _fill(world, "groups", 3, "group:g"),
        lambda world, _: world.read("consumer", "groups"),
    ),
    "purge": (lambda world: _fill(world, "q"), lambda world, _: _purge(world, "q")),
    "remove": (
        lambda world: _fill(world, "q"),
        lambda world, _: _change(world, "remove", which=MessageFilter(ids=(1, 2, 3))),
    ),
    "move": (lambda world: _fill(world, "q"), lambda world, _: _change(world, "move", "other")),
    "copy": (lambda world: _fill(world, "q"), lambda world, _: _change(world, "copy", "other")),
    "expire": (lambda world: _fill(world, "q"), lambda world, _: _change(world, "expire")),
    "dead": (lambda world: _fill(world, "q"), lambda world, _: _change(world, "send_to_dead_letters")),
    "retry": (_dead, lambda world, _: _change(world, "retry", of="dead")),
    "prioritize": (lambda world: _fill(world, "q"), lambda world, _: _change(world, "prioritize", 9)),
    "publish into pages": (lambda world: _fill(world, "paged"), lambda world, _: world.send("paged")),
    "publish to several in pages": (
        lambda world: _fill(world, "paged.news"),
        lambda world, _: world.send("paged.news", "key:a"),
    ),
    "commit into pages": (lambda world: _fill(world, "paged") or _in_transaction(world, "paged"), _commit),
    "last nack into pages": (
        lambda world: world.send("paged.late") and _hold(world, "doomed"),
        lambda world, frames: world.settle("consumer", frames[0], "NACK"),
    ),
    "expiry into pages": (
        lambda world: world.send("paged.late")
        and _expire(world, "doomed"),
        lambda world, _: world.advance(200),
    ),
    "publish values into pages": (
        lambda world: _fill(world, "paged.values", 3, "key:a"),
        lambda world, _: _replace(world, "paged.values"),
    ),
    "read ahead": (lambda world: _fill(world, "paged", 5), lambda world, _: world.read("consumer", "paged")),
    "read values ahead": (
        lambda world: [world.send("paged.values", f"key:{key}") for key in ("a", "b")],
        lambda world, _: world.read("consumer", "paged.values"),
    ),
    "read pages by choice": (
        lambda world: _fill(world, "paged", 5, "key:a"),
        lambda world, _: world.read("consumer", "paged", "client", "selector:key = 'a'"),
    ),
    "read what is scheduled in pages": (
        lambda world: _schedule(world, "paged"),
        lambda world, _: world.advance(60) or world.read("consumer", "paged"),
    ),
    "expiry in pages": (
        lambda world: _expire(world, "paged"),
        lambda world, _: world.advance(200),
    ),
    "ack of paged messages": (lambda world: _hold(world, "paged"), _ack),
    "nack of a paged message": (
        lambda world: _hold(world, "paged"),
        lambda world, frames: world.settle("consumer", frames[0], "NACK"),
    ),
    "connection lost with paged messages": (
        lambda world: _hold(world, "paged"),
        lambda world, _: world.lose("consumer"),
    ),
    "purge of pages": (lambda world: _fill(world, "paged"), lambda world, _: _purge(world, "paged")),
    "move out of pages": (
        lambda world: _fill(world, "paged"),
        lambda world, _: _change(world, "move", "other", of="paged"),
    ),
    "move into pages": (lambda world: _fill(world, "q"), lambda world, _: _change(world, "move", "paged")),
    "settle by filter": (lambda world: _fill(world, "leased", 3, "key:a"), lambda world, _: _filter(world, "ACK")),
    "settle what is leased by filter": (
        lambda world: _hold(world, "leased", 3, "key:a"),
        lambda world, _: _filter(world, "ACK"),
    ),
    "expire by filter": (
        lambda world: _fill(world, "leased", 3, "key:a"),
        lambda world, _: _filter(world, "ACK", "options:expire"),
    ),
    "expire what is leased by filter": (
        lambda world: _hold(world, "leased", 3, "key:a"),
        lambda world, _: _filter(world, "ACK", "options:expire"),
    ),
    "give back by filter": (lambda world: _hold(world, "leased", 3, "key:a"), lambda world, _: _filter(world, "NACK")),
    "settle what waits by filter": (
        lambda world: _schedule(world, "leased", "key:a", delays=(300, 500, 500)),
        lambda world, _: _filter(world, "ACK"),
    ),
    "a barrier comes": (lambda world: _fill(world, "barriers"), lambda world, _: world.send("barriers", "bar:1")),
    "a barrier goes out": (_barrier, _after_barrier),
    "a barrier is done": (
        lambda world: world.send("barriers", "bar:1") and world.send("barriers"), _after_barrier
    ),
    "deliver scheduled": (
        lambda world: _schedule(world, "q"),
        lambda world, _: world.life.broker.message_operations.deliver(
            world.life.broker.queues["q"], (1, 2, 3), world.life.loop.clock_ms()
        ),
    ),
}  # fmt: skip


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


_known: dict[tuple[int, int], tuple[bool, CodeType, CodeType]] = {}
"""What is a step, by the two codes, which it keeps."""


def _is_step(code: CodeType, by: CodeType) -> bool:
    """Is this called by that a step of the core or its log? What stands in ``_PAGED`` has no steps."""
    if not code.co_filename.startswith(_CORE) or code.co_name.startswith("<"):
        return False
    place, called, caller = code.co_filename[len(_CORE) + 1 :], code.co_qualname, by.co_filename
    if not place.startswith(("core/", "storage/journal/record_writer")) or place.startswith(_BOOKKEEPING):
        return False
    if called.partition(".")[0] in _COUNTS or called in _MOVES | _PAGED | _VERBS or called.endswith(".__init__"):
        return False
    if not caller.startswith((f"{_CORE}/core/", f"{_CORE}/stomp/", f"{_CORE}/storage/journal/record_writer")):
        return False  # a step of a whole turn: the broker ends, and a restart has everything
    return not caller.startswith(f"{_CORE}/core/queue/groups.py") and by.co_qualname not in _PAGED


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


def run(operation: Operation, sites: dict[Site, None], fail_at: Site | None = None, *, retains: bool) -> World:
    """Carry out an operation, and note each place of the core that it passes: who calls whom, where. One of them
    raises, once.
    """

    def trace(frame: FrameType, event: str, _: object) -> None:
        back = frame.f_back
        if back is None:
            return
        code, by = frame.f_code, back.f_code
        known = _known.get((id(code), id(by)))
        if known is None:
            known = _known[id(code), id(by)] = _is_step(code, by), code, by
        if not known[0]:
            return
        site = by.co_filename[len(_CORE) + 1 :], back.f_lineno, code.co_qualname
        sites[site] = None
        if site == fail_at:
            sys.settrace(None)
            raise Fault(str(site))

    prepare, act = operation
    world = World(retains=retains)
    given = prepare(world)
    sys.settrace(trace)
    try:
        act(world, given)
    except Fault:  # an operator's request is answered with it
        sys.settrace(None)
        world.life.broker.step_broke_off(world.life.loop.clock_ms())
    finally:
        sys.settrace(None)
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
        frames = world.read("reader", full_name, "client-individual")
        while frames:
            for frame in frames:
                got[frame.body.decode()] += 1
                if frame.header("ack"):  # a barrier needs none
                    world.settle("reader", frame)
            frames = world.messages("reader")
        world.life.drain()
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
        telling = Telling().read(Archive().files(life.disk))
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
    sites: dict[Site, None] = {}
    run(operation, sites, retains=retains)
    for site in sites:
        wrong = check(run(operation, {}, site, retains=retains))
        if wrong:
            failures.append(f"{site[0]}:{site[1]} {site[2]}: {'; '.join(wrong)}")
    assert not failures, f"{len(failures)} of {len(sites)}\n" + "\n".join(failures)
