"""Reads ``ha-policy``, and the properties that Artemis has for it."""

from __future__ import annotations

from artemis_py.config.draft import Values
from artemis_py.config.read.element import Reading
from artemis_py.config.tables.fields import names_of
from artemis_py.config.tables.parts import PARTS
from artemis_py.config.tables.shared_store import ROLES, SharedStoreConfig
from artemis_py.config.xml.source import Element, local_name


def read_ha_policy(reading: Reading, parent: Element) -> None:
    """Read the element: only ``shared-store`` with a primary or a backup has an effect."""
    for policy in parent:
        name = local_name(policy)
        if name != "shared-store":
            _ignore(reading, f"ha-policy/{name}", policy)
            continue
        for element in policy:
            role = local_name(element)
            if role in ROLES:
                _read_role(reading, element, is_backup=ROLES[role])
            else:
                _ignore(reading, f"ha-policy/{name}/{role}", element)


def _read_role(reading: Reading, element: Element, *, is_backup: bool) -> None:
    rows, values = names_of(SharedStoreConfig), Values()
    for child in element:
        name = local_name(child)
        if name in rows:
            reading.element(rows[name], child, values)
        else:
            _ignore(reading, f"ha-policy/shared-store/backup/{name}", child)
    reading.draft.shared_store = SharedStoreConfig(is_backup=is_backup, origin=reading.origin(element), **values.values)


def _ignore(reading: Reading, path: str, element: Element) -> None:
    if path in PARTS:  # the XSD says what else may not be there
        reading.ignore_part(PARTS[path], element)
