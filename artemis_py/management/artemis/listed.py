"""The messages of a queue as Artemis' beans list them: a map for each, of its headers and what the broker knows."""

from __future__ import annotations

import json
from collections.abc import Collection, Generator, Sequence
from typing import Any, Final

from artemis_py.core.budget import Budget
from artemis_py.core.operations.message_filter import MessageFilter
from artemis_py.core.operations.scan import BEHIND, DELIVERING, PAGED, READY, SCHEDULED, LocatedMessage
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import Step
from artemis_py.management.artemis.beans import QUEUE, Bean
from artemis_py.management.artemis.extras import Extra
from artemis_py.management.artemis.signature import signature_of
from artemis_py.management.listing import PAGE_SIZE_MAX
from artemis_py.management.managed import Managed
from artemis_py.management.operations.arguments import selector_of
from artemis_py.management.operations.browse import Looks, look

_WAITING: Final = (READY, BEHIND, PAGED)
_SHOWN: Final = ("messageID", "address", "type", "durable", "expiration", "timestamp", "priority")
_ROW_UNITS: Final = 12

Rows = Generator[Step, None, list[dict[str, Any]]]
ByHolder = Generator[Step, None, dict[int, list[dict[str, Any]]]]


def _by_holder(
    managed: Managed, queue: Queue, states: Collection[str], choice: MessageFilter, count_max: int
) -> ByHolder:
    """The first messages that are in one of the states, by the number of the consumer that has them; 0: none has."""
    looks = Looks.at(queue, managed.now_ms())
    rows: dict[int, list[dict[str, Any]]] = {}
    count = 0

    def see(located: LocatedMessage, budget: Budget) -> bool:
        nonlocal count
        budget.spend(_ROW_UNITS)
        shown = looks.row(located)
        row = {**looks.headers(located.message), **{name: shown[name] for name in _SHOWN}}
        rows.setdefault(0 if located.holder is None else located.holder.id, []).append(row)
        count += 1
        return count >= count_max

    yield from look(managed, queue, states, choice, see)
    return rows


def _rows(managed: Managed, queue: Queue, states: Collection[str], choice: MessageFilter, count_max: int) -> Rows:
    """The same, of messages that no consumer has."""
    found = yield from _by_holder(managed, queue, states, choice, count_max)
    return found.get(0, [])


def _page_of(managed: Managed, bean: Bean, given: Sequence[Any]) -> Rows:
    """Those that wait, at most as many as a page of a browse has, as in Artemis."""
    queue: Queue = bean.owner
    count_max = min(queue.address.settings.management_browse_page_size, PAGE_SIZE_MAX)
    return (yield from _rows(managed, queue, _WAITING, MessageFilter(selector_of(str(given[0] or ""))), count_max))


def _scheduled(managed: Managed, bean: Bean, _given: Sequence[Any]) -> Rows:
    return (yield from _rows(managed, bean.owner, (SCHEDULED,), MessageFilter(), PAGE_SIZE_MAX))


def _delivering(
    managed: Managed, bean: Bean, _given: Sequence[Any]
) -> Generator[Step, None, dict[str, list[dict[str, Any]]]]:
    found = yield from _by_holder(managed, bean.owner, (DELIVERING,), MessageFilter(), PAGE_SIZE_MAX)
    return {f"consumer {number}": rows for number, rows in found.items()}


def _page_as_json(managed: Managed, bean: Bean, given: Sequence[Any]) -> Generator[Step, None, str]:
    return _compact((yield from _page_of(managed, bean, given)))


def _scheduled_as_json(managed: Managed, bean: Bean, given: Sequence[Any]) -> Generator[Step, None, str]:
    return _compact((yield from _scheduled(managed, bean, given)))


def _delivering_as_json(managed: Managed, bean: Bean, given: Sequence[Any]) -> Generator[Step, None, str]:
    found = yield from _delivering(managed, bean, given)
    return _compact([{"consumerName": name, "elements": rows} for name, rows in found.items()])


def _first_as_json(managed: Managed, bean: Bean, _given: Sequence[Any]) -> Generator[Step, None, str | None]:
    rows = yield from _rows(managed, bean.owner, _WAITING, MessageFilter(), 1)
    return _compact(rows[0]) if rows else None


def _compact(found: object) -> str:
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


_PAGE: Final = "The first messages that match and wait for a consumer: at most management-browse-page-size."
_LATER: Final = f"The messages that wait for their time, at most {PAGE_SIZE_MAX:,}."
_HELD: Final = f"By consumer, the messages that it has and did not acknowledge, at most {PAGE_SIZE_MAX:,}."

LISTED: Final = (
    Extra(QUEUE, signature_of("Map[] listMessages(String filter)"), _PAGE, _page_of),
    Extra(QUEUE, signature_of("String listMessagesAsJSON(String filter)"), _PAGE, _page_as_json),
    Extra(QUEUE, signature_of("Map[] listScheduledMessages()"), _LATER, _scheduled),
    Extra(QUEUE, signature_of("String listScheduledMessagesAsJSON()"), _LATER, _scheduled_as_json),
    Extra(QUEUE, signature_of("Map listDeliveringMessages()"), _HELD, _delivering),
    Extra(QUEUE, signature_of("String listDeliveringMessagesAsJSON()"), _HELD, _delivering_as_json),
    Extra(QUEUE, signature_of("String peekFirstMessageAsJSON()"), "The first that waits; null: none.", _first_as_json),
)
