"""Checks a queue that somebody wants to create or change while the broker runs, as ``check`` does for one in a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from artemis_py.config.checks.elements import check_filters
from artemis_py.config.checks.groups import check_groups
from artemis_py.config.checks.queue_combinations import check_queue_combinations
from artemis_py.config.checks.queue_types import check_queue_types
from artemis_py.config.checks.readers import Readers
from artemis_py.config.checks.recovery_points import check_recovery_points
from artemis_py.config.checks.views import check_views
from artemis_py.config.draft import Draft, QueueDraft, Values
from artemis_py.config.problems import ERROR, Problems
from artemis_py.config.settings import AddressConfig, BrokerConfig, Origin, QueueConfig
from artemis_py.config.tables.fields import REFUSED, settings_of
from artemis_py.config.values import ValueTextError, parse_value
from artemis_py.errors import BadRequestError

_PLACE: Final = "the request"
_ASIDE: Final = frozenset({"filter", "user"})
"""Attributes that are elements in a file."""


def queue_values(texts: dict[str, str]) -> dict[str, Any]:
    """The attributes of a queue, from the texts that a file would have, by name. Raises BadRequestError."""
    rows = settings_of(QueueConfig)
    values: dict[str, Any] = {}
    for name, text in texts.items():
        row = rows[name]
        if row.treatment == REFUSED:
            raise BadRequestError(f"{name} is refused: {row.reason}")
        try:
            value = parse_value(row, text, is_attribute=name not in _ASIDE)
        except ValueTextError as error:
            raise BadRequestError(f"{name} has a wrong value {text[:100]!r}; allowed: {error.allowed}") from None
        values[row.attribute] = None if name == "filter" and not text.strip() else value
    return values


def check_queue(queue: QueueConfig, others: Sequence[QueueConfig], config: BrokerConfig) -> None:
    """Raises BadRequestError with all that is wrong with a queue on its address, beside ``others`` there."""
    draft = Draft(file=_PLACE, problems=Problems())
    draft.core.put("persistence_enabled", config.persistence_enabled, Origin(_PLACE, 0))
    draft.retention = config.journal_retention
    written = {
        row.attribute: value
        for row in settings_of(QueueConfig).values()
        if (value := getattr(queue, row.attribute)) is not None
    }
    places = {attribute: Origin(_PLACE, line) for line, attribute in enumerate(written, 1)}
    one = QueueDraft(queue.name, queue.address, queue.routing_type, Origin(_PLACE, 0), Values(written, places))
    draft.queues[queue.name] = one
    placed = QueueConfig(
        name=queue.name,
        address=queue.address,
        routing_type=queue.routing_type,
        origin=Origin(_PLACE, 0),
        origins=tuple(places.items()),
        **written,
    )
    addresses = [AddressConfig(name=queue.address, routing_types=(queue.routing_type,), queues=(placed, *others))]
    settings, syntax = config.address_settings, config.wildcards
    readers = Readers(addresses, settings, syntax)
    check_filters(draft)
    if not draft.problems.has_errors:
        check_groups(draft, addresses, (), settings)
        check_queue_types(draft, addresses, (), settings, readers)
    if not draft.problems.has_errors:
        check_queue_combinations(draft, addresses, (), settings, readers)
        check_views(draft, addresses, settings, syntax)
        check_recovery_points(draft, addresses)
    wrong = [problem for problem in draft.problems.found if problem.severity == ERROR]
    if wrong:
        raise BadRequestError("; ".join(_in_words(one.message, one.allowed) for one in wrong))


def _in_words(message: str, allowed: str | None) -> str:
    return message if allowed is None else f"{message} (allowed: {allowed})"
