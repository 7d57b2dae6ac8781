"""Operations that answer why, one for each question of ``management/why``."""

from __future__ import annotations

from typing import Final

from artemis_py.errors import BadRequestError
from artemis_py.management.listing import NUMBER, PAGE_SIZE_MAX, TEXT, ListQuery, Selection
from artemis_py.management.managed import Arguments, Managed, Steps, Work, lookup
from artemis_py.management.operation import VIEW, Argument, Operation
from artemis_py.management.operations.arguments import QUEUE, queue_of
from artemis_py.management.operations.connections import CONNECTION
from artemis_py.management.why.blocked import blocked, blocked_connection
from artemis_py.management.why.growing import growing
from artemis_py.management.why.losses import dead, dropped
from artemis_py.management.why.not_delivered import about_message, not_delivered
from artemis_py.management.why.question import REASONS, Findings, Question, learn_queues
from artemis_py.management.why.slow import slow

_WINDOW_S_MAX: Final = 20
_ADDRESS: Final = Argument("address", TEXT, "the name of the address")
_EITHER: Final = Argument("name", TEXT, "the name of an address, or of a queue")
_MESSAGE: Final = Argument("message", NUMBER, "the number of one message (its message-id); 0: the queue as a whole", 0)
_WINDOW: Final = Argument("window", NUMBER, f"for how many seconds to measure, at most {_WINDOW_S_MAX}", 1)
_RESULT: Final = "count: how many reasons; page and size; data: the reasons, the most important first"


def _answer(question: Question, work: Findings) -> Steps:
    yield from learn_queues(question.broker.config)
    yield from work
    return Selection(REASONS, ListQuery(size=PAGE_SIZE_MAX), len(question.findings), question.findings)


def _not_delivered(managed: Managed, arguments: Arguments) -> Steps:
    queue = queue_of(managed, arguments)
    question, message_id = Question(managed, queue=queue), arguments["message"]
    work = about_message(question, queue, message_id) if message_id else not_delivered(question, queue)
    return (yield from _answer(question, _something(question, work)))


def _something(question: Question, work: Findings) -> Findings:
    """An answer that has at least one reason."""
    yield from work
    if not question.findings:
        question.add("nothing-waits", "it has no message, and lost none since the start")


def _blocked(managed: Managed, arguments: Arguments) -> Steps:
    address = lookup(managed.broker.addresses, "address", arguments["address"])
    question = Question(managed, address)
    return (yield from _answer(question, blocked(question, address)))


def _blocked_connection(managed: Managed, arguments: Arguments) -> Steps:
    question = Question(managed)
    return (yield from _answer(question, blocked_connection(question, arguments["connection"])))


def _dropped(managed: Managed, arguments: Arguments) -> Steps:
    name = arguments["name"]
    address, queue = managed.broker.addresses.get(name), managed.broker.queues.get(name)
    if address is None and queue is None:
        lookup(managed.broker.addresses, "address or queue", name)
    question = Question(managed, address)
    return (yield from _answer(question, dropped(question, address, queue)))


def _dead(managed: Managed, arguments: Arguments) -> Steps:
    queue = queue_of(managed, arguments)
    question = Question(managed, queue=queue)
    return (yield from _answer(question, dead(question, queue, arguments["message"])))


def _slow(managed: Managed, _arguments: Arguments) -> Steps:
    question = Question(managed)
    return (yield from _answer(question, slow(question)))


def _growing(managed: Managed, arguments: Arguments) -> Steps:
    queue, window_s = queue_of(managed, arguments), arguments["window"]
    if not 1 <= window_s <= _WINDOW_S_MAX:
        raise BadRequestError(f"window must be 1 to {_WINDOW_S_MAX} seconds, not {window_s}")
    question = Question(managed, queue=queue)
    return (yield from _answer(question, growing(question, queue, 1000 * window_s)))


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
