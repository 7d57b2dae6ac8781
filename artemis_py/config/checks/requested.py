"""Checks queues and address-settings that somebody asks for while the broker runs, as ``check`` does for those of a
file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from artemis_py.config.checks.addresses import Readers
from artemis_py.config.checks.queues import cases, check_filters, check_queues, check_recovery_points
from artemis_py.config.checks.views import check_views
from artemis_py.config.draft import Draft, NamedDraft, QueueDraft, Values
from artemis_py.config.elements import drop_unset
from artemis_py.config.matching import check_setting_match
from artemis_py.config.problems import ERROR, Problems, nearest
from artemis_py.config.settings import AddressConfig, AddressSettings, BrokerConfig, Origin, QueueConfig, SettingsEntry
from artemis_py.config.tables.fields import REFUSED, Setting, ValueTextError, names_of, parse_value, settings_of
from artemis_py.errors import BadRequestError, MatchError

_FILE: Final = "the request"
"""Stands for the file."""
_AT: Final = Origin(_FILE, 0)


def _value_of(row: Setting, name: str, text: str, *, is_attribute: bool = False) -> Any:
    """The value of a setting from the text that a file would have. Raises BadRequestError."""
    if row.treatment == REFUSED:
        raise BadRequestError(f"{name} is refused: {row.reason}")
    try:
        return parse_value(row, text, is_attribute=is_attribute)
    except ValueTextError as error:
        raise BadRequestError(f"{name} has a wrong value {text[:100]!r}; allowed: {error.allowed}") from None


def _check(
    draft: Draft, addresses: Sequence[AddressConfig], entries: Sequence[SettingsEntry], config: BrokerConfig
) -> None:
    """Check these queues and address-settings, which ``draft`` has, too. Raises BadRequestError with all that is wrong,
    and with what is allowed.
    """
    settings, syntax = config.address_settings, config.wildcards
    found = list(cases(addresses, entries, settings, Readers(addresses, settings, syntax)))
    check_filters(draft)
    if not draft.problems.has_errors:
        check_queues(draft, found)
        check_views(draft, addresses, settings, syntax)
        check_recovery_points(draft, addresses)
    wrong = [problem for problem in draft.problems.found if problem.severity == ERROR]
    if wrong:
        raise BadRequestError("; ".join(_in_words(one.message, one.allowed) for one in wrong))


def _in_words(message: str, allowed: str | None) -> str:
    return message if allowed is None else f"{message} (allowed: {allowed})"


# ---- a queue -------------------------------------------------------------------------------------

_ASIDE: Final = frozenset({"filter", "user"})
"""Attributes that are elements in a file."""


def queue_values(texts: dict[str, str]) -> dict[str, Any]:
    """The attributes of a queue, from the texts that a file would have, by name. Raises BadRequestError."""
    rows = settings_of(QueueConfig)
    values: dict[str, Any] = {}
    for name, text in texts.items():
        row = rows[name]
        value = _value_of(row, name, text, is_attribute=name not in _ASIDE)
        values[row.attribute] = None if name == "filter" and not text.strip() else value
    return values


def check_queue(queue: QueueConfig, others: Sequence[QueueConfig], config: BrokerConfig) -> None:
    """Raises BadRequestError with all that is wrong with a queue on its address, beside ``others`` there."""
    draft = Draft(file=_FILE, problems=Problems())
    draft.core.put("persistence_enabled", config.persistence_enabled, _AT)
    draft.retention = config.journal_retention
    written = {
        row.attribute: value
        for row in settings_of(QueueConfig).values()
        if (value := getattr(queue, row.attribute)) is not None
    }
    places = {attribute: Origin(_FILE, line) for line, attribute in enumerate(written, 1)}
    one = QueueDraft(queue.name, queue.address, queue.routing_type, _AT, Values(written, places))
    draft.queues[queue.name] = one
    placed = QueueConfig(
        name=queue.name,
        address=queue.address,
        routing_type=queue.routing_type,
        origin=_AT,
        origins=tuple(places.items()),
        **written,
    )
    addresses = [AddressConfig(name=queue.address, routing_types=(queue.routing_type,), queues=(placed, *others))]
    _check(draft, addresses, (), config)


# ---- an address-setting --------------------------------------------------------------------------


def setting_values(match: str, texts: dict[str, str], config: BrokerConfig) -> dict[str, Any]:
    """The values of an address-setting, by attribute, from the texts that a file would have, by name. Raises
    BadRequestError.
    """
    try:
        check_setting_match(match, config.wildcards, config.literal_match_markers)
    except MatchError as error:
        raise BadRequestError(str(error)) from None
    rows, written = names_of(AddressSettings), Values()
    for name, text in texts.items():
        row = rows.get(name)
        if row is None:
            raise BadRequestError(f"there is no address-setting {name[:100]!r}; {_meant(name, rows)}")
        written.put(row.attribute, _value_of(row, name, text), _AT)
    drop_unset(written)
    return written.values


def check_setting(match: str, config: BrokerConfig) -> None:
    """Raises BadRequestError with all that is wrong with the address-setting of a match in a configuration."""
    draft = Draft(file=_FILE, problems=Problems())
    entry = next(each for each in config.address_settings.entries if each.match == match)
    draft.entries[match] = NamedDraft(match, entry.origin, Values(entry.values, entry.origins))
    _check(draft, (), config.address_settings.entries, config)


def _meant(name: str, known: Iterable[str]) -> str:
    guess = nearest(name, known)
    return "docs/configuration.md has them all" if guess is None else f"did you mean {guess!r}?"
