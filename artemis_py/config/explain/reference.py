"""Writes docs/configuration.md from the tables of settings: ``python -m artemis_py.config.explain.reference``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from artemis_py.config.codes import CODES
from artemis_py.config.explain.reference_text import CODES_NOTE, INTRODUCTION, OUTRO
from artemis_py.config.tables.acceptor_params import HANDSHAKE_SECONDS, PARAMS
from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.core_settings import CoreSettings
from artemis_py.config.tables.entities import DivertConfig, QueueConfig
from artemis_py.config.tables.fields import HONOURED, Setting, settings_of
from artemis_py.config.tables.parts import PARTS
from artemis_py.shown import say_made

_HEADER: Final = ("default", "unit", "allowed", "effect", "meaning")
_QUEUE_NOTE: Final = (
    "`durable`, `filter` and `user` are elements inside the queue; the others are attributes. A default that names "
    "another setting means that address-setting of the queue's address."
)
_KINDS: Final = {"boolean": "true, false", "int": "whole number", "long": "whole number", "double": "number"}


def reference() -> str:
    """Return the whole document."""
    sections = [
        INTRODUCTION,
        _settings_section("Plain elements of `core`", "element", settings_of(CoreSettings).values()),
        _settings_section("Elements of `address-setting`", "element", settings_of(AddressSettings).values()),
        _settings_section("Attributes and elements of `queue`", "attribute", settings_of(QueueConfig).values()),
        _QUEUE_NOTE,
        _settings_section("Elements of `divert`", "element", settings_of(DivertConfig).values()),
        _settings_section("Parameters of acceptors", "parameter", [row for row in PARAMS if not row.silent]),
        _silent_parameters(),
        _parts_section(),
        OUTRO,
        CODES_NOTE,
        _table(("code", "means"), [(f"`{code}`", meaning) for code, meaning in CODES.items()]),
    ]
    return "\n\n".join(sections) + "\n"


def _silent_parameters() -> str:
    names = ", ".join(f"`{row.name}`" for row in PARAMS if row.silent)
    return (
        f"`{HANDSHAKE_SECONDS}` (in seconds) is read as `handshakeTimeout`. Accepted without effect, because they are "
        f"about TLS, Java or other protocols: {names}."
    )


def _settings_section(title: str, first: str, rows: Iterable[Setting]) -> str:
    cells = [_settings_row(row) for row in rows]
    return f"## {title}\n\n{_table((first, *_HEADER), cells)}"


def _settings_row(row: Setting) -> tuple[str, ...]:
    names = f"`{row.name}`"
    if row.aliases:
        names += f" (old: {', '.join(f'`{alias}`' for alias in row.aliases)})"
    return names, row.default_text, row.unit, _allowed(row), _effect(row.treatment, row.reason), row.meaning


def _allowed(row: Setting) -> str:
    if row.choices:
        return ", ".join(row.choices)
    if row.check is not None:
        return row.check.allowed
    if row.kind == "bytes":
        return "size, with or without a unit"
    return _KINDS.get(row.kind, "text")


def _effect(treatment: str, reason: str) -> str:
    return treatment if treatment == HONOURED else f"{treatment}: {reason}"


def _parts_section() -> str:
    cells = [
        (
            f"`{part.path}`" + (" with its content" if part.whole else ""),
            _effect(part.treatment, part.reason),
            part.meaning,
        )
        for part in PARTS.values()
    ]
    return f"## Elements with a structure\n\n{_table(('path below `core`', 'effect', 'meaning'), cells)}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


if __name__ == "__main__":
    say_made(reference(), end="")
