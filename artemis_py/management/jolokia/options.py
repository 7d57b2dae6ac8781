"""What a client of Jolokia wants to be otherwise, in the query or in ``config``. Unknown names mean nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Options:
    """The options; 0 is no limit."""

    depth_max: int = 0
    collection_size_max: int = 0
    ignores_errors: bool = False
    has_request: bool = True
    is_canonical: bool = True
    uses_cache: bool = False
    mime_type: str = ""

    def changed(self, given: Mapping[str, Any]) -> Options:
        """The same with those that are given."""
        changes = {name: convert(given[known]) for known, (name, convert) in _KNOWN.items() if known in given}
        return replace(self, **changes)


def _number(value: Any) -> int:
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _flag(value: Any) -> bool:
    return value is True or str(value).lower() == "true"


_KNOWN: Final[dict[str, tuple[str, Callable[[Any], Any]]]] = {
    "maxDepth": ("depth_max", _number),
    "maxCollectionSize": ("collection_size_max", _number),
    "ignoreErrors": ("ignores_errors", _flag),
    "includeRequest": ("has_request", _flag),
    "canonicalNaming": ("is_canonical", _flag),
    "listCache": ("uses_cache", _flag),
    "mimeType": ("mime_type", str),
}
