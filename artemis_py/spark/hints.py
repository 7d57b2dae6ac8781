"""Hints for an unknown name."""

from __future__ import annotations

from collections.abc import Collection

from artemis_py.config.problems import nearest


def hint(name: str, known: Collection[str]) -> str:
    """The probably intended name, or all known names."""
    meant = nearest(name, known)
    return f"known are {', '.join(known)}" if meant is None else f"did you mean {meant}?"
