"""How a queue is, in words: decided here alone, from its counters, its consumers and its trend. The words are those of
``core/queue/why.py`` where there is a reason; lists, metrics, ``why`` and the console show them.

Pure functions, which look at few consumers and at no message: lists ask for all queues.
"""

from __future__ import annotations

from itertools import islice
from typing import Final, NamedTuple

from artemis_py.core.addresses.address import Address
from artemis_py.core.counter_history import PERIOD_MS, Sample, grown
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.why import (
    ADDRESS_PAUSED,
    BACKLOG,
    FEW_CONSUMERS,
    MAX_BACKLOG,
    MOVING,
    NO_CONSUMER,
    PAUSED,
    STEP_FAILED,
    WINDOW,
    Reason,
    why_closed,
    why_no_room,
)

CALM: Final = 0
MIND: Final = 1
BAD: Final = 2

DISABLED: Final = "disabled"
QUEUE_FULL: Final = "queue-depth"
DEAD_LETTERS: Final = "dead-letters"
NO_ACKNOWLEDGEMENTS: Final = "no-acknowledgements"
FALLING_BEHIND: Final = "falling-behind"
GROWING: Final = "growing"
WILL_PAGE: Final = "will-page"
WILL_BE_FULL: Final = "will-be-full"
PAGING: Final = "paging"
KEPT: Final = "kept"
HELD: Final = "held"
SCHEDULED: Final = "scheduled"
DRAINING: Final = "draining"
FLOWS: Final = "flows"
WAITING: Final = "waiting"
IDLE: Final = "idle"

SEVERITY: Final[dict[str, int]] = {
    **dict.fromkeys((STEP_FAILED, DISABLED, QUEUE_FULL, NO_CONSUMER, NO_ACKNOWLEDGEMENTS), BAD),
    **dict.fromkeys((FALLING_BEHIND, GROWING, WILL_BE_FULL), BAD),
    **dict.fromkeys((PAUSED, ADDRESS_PAUSED, FEW_CONSUMERS, DEAD_LETTERS, WILL_PAGE, PAGING), MIND),
    **dict.fromkeys((MAX_BACKLOG, BACKLOG, WINDOW), MIND),
    **dict.fromkeys((MOVING, KEPT, HELD, SCHEDULED, DRAINING, FLOWS, WAITING, IDLE), CALM),
}
"""All words, and how bad each is."""

_STUCK_ROUNDS: Final = 3
"""Nothing was acknowledged in so many rounds of samples, though something waited."""
_TREND_ROUNDS: Final = (6, 29)
"""A trend is looked for in the last minute, and in the last five."""
_SPAN_MS_MIN: Final = PERIOD_MS // 2
_GROWTH_MIN: Final = 5
"""Fewer messages are no trend, nor is this share of what flows:"""
_STEADY: Final = 0.05
_AHEAD_S_MAX: Final = 86_400
_LOOKS_MAX: Final = 16
_MS: Final = 1_000

UNKNOWN_MS: Final = -1


class Trend(NamedTuple):
    """What a queue gains and loses in a second, over about a minute. ``growth``: the messages that do not wait for
    their time; 0 where they come and go evenly.
    """

    added: float
    acknowledged: float
    growth: float


STEADY: Final = Trend(0.0, 0.0, 0.0)


def sample_of(queue: Queue) -> Sample:
    """Its counters as they are now."""
    host, contents, counters = queue.host, queue.contents, queue.contents.counters
    steady_ms = host.clock.steady_ms(host.turn_ms)
    return Sample(steady_ms, counters.added, counters.acknowledged, contents.message_count, len(contents.scheduled))


def trend_of(queue: Queue) -> Trend:
    """The trend of a queue, from its last samples to now."""
    history = queue.host.rounds.by_queue.get(queue.id)
    now = sample_of(queue)
    rates = STEADY
    for rounds in _TREND_ROUNDS:
        ends = None if history is None else history.ends(rounds)
        if ends is None or now.at_ms - ends[0].at_ms < _SPAN_MS_MIN:
            break
        before, middle = ends
        span_s = (now.at_ms - before.at_ms) / _MS
        added, acknowledged = grown(before.added, now.added), grown(before.acknowledged, now.acknowledged)
        if rounds == _TREND_ROUNDS[0]:
            rates = Trend(added / span_s, acknowledged / span_s, 0.0)
        growth = _waiting(now) - _waiting(before)
        if abs(growth) < _GROWTH_MIN or abs(growth) <= _STEADY * max(added, acknowledged):
            continue
        between = _waiting(middle)
        if _waiting(before) < between < _waiting(now) or _waiting(before) >= between > _waiting(now):
            return Trend(rates.added, rates.acknowledged, growth / span_s)
    return rates


def _waiting(sample: Sample) -> int:
    return sample.depth - sample.scheduled


# ---- what is ahead ---------------------------------------------------------------------------------------------------


class Limit(NamedTuple):
    """A limit ahead: its word, its setting, how much of it is used, and when it is reached. ``policy``: what happens
    then.
    """

    word: str
    setting: str
    used: int
    limit: int
    unit: str
    left_s: float
    policy: str


def limits_ahead(queue: Queue, growth: float, address_growth: float, address_bytes: float) -> list[Limit]:
    """The limits that a queue, or its address, reaches at these rates, in a second."""
    address = queue.address
    assert isinstance(address, Address)
    found: list[Limit] = []
    policy, account, memory = address.full_policy, address.account, address.memory
    if policy is not None and not address.is_paging:
        word = WILL_PAGE if policy == "PAGE" else WILL_BE_FULL
        for limit, used, rate, name, unit in (
            (address.bytes_max, account.size_bytes, address_bytes, "max-size-bytes", "bytes"),
            (address.messages_max, account.message_count, address_growth, "max-size-messages", "messages"),
            (memory.bytes_max, memory.account.size_bytes, address_bytes, "global-max-size", "bytes"),
        ):
            if limit > 0 and rate > 0:
                found.append(Limit(word, name, used, limit, unit, max(limit - used, 0) / rate, policy))
    depth = queue.flow.overflow.depth
    if depth is not None and depth.messages_max > 0 and growth > 0:
        count, most = queue.message_count, depth.messages_max
        left_s = max(most - count, 0) / growth
        found.append(Limit(WILL_BE_FULL, "max-depth-messages", count, most, "messages", left_s, ""))
    return found


def next_limit(queue: Queue, trend: Trend) -> Limit | None:
    """The limit that comes first if it goes on like this; None: none within a day."""
    if trend.growth <= 0 or queue.keeps_messages:
        return None
    assert isinstance(queue.address, Address)
    account = queue.address.account  # what messages take in memory is more than what their queue counts, their encoding
    mean_bytes = account.size_bytes / max(account.message_count, 1)
    ahead = limits_ahead(queue, trend.growth, trend.growth, trend.growth * mean_bytes)
    first = min(ahead, key=lambda one: one.left_s, default=None)
    return None if first is None or first.left_s > _AHEAD_S_MAX else first


def until_limit_ms(queue: Queue) -> int:
    """When that limit is reached, from now; -1: none is."""
    limit = next_limit(queue, trend_of(queue))
    return UNKNOWN_MS if limit is None else _rounded_ms(limit.left_s)


def until_empty_ms(queue: Queue) -> int:
    """When nothing waits any more if it goes on like this, from now; -1: never, or nobody knows."""
    trend = trend_of(queue)
    waiting = queue.message_count - len(queue.contents.scheduled)
    return _rounded_ms(waiting / -trend.growth) if trend.growth < 0 < waiting else UNKNOWN_MS


def _rounded_ms(span_s: float) -> int:
    """Two digits: more would only change all the time."""
    return int(float(f"{max(span_s, 1.0):.1e}") * _MS)


# ---- words -----------------------------------------------------------------------------------------------------------


def states_of(queue: Queue) -> list[str]:
    """The words for a queue, the worst first."""
    trend = trend_of(queue)
    contents = queue.contents
    count = contents.message_count
    waiting = count - len(contents.scheduled)
    closed = why_closed(queue.state, queue.host.turn_ms, is_held=queue.is_held)
    found = [] if queue.enabled else [DISABLED]
    if queue.flow.stopped or _refuses(queue):
        found.append(QUEUE_FULL)
    if closed is not None and (queue.gate.is_paused or (waiting and closed.kind == FEW_CONSUMERS)):
        found.append(closed.kind)
    is_dead = queue.address.name in queue.host.dead_letter_addresses
    keeps = queue.keeps_messages
    if waiting and not queue.gate.is_paused:
        found += _about_consumers(queue, trend, waiting, closed, is_dead=is_dead, keeps=keeps)
    elif count and not waiting:
        found.append(SCHEDULED)
    if trend.growth > 0 and waiting and not keeps and not is_dead:
        found.append(FALLING_BEHIND if trend.acknowledged else GROWING)
        limit = next_limit(queue, trend)
        found += [] if limit is None else [limit.word]
        found += [word for word in _what_holds(queue, closed) if word not in found]
    if contents.paged.count:
        found.append(PAGING)
    if not found:
        is_taken = trend.acknowledged > 0
        found.append(DRAINING if trend.growth < 0 < waiting else FLOWS if is_taken else WAITING if count else IDLE)
    found.sort(key=lambda word: -SEVERITY[word])
    return found


def _refuses(queue: Queue) -> bool:
    """Is it so full that it refuses the next message, however small?"""
    overflow, counters = queue.flow.overflow, queue.contents.counters
    depth, count = overflow.depth, queue.message_count
    return overflow.refuses and depth is not None and count > 0 and not depth.holds(count + 1, counters.size_bytes)


def _about_consumers(
    queue: Queue, trend: Trend, waiting: int, closed: Reason | None, *, is_dead: bool, keeps: bool
) -> list[str]:
    """Who takes what waits, or that nobody does."""
    if not queue.taker_count:
        return [KEPT if keeps else DEAD_LETTERS if is_dead else NO_CONSUMER]
    if queue.non_destructive:
        return []
    rounds = _quiet_rounds(queue)
    if queue.contents.delivering_count >= waiting:
        return [HELD] if rounds >= _STUCK_ROUNDS and trend.growth <= 0 else []
    holds = _what_holds(queue, closed) if rounds and not trend.acknowledged else []
    return [NO_ACKNOWLEDGEMENTS, *holds] if rounds >= _STUCK_ROUNDS else holds


def _quiet_rounds(queue: Queue) -> int:
    """In so many rounds of samples nothing was acknowledged, though something waited."""
    rounds = queue.host.rounds
    history = rounds.by_queue.get(queue.id)
    if history is None or history.acknowledged != queue.contents.counters.acknowledged:
        return 0
    return rounds.number - max(history.settled, history.idle)


def _what_holds(queue: Queue, closed: Reason | None) -> list[str]:
    """Why consumers take no more, if none of them does."""
    if closed is not None and closed.kind == MAX_BACKLOG:
        return [MAX_BACKLOG]
    if not queue.taker_count or not queue.gate.started:
        return []
    allowed, words = queue.consumer_defaults.backlog_max, list[str]()
    for consumer in islice((one for one in queue.distribution.consumers if not one.browses), _LOOKS_MAX):
        reason = why_no_room(queue.state, consumer, queue.host.turn_ms, allowed)
        if reason is None or reason.kind not in SEVERITY:
            return []
        words.append(reason.kind)
    return list(dict.fromkeys(words))


def severity_of(queue: Queue) -> int:
    """How bad the worst of its words is."""
    return SEVERITY[states_of(queue)[0]]
