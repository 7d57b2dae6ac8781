"""Why senders wait, or are refused: limits of the address, of all addresses, of queues, of the disk."""

from __future__ import annotations

from typing import Final

from artemis_py.core.addresses.address import Address
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.reasons import messages
from artemis_py.errors import NotFoundError
from artemis_py.management.why.asking import Asking, Findings, address_of, connections, listed, some_at_a_time

_WAITS: Final = {
    "BLOCK": "senders wait",
    "FAIL": "senders get an ERROR",
    "DROP": "messages are dropped",
    "PAGE": "messages go to pages",
}
"""What a policy does."""
_MESSAGES: Final = "messages"
_BYTES: Final = "bytes"


def blocked(asking: Asking, address: Address) -> Findings:
    """What stands against a message for this address now."""
    _about_address(asking, address)
    yield None
    yield from _about_queues(asking, address)
    waiting = 0
    for thing, count in asking.managed.vitals.awaited():
        if thing is address or (isinstance(thing, Queue) and thing.address is address):
            waiting += count
    if not asking.found:
        _not_blocked(asking, address)
    elif waiting:
        first = asking.found[0]
        asking.found[0] = first.saying(f"{first.sentence}; {connections(waiting)} for it")


def blocked_connection(asking: Asking, number: int) -> Findings:
    """What a client waits for. Raises NotFoundError if there is no such connection."""
    client = None
    for some in some_at_a_time(asking.managed.clients()):
        client = client or next((one for one in some if one.number == number), None)
        yield None
    if client is None:
        raise NotFoundError(f"there is no connection {number}")
    thing = asking.managed.vitals.awaited_by(number)
    if isinstance(thing, Address):
        asking.address = thing
        yield from blocked(asking, thing)
    elif isinstance(thing, Queue):
        asking.address = address_of(thing)
        _about_queue(asking, thing)
    elif thing is not None:
        sentences = {
            "spreading": "an earlier message to this address is still being put on its queues",
            "work": "the broker still works on its last frame",
            "login": "its login is not decided yet",
            "disk-slow": "the body of a large message waits for the disk",
        }
        asking.add(thing, sentences[thing], connection=number)
    elif client.state == "stalled":
        asking.add("not-reading", "its client does not read from its socket", connection=number)
    if not asking.found:
        asking.add("not-blocked", f"it waits for nothing; its state is {client.state}", connection=number)


def _about_address(asking: Asking, address: Address) -> None:
    does = _WAITS.get(address.full_policy or "", "messages stay in memory")
    memory, account = address.memory, address.account
    if address.disk_full:
        text = f"a disk of the broker is full: {does} (disk-full-policy {address.full_policy})"
        asking.add("disk-full", text)
        return
    stream = address.stream
    if stream is not None and stream.active:
        _about_pages(asking, address)
        return
    if address.full_policy is None:
        return
    end = f": {does} (address-full-policy {address.full_policy})"
    if 0 <= address.bytes_max <= account.size_bytes:
        size, limit = account.size_bytes, address.bytes_max
        asking.add(
            "max-size", f"it holds {size} of {limit} bytes in memory{end}", used=size, limit=limit, unit=_BYTES,
            help=_to_free(size - limit + 1, _BYTES),
        )  # fmt: skip
    if 0 <= address.messages_max <= account.message_count:
        count, limit = account.message_count, address.messages_max
        asking.add(
            "max-messages", f"it has {count} of {limit} messages in memory{end}", used=count, limit=limit,
            unit=_MESSAGES, help=_to_free(count - limit + 1, _MESSAGES),
        )  # fmt: skip
    whole = memory.account
    if 0 < memory.bytes_max <= whole.size_bytes:
        text = f"all addresses together hold {whole.size_bytes} of {memory.bytes_max} bytes{end}"
        asking.add("global-max-size", text, used=whole.size_bytes, limit=memory.bytes_max, unit=_BYTES)
    if 0 < memory.messages_max <= whole.message_count:
        text = f"all addresses together have {whole.message_count} of {memory.messages_max} messages{end}"
        asking.add("global-max-messages", text, used=whole.message_count, limit=memory.messages_max, unit=_MESSAGES)
    if memory.holdings.leaves_no_room:
        used, limit = memory.holdings.total_bytes, memory.holdings.bytes_max
        text = f"the broker holds {used} of {limit} bytes for clients{end}"
        asking.add("held-memory", text, used=used, limit=limit, unit=_BYTES)


def _to_free(count: int, unit: str) -> str:
    what = messages(count) if unit == _MESSAGES else f"{count} {unit}"
    return f"Consume {what} or more, raise the limit, or choose another address-full-policy (PAGE)."


def _about_pages(asking: Asking, address: Address) -> None:
    """The address pages: what is taken goes to pages, unless their limits stand against it."""
    stream, settings = address.stream, address.settings
    assert stream is not None
    if stream.is_behind:
        asking.add("pages-behind", "pages come faster than the disk takes them: senders wait")
    if not address.has_page_limit or address.pages_have_room(0):
        return
    does = _WAITS.get(settings.page_full_policy or "", "")
    end = f": {does} (page-full-policy {settings.page_full_policy})"
    count = max(stream.message_count.values(), default=0)
    most = settings.page_limit_messages or -1
    if 0 < most <= count:
        text = f"a queue has {count} of {most} messages in pages{end}"
        asking.add("page-limit-messages", text, used=count, limit=most, unit=_MESSAGES)
    size, limit = len(stream.pages) * settings.page_size_bytes, settings.page_limit_bytes or -1
    if 0 < limit < size:
        text = f"it has {len(stream.pages)} pages of {settings.page_size_bytes} bytes, of {limit} bytes{end}"
        asking.add("page-limit-bytes", text, used=size, limit=limit, unit=_BYTES)


def _about_queues(asking: Asking, address: Address) -> Findings:
    for some in some_at_a_time(list(address.queues.values())):
        for queue in some:
            if queue.flow.limits_senders and not queue.flow.overflow.pages:
                _about_queue(asking, queue)
        yield None


def _about_queue(asking: Asking, queue: Queue) -> None:
    flow, depth = queue.flow, queue.flow.overflow.depth
    refuses = flow.overflow.refuses and not flow.fits(1, 1)
    if depth is None or not (flow.stopped or refuses):
        return
    count, size = queue.message_count, queue.contents.size_bytes
    does = (
        "senders get an ERROR (REJECT)" if refuses else f"senders wait until it is down to {flow.overflow.resumes_at}"
    )
    text = f"queue {queue.name} has {messages(count)} of {size} bytes, and its limit is {depth}: {does}"
    by_messages = 0 <= depth.messages_max <= count
    asking.add(
        "queue-depth", text, used=count if by_messages else size,
        limit=depth.messages_max if by_messages else depth.bytes_max, unit=_MESSAGES if by_messages else _BYTES,
        setting="max-depth-messages" if by_messages else "max-depth-bytes", queue=queue,
    )  # fmt: skip


def _not_blocked(asking: Asking, address: Address) -> None:
    account = address.account
    size = f"{account.size_bytes}" + (f" of {address.bytes_max}" if address.bytes_max >= 0 else "")
    count = f"{account.message_count}" + (f" of {address.messages_max}" if address.messages_max >= 0 else "")
    where = "; it pages" if address.is_paging else ""
    queues = listed([queue.name for queue in address.queues.values()][:9])
    text = f"it takes messages: it has {size} bytes and {count} messages in memory{where}; its queues are {queues}"
    asking.add("not-blocked", text, used=account.size_bytes, limit=address.bytes_max, unit=_BYTES)
