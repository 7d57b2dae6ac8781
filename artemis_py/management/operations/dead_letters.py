"""Dead and expired messages: which there are, and how they get back to where they came from."""

from __future__ import annotations

from typing import Any, Final

from artemis_py.core.operations.message_filter import MessageFilter
from artemis_py.core.operations.messages import Change
from artemis_py.core.operations.scan import DELIVERING, UNHELD
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import Until
from artemis_py.errors import BadRequestError
from artemis_py.management.jobs import Job
from artemis_py.management.lists.dead_letters import DEAD_LETTERS
from artemis_py.management.lists.field import FLAG, NUMBER, TEXT
from artemis_py.management.managed import Given, Managed, Steps
from artemis_py.management.messages.changing import answer, over
from artemis_py.management.messages.choosing import CAUSE, FILTER, choice_of
from artemis_py.management.messages.dead_letter_queues import dead_letter_queues, survey
from artemis_py.management.messages.pace import Pace
from artemis_py.management.operation import EDIT, VIEW, Argument, Operation
from artemis_py.management.operations.listing import LISTING, selected

RATE_MAX: Final = 100_000
_QUEUE: Final = Argument(
    "queue", TEXT, "the queue on which they are; without it, all queues that get dead or expired messages", ""
)
_ORIGIN: Final = Argument("origin", TEXT, "the queue or address from which they come; without it any", "")
_GROUPS_SHOWN_MAX: Final = 100


def _list(managed: Managed, given: Given) -> Steps:
    queues = yield from dead_letter_queues(managed, given["queue"])
    found, _ = yield from survey(managed, queues, choice_of(given))
    return (yield from selected(DEAD_LETTERS, list(found.letters.values()), given))


def _retry(managed: Managed, given: Given) -> Steps:
    rate = given["rate"]
    if not 0 <= rate <= RATE_MAX:
        raise BadRequestError(f"rate is a number of messages per second, up to {RATE_MAX:,}; 0: as fast as possible")
    queues = yield from dead_letter_queues(managed, given["queue"])
    choice = choice_of(given)
    if given["dry-run"]:
        return (yield from _rehearse(managed, queues, choice))
    if rate:
        return (yield from _at_a_rate(managed, queues, given))
    result: dict[str, Any] = {
        "retried": 0, "replaced": {}, "transient": {}, "inDelivery": 0, "inDeliveryMessages": [], "kept": {},
        "stoppedBecause": None, "job": None,
    }  # fmt: skip
    for queue in queues:
        change = managed.broker.message_operations.retry(queue, choice_of(given))
        yield from over(managed, change)
        _add(result, change)
    return result


def _add(result: dict[str, Any], change: Change) -> None:
    one = answer(change)
    result["retried"] += one["retried"]
    result["inDelivery"] += one["inDelivery"]
    result["inDeliveryMessages"] += one["inDeliveryMessages"]
    for name in ("replaced", "transient", "kept"):
        for reason, count in one[name].items():
            result[name][reason] = result[name].get(reason, 0) + count
    if change.stopped_because:
        result["stoppedBecause"] = f"queue {change.queue.name}: {change.stopped_because}"


def _rehearse(managed: Managed, queues: list[Queue], choice: MessageFilter) -> Steps:
    """What would go back, by origin and cause."""
    found, _ = yield from survey(managed, queues, choice, UNHELD)
    held, _ = yield from survey(managed, queues, choice, (DELIVERING,))
    letters = sorted(found.letters.values(), key=lambda each: -each.count)
    return {
        "dryRun": True,
        "count": sum(each.count for each in letters),
        "inDelivery": sum(each.count for each in held.letters.values()),
        "groups": [DEAD_LETTERS.row(each) for each in letters[:_GROUPS_SHOWN_MAX]],
    }


def _at_a_rate(managed: Managed, queues: list[Queue], given: Given) -> Steps:
    """Begin a job for it, which the answer names."""
    found, _ = yield from survey(managed, queues, choice_of(given), UNHELD)
    planned = sum(each.count for each in found.letters.values())
    what, name = "retry dead letters", given["queue"] or "all of dead letters"
    job = managed.jobs.begin(what, name, managed.now_ms(), planned, given["rate"])
    managed.begin(_paced(managed, job, queues, given))
    return {"retried": 0, "planned": planned, "rate": job.rate, "job": job.id}


def _paced(managed: Managed, job: Job, queues: list[Queue], given: Given) -> Steps:
    """The job: so many messages go back in each second, and not more."""
    pace = Pace(job.rate, managed.steady_ms())
    changes: list[Change] = []
    job.done = lambda: sum(change.done_count for change in changes)
    try:
        for queue in queues:
            if queue.deleted or job.was_stopped():
                continue
            change = managed.broker.message_operations.retry(queue, choice_of(given), allowance=pace.take())
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
        sentence="Send dead and expired messages back to the queue they came from: all, or those of one origin, of one"
        " cause, or that match a filter. An anycast queue that is gone is created as a SEND would; what belonged to a"
        " subscription that is gone stays.",
        result="retried: how many; replaced: how many messages are gone because these came to a full ring, or with"
        " newer values, by the queue; transient: how many are on a queue that is not durable; inDelivery and"
        " inDeliveryMessages: those left to their consumers; kept: those that stayed, by reason; stoppedBecause: why"
        " it ended early. With dry-run nothing changes: count, inDelivery, and groups by origin and cause. With a"
        " rate: the number of the background job, and planned",
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
