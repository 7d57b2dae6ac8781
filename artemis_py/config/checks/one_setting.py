"""Checks an address-setting that somebody wants to make while the broker runs, as ``check`` does for one in a file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from artemis_py.config.checks.requested import PLACE, check_requested, requested_value
from artemis_py.config.draft import Draft, NamedDraft, Values
from artemis_py.config.matching import check_setting_match
from artemis_py.config.problems import Problems, nearest
from artemis_py.config.read.addresses import drop_unset
from artemis_py.config.settings import AddressSettings, BrokerConfig, Origin
from artemis_py.config.tables.fields import names_of
from artemis_py.errors import BadRequestError, MatchError

_PLACE: Final = Origin(PLACE, 0)


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
        written.put(row.attribute, requested_value(row, name, text), _PLACE)
    drop_unset(written)
    return written.values


def check_setting(match: str, config: BrokerConfig) -> None:
    """Raises BadRequestError with all that is wrong with the address-setting of a match in a configuration."""
    draft = Draft(file=PLACE, problems=Problems())
    entry = next(each for each in config.address_settings.entries if each.match == match)
    draft.entries[match] = NamedDraft(match, entry.origin, Values(entry.values, entry.origins))
    check_requested(draft, (), config.address_settings.entries, config)


def _meant(name: str, known: Iterable[str]) -> str:
    guess = nearest(name, known)
    return "docs/configuration.md has them all" if guess is None else f"did you mean {guess!r}?"
