"""What to say about a name that is not known."""

from __future__ import annotations

from collections.abc import Collection

from artemis_py.config.problems import nearest


def hint(name: str, known: Collection[str]) -> str:
    """The name that was probably meant, or the names that there are."""
    meant = nearest(name, known)
    return f"known are {', '.join(known)}" if meant is None else f"did you mean {meant}?"
