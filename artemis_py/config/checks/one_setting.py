"""Checks an address-setting that somebody wants to make while the broker runs, as ``check`` does for one in a file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from artemis_py.config.checks.elements import check_filters
from artemis_py.config.checks.groups import check_groups
from artemis_py.config.checks.queue_combinations import check_queue_combinations
from artemis_py.config.checks.queue_types import check_queue_types
from artemis_py.config.checks.readers import Readers
from artemis_py.config.draft import Draft, NamedDraft, Values
from artemis_py.config.matching import check_setting_match
from artemis_py.config.problems import ERROR, Problems, nearest
from artemis_py.config.read.addresses import drop_unset
from artemis_py.config.settings import AddressSettings, BrokerConfig, Origin
from artemis_py.config.tables.fields import REFUSED, names_of
from artemis_py.config.values import ValueTextError, parse_value
from artemis_py.errors import BadRequestError, MatchError

_PLACE: Final = Origin("the request", 0)


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
        if row.treatment == REFUSED:
            raise BadRequestError(f"{name} is refused: {row.reason}")
        try:
            written.put(row.attribute, parse_value(row, text), _PLACE)
        except ValueTextError as error:
            raise BadRequestError(f"{name} has a wrong value {text[:100]!r}; allowed: {error.allowed}") from None
    drop_unset(written)
    return written.values


def check_setting(match: str, config: BrokerConfig) -> None:
    """Raises BadRequestError with all that is wrong with the address-setting of a match in a configuration."""
    settings = config.address_settings
    draft = Draft(file=_PLACE.file, problems=Problems())
    entry = next(each for each in settings.entries if each.match == match)
    draft.entries[match] = NamedDraft(match, entry.origin, Values(entry.values, entry.origins))
    readers = Readers((), settings, config.wildcards)
    check_filters(draft)
    if not draft.problems.has_errors:
        check_groups(draft, (), settings.entries, settings)
        check_queue_types(draft, (), settings.entries, settings, readers)
    if not draft.problems.has_errors:
        check_queue_combinations(draft, (), settings.entries, settings, readers)
    wrong = [problem.message for problem in draft.problems.found if problem.severity == ERROR]
    if wrong:
        raise BadRequestError("; ".join(wrong))


def _meant(name: str, known: Iterable[str]) -> str:
    guess = nearest(name, known)
    return "docs/configuration.md has them all" if guess is None else f"did you mean {guess!r}?"
