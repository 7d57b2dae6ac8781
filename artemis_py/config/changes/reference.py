"""Writes docs/reload.md: ``python -m artemis_py.config.changes.reference``. Its tables say of each setting when a
running broker uses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from artemis_py.config.changes.change import NOTHING, NOW, RESTART, WHEN_IDLE
from artemis_py.config.changes.effects import QUEUE_ATTRIBUTES, of_address_setting, of_queue_attribute
from artemis_py.config.changes.reference_text import AFTER, BEFORE
from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.entities import QueueConfig
from artemis_py.config.tables.fields import Setting, settings_of
from artemis_py.config.tables.queue_settings import COMPOSED, NAMES, always_waits, parts_of
from artemis_py.shown import say_made

_NOBODY: Final[frozenset[str]] = frozenset()
_WORDS: Final = {
    NOW: "at once",
    WHEN_IDLE: "at once while no consumer holds a message of its groups, else when it is empty and has no consumers",
    RESTART: "restart",
    NOTHING: "not used",
}


def reference() -> str:
    """Return the whole page."""
    queues = [_queue_row(row) for row in settings_of(QueueConfig).values()]
    addresses = [_address_row(row) for row in settings_of(AddressSettings).values()]
    return "\n\n".join(
        (
            BEFORE,
            "### Attributes of a queue",
            _table(("attribute", "in force", "remark"), queues),
            "### Settings of an address",
            "A setting that is a default for queues counts for queues that do not set the attribute themselves.",
            _table(("setting", "in force", "remark"), addresses),
            AFTER,
        )
    )


def _queue_row(row: Setting) -> tuple[str, str, str]:
    effect, note = of_queue_attribute(row.attribute, _NOBODY)
    return f"`{row.name}`", *_when(row.attribute, effect, note)


def _address_row(row: Setting) -> tuple[str, str, str]:
    effect, note = of_address_setting(row.attribute, _NOBODY)
    return f"`{row.name}`", *_when(QUEUE_ATTRIBUTES.get(row.attribute, ""), effect, note)


def _when(attribute: str, effect: str, note: str) -> tuple[str, str]:
    parts = [part.name for part in parts_of(attribute) if part in COMPOSED] if attribute in NAMES else []
    if effect == NOTHING or not parts:
        return _WORDS[effect], "" if effect == WHEN_IDLE else note
    if always_waits(attribute):
        return _WORDS[RESTART], f"the queue is composed of it ({', '.join(parts)})"
    return (
        f"{_WORDS[NOW]}, or restart",
        f"a restart where it changes what the queue is composed of ({', '.join(parts)})",
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [" | ".join(head), " | ".join("---" for _ in head), *(" | ".join(row) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)


if __name__ == "__main__":
    say_made(reference(), end="")
