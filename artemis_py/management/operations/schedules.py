"""Messages that are sent again and again: the operations that list and cancel them."""

from __future__ import annotations

from functools import cached_property
from typing import Final

from artemis_py.config.tables.declarations import SCHEDULES
from artemis_py.core.broker import Broker
from artemis_py.core.order.entry import PURGED, Entry
from artemis_py.core.publish.publish import possible_targets
from artemis_py.core.queue.queue import Queue
from artemis_py.core.recurrence import CRON, PERIOD, REPEAT, destination_of, job_of, target_of
from artemis_py.errors import NotFoundError
from artemis_py.management.listing import EPOCH_MS, FLAG, LOOKS_PER_STEP, NUMBER, TEXT, Field, Kind
from artemis_py.management.managed import Arguments, Managed, Steps
from artemis_py.management.operation import EDIT, Argument, Operation, listing, select_rows

WAITS: Final = "waits"
NO_DESTINATION: Final = "no-destination"
NO_QUEUE: Final = "no-queue"


class Schedule:
    """One message that waits to be sent."""

    def __init__(self, broker: Broker, queue: Queue, entry: Entry) -> None:
        self._broker = broker
        self.message = entry.message
        self.due_ms = queue.contents.scheduled_dates.of(entry.message.id)
        self.id = job_of(entry.message)

    @cached_property
    def headers(self) -> dict[str, str]:
        """Those of the message."""
        return self.message.head.properties

    @property
    def state(self) -> str:
        """Would a queue get it now?"""
        if not target_of(self.message.head):
            return NO_DESTINATION
        broker = self._broker
        routing_type, name, queue_name = destination_of(self.message.head)
        if not broker.resolver.would_route(name, queue_name, routing_type):
            return NO_DESTINATION
        if queue_name is not None or broker.resolver.would_create_queue(name, routing_type):
            return WAITS
        address = broker.addresses.get(name)
        if address is not None:
            route = broker.bindings.route_to(address, None, routing_type)
            plan = broker.bindings.plan_of(route)
            if plan.has_diverts or possible_targets(route, plan):
                return WAITS
        return NO_QUEUE

    def number(self, name: str) -> int:
        """A header that is a number; 0: it is not there."""
        return int(self.headers.get(name) or 0)


_KIND: Final[Kind[Schedule]] = Kind(
    "schedule",
    "schedules",
    [
        Field("schedule", NUMBER, "Its id: that of its first message", lambda it: it.id, is_brief=True),
        Field("destination", TEXT, "Where it is sent", lambda it: target_of(it.message.head), is_brief=True),
        Field(
            "state",
            TEXT,
            f"{WAITS}; {NO_DESTINATION}: that does not exist, and is not created; {NO_QUEUE}: it has no queue",
            lambda it: it.state,
            is_brief=True,
        ),
        Field("next", NUMBER, "When it is sent next", lambda it: it.due_ms, EPOCH_MS, is_brief=True),
        Field("cron", TEXT, "The header AMQ_SCHEDULED_CRON", lambda it: it.headers.get(CRON), is_brief=True),
        Field(
            "period",
            NUMBER,
            "Between two times; 0: there is none",
            lambda it: it.number(PERIOD),
            "ms",
            is_brief=True,
        ),
        Field(
            "repeat",
            NUMBER,
            "How many times it is sent after the next one; -1: until it is cancelled",
            lambda it: it.number(REPEAT),
            is_brief=True,
        ),
        Field("durable", FLAG, "Does it survive a restart?", lambda it: it.message.head.persistent),
        Field("user", TEXT, "Who has sent it, where messages say so", lambda it: it.headers.get("JMSXUserID")),
        Field("size", NUMBER, "Its size", lambda it: it.message.size_bytes, "bytes"),
    ],
)


def _list(managed: Managed, arguments: Arguments) -> Steps:
    queue = managed.broker.queues.get(SCHEDULES)
    found: list[Schedule] = []
    if queue is not None:
        entries = list(queue.contents.scheduled.values())
        for start in range(0, len(entries), LOOKS_PER_STEP):
            found += [Schedule(managed.broker, queue, entry) for entry in entries[start : start + LOOKS_PER_STEP]]
            yield None
    return (yield from select_rows(_KIND, found, arguments))


def _cancel(managed: Managed, arguments: Arguments) -> Steps:
    wanted = arguments["schedule"]
    queue = managed.broker.queues.get(SCHEDULES)
    cancelled = 0
    if queue is not None:
        entries = list(queue.contents.scheduled.values())
        for start in range(0, len(entries), LOOKS_PER_STEP):
            for entry in entries[start : start + LOOKS_PER_STEP]:
                if job_of(entry.message) == wanted and queue.contents.is_aside(entry):
                    queue.contents.kill([entry.message], PURGED)
                    queue.contents.end_waiting(entry)
                    cancelled += 1
            yield None
    if not cancelled:
        raise NotFoundError(f"there is no schedule {wanted}")
    return {"cancelled": wanted}


_NO_SCHEDULES: Final = "Artemis sends no message again and again."

SCHEDULE_OPERATIONS: Final = (
    listing(
        "listSchedules",
        "/api/schedules",
        "schedule ls",
        _KIND,
        "Messages that are sent again and again (`AMQ_SCHEDULED_CRON`, `_PERIOD`, `_REPEAT`).",
        _list,
    ),
    Operation(
        name="cancelSchedule",
        right=EDIT,
        method="DELETE",
        path="/api/schedules/{schedule}",
        command="schedule cancel",
        sentence="Send a message no more. What was sent stays.",
        result="cancelled: the id of the schedule",
        destroys="schedule {schedule}, but not what it has sent",
        arguments=(Argument("schedule", NUMBER, "the id of the schedule"),),
        work=_cancel,
        no_mbean=_NO_SCHEDULES,
    ),
)
