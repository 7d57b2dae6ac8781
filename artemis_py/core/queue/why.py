"""Why a queue delivers nothing (more): one source of the words, for the operational log and for whoever asks.

Pure functions over the parts of a queue. They know a consumer by its number; whoever knows its client says so, too.
"""

from __future__ import annotations

from sys import maxsize
from typing import Final, final

from artemis_py.core.consumer import Consumer
from artemis_py.core.queue.barriers import TargetDepth
from artemis_py.core.queue.depaging import PageReading
from artemis_py.core.queue.messages import PendingMessages
from artemis_py.core.queue.state import QueueState

PAUSED: Final = "paused"
STEP_FAILED: Final = "step-failed"
ADDRESS_PAUSED: Final = "address-paused"
FEW_CONSUMERS: Final = "consumers-before-dispatch"
MAX_BACKLOG: Final = "max-backlog"
MOVING: Final = "moving"
NO_CONSUMER: Final = "no-consumer"
BACKLOGS: Final = "consumer-backlogs"
BACKLOG: Final = "backlog"
WINDOW: Final = "window"
UNWANTED: Final = "unwanted"
GROUPS: Final = "groups"
GROUP_WAITS: Final = "group-waits"
SHOWN: Final = "shown"
READ_AHEAD: Final = "read-ahead"
EXCLUSIVE: Final = "exclusive"
PRIORITY: Final = "consumer-priority"
DUE: Final = "due"
HELD: Final = "held"
LEASED: Final = "leased"
BARRIER: Final = "barrier"
TARGET_DEPTH: Final = "target-queue-depth"
"""What kinds of reasons there are, for programs."""
_BEFORE: Final = {
    "ready": "ready",
    "in_delivery": "in delivery",
    "unconfirmed": "sent at most once and not acknowledged",
    "waiting": "waiting for their time",
}
"""What messages before a barrier wait for, in words."""
_SHORT_S: Final = 120
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


@final
class Reason:
    """One reason: its kind, its numbers and names, and a sentence without a full stop."""

    __slots__ = ("fields", "kind", "text")

    def __init__(self, kind: str, text: str, **fields: str | int) -> None:
        self.kind = kind
        self.text = text
        self.fields = fields


def messages(count: int) -> str:
    """So many messages, in words."""
    return "1 message" if count == 1 else f"{count:,} messages" if count else "no messages"


def span(span_ms: int) -> str:
    """A span of time, in words: exactly if it is short, else in its two largest units."""
    seconds = span_ms // 1000
    if seconds < _SHORT_S:
        return f"{max(span_ms, 0) / 1000:g} s"
    place = next(at for at, (_, unit_s) in enumerate(_UNITS) if seconds >= unit_s)
    (unit, unit_s), (next_unit, next_s) = _UNITS[place : place + 2]
    rest = seconds % unit_s // next_s
    return f"{seconds // unit_s} {unit}" + (f" {rest} {next_unit}" if rest else "")


# ---- the queue as a whole ------------------------------------------------------------------------


def why_closed(state: QueueState, now_ms: int, *, is_held: bool) -> Reason | None:
    """Why the queue lets nothing out, whoever asks. ``is_held``: its entries are being moved."""
    gate = state.gate
    if gate.is_paused:
        if not gate.paused:
            return why_address_paused(state)
        if gate.failed_step:
            return Reason(STEP_FAILED, f"the broker paused the queue, because its step {gate.failed_step!r} failed")
        return Reason(PAUSED, "the queue is paused, and has to be resumed")
    if not gate.started:
        return _few_consumers(state, now_ms)
    if not gate.lets_out(state.contents.counters.held_count):
        return why_used_up(state)
    if is_held:
        return Reason(
            MOVING, "messages are on their way back to it, and until they are in their places nothing is delivered"
        )
    return None


def why_address_paused(state: QueueState) -> Reason | None:
    """Whether the queue waits for its address to be resumed."""
    address = state.reference.address
    if not address.paused:
        return None
    return Reason(ADDRESS_PAUSED, f"its address {address.name} is paused, and has to be resumed")


def _few_consumers(state: QueueState, now_ms: int) -> Reason:
    gate = state.gate
    here, wanted = state.distribution.taker_count, gate.consumers_min
    text = f"its gate is closed: {here} of {wanted} consumers (consumers-before-dispatch)"
    if gate.opens_at_ms:
        left_ms = gate.opens_at_ms - state.host.clock.steady_ms(now_ms)
        text += f"; delay-before-dispatch opens it in {span(left_ms)}"
    return Reason(FEW_CONSUMERS, text, consumers=here, consumers_min=wanted)


def why_used_up(state: QueueState) -> Reason:
    """The queue's own backlog is used up."""
    gate = state.gate
    held, unconfirmed = state.contents.counters.held_count, gate.unconfirmed_count
    text = f"its backlog is used up: {messages(held)} in delivery"
    if unconfirmed:
        text += f" and {unconfirmed} sent at most once and not acknowledged"
    text += f", of max-backlog {gate.backlog_max}"
    return Reason(MAX_BACKLOG, text, in_delivery=held, unconfirmed=unconfirmed, max_backlog=gate.backlog_max)


def why_nobody(state: QueueState) -> Reason | None:
    """Why there is nobody to deliver to."""
    distribution = state.distribution
    if distribution.taker_count:
        return None
    browsers = len(distribution.consumers)
    text = "no consumer is attached" + (f", only {browsers} browsing" if browsers else "")
    return Reason(NO_CONSUMER, text, browsers=browsers)


def why_full(state: QueueState, consumers: int, full: int, held: int, now_ms: int) -> Reason:
    """Of so many ``consumers``, ``full`` have used up their backlogs, with ``held`` messages together."""
    text = f"{full} of {consumers} consumers hold {messages(held)} and have room for no more (max-backlog)"
    fields: dict[str, str | int] = {"consumers": consumers, "full": full, "held": held}
    first = None if state.contents.leases is None else state.contents.leases.first()
    if first is not None:
        begun_ms, holder = first
        oldest_ms = state.host.clock.steady_ms(now_ms) - begun_ms
        text += f"; consumer {holder.id} has had the oldest for {span(oldest_ms)}"
        fields["consumer"] = holder.id
        fields["oldest_ms"] = oldest_ms
    return Reason(BACKLOGS, text, **fields)


def why_pending(state: QueueState) -> Reason | None:
    """Why messages that have come are not active yet; None when nothing but time keeps any of them."""
    pending = state.contents.pending
    if pending is None or pending.count <= 0:
        return None
    some = f"{messages(pending.count)} {'waits' if pending.count == 1 else 'wait'}"
    threshold, first = pending.threshold, pending.first()
    if first is not None and threshold.lets_in(first.message, state.contents.active_count):
        return Reason(DUE, f"{some} to become active; a turn of the broker is due", behind=pending.count)
    if isinstance(threshold, TargetDepth):
        active, target = state.contents.active_count, threshold.target
        text = f"{some} to become active: {active} are, of target-queue-depth {target}"
        return Reason(TARGET_DEPTH, text, behind=pending.count, active=active, target=target)
    before = _before_barrier(state, pending)
    return Reason(BARRIER, f"{some} at a barrier: {_about_barrier(state, before)}", behind=pending.count, **before)


def _before_barrier(state: QueueState, pending: PendingMessages) -> dict[str, int]:
    """How many messages there are before a barrier, by what they wait for."""
    contents = state.contents
    counts = {
        "ready": contents.order.count,
        "in_delivery": contents.counters.held_count + contents.picked_count,
        "unconfirmed": state.gate.unconfirmed_count,
        "waiting": len(contents.scheduled) - pending.aside_count,
    }
    return {what: count for what, count in counts.items() if count}


def _about_barrier(state: QueueState, before: dict[str, int]) -> str:
    broadcast = None if state.activation is None else state.activation.broadcast
    if broadcast is None:
        shown = ", ".join(f"{count} {_BEFORE[what]}" for what, count in before.items())
        return f"it goes out when everything before it is done ({shown})" if shown else "it goes out next"
    if broadcast.awaited_count:
        return f"it waits for {broadcast.awaited_count} consumers whose clients do not read"
    return "it is on its way to the consumers" if broadcast.is_out else "no consumer wants it"


# ---- one consumer --------------------------------------------------------------------------------


def is_full(consumer: Consumer) -> bool:
    """Has the consumer used up its backlog?"""
    return len(consumer.held) >= consumer.backlog_max


def why_no_room(state: QueueState, consumer: Consumer, now_ms: int, allowed: int) -> Reason | None:
    """Why a consumer, which is no browser, takes no more messages now; None if it does. ``allowed``: the largest
    backlog that the queue gives a consumer.
    """
    if is_full(consumer):
        return _backlog(state, consumer, now_ms, allowed)
    if consumer.credit_bytes > 0:
        return None if consumer.room_bytes > 0 else Reason(DUE, "its connection sends what it has, and then takes more")
    return Reason(
        WINDOW,
        f"its window is used up: it holds {messages(len(consumer.held))} without an acknowledgement "
        f"(consumer-window-size {consumer.window_bytes} bytes)",
        held=len(consumer.held),
        window_bytes=consumer.window_bytes,
    )


@final
class ReadyLook:
    """What a look at the ready messages found about one consumer: how many were ``looked`` at; how many of them it does
    not want; which of those that it wants are of groups of others (``owned``) or of groups that wait for another
    attempt (``aside``), or were shown to it before.
    """

    __slots__ = ("aside", "looked", "owned", "shown", "unwanted")

    def __init__(self) -> None:
        self.looked = self.unwanted = self.owned = self.aside = self.shown = 0

    @property
    def takes(self) -> int:
        """How many it may have."""
        return self.looked - self.unwanted - self.owned - self.aside - self.shown


def why_passed_over(state: QueueState, consumer: Consumer, look: ReadyLook) -> list[Reason]:
    """Why a consumer with room, which is no browser, gets none of the ready messages; empty if it may have some of
    those that were looked at, or none were.
    """
    distribution = state.distribution
    if not distribution.is_served(consumer):
        text = f"it is in reserve: {distribution.live_max} of {distribution.taker_count} consumers are served at once"
        return [Reason(EXCLUSIVE, f"{text}, and others came before it")]
    if look.takes > 0:
        return []
    ready = state.contents.order.count
    of_ready = f"of the {look.looked:,} ready" if look.looked >= ready else f"of the first {look.looked:,} of {ready:,}"
    found: list[Reason] = []
    if look.unwanted:
        some = f"wants none {of_ready}" if look.unwanted == look.looked else f"does not want {look.unwanted} {of_ready}"
        found.append(Reason(UNWANTED, f"it {some}: {_taste(consumer)}", unwanted=look.unwanted))
    if look.owned:
        is_or_are = "belongs" if look.owned == 1 else "belong"
        text = f"{look.owned} {of_ready} {is_or_are} to groups of other consumers"
        found.append(Reason(GROUPS, text, owned=look.owned))
    if look.aside:
        found.append(Reason(GROUP_WAITS, f"{look.aside} {of_ready} must wait with their groups", aside=look.aside))
    if look.shown:
        found.append(Reason(SHOWN, f"it was shown {look.shown} {of_ready} before", shown=look.shown))
    return found


def why_none_in_pages(consumer: Consumer, count: int) -> Reason:
    """Why a consumer that has read all pages itself gets none of the messages there, which are so many."""
    if consumer.chooses:
        text = f"it has read the pages, and wants none of {messages(count)} there: {_taste(consumer)}"
        return Reason(UNWANTED, text, unwanted=count)
    return Reason(SHOWN, f"it was shown {messages(count)} in pages before", shown=count)


def why_not_read(state: QueueState, reading: PageReading) -> Reason | None:
    """Which limit keeps the queue from reading more of its pages; None: none does. ``setting`` among its fields is
    where the limit stands.
    """
    if reading.has_space():
        return None
    contents = state.contents
    ready, held = contents.ready_count, contents.counters.held_count
    in_memory = f"{messages(ready)} ready" + (f" and {held} in delivery" if held else "")
    setting = reading.limit_reached()
    if setting:
        text = f"no more is read from pages: {in_memory} are what {setting} allows"
        return Reason(READ_AHEAD, text, held=held, setting=setting)
    if reading.has_enough:
        return Reason(READ_AHEAD, f"no more is read from pages before some of {in_memory} go", setting="")
    depth = state.flow.overflow.depth
    setting = "ring-size" if depth is None else "max-depth-messages" if depth.messages_max >= 0 else "max-depth-bytes"
    return Reason(READ_AHEAD, f"no more is read from pages: {in_memory} fill the queue ({setting})", setting=setting)


def _backlog(state: QueueState, consumer: Consumer, now_ms: int, allowed: int) -> Reason:
    held, most = len(consumer.held), consumer.backlog_max
    what = "sent at most once and not acknowledged" if consumer.settles else "held without an acknowledgement"
    text = f"its backlog is used up: {held} of {messages(most)} {what}"
    fields: dict[str, str | int] = {"held": held, "max_backlog": most}
    oldest_ms = _held_ms(state, consumer, now_ms)
    if oldest_ms >= 0:
        text += f", the oldest for {span(oldest_ms)}"
        fields["oldest_ms"] = oldest_ms
    if most < allowed:
        text += "; its SUBSCRIBE may ask for more (max-backlog, prefetch-count or activemq.prefetchSize)"
    else:
        text += "; the queue allows a consumer no more (max-per-subscription-backlog)"
    return Reason(BACKLOG, text, **fields)


def _taste(consumer: Consumer) -> str:
    if consumer.selector is not None:
        return f"its selector is {consumer.selector.text}"
    if consumer.no_local:
        return "it wants none that its own connection sent (no-local)"
    return "they are older than its replay period"


def _held_ms(state: QueueState, consumer: Consumer, now_ms: int) -> int:
    """For how long the consumer has had the oldest message that it holds; -1 where nobody knows."""
    leases = state.contents.leases
    oldest_id = next(iter(consumer.held), 0)
    begun_ms = leases.begun_ms(oldest_id) if leases is not None and oldest_id else -1
    return state.host.clock.steady_ms(now_ms) - begun_ms if begun_ms >= 0 else -1


# ---- what is out ---------------------------------------------------------------------------------


def what_it_holds(state: QueueState, consumer: Consumer, now_ms: int) -> Reason | None:
    """What a consumer has and did not acknowledge; None when it has nothing."""
    held = len(consumer.held)
    if not held:
        return None
    if consumer.settles and consumer.destructive:
        return Reason(HELD, f"was sent {messages(held)} at most once and did not acknowledge", held=held)
    text = f"has {messages(held)} and did not acknowledge"
    fields: dict[str, str | int] = {"held": held}
    oldest_ms = _held_ms(state, consumer, now_ms)
    if oldest_ms >= 0:
        text += f", the oldest for {span(oldest_ms)}"
        fields["oldest_ms"] = oldest_ms
    return Reason(HELD, text, **fields)


def what_is_leased(state: QueueState, now_ms: int) -> Reason | None:
    """What is leased, and when the first lease ends; None when nothing is."""
    leases = state.contents.leases
    first = None if leases is None else leases.first()
    if leases is None or first is None:
        return None
    count, holder = len(leases), first[1]
    is_or_are = "is" if count == 1 else "are"
    fields: dict[str, str | int] = {"leased": count, "consumer": holder.id}
    ends_ms = leases.first_end_ms
    if ends_ms == maxsize:
        text = f"{messages(count)} {is_or_are} leased without an end (no lease-period)"
    else:
        left_ms = ends_ms - state.host.clock.steady_ms(now_ms)
        text = f"{messages(count)} {is_or_are} leased; the first lease ends in {span(left_ms)}, of consumer {holder.id}"
        fields["ends_in_ms"] = left_ms
    return Reason(LEASED, text, **fields)
