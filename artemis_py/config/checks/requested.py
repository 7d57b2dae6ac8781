"""Checks what somebody asks for while the broker runs, as ``check`` does for what a file has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from artemis_py.config.checks.cases import cases
from artemis_py.config.checks.elements import check_filters
from artemis_py.config.checks.groups import check_groups
from artemis_py.config.checks.queue_combinations import check_queue_combinations
from artemis_py.config.checks.queue_types import check_queue_types
from artemis_py.config.checks.readers import Readers
from artemis_py.config.checks.recovery_points import check_recovery_points
from artemis_py.config.checks.views import check_views
from artemis_py.config.draft import Draft
from artemis_py.config.merging import SettingsEntry
from artemis_py.config.problems import ERROR
from artemis_py.config.settings import AddressConfig, BrokerConfig
from artemis_py.config.tables.fields import REFUSED, Setting
from artemis_py.config.values import ValueTextError, parse_value
from artemis_py.errors import BadRequestError

PLACE: Final = "the request"
"""Stands for the file."""


def requested_value(row: Setting, name: str, text: str, *, is_attribute: bool = False) -> Any:
    """The value of a setting from the text that a file would have. Raises BadRequestError."""
    if row.treatment == REFUSED:
        raise BadRequestError(f"{name} is refused: {row.reason}")
    try:
        return parse_value(row, text, is_attribute=is_attribute)
    except ValueTextError as error:
        raise BadRequestError(f"{name} has a wrong value {text[:100]!r}; allowed: {error.allowed}") from None


def check_requested(
    draft: Draft, addresses: Sequence[AddressConfig], entries: Sequence[SettingsEntry], config: BrokerConfig
) -> None:
    """Check these queues and address-settings, which ``draft`` has, too. Raises BadRequestError with all that is wrong,
    and with what is allowed.
    """
    settings, syntax = config.address_settings, config.wildcards
    found = list(cases(addresses, entries, settings, Readers(addresses, settings, syntax)))
    check_filters(draft)
    if not draft.problems.has_errors:
        check_groups(draft, found)
        check_queue_types(draft, found)
    if not draft.problems.has_errors:
        check_queue_combinations(draft, found)
        check_views(draft, addresses, settings, syntax)
        check_recovery_points(draft, addresses)
    wrong = [problem for problem in draft.problems.found if problem.severity == ERROR]
    if wrong:
        raise BadRequestError("; ".join(_in_words(one.message, one.allowed) for one in wrong))


def _in_words(message: str, allowed: str | None) -> str:
    return message if allowed is None else f"{message} (allowed: {allowed})"
