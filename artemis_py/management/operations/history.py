"""The last hour of the counters of a queue, or of all of them. It is in memory, and a restart forgets it."""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple

from artemis_py.core.counter_history import CounterHistory, Sample, grown
from artemis_py.core.queue_states import sample_of
from artemis_py.management.listing import EPOCH_MS, NUMBER, PAGE_SIZE_MAX, Field, Kind, ListQuery, Selection
from artemis_py.management.managed import Arguments, Managed, Steps, Work
from artemis_py.management.operation import BROKER, VIEW, Argument, Operation
from artemis_py.management.operations.arguments import QUEUE, queue_of

_MESSAGES: Final = "messages"
_SPAN_MS_MIN: Final = 1_000


class _Moment(NamedTuple):
    """A sample, its date, and the one before."""

    at_ms: int
    before: Sample
    sample: Sample


MOMENTS: Final[Kind[_Moment]] = Kind(
    "moment",
    "moments",
    [
        Field("at", NUMBER, "When it was", lambda it: it.at_ms, EPOCH_MS, is_brief=True),
        Field("span", NUMBER, "How long after the moment before", lambda it: it.sample.at_ms - it.before.at_ms, "ms"),
        Field(
            "messagesAdded",
            NUMBER,
            "Messages that came in that span",
            lambda it: grown(it.before.added, it.sample.added),
            _MESSAGES,
            is_brief=True,
        ),
        Field(
            "messagesAcked",
            NUMBER,
            "Messages acknowledged in that span",
            lambda it: grown(it.before.acknowledged, it.sample.acknowledged),
            _MESSAGES,
            is_brief=True,
        ),
        Field("messageCount", NUMBER, "Messages there were", lambda it: it.sample.depth, _MESSAGES, is_brief=True),
        Field("scheduledCount", NUMBER, "Those that waited for their time", lambda it: it.sample.scheduled),
    ],
)


def _moments(managed: Managed, history: CounterHistory | None, now: Sample | None = None) -> Steps:
    samples = [] if history is None else history.samples()
    if now is not None and samples and now.at_ms - samples[-1].at_ms >= _SPAN_MS_MIN:
        samples.append(now)
    moments = [_Moment(managed.broker.clock.date_ms(now.at_ms), before, now) for before, now in pairwise(samples)]
    yield None
    return Selection(MOMENTS, ListQuery(size=PAGE_SIZE_MAX), len(moments), moments)


def _of_queue(managed: Managed, arguments: Arguments) -> Steps:
    queue = queue_of(managed, arguments)
    return (yield from _moments(managed, managed.broker.host.rounds.by_queue.get(queue.id), sample_of(queue)))


def _of_broker(managed: Managed, _arguments: Arguments) -> Steps:
    return (yield from _moments(managed, managed.broker.host.rounds.whole))


def _row(on: str, path: str, command: str, sentence: str, work: Work, *arguments: Argument) -> Operation:
    return Operation(
        name="getHistory",
        on=on,
        right=VIEW,
        method="GET",
        path=path,
        command=command,
        sentence=sentence,
        result="count, page and size; data: every minute of the hour, then every ten seconds of the last five minutes,"
        " then now; empty without traffic in that hour",
        arguments=arguments,
        lists=MOMENTS,
        no_mbean="Artemis keeps no history",
        work=work,
    )


HISTORY_OPERATIONS: Final = (
    _row(
        "queue", "/api/queues/{queue}/history", "queue history",
        "What came to a queue in the last hour, what was acknowledged, and how many messages it had.", _of_queue, QUEUE,
    ),
    _row(
        BROKER, "/api/broker/history", "broker history",
        "What came to all queues in the last hour, what was acknowledged, and how many messages they had.", _of_broker,
    ),
)  # fmt: skip
