"""What can go wrong with traces."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from artemis_py.errors import ArtemisError

INSTALL: Final = "in a checkout of artemis_py: pip install '.[otel]' (or with the path of its wheel instead of the dot)"


class TracingError(ArtemisError):
    """A trace cannot be written or read; the text says what to do."""


class CollectorAwayError(TracingError):
    """The collector does not answer, or is too busy."""


def require(package: str, named: str) -> None:
    """Raise TracingError if a package is not installed; ``named`` is how the index of packages calls it."""
    try:
        found = find_spec(package)
    except ModuleNotFoundError:  # the package that would contain it is missing
        found = None
    if found is None:
        raise TracingError(f"{named} is missing: {INSTALL}")
