"""How the reader handles a single element or attribute."""

from __future__ import annotations

from typing import Any, Final, final

from artemis_py.config.draft import Draft, Values
from artemis_py.config.tables.declarations import Origin
from artemis_py.config.tables.fields import (
    BOOLEAN,
    IGNORED,
    REFUSED,
    Setting,
    ValueTextError,
    doubtful_boolean,
    parse_value,
    show,
)
from artemis_py.config.tables.structured_elements import Part
from artemis_py.config.xml.source import Element, Source


@final
class Reading:
    """One tree being read into a draft. Elements and attributes in ``flagged`` were already reported, so they fail
    silently.
    """

    def __init__(self, source: Source, draft: Draft, flagged: set[tuple[Element, str]]) -> None:
        self.source: Final = source
        self.draft: Final = draft
        self.problems: Final = draft.problems
        self._flagged: Final = flagged

    def origin(self, element: Element) -> Origin:
        """Return the place of an element."""
        return self.source.origin(element)

    def element(self, row: Setting, element: Element, into: Values) -> None:
        """Read the text of an element."""
        self._read(row, element, element.text or "", into, is_attribute=False)

    def attribute(self, row: Setting, element: Element, text: str, into: Values) -> None:
        """Read the text of an attribute of ``element``."""
        self._read(row, element, text, into, is_attribute=True)

    def required_name(self, element: Element, attribute: str = "name") -> str | None:
        """Return an attribute that must be present and not empty; None after reporting that it is empty."""
        name = element.get(attribute)
        if name == "":
            self.problems.error(self.origin(element), f"{attribute} must not be empty")
        return str(name) if name else None

    def ignore_part(self, part: Part, element: Element) -> None:
        """Report that a part has no effect, if its presence would make a difference in Artemis."""
        empty = len(element) == 0 and not (element.text or "").strip()
        lacks = part.only_with and element.find(f"{{*}}{part.only_with}") is None
        if not (part.silent or empty or lacks):
            self.draft.ignore(part.path.rpartition("/")[2], self.origin(element), part.reason)

    def _read(self, row: Setting, element: Element, text: str, into: Values, *, is_attribute: bool) -> None:
        origin = self.origin(element)
        try:
            value = parse_value(row, text, is_attribute=is_attribute)
        except ValueTextError as problem:
            if (element, row.name if is_attribute else "") not in self._flagged:
                self.problems.error(origin, f"{row.name} has a wrong value", value=text, allowed=problem.allowed)
            return
        if row.kind == BOOLEAN and doubtful_boolean(text):
            self.draft.doubtful.add(row.attribute)
            message = f"{row.name} is read as false, as in Artemis"
            self.problems.warning("doubtful-value", origin, message, value=text, allowed="true, false")
        into.put(row.attribute, value, origin)
        note_treatment(self.draft, row, value, origin)


def note_treatment(draft: Draft, row: Setting, value: Any, origin: Origin) -> None:
    """Report a refused setting, and note one without effect unless it only repeats its default."""
    if row.treatment == REFUSED:
        draft.problems.error(origin, f"{row.name} is refused: {row.reason}", value=show(value))
    elif row.treatment == IGNORED and not row.silent and show(value) != show(row.default):
        draft.ignore_setting(row, origin)
