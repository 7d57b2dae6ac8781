"""Checks of ``recovery-point``, which needs a log, and a queue that remembers how far it got."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from artemis_py.config.draft import Draft
from artemis_py.config.tables.entities import AddressConfig, QueueConfig
from artemis_py.config.tables.recovery_points import HOW, recovery_point_of

_PLACE: Final = "recovery_point"


def check_recovery_points(draft: Draft, addresses: Sequence[AddressConfig]) -> None:
    """Refuse invalid recovery points, and those after which the log has nothing."""
    is_kept = draft.retention is not None and draft.core.values.get("persistence_enabled", True)
    for address in addresses:
        for queue in address.queues:
            if queue.recovery_point is not None:
                _check(draft, queue, queue.recovery_point, is_kept=is_kept)


def _check(draft: Draft, queue: QueueConfig, text: str, *, is_kept: bool) -> None:
    origin, subject = queue.origin_of(_PLACE), f"queue {queue.name!r} has recovery-point"
    try:
        point = recovery_point_of(text)
    except ValueError:
        draft.problems.error(
            origin, f"recovery-point of queue {queue.name!r} is no place in the log", value=text, allowed=HOW
        )
        return
    if point.is_past and not is_kept:
        draft.problems.error(
            origin,
            f"{subject} without journal-retention-directory: what queues are done with is not kept, so the past has "
            "gaps",
            value=text,
            allowed="journal-retention-directory, or recovery-point now or creation",
        )
    if queue.purge_on_no_consumers and point.is_past:
        draft.problems.error(
            origin,
            f"{subject} and purge-on-no-consumers: a new queue has no consumer, and keeps nothing",
            value=text,
            allowed="one of them",
        )
