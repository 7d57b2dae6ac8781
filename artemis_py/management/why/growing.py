"""Why a queue grows: what comes in and what is settled, measured over a moment, by consumer; and what follows of it.

Nothing is counted for it while messages flow: two looks at the counters that are there, some time apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from artemis_py.core.consumer import Consumer
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.why import messages
from artemis_py.core.queue_states import limits_ahead
from artemis_py.core.slow_consumers import settled_count
from artemis_py.errors import NotFoundError
from artemis_py.management.why.question import (
    LINES_MAX,
    Findings,
    Question,
    address_of,
    listed,
    of_broker,
    some_at_a_time,
)

_MS: Final = 1_000
_CONSUMERS_MAX: Final = 1_000
_MINUTE_S: Final = 60
_HOUR_S: Final = 3_600
_DAY_S: Final = 86_400


@dataclass(frozen=True, slots=True)
class _Sample:
    """The counters of a queue and its address at one moment (steady ms)."""

    at_ms: int
    added: int
    acknowledged: int
    left: int
    count: int
    address_bytes: int
    address_count: int


@dataclass(frozen=True, slots=True)
class _Rates:
    """Per second, over ``span_s``."""

    span_s: float
    came: float
    acknowledged: float
    left: float
    count: float
    address_bytes: float
    address_count: float


def growing(question: Question, queue: Queue, window_ms: int) -> Findings:
    """The rates of a queue over so many ms. Raises NotFoundError if it is deleted meanwhile."""
    consumers = [one for one in queue.distribution.consumers[:_CONSUMERS_MAX] if not one.browses]
    before_by: dict[Consumer, int] = {}
    for some in some_at_a_time(consumers):
        before_by.update({one: settled_count(one) for one in some})
        yield None
    before = _sample(queue, question.now_ms)
    yield question.managed.after_ms(window_ms)
    if queue.deleted:
        raise NotFoundError(f"the queue {queue.name} was deleted meanwhile")
    after = _sample(queue, question.now_ms)
    rates = _rates(before, after)
    _about_growth(question, queue, rates)
    yield from _about_consumers(question, before_by, rates.span_s)
    yield None
    _about_future(question, queue, after, rates)


def _sample(queue: Queue, now_ms: int) -> _Sample:
    counters, account = queue.contents.counters, address_of(queue).account
    return _Sample(
        queue.host.clock.steady_ms(now_ms),
        counters.added,
        counters.acknowledged,
        counters.expired + counters.killed + counters.replaced,
        queue.message_count,
        account.size_bytes,
        account.message_count,
    )


def _rates(before: _Sample, after: _Sample) -> _Rates:
    span_s = max(after.at_ms - before.at_ms, 1) / _MS
    return _Rates(
        span_s,
        (after.added - before.added) / span_s,
        (after.acknowledged - before.acknowledged) / span_s,
        (after.left - before.left) / span_s,
        (after.count - before.count) / span_s,
        (after.address_bytes - before.address_bytes) / span_s,
        (after.address_count - before.address_count) / span_s,
    )


def _about_growth(question: Question, queue: Queue, rates: _Rates) -> None:
    gone = f", {rates.left:.4g}/s left otherwise (expired, dead, replaced or removed)" if rates.left else ""
    text = (
        f"{rates.came:.4g}/s come in and {rates.acknowledged:.4g}/s are acknowledged{gone}, over {rates.span_s:g} s; "
        f"it has {messages(queue.message_count)}"
    )
    used = round(rates.came)
    if rates.count <= 0:
        question.add("not-growing", text, used=used, unit="messages/s")
    elif not rates.acknowledged:
        question.add("no-acknowledgements", text, used=used, limit=0, unit="messages/s")
    else:
        question.add("faster-in", text, used=used, limit=round(rates.acknowledged), unit="messages/s")


def _about_consumers(question: Question, before: dict[Consumer, int], span_s: float) -> Findings:
    rates: list[tuple[float, Consumer]] = []
    for some in some_at_a_time(list(before)):
        rates += [((settled_count(one) - before[one]) / span_s, one) for one in some if not one.closed]
        yield None
    rates.sort(key=lambda one: one[0])
    for rate, consumer in rates[:LINES_MAX]:
        held = len(consumer.held)
        question.add(
            "consumer-rate", f"it settles {rate:.4g}/s and holds {messages(held)}", about=question.describe(consumer),
            connection=consumer.reader.connection, used=round(rate), unit="messages/s",
            help="It settles nothing: look at its client." if held and not rate else "",
        )  # fmt: skip
        yield None
    if len(rates) > LINES_MAX:
        rest = [f"consumer {one.id}" for _, one in rates[LINES_MAX:]]
        rate = sum(rate for rate, _ in rates[LINES_MAX:])
        text = f"{len(rest)} faster consumers settle {rate:.4g}/s together: {listed(rest)}"
        question.add("consumer-rate", text, used=round(rate), unit="messages/s")


def _about_future(question: Question, queue: Queue, now: _Sample, rates: _Rates) -> None:
    """When it is empty, pages, or is full, if it goes on like this."""
    if rates.count < 0 < now.count:
        left_s = now.count / -rates.count
        question.add("will-drain", f"empty in {in_words(left_s)} at this rate", used=round(left_s), unit="s")
        return
    if address_of(queue).is_paging:
        _about_disk(question, queue, rates)
    for ahead in limits_ahead(queue, rates.count, rates.address_count, rates.address_bytes):
        then = f" at this rate; then {ahead.policy}" if ahead.policy else ""
        text = f"{ahead.used:,} of {ahead.limit:,} {ahead.unit} ({ahead.setting}): reached in {in_words(ahead.left_s)}"
        place = of_broker(question.broker.config, ahead.setting) if ahead.setting == "global-max-size" else None
        question.add(
            ahead.word, text + then, used=ahead.used, limit=ahead.limit, unit=ahead.unit, setting=ahead.setting,
            place=place,
        )  # fmt: skip


def _about_disk(question: Question, queue: Queue, rates: _Rates) -> None:
    headroom = question.managed.health.headroom_bytes()
    counters = queue.contents.counters
    mean_bytes = counters.size_bytes / max(queue.message_count, 1)
    if headroom is None or rates.count <= 0 or not mean_bytes:
        return
    left_s = headroom / (rates.count * mean_bytes)
    text = f"it pages already; the disk counts as full in {in_words(left_s)} at this rate"
    question.add("will-be-full", text, used=round(left_s), unit="s")


def in_words(span_s: float) -> str:
    """A span of time that is only estimated."""
    if span_s < _MINUTE_S:
        return f"{span_s:.1f} s"
    if span_s < _HOUR_S:
        return f"{span_s / _MINUTE_S:.1f} min"
    return f"{span_s / _HOUR_S:.1f} h" if span_s < _DAY_S else f"{span_s / _DAY_S:.1f} days"
