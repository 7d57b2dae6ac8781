"""Operations that say why: one for each question."""

from __future__ import annotations

from typing import Final

from artemis_py.errors import BadRequestError
from artemis_py.management.fields import NUMBER, TEXT
from artemis_py.management.listing import PAGE_SIZE_MAX, Selection, Wanted
from artemis_py.management.managed import Given, Managed, Steps, Work, found
from artemis_py.management.operation import VIEW, Argument, Operation
from artemis_py.management.operations.arguments import QUEUE
from artemis_py.management.operations.connections import CONNECTION
from artemis_py.management.why.asking import Asking, Findings
from artemis_py.management.why.blocked import blocked, blocked_connection
from artemis_py.management.why.dead import dead
from artemis_py.management.why.dropped import dropped
from artemis_py.management.why.finding import REASONS
from artemis_py.management.why.growing import growing
from artemis_py.management.why.not_delivered import not_delivered
from artemis_py.management.why.one_message import about_message
from artemis_py.management.why.places import learn_queues
from artemis_py.management.why.slow import slow

_WINDOW_S_MAX: Final = 20
_ADDRESS: Final = Argument("address", TEXT, "the name of the address")
_EITHER: Final = Argument("name", TEXT, "the name of an address, or of a queue")
_MESSAGE: Final = Argument("message", NUMBER, "the number of one message (its message-id); 0: the queue as a whole", 0)
_WINDOW: Final = Argument("window", NUMBER, f"for how many seconds to measure, at most {_WINDOW_S_MAX}", 1)
_RESULT: Final = "count: how many reasons; page and size; data: the reasons, the most important first"


def _answer(asking: Asking, work: Findings) -> Steps:
    yield from learn_queues(asking.broker.config)
    yield from work
    return Selection(REASONS, Wanted(size=PAGE_SIZE_MAX), len(asking.found), asking.found)


def _not_delivered(managed: Managed, given: Given) -> Steps:
    queue = found(managed.broker.queues, "queue", given["queue"])
    asking, message_id = Asking(managed, queue=queue), given["message"]
    work = about_message(asking, queue, message_id) if message_id else not_delivered(asking, queue)
    return (yield from _answer(asking, _something(asking, work)))


def _something(asking: Asking, work: Findings) -> Findings:
    """An answer that has at least one reason."""
    yield from work
    if not asking.found:
        asking.add("nothing-waits", "it has no message, and lost none since the start")


def _blocked(managed: Managed, given: Given) -> Steps:
    address = found(managed.broker.addresses, "address", given["address"])
    asking = Asking(managed, address)
    return (yield from _answer(asking, blocked(asking, address)))


def _blocked_connection(managed: Managed, given: Given) -> Steps:
    asking = Asking(managed)
    return (yield from _answer(asking, blocked_connection(asking, given["connection"])))


def _dropped(managed: Managed, given: Given) -> Steps:
    name = given["name"]
    address, queue = managed.broker.addresses.get(name), managed.broker.queues.get(name)
    if address is None and queue is None:
        found(managed.broker.addresses, "address or queue", name)
    asking = Asking(managed, address)
    return (yield from _answer(asking, dropped(asking, address, queue)))


def _dead(managed: Managed, given: Given) -> Steps:
    queue = found(managed.broker.queues, "queue", given["queue"])
    asking = Asking(managed, queue=queue)
    return (yield from _answer(asking, dead(asking, queue, given["message"])))


def _slow(managed: Managed, _given: Given) -> Steps:
    asking = Asking(managed)
    return (yield from _answer(asking, slow(asking)))


def _growing(managed: Managed, given: Given) -> Steps:
    queue, window_s = found(managed.broker.queues, "queue", given["queue"]), given["window"]
    if not 1 <= window_s <= _WINDOW_S_MAX:
        raise BadRequestError(f"window must be 1 to {_WINDOW_S_MAX} seconds, not {window_s}")
    asking = Asking(managed, queue=queue)
    return (yield from _answer(asking, growing(asking, queue, 1000 * window_s)))


def _row(name: str, on: str, path: str, command: str, sentence: str, work: Work, *arguments: Argument) -> Operation:
    return Operation(
        name=name,
        on=on,
        right=VIEW,
        method="GET",
        path=path,
        command=f"why {command}",
        sentence=sentence,
        result=_RESULT,
        arguments=arguments,
        lists=REASONS,
        no_mbean="Artemis answers no such questions",
        work=work,
    )


WHY_OPERATIONS: Final = (
    _row(
        "whyNotDelivered", "queue", "/api/queues/{queue}/why/not-delivered", "not-delivered",
        "Why a queue, or one of its messages, is not delivered.", _not_delivered, QUEUE, _MESSAGE,
    ),
    _row(
        "whyBlocked", "address", "/api/addresses/{address}/why/blocked", "blocked",
        "Why senders to an address wait or are refused, and what would free it.", _blocked, _ADDRESS,
    ),
    _row(
        "whyConnectionBlocked", "broker", "/api/connections/{connection}/why/blocked", "blocked-connection",
        "What a client waits for.", _blocked_connection, CONNECTION,
    ),
    _row(
        "whyDropped", "broker", "/api/why/dropped/{name}", "dropped",
        "Which messages of an address or queue were lost since the start, by cause.", _dropped, _EITHER,
    ),
    _row(
        "whyDead", "queue", "/api/queues/{queue}/why/dead", "dead",
        "Why messages of a queue died; of a dead-letter queue: its messages by origin and cause.", _dead,
        QUEUE, _MESSAGE,
    ),
    _row("whySlow", "broker", "/api/why/slow", "slow", "What makes the broker slow, the worst first.", _slow),
    _row(
        "whyGrowing", "queue", "/api/queues/{queue}/why/growing", "growing",
        "What comes into a queue and leaves it, by consumer, and when it will page, be full or be empty.", _growing,
        QUEUE, _WINDOW,
    ),
)  # fmt: skip
