"""Checks of queue types: attributes that contradict each other, and orders that paging breaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from artemis_py.config.checks.cases import Case
from artemis_py.config.draft import Draft
from artemis_py.config.tables.entities import Origin
from artemis_py.config.tables.queue_types import (
    BY_EXPRESSION,
    LAST_VALUE,
    SORTED,
    STANDARD,
    contradiction,
    said_by,
    types_meant,
    what_is_said,
)


def check_queue_types(draft: Draft, cases: Sequence[Case]) -> None:
    """Refuse queues and address-settings that ask for two types or for an incomplete one. Warn of orders on addresses
    that page.
    """
    for case in cases:
        own = what_is_said(case.written)
        if own:
            _check(draft, case, own)


def _check(draft: Draft, case: Case, own: Mapping[str, Any]) -> None:
    subject = f"address-setting {case.address!r}" if case.is_default else case.subject
    pair = contradiction(own)
    if pair is not None:
        first, second = map(case.name, pair)
        draft.problems.error(
            case.place(pair[1]),
            f"{subject} has {first} and {second}, which ask for different queue types",
            allowed="one type: standard, priority (priority-levels), sorted (sort-key), priority-expression or "
            "last-value (last-value-key)",
        )
        return
    place = case.place(next(iter(own)))
    said = said_by(case.settings, default=True)
    meant = types_meant(said)
    if case.is_default and "queue_type" not in said and len(meant) > 1:
        draft.problems.error(
            place,
            f"{subject} and others that match the same addresses ask for different queue types: "
            f"{' and '.join(map(case.name, meant.values()))}",
            allowed="default-queue-type in the more specific one, which wins",
        )
        return
    _check_chosen(draft, case, place)


def _check_chosen(draft: Draft, case: Case, place: Origin) -> None:
    own = case.own
    if own.queue_type == SORTED and own.sort_key is None:
        draft.problems.error(
            place, f"{case.subject} is sorted but has no sort key", allowed="sort-key with the name of a header"
        )
    what = LAST_VALUE if own.last_value else own.queue_type or (own.priority_expression and BY_EXPRESSION)
    if not case.pages or what in (None, STANDARD):
        return
    if what == LAST_VALUE and own.non_destructive:
        draft.problems.error(
            place,
            f"{case.subject} is a non-destructive last-value queue on an address with address-full-policy PAGE: values "
            "in pages would never be replaced, because no consumer removes them",
            allowed="address-full-policy DROP, FAIL or BLOCK",
        )
        return
    draft.problems.warning(
        "doubtful-value",
        place,
        f"{case.subject} is of the type {what} on an address with address-full-policy PAGE: a message in a page is "
        "ordered only once it is in memory, and it arrives there in arrival order",
        allowed="DROP, FAIL or BLOCK keep all messages in memory",
    )
