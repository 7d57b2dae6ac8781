"""Applies ``broker.properties`` to a configuration read from XML.

Keys are those of Artemis: the path of a setting, with element names in camel case (``globalMaxSize=10M``,
``addressSettings."orders.#".maxSizeBytes=1G``). A name with dots is in quotes. The value ``-`` removes what the path
names. Unknown keys and wrong values are ignored with a warning; they never stop a broker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, final

from artemis_py.config.draft import Draft
from artemis_py.config.overlay.bean_names import CORE_BEANS, INTERNAL_BEANS, PART_BEANS
from artemis_py.config.overlay.parts import PART_NAMES, lay_over_part
from artemis_py.config.overlay.properties_file import Property, expand_paths, read_properties
from artemis_py.config.overlay.retention import RETENTION_BEANS, check_retention, lay_over_retention
from artemis_py.config.overlay.shared_store import BEAN as POLICY
from artemis_py.config.overlay.shared_store import lay_over_policy
from artemis_py.config.overlay.values import UnknownKeyError, camel, property_names, set_value
from artemis_py.config.problems import nearest, unless_newer
from artemis_py.config.tables.core_settings import CoreSettings
from artemis_py.config.tables.fields import names_of
from artemis_py.config.tables.parts import PARTS
from artemis_py.config.xml.substitution import substitute

REMOVE: Final = "-"
_SURROUND_KEY: Final = "key.surround"
_REMOVE_KEY: Final = "remove.value"


def lay_over(draft: Draft, paths: Sequence[str], environ: Mapping[str, str]) -> None:
    """Read every file of ``paths`` and apply its properties to the draft."""
    for path in expand_paths(list(paths), draft.problems):
        found = read_properties(path, draft.problems)
        options = {each.key: each.value for each in found if each.key in (_SURROUND_KEY, _REMOVE_KEY)}
        overlay = _Overlay(draft, options.get(_SURROUND_KEY, '"'), options.get(_REMOVE_KEY, REMOVE))
        for each in found:
            if each.key not in options:
                overlay.apply(each._replace(value=substitute(each.value, environ).text))
    check_retention(draft)


def split_key(key: str, surround: str) -> list[str]:
    """Split a key at its dots, except those between two ``surround``."""
    segments, inside, current = [], False, ""
    place = 0
    while place < len(key):
        if surround and key.startswith(surround, place):
            inside = not inside
            place += len(surround)
            continue
        if key[place] == "." and not inside:
            segments.append(current)
            current = ""
        else:
            current += key[place]
        place += 1
    return [*segments, current]


@final
class _Overlay:
    def __init__(self, draft: Draft, surround: str, remove: str) -> None:
        self._draft = draft
        self._surround = surround
        self._remove = remove

    def apply(self, given: Property) -> None:
        """Apply one property to the draft."""
        segments = [
            camel(each) if "-" in each and place == 0 else each
            for place, each in enumerate(split_key(given.key, self._surround))
        ]
        try:
            self._apply(segments, given)
        except UnknownKeyError as unknown:
            guess = nearest(unknown.segment, unknown.known)
            what = f"property {given.key} is ignored: {unknown.segment!r} has no meaning there"
            self._draft.problems.warning(
                "left-out", given.origin, what + unless_newer(unknown.segment, guess), suggestion=guess
            )

    def _apply(self, segments: list[str], given: Property) -> None:
        first, remove = segments[0], given.value.strip() == self._remove
        rows = property_names(CoreSettings)
        row = names_of(CoreSettings).get(CORE_BEANS.get(first, "")) or rows.get(first)
        if row is not None and len(segments) == 1:
            set_value(self._draft, row, self._draft.core, given, remove=remove)
        elif first in PART_BEANS:
            part = PARTS[PART_BEANS[first]]
            if not part.silent:
                self._draft.ignore(part.path, given.origin, part.reason)
        elif first in PART_NAMES and len(segments) > 1:
            lay_over_part(self._draft, segments, given, remove=remove)
        elif first == POLICY:
            lay_over_policy(self._draft, segments[1:], given, remove=remove)
        elif first in RETENTION_BEANS and len(segments) == 1:
            lay_over_retention(self._draft, first, given, remove=remove)
        elif first in INTERNAL_BEANS:
            self._draft.ignore(f"property {first}", given.origin, INTERNAL_BEANS[first])
        else:
            raise UnknownKeyError(first, (*rows, *PART_NAMES, *CORE_BEANS, *PART_BEANS, POLICY))
