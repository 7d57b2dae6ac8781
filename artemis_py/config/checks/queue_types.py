"""Checks of queue types: attributes that contradict each other, and orders that paging breaks."""

from __future__ import annotations

from collections.abc import Sequence

from artemis_py.config.checks.readers import Readers
from artemis_py.config.draft import Draft
from artemis_py.config.merging import SettingsEntry, SettingsRepository
from artemis_py.config.tables.entities import QUEUE_DEFAULTS, AddressConfig, Origin, QueueConfig
from artemis_py.config.tables.queue_types import (
    BY_EXPRESSION,
    LAST_VALUE,
    SORTED,
    TYPE_ATTRIBUTES,
    QueueType,
    contradiction,
    said_by,
    type_of,
    types_meant,
    what_is_said,
)


def check_queue_types(
    draft: Draft,
    addresses: Sequence[AddressConfig],
    entries: Sequence[SettingsEntry],
    settings: SettingsRepository,
    readers: Readers,
) -> None:
    """Refuse queues and address-settings that ask for two types or for an incomplete one. Warn of orders on addresses
    that page.
    """
    for address in addresses:
        for queue in address.queues:
            _check_queue(draft, queue, settings, readers)
    for entry in entries:
        _check_entry(draft, entry, settings, readers)


def _check_queue(draft: Draft, queue: QueueConfig, settings: SettingsRepository, readers: Readers) -> None:
    own = said_by(queue)
    if not own:
        return
    merged = settings.settings_for(queue.address)
    pair = contradiction(own)
    place = queue.origin_of(next(iter(own)))
    if pair is not None:
        _refuse_pair(draft, f"queue {queue.name!r}", pair, queue.origin_of(pair[1]), default=False)
        return
    chosen = type_of(own, said_by(merged, default=True))
    non_destructive = merged.default_non_destructive if queue.non_destructive is None else queue.non_destructive
    _check_chosen(draft, f"queue {queue.name!r}", chosen, place, readers.pages_under(queue), non_destructive)


def _check_entry(draft: Draft, entry: SettingsEntry, settings: SettingsRepository, readers: Readers) -> None:
    own = what_is_said({name: entry.values.get(other) for name, other in TYPE_ATTRIBUTES.items()})
    if not own:
        return
    subject = f"address-setting {entry.match!r}"
    pair = contradiction(own)
    if pair is not None:
        _refuse_pair(draft, subject, pair, entry.origins[TYPE_ATTRIBUTES[pair[1]]], default=True)
        return
    merged = settings.settings_for(entry.match)
    said = said_by(merged, default=True)
    place = entry.origins[TYPE_ATTRIBUTES[next(iter(own))]]
    meant = types_meant(said)
    if "queue_type" not in said and len(meant) > 1:
        named = " and ".join(_name(attribute, default=True) for attribute in meant.values())
        draft.problems.error(
            place,
            f"{subject} and others that match the same addresses ask for different queue types: {named}",
            allowed="default-queue-type in the more specific one, which wins",
        )
        return
    _check_chosen(
        draft, f"each queue of {entry.match!r}", type_of({}, said), place, readers.pages_at(entry.match),
        merged.default_non_destructive,
    )  # fmt: skip


def _refuse_pair(draft: Draft, subject: str, pair: tuple[str, str], place: Origin, *, default: bool) -> None:
    first, second = (_name(attribute, default=default) for attribute in pair)
    draft.problems.error(
        place,
        f"{subject} has {first} and {second}, which ask for different queue types",
        allowed="one type: standard, priority (priority-levels), sorted (sort-key), priority-expression or last-value "
        "(last-value-key)",
    )


def _name(attribute: str, *, default: bool) -> str:
    return (QUEUE_DEFAULTS[attribute] if default else attribute).replace("_", "-")


def _check_chosen(
    draft: Draft, subject: str, chosen: QueueType, place: Origin, pages: bool, non_destructive: bool
) -> None:
    if chosen.name == SORTED and chosen.sort_key is None:
        draft.problems.error(
            place, f"{subject} is sorted but has no sort key", allowed="sort-key with the name of a header"
        )
    if not pages or chosen == QueueType(name="standard"):
        return
    what = LAST_VALUE if chosen.last_value_key is not None else chosen.name or BY_EXPRESSION
    if what == LAST_VALUE and non_destructive:
        draft.problems.error(
            place,
            f"{subject} is a non-destructive last-value queue on an address with address-full-policy PAGE: values in "
            "pages would never be replaced, because no consumer removes them",
            allowed="address-full-policy DROP, FAIL or BLOCK",
        )
        return
    draft.problems.warning(
        "doubtful-value",
        place,
        f"{subject} is of the type {what} on an address with address-full-policy PAGE: a message in a page is "
        "ordered only once it is in memory, and it arrives there in arrival order",
        allowed="DROP, FAIL or BLOCK keep all messages in memory",
    )
