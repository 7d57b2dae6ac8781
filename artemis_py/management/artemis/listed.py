"""The messages of a queue as Artemis' beans list them: a map for each, of its headers and what the broker knows."""

from __future__ import annotations

import json
from collections.abc import Collection, Generator, Sequence
from typing import Any, Final

from artemis_py.core.budget import Budget
from artemis_py.core.operations.choice import Choice
from artemis_py.core.operations.scan import BEHIND, PAGED, READY, SCHEDULED, Sight
from artemis_py.core.queue.queue import Queue
from artemis_py.management.artemis.beans import QUEUE, Bean
from artemis_py.management.artemis.extras import Extra
from artemis_py.management.artemis.signature import signature_of
from artemis_py.management.lists.messages import Looks
from artemis_py.management.lists.wanted import PAGE_SIZE_MAX
from artemis_py.management.managed import Managed
from artemis_py.management.messages.choosing import selector_of
from artemis_py.management.messages.looking import look
from artemis_py.management.steps import Step

_WAITING: Final = (READY, BEHIND, PAGED)
_SHOWN: Final = ("messageID", "address", "type", "durable", "expiration", "timestamp", "priority")
_ROW_UNITS: Final = 12

Rows = Generator[Step, None, list[dict[str, Any]]]


def _rows(managed: Managed, queue: Queue, states: Collection[str], choice: Choice, count_max: int) -> Rows:
    """The first messages that are in one of the states."""
    looks = Looks.at(queue, managed.now_ms())
    rows: list[dict[str, Any]] = []

    def see(sight: Sight, budget: Budget) -> bool:
        budget.spend(_ROW_UNITS)
        shown = looks.row(sight)
        rows.append({**looks.headers(sight.message), **{name: shown[name] for name in _SHOWN}})
        return len(rows) >= count_max

    yield from look(managed, queue, states, choice, see)
    return rows


def _page_of(managed: Managed, bean: Bean, given: Sequence[Any]) -> Rows:
    """Those that wait, at most as many as a page of a browse has, as in Artemis."""
    queue: Queue = bean.owner
    count_max = min(queue.address.settings.management_browse_page_size, PAGE_SIZE_MAX)
    return (yield from _rows(managed, queue, _WAITING, Choice(selector_of(str(given[0] or ""))), count_max))


def _scheduled(managed: Managed, bean: Bean, _given: Sequence[Any]) -> Rows:
    return (yield from _rows(managed, bean.owner, (SCHEDULED,), Choice(), PAGE_SIZE_MAX))


def _page_as_json(managed: Managed, bean: Bean, given: Sequence[Any]) -> Generator[Step, None, str]:
    return _compact((yield from _page_of(managed, bean, given)))


def _scheduled_as_json(managed: Managed, bean: Bean, given: Sequence[Any]) -> Generator[Step, None, str]:
    return _compact((yield from _scheduled(managed, bean, given)))


def _first_as_json(managed: Managed, bean: Bean, _given: Sequence[Any]) -> Generator[Step, None, str | None]:
    rows = yield from _rows(managed, bean.owner, _WAITING, Choice(), 1)
    return _compact(rows[0]) if rows else None


def _compact(found: object) -> str:
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


_PAGE: Final = "The first messages that match and wait for a consumer: at most management-browse-page-size."
_LATER: Final = f"The messages that wait for their time, at most {PAGE_SIZE_MAX:,}."

LISTED: Final = (
    Extra(QUEUE, signature_of("Map[] listMessages(String filter)"), _PAGE, _page_of),
    Extra(QUEUE, signature_of("String listMessagesAsJSON(String filter)"), _PAGE, _page_as_json),
    Extra(QUEUE, signature_of("Map[] listScheduledMessages()"), _LATER, _scheduled),
    Extra(QUEUE, signature_of("String listScheduledMessagesAsJSON()"), _LATER, _scheduled_as_json),
    Extra(QUEUE, signature_of("String peekFirstMessageAsJSON()"), "The first that waits; null: none.", _first_as_json),
)
