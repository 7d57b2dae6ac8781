"""``HAPolicyConfiguration``: the part of this broker in a pair, as properties of Artemis."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from artemis_py.config.draft import Draft, Values
from artemis_py.config.overlay.properties_file import Property
from artemis_py.config.overlay.values import UnknownKeyError, left_out, property_names, set_value
from artemis_py.config.tables.parts import PARTS
from artemis_py.config.tables.shared_store import SharedStoreConfig

BEAN: Final = "HAPolicyConfiguration"
_ROLES: Final = {"SHARED_STORE_PRIMARY": False, "SHARED_STORE_BACKUP": True}
_WITHOUT: Final = {
    "PRIMARY_ONLY": "ha-policy/primary-only",
    "REPLICATION_PRIMARY_QUORUM_VOTING": "ha-policy/replication",
    "REPLICATION_BACKUP_QUORUM_VOTING": "ha-policy/replication",
    "REPLICATION_PRIMARY_LOCK_MANAGER": "ha-policy/replication",
    "REPLICATION_BACKUP_LOCK_MANAGER": "ha-policy/replication",
    "COLOCATED": "ha-policy/shared-store/colocated",
}
_ODD: Final = {"failoverOnServerShutdown": "failover-on-shutdown", "allowFailBack": "allow-failback"}
"""Properties whose names differ from those of the elements."""


def lay_over_policy(draft: Draft, path: list[str], given: Property, *, remove: bool) -> None:
    """Apply one property: the policy itself, or with a ``path`` a setting of it. Raises UnknownKeyError."""
    if path:
        _lay_over_setting(draft, path, given, remove=remove)
    elif remove:
        draft.shared_store = None
    elif given.value.strip() in _ROLES:
        is_backup = _ROLES[given.value.strip()]
        draft.shared_store = SharedStoreConfig(is_backup=is_backup, origin=given.origin)
    elif given.value.strip() in _WITHOUT:
        part = PARTS[_WITHOUT[given.value.strip()]]
        draft.ignore(BEAN, given.origin, part.reason)
    else:
        left_out(draft, given, ", ".join((*_ROLES, *_WITHOUT)))


def _lay_over_setting(draft: Draft, path: list[str], given: Property, *, remove: bool) -> None:
    rows = property_names(SharedStoreConfig)
    row = next((row for row in rows.values() if row.name == _ODD.get(path[0])), rows.get(path[0]))
    if len(path) > 1 or row is None:
        raise UnknownKeyError(".".join(path), (*rows, *_ODD))
    if draft.shared_store is None:
        return  # a setting of a policy that has no effect
    values = Values()
    set_value(draft, row, values, given, remove=remove)
    changes: dict[str, Any] = {row.attribute: row.default} if remove else values.values
    draft.shared_store = replace(draft.shared_store, **changes)
