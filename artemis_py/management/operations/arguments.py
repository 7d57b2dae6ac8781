"""Arguments that several operations share: the queue, the message, and which messages of a queue."""

from __future__ import annotations

from typing import Final

from artemis_py.core.dead_letters import BRIDGE_LOOP, FORCED_EXPIRE, NO_ROUTE, SENT_BY_OPERATOR, TIME_LIMIT
from artemis_py.core.operations.scan import STATES, MessageFilter
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.redelivery import MAX_CANCELS, MAX_DELIVERIES
from artemis_py.errors import BadRequestError, SelectorError
from artemis_py.management.listing import NUMBER, TEXT
from artemis_py.management.managed import Arguments, Managed, lookup
from artemis_py.management.operation import Argument
from artemis_py.selector import CLIENT_LIMITS, Selector, compile_selector

ALL: Final = "all"
QUEUE: Final = Argument("queue", TEXT, "the name of the queue")
FILTER: Final = Argument("filter", TEXT, "a selector, such as region = 'eu' AND AMQPriority > 4 (default: all)", "")
NEEDED_FILTER: Final = Argument("filter", TEXT, "a selector, such as region = 'eu' AND AMQPriority > 4")
WHICH: Final = Argument(
    "which", TEXT, f"in which state: {ALL}, or some of {', '.join(STATES)}, with commas between", ALL
)
COUNT: Final = Argument("count", NUMBER, "at most so many, from the front of the queue (default: all)", None)
MESSAGE: Final = Argument("message", NUMBER, "the number of the message (messageID)")
_CAUSES: Final = (MAX_DELIVERIES, MAX_CANCELS, TIME_LIMIT, FORCED_EXPIRE, NO_ROUTE, SENT_BY_OPERATOR, BRIDGE_LOOP)
CAUSE: Final = Argument("cause", TEXT, f"why they died: {', '.join(_CAUSES)} (default: any)", "")


def queue_of(managed: Managed, arguments: Arguments) -> Queue:
    """The queue that ``queue`` names. Raises NotFoundError."""
    return lookup(managed.broker.queues, "queue", arguments["queue"])


def selector_of(text: str) -> Selector | None:
    """The selector; None for an empty text. Raises BadRequestError."""
    if not text.strip():
        return None
    try:
        return compile_selector(text, CLIENT_LIMITS)
    except SelectorError as error:
        raise BadRequestError(f"the filter makes no sense: {error}") from None


def _cause_of(text: str) -> str | None:
    """The cause as headers have it, which may be written with hyphens; None for an empty text. Raises
    BadRequestError.
    """
    cause = text.strip().replace("-", "_")
    if cause and cause not in _CAUSES:
        raise BadRequestError(f"there is no cause {text[:100]!r}; there are {', '.join(_CAUSES)}")
    return cause or None


def message_filter_of(arguments: Arguments) -> MessageFilter:
    """The filter that ``message``, ``filter``, ``origin``, ``cause`` and ``count`` make, as far as there are any.
    Raises BadRequestError.
    """
    if "message" in arguments and arguments["message"] is not None:
        return MessageFilter(ids=(arguments["message"],))
    count = arguments.get("count")
    if count is not None and count < 1:
        raise BadRequestError(f"count must be 1 or more, not {count}")
    selector = selector_of(arguments.get("filter") or "")
    return MessageFilter(
        selector, origin=arguments.get("origin") or None, cause=_cause_of(arguments.get("cause") or ""), count_max=count
    )


def states_of(text: str) -> tuple[str, ...]:
    """The states that ``which`` names. Raises BadRequestError."""
    names = [name.strip() for name in text.split(",")]
    if ALL in names:
        return STATES
    for name in names:
        if name not in STATES:
            raise BadRequestError(f"there is no state {name[:100]!r}; there are {ALL}, {', '.join(STATES)}")
    return tuple(names)
