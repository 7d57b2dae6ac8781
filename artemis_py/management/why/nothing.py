"""A queue without messages: did anything come, and where did it go?"""

from __future__ import annotations

from artemis_py.config.problems import nearest
from artemis_py.core.addresses.address import Address
from artemis_py.core.broker import Broker
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.why import messages
from artemis_py.management.why.asking import Asking, Findings, address_of, listed, some_at_a_time
from artemis_py.management.why.cause import KILLED
from artemis_py.management.why.places import NOWHERE, Place


def about_nothing(asking: Asking, queue: Queue) -> Findings:
    """Why nothing came to an empty queue, or comes any more."""
    came = queue.contents.counters.added > 0
    if not queue.enabled:
        text = "nothing comes any more" if came else "nothing came"
        asking.add("disabled", f"{text}: the queue is not enabled")
    if came or not queue.enabled:
        return
    address = address_of(queue)
    sent = sent_count(address)
    diverts = [one for one in address.diverts if one.exclusive]
    for divert in diverts:
        which = "all messages" if divert.selector is None else f"messages that match {divert.selector.text}"
        asking.add(
            "diverted", f"the exclusive divert {divert.name} takes {which} for {address.name}",
            place=NOWHERE if divert.origin is None else Place("exclusive", "true", str(divert.origin)),
        )  # fmt: skip
    if queue.purge_on_no_consumers and not queue.taker_count:
        asking.add("purge-on-no-consumers", "the queue takes messages only while a consumer is attached")
    elif sent and queue.selector is not None:
        text = f"nothing came: none of {messages(sent)} for {address.name} entered the queue, and its filter is"
        asking.add("filtered", f"{text} {queue.selector.text}", used=sent, unit="messages")
    elif not diverts:
        yield from _about_other_addresses(asking, address, sent)


def _about_other_addresses(asking: Asking, address: Address, sent: int) -> Findings:
    """Nothing prevents messages: were they sent elsewhere?"""
    asking.add(
        "nothing-waits",
        f"nothing came; {messages(sent)} for {address.name} did not come to this queue" if sent else "nothing came",
    )
    others: list[str] = []
    for some in some_at_a_time(list(asking.broker.addresses.values())):
        others += [f"{one.name} ({sent_count(one)})" for one in some if one is not address and sent_count(one)]
        yield None
    where = "any other address" if sent else "any address"
    text = f"messages were sent to {listed(others)}" if others else f"nothing was sent to {where}"
    asking.add("nothing-waits", text)


def sent_count(address: Address) -> int:
    """How many messages were sent to an address since the start."""
    return address.routed_message_count + address.unrouted_message_count


def about_losses(asking: Asking, queue: Queue) -> None:
    """How many messages of the queue were killed or expired, and where they went."""
    counters, settings = queue.contents.counters, queue.address.settings
    losses = [(KILLED[reason], count, "killed") for reason, count in (counters.killed_by or {}).items()]
    for code, count, what in (*losses, ("expired", counters.expired, "expired")):
        dead = settings.dead_letter_address
        target = {"dead": dead, "sent_by_operator": dead, "expired": settings.expiry_address}.get(code)
        if count:
            text = f"{messages(count)} {what}" + (f"; see the address {target}" if target else "")
            asking.add(code, text, used=count, unit="messages")


def about_no_queue(broker: Broker, name: str) -> list[str]:
    """Sentences about a queue that does not exist."""
    found = [f"there is no queue {name}"]
    guess = nearest(name, broker.queues)
    if guess is not None:
        found[0] += f"; did you mean {guess}?"
    address = broker.addresses.get(name)
    if address is not None and address.queues:
        queues = listed([one.name for one in address.queues.values()])
        found.append(f"the address {name} exists; its queues are {queues}")
    elif address is not None:
        lost = messages(address.unrouted_message_count)
        found.append(f"the address {name} exists and has no queue: {lost} sent there reached nobody")
    else:
        found.append(f"the queues are {listed(sorted(broker.queues))}")
    return found
