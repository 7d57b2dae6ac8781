"""One departure from Artemis."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Departure:
    """What Artemis does, what we do, and why. Markdown; ``key`` is how scenarios name it.

    ``shown`` is False where no scenario can show it within the time of a test run.
    """

    key: str
    subject: str
    artemis: str
    ours: str
    why: str
    shown: bool = True
