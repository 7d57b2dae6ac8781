"""The fields of settings and permissions of an address or a queue in lists."""

from __future__ import annotations

from typing import Final, NamedTuple

from artemis_py.config.explain.explanation import Explained
from artemis_py.config.settings import SecuritySetting
from artemis_py.config.tables.fields import show
from artemis_py.management.lists.field import FLAG, TEXT, Field, Kind

SETTINGS: Final[Kind[Explained]] = Kind(
    "setting",
    "settings",
    [
        Field("name", TEXT, "The setting's name", lambda it: it.setting.name, is_brief=True),
        Field("value", TEXT, "Its value", lambda it: show(it.value), is_brief=True),
        Field("unit", TEXT, "The unit of the value; null: it has none", lambda it: it.setting.unit or None),
        Field(
            "match",
            TEXT,
            "The address-setting that decided; null: none did",
            lambda it: it.match,
            is_brief=True,
        ),
        Field(
            "declaredAt",
            TEXT,
            "File and line that decided; an operator did where it says so; null: it is the default",
            lambda it: None if it.origin is None else str(it.origin) if it.origin.line else it.origin.file,
            is_brief=True,
        ),
        Field("isDefault", FLAG, "Did nobody set it?", lambda it: it.origin is None),
        Field("effect", TEXT, "honoured, or ignored", lambda it: it.setting.treatment),
        Field("meaning", TEXT, "What it means", lambda it: it.setting.meaning),
    ],
)


class Granted(NamedTuple):
    """A permission on an address, as one security-setting grants it."""

    permission: str
    setting: SecuritySetting | None

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that have it."""
        return () if self.setting is None else tuple(self.setting.roles.get(self.permission, ()))


ROLES: Final[Kind[Granted]] = Kind(
    "permission",
    "permissions",
    [
        Field("permission", TEXT, "The permission", lambda it: it.permission, is_brief=True),
        Field(
            "roles", TEXT, "The roles that have it, with commas between", lambda it: ",".join(it.roles), is_brief=True
        ),
        Field(
            "match",
            TEXT,
            "The security-setting that decides; null: none matches, so nobody has it",
            lambda it: None if it.setting is None else it.setting.match,
            is_brief=True,
        ),
        Field(
            "declaredAt",
            TEXT,
            "File and line of that security-setting; null: there is none",
            lambda it: None if it.setting is None else str(it.setting.origin),
            is_brief=True,
        ),
    ],
)
