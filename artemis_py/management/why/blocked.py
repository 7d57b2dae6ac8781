"""Why senders wait, or are refused: limits of the address, of all addresses, of queues, of the disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from artemis_py.core.addresses import full_policy
from artemis_py.core.addresses.address import Address
from artemis_py.core.addresses.full_policy import limits_reached
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.why import messages
from artemis_py.errors import NotFoundError
from artemis_py.management.why.question import (
    Findings,
    Question,
    address_of,
    connections,
    full_disk,
    listed,
    some_at_a_time,
)
from artemis_py.terminal_output import many

_WAITS: Final = {
    "BLOCK": "senders wait",
    "FAIL": "senders get an ERROR",
    "DROP": "messages are dropped",
    "PAGE": "messages go to pages",
}
"""What a policy does."""
_FOUND_MAX: Final = 50
_MESSAGES: Final = "messages"
_BYTES: Final = "bytes"


def blocked(question: Question, address: Address) -> Findings:
    """What prevents a message for this address now."""
    _about_address(question, address)
    yield None
    yield from _about_queues(question, address)
    waiting = 0
    for thing, count in question.managed.health.awaited():
        if thing is address or (isinstance(thing, Queue) and thing.address is address):
            waiting += count
    if not question.findings:
        _not_blocked(question, address)
    elif waiting:
        first = question.findings[0]
        question.findings[0] = first.saying(f"{first.sentence}; {connections(waiting)} for it")


def blocked_connection(question: Question, number: int) -> Findings:
    """What a client waits for. Raises NotFoundError if there is no such connection."""
    client = None
    for some in some_at_a_time(question.managed.clients()):
        client = client or next((one for one in some if one.number == number), None)
        yield None
    if client is None:
        raise NotFoundError(f"there is no connection {number}")
    thing = question.managed.health.awaited_by(number)
    if isinstance(thing, Address):
        question.address = thing
        yield from blocked(question, thing)
    elif isinstance(thing, Queue):
        question.address = address_of(thing)
        _about_queue(question, thing)
    elif thing is not None:
        sentences = {
            "spreading": "an earlier message to this address is still being put on its queues",
            "work": "the broker still works on its last frame",
            "login": "its login is not decided yet",
            "disk-slow": "the body of a large message waits for the disk",
        }
        question.add(thing, sentences[thing], connection=number)
    elif client.state == "stalled":
        question.add("not-reading", "its client does not read from its socket", connection=number)
    if not question.findings:
        question.add("not-blocked", f"it waits for nothing; its state is {client.state}", connection=number)


def _about_address(question: Question, address: Address) -> None:
    for word in limits_reached(address):
        _DESCRIBED[word](question, address)


def _does(address: Address) -> str:
    """What a full address does, with the setting that says so."""
    setting, policy = address.policy_in_force
    return f"{_WAITS.get(policy, 'messages stay in memory')} ({setting} {policy})"


def _operator(question: Question, address: Address) -> None:
    question.add("address-blocked", "an operator has blocked the address: senders wait", address=address)


def _disk_full(question: Question, address: Address) -> None:
    text, figures = full_disk(question)
    question.add("disk-full", f"{text}; {_does(address)}", **figures)


def _size(question: Question, address: Address) -> None:
    size, limit = address.account.size_bytes, address.bytes_max
    question.add(
        "max-size", f"it holds {size:,} of {limit:,} bytes in memory: {_does(address)}", used=size, limit=limit,
        unit=_BYTES, help=_to_free(size - limit + 1, _BYTES),
    )  # fmt: skip


def _messages(question: Question, address: Address) -> None:
    count, limit = address.account.message_count, address.messages_max
    question.add(
        "max-messages", f"it has {count:,} of {limit:,} messages in memory: {_does(address)}", used=count, limit=limit,
        unit=_MESSAGES, help=_to_free(count - limit + 1, _MESSAGES),
    )  # fmt: skip


def _global_size(question: Question, address: Address) -> None:
    size, limit = address.memory.account.size_bytes, address.memory.bytes_max
    text = f"all addresses together hold {size:,} of {limit:,} bytes: {_does(address)}"
    question.add("global-max-size", text, used=size, limit=limit, unit=_BYTES)


def _global_messages(question: Question, address: Address) -> None:
    count, limit = address.memory.account.message_count, address.memory.messages_max
    text = f"all addresses together have {count:,} of {limit:,} messages: {_does(address)}"
    question.add("global-max-messages", text, used=count, limit=limit, unit=_MESSAGES)


def _held(question: Question, address: Address) -> None:
    holdings = address.memory.holdings
    text = f"the broker holds {holdings.total_bytes:,} of {holdings.bytes_max:,} bytes for clients: {_does(address)}"
    question.add("held-memory", text, used=holdings.total_bytes, limit=holdings.bytes_max, unit=_BYTES)


def _to_free(count: int, unit: str) -> str:
    what = messages(count) if unit == _MESSAGES else many(count, "byte")
    return f"Consume {what} or more, raise the limit, or choose another address-full-policy (PAGE)."


def _pages_behind(question: Question, _address: Address) -> None:
    question.add("pages-behind", "pages come faster than the disk takes them: senders wait")


def _page_messages(question: Question, address: Address) -> None:
    settings = address.settings
    count = 0 if address.stream is None else max(address.stream.message_count.values(), default=0)
    most = settings.page_limit_messages or 0
    text = f"a queue has {count:,} of {most:,} messages in pages: {_does(address)}"
    question.add("page-limit-messages", text, used=count, limit=most, unit=_MESSAGES)


def _page_bytes(question: Question, address: Address) -> None:
    settings = address.settings
    size, limit = address.number_of_pages * settings.page_size_bytes, settings.page_limit_bytes or 0
    does = _does(address)
    text = f"it has {address.number_of_pages:,} pages of {settings.page_size_bytes:,} bytes, of {limit:,} bytes: {does}"
    question.add("page-limit-bytes", text, used=size, limit=limit, unit=_BYTES)


_DESCRIBED: Final[dict[str, Callable[[Question, Address], None]]] = {
    full_policy.OPERATOR: _operator,
    full_policy.DISK_FULL: _disk_full,
    full_policy.SIZE: _size,
    full_policy.MESSAGES: _messages,
    full_policy.GLOBAL_SIZE: _global_size,
    full_policy.GLOBAL_MESSAGES: _global_messages,
    full_policy.HELD: _held,
    full_policy.PAGES_BEHIND: _pages_behind,
    full_policy.PAGE_MESSAGES: _page_messages,
    full_policy.PAGE_BYTES: _page_bytes,
}


def _about_queues(question: Question, address: Address) -> Findings:
    for some in some_at_a_time(list(address.queues.values())):
        for queue in some:
            if queue.flow.limits_senders and not queue.flow.overflow.pages and len(question.findings) < _FOUND_MAX:
                _about_queue(question, queue)
        yield None


def _about_queue(question: Question, queue: Queue) -> None:
    flow, depth = queue.flow, queue.flow.overflow.depth
    refuses = flow.overflow.refuses and not flow.fits(1, 1)
    if depth is None or not (flow.stopped or refuses):
        return
    count, size = queue.message_count, queue.contents.size_bytes
    does = (
        "senders get an ERROR (REJECT)" if refuses else f"senders wait until it is down to {flow.overflow.resumes_at}"
    )
    text = f"queue {queue.name} has {messages(count)} of {size:,} bytes, and its limit is {depth}: {does}"
    by_messages = 0 <= depth.messages_max <= count
    question.add(
        "queue-depth", text, used=count if by_messages else size,
        limit=depth.messages_max if by_messages else depth.bytes_max, unit=_MESSAGES if by_messages else _BYTES,
        setting="max-depth-messages" if by_messages else "max-depth-bytes", queue=queue,
    )  # fmt: skip


def _not_blocked(question: Question, address: Address) -> None:
    account = address.account
    size = f"{account.size_bytes:,}" + (f" of {address.bytes_max:,}" if address.bytes_max >= 0 else "")
    count = f"{account.message_count:,}" + (f" of {address.messages_max:,}" if address.messages_max >= 0 else "")
    where = "; it pages" if address.is_paging else ""
    queues = listed([queue.name for queue in address.queues.values()][:9])
    text = f"it takes messages: it has {size} bytes and {count} messages in memory{where}; its queues are {queues}"
    question.add("not-blocked", text, used=account.size_bytes, limit=address.bytes_max, unit=_BYTES)
