"""Checks a queue that somebody wants to create or change while the broker runs, as ``check`` does for one in a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from artemis_py.config.checks.requested import PLACE, check_requested, requested_value
from artemis_py.config.draft import Draft, QueueDraft, Values
from artemis_py.config.problems import Problems
from artemis_py.config.settings import AddressConfig, BrokerConfig, Origin, QueueConfig
from artemis_py.config.tables.fields import settings_of

_ASIDE: Final = frozenset({"filter", "user"})
"""Attributes that are elements in a file."""


def queue_values(texts: dict[str, str]) -> dict[str, Any]:
    """The attributes of a queue, from the texts that a file would have, by name. Raises BadRequestError."""
    rows = settings_of(QueueConfig)
    values: dict[str, Any] = {}
    for name, text in texts.items():
        row = rows[name]
        value = requested_value(row, name, text, is_attribute=name not in _ASIDE)
        values[row.attribute] = None if name == "filter" and not text.strip() else value
    return values


def check_queue(queue: QueueConfig, others: Sequence[QueueConfig], config: BrokerConfig) -> None:
    """Raises BadRequestError with all that is wrong with a queue on its address, beside ``others`` there."""
    draft = Draft(file=PLACE, problems=Problems())
    draft.core.put("persistence_enabled", config.persistence_enabled, Origin(PLACE, 0))
    draft.retention = config.journal_retention
    written = {
        row.attribute: value
        for row in settings_of(QueueConfig).values()
        if (value := getattr(queue, row.attribute)) is not None
    }
    places = {attribute: Origin(PLACE, line) for line, attribute in enumerate(written, 1)}
    one = QueueDraft(queue.name, queue.address, queue.routing_type, Origin(PLACE, 0), Values(written, places))
    draft.queues[queue.name] = one
    placed = QueueConfig(
        name=queue.name,
        address=queue.address,
        routing_type=queue.routing_type,
        origin=Origin(PLACE, 0),
        origins=tuple(places.items()),
        **written,
    )
    addresses = [AddressConfig(name=queue.address, routing_types=(queue.routing_type,), queues=(placed, *others))]
    check_requested(draft, addresses, (), config)
