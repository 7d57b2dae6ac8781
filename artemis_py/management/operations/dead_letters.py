"""Operations that list dead and expired messages, and retry them: send them back to the queues they came from."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final, NamedTuple, final

from artemis_py.core.budget import Budget
from artemis_py.core.dead_letters import Origin, origin_of, retried_count
from artemis_py.core.operations.messages import Change
from artemis_py.core.operations.scan import DELIVERING, STATES, UNHELD, LocatedMessage, MessageFilter
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import Until
from artemis_py.errors import BadRequestError
from artemis_py.management.listing import EPOCH_MS, FLAG, LOOKS_PER_STEP, NUMBER, TEXT, Field, Kind
from artemis_py.management.managed import Arguments, Job, Managed, Steps, lookup
from artemis_py.management.operation import EDIT, LISTING, VIEW, Argument, Operation, select_rows
from artemis_py.management.operations.arguments import CAUSE, FILTER, message_filter_of
from artemis_py.management.operations.browse import scan_messages
from artemis_py.management.operations.messages import GONE, LEFT, OF_COPIES, report, wait_until_over
from artemis_py.message import Message

_GROUPS_MAX: Final = 10_000
"""So many groups have a row of their own; further origins share one."""
_OTHERS: Final = Origin("(others)", "(others)", "(others)")


class DeadLetterKind(NamedTuple):
    """A kind of dead letters: on which queue they are, where they come from, and why."""

    queue: str
    origin: Origin


class DeadLetterGroup:
    """Dead letters of one kind."""

    def __init__(self, kind: DeadLetterKind) -> None:
        self.kind = kind
        self.count = 0
        self.size_bytes = 0
        self.retried_count = 0
        self.first_ms = 0
        self.last_ms = 0

    def add(self, message: Message) -> None:
        """Add a message."""
        self.count += 1
        self.size_bytes += message.size_bytes
        self.retried_count += retried_count(message.head) > 0
        self.first_ms = min(self.first_ms or message.timestamp_ms, message.timestamp_ms)
        self.last_ms = max(self.last_ms, message.timestamp_ms)


class DeadLetters:
    """Dead letters, grouped by their kind."""

    def __init__(self) -> None:
        self.groups: dict[DeadLetterKind, DeadLetterGroup] = {}

    def add(self, queue_name: str, message: Message) -> None:
        """Add a dead letter."""
        kind = DeadLetterKind(queue_name, origin_of(message.head))
        group = self.groups.get(kind)
        if group is None:
            if len(self.groups) >= _GROUPS_MAX:
                kind = DeadLetterKind(queue_name, _OTHERS)
            group = self.groups.setdefault(kind, DeadLetterGroup(kind))
        group.add(message)


DEAD_LETTERS: Final[Kind[DeadLetterGroup]] = Kind(
    "kind of dead letters",
    "kinds of dead letters",
    [
        Field("queue", TEXT, "The queue on which they are", lambda it: it.kind.queue, is_brief=True),
        Field("originalQueue", TEXT, "The queue on which they died", lambda it: it.kind.origin.queue, is_brief=True),
        Field(
            "originalAddress", TEXT, "The address to which they were sent", lambda it: it.kind.origin.address,
            is_brief=True,
        ),
        Field(
            "cause", TEXT, "Why: max_deliveries, max_cancels, time_limit, forced_expire, no_route, sent_by_operator,"
            " bridge_loop; null: a client sent them", lambda it: it.kind.origin.cause, is_brief=True,
        ),
        Field("count", NUMBER, "How many there are", lambda it: it.count, "messages", is_brief=True),
        Field("size", NUMBER, "Their headers and bodies", lambda it: it.size_bytes, "bytes"),
        Field("retried", NUMBER, "How many of them were sent back before", lambda it: it.retried_count, "messages"),
        Field("first", NUMBER, "When the first of them came", lambda it: it.first_ms, EPOCH_MS),
        Field("last", NUMBER, "When the last of them came", lambda it: it.last_ms, EPOCH_MS, is_brief=True),
    ],
)  # fmt: skip


_LETTER_UNITS: Final = 6
"""What it costs to read three headers of a message."""


def _dead_letter_queues(managed: Managed, name: str) -> Generator[None, None, list[Queue]]:
    """The queue of this name; without one all queues on addresses that settings, or queues, name for dead or expired
    messages. Raises NotFoundError.
    """
    broker = managed.broker
    if name:
        return [lookup(broker.queues, "queue", name)]
    chosen: list[Queue] = []
    for number, queue in enumerate(list(broker.queues.values())):
        if queue.address.name in broker.host.dead_letter_addresses:
            chosen.append(queue)
        if number % LOOKS_PER_STEP == 0:
            yield None
    return chosen


def survey(
    managed: Managed, queues: Sequence[Queue], message_filter: MessageFilter, states: Sequence[str] = STATES
) -> Generator[Until | None, None, DeadLetters]:
    """What is on these queues, by origin and cause."""
    dead_letters = DeadLetters()
    for queue in queues:

        def visit(located: LocatedMessage, budget: Budget, name: str = queue.name) -> bool:
            budget.spend(_LETTER_UNITS)
            dead_letters.add(name, located.message)
            return False

        yield from scan_messages(managed, queue, states, message_filter, visit)
    return dead_letters


_WHOLE: Final = 1000
_INTERVAL_MS: Final = 20
"""How often a job goes on."""
_BURST_MS: Final = 250
"""What was not used of so much time may go at once."""


@final
class Pace:
    """Gives ``rate`` messages a second, from the steady time ``now_ms`` on. The first may go at once."""

    def __init__(self, rate: int, now_ms: int) -> None:
        self._rate = rate
        self._at_ms = now_ms
        self._thousandths = _WHOLE
        """What may go now, in thousandths of a message."""

    @property
    def interval_ms(self) -> int:
        """After how long it is worth looking again, in ms."""
        return max(_INTERVAL_MS, (_WHOLE - self._thousandths) // self._rate)

    def pass_time(self, now_ms: int) -> None:
        """It is this steady time now."""
        most = max(self._rate * _BURST_MS, _WHOLE)
        self._thousandths = min(self._thousandths + self._rate * max(now_ms - self._at_ms, 0), most)
        self._at_ms = now_ms

    def take(self) -> int:
        """Take all that may go now, in whole messages."""
        count, self._thousandths = divmod(self._thousandths, _WHOLE)
        return count

    def give_back(self, count: int) -> None:
        """So many of them did not go."""
        self._thousandths += _WHOLE * count


RATE_MAX: Final = 100_000
_QUEUE: Final = Argument(
    "queue", TEXT, "the queue on which they are (default: all that get dead or expired messages)", ""
)
_ORIGIN: Final = Argument("origin", TEXT, "the queue or address from which they come (default: any)", "")
_GROUPS_SHOWN_MAX: Final = 100


def _list(managed: Managed, arguments: Arguments) -> Steps:
    queues = yield from _dead_letter_queues(managed, arguments["queue"])
    dead_letters = yield from survey(managed, queues, message_filter_of(arguments))
    return (yield from select_rows(DEAD_LETTERS, list(dead_letters.groups.values()), arguments))


def _retry(managed: Managed, arguments: Arguments) -> Steps:
    rate = arguments["rate"]
    if not 0 <= rate <= RATE_MAX:
        raise BadRequestError(f"rate is a number of messages per second, up to {RATE_MAX:,}; 0: as fast as possible")
    queues = yield from _dead_letter_queues(managed, arguments["queue"])
    message_filter = message_filter_of(arguments)
    if arguments["dry-run"]:
        return (yield from _rehearse(managed, queues, message_filter))
    if rate:
        return (yield from _at_a_rate(managed, queues, arguments))
    result: dict[str, Any] = {
        "retried": 0, "replaced": {}, "transient": {}, "inDelivery": 0, "inDeliveryMessages": [], "kept": {},
        "stoppedBecause": None, "job": None,
    }  # fmt: skip
    for queue in queues:
        change = managed.broker.message_operations.retry(queue, message_filter_of(arguments))
        yield from wait_until_over(managed, change)
        _add(result, change)
    return result


def _add(result: dict[str, Any], change: Change) -> None:
    one = report(change)
    result["retried"] += one["retried"]
    result["inDelivery"] += one["inDelivery"]
    result["inDeliveryMessages"] += one["inDeliveryMessages"]
    for name in ("replaced", "transient", "kept"):
        for reason, count in one[name].items():
            result[name][reason] = result[name].get(reason, 0) + count
    if change.stopped_because:
        result["stoppedBecause"] = f"queue {change.queue.name}: {change.stopped_because}"


def _rehearse(managed: Managed, queues: list[Queue], message_filter: MessageFilter) -> Steps:
    """What would go back, by origin and cause."""
    dead_letters = yield from survey(managed, queues, message_filter, UNHELD)
    held = yield from survey(managed, queues, message_filter, (DELIVERING,))
    groups = sorted(dead_letters.groups.values(), key=lambda each: -each.count)
    return {
        "dryRun": True,
        "count": sum(each.count for each in groups),
        "inDelivery": sum(each.count for each in held.groups.values()),
        "groups": [DEAD_LETTERS.row(each) for each in groups[:_GROUPS_SHOWN_MAX]],
    }


def _at_a_rate(managed: Managed, queues: list[Queue], arguments: Arguments) -> Steps:
    """Begin a job for it, which the answer names."""
    dead_letters = yield from survey(managed, queues, message_filter_of(arguments), UNHELD)
    planned = sum(each.count for each in dead_letters.groups.values())
    what, name = "retry dead letters", arguments["queue"] or "all of dead letters"
    job = managed.jobs.begin(what, name, managed.now_ms(), planned, arguments["rate"])
    managed.begin(_paced(managed, job, queues, arguments))
    return {"retried": 0, "planned": planned, "rate": job.rate, "job": job.id}


def _paced(managed: Managed, job: Job, queues: list[Queue], arguments: Arguments) -> Steps:
    """The job: so many messages go back in each second, and not more."""
    pace = Pace(job.rate, managed.steady_ms())
    changes: list[Change] = []
    job.done = lambda: sum(change.done_count for change in changes)
    try:
        for queue in queues:
            if queue.deleted or job.was_stopped():
                continue
            change = managed.broker.message_operations.retry(queue, message_filter_of(arguments), allowance=pace.take())
            changes.append(change)
            while not change.is_over:
                if job.was_stopped():
                    change.stop("an operator stopped the job")
                else:
                    pace.give_back(change.allowance or 0)
                    pace.pass_time(managed.steady_ms())
                    change.allowance = pace.take()
                    managed.broker.message_operations.nudge(change)
                yield Until(managed.steady_ms() + pace.interval_ms)
            pace.give_back(change.allowance or 0)
    finally:
        managed.jobs.end(job, managed.now_ms(), _remark(changes))
    return {"retried": job.done()}


def _remark(changes: list[Change]) -> str:
    """What did not go back, what is gone for it, and why."""
    held = sum(change.held_count for change in changes)
    parts = [f"{held} in delivery were left alone"] if held else []
    for change in changes:
        parts += [f"{count} stayed: {reason}" for reason, count in change.kept.items()]
        parts += [f"{count} {reason}" for reason, count in change.replaced.items()]
        parts += [f"{count} went where {reason}" for reason, count in change.transient.items()]
        if change.stopped_because:
            parts.append(f"ended early: {change.stopped_because}")
    return "; ".join(parts)


DEAD_LETTER_OPERATIONS: Final = (
    Operation(
        name="listDeadLetters",
        right=VIEW,
        method="GET",
        path="/api/dead-letters",
        command="dead ls",
        sentence="Dead and expired messages by where they came from and why, one row for each origin and cause.",
        result="count: how many rows match; page and size; data: those of the page",
        arguments=(_QUEUE, FILTER, _ORIGIN, CAUSE, *LISTING),
        lists=DEAD_LETTERS,
        work=_list,
        no_mbean="Artemis has nothing like it.",
    ),
    Operation(
        name="retryDeadLetters",
        right=EDIT,
        method="POST",
        path="/api/dead-letters/retry",
        command="dead retry",
        sentence="Send dead and expired messages back to the queues they came from: all, or those of one origin or"
        f" cause, or that match a filter. {GONE}",
        result=f"retried: how many; {OF_COPIES}; {LEFT}. With dry-run: count, inDelivery, and groups by origin and"
        " cause. With a rate: the number of the job, and planned",
        arguments=(
            _QUEUE,
            FILTER,
            _ORIGIN,
            CAUSE,
            Argument("rate", NUMBER, "messages in a second at most, so that consumers keep up; 0: no limit", 0),
            Argument("dry-run", FLAG, "only say what would be done", False),
        ),
        inside={"groups": DEAD_LETTERS},
        work=_retry,
        no_mbean="Artemis has nothing like it; a queue has retryMessages.",
    ),
)
