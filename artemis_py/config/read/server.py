"""Reads ``acceptors``, ``security-settings``, ``resource-limit-settings`` and ``wildcard-addresses`` into a draft."""

from __future__ import annotations

import os
from typing import Final

from artemis_py.config.draft import Draft, SecurityDraft, Values
from artemis_py.config.problems import nearest
from artemis_py.config.read.element import Reading
from artemis_py.config.read.uri import UriError, parse_acceptor
from artemis_py.config.security_settings import PERMISSION_ALIASES, PERMISSIONS
from artemis_py.config.tables.entities import CURSOR_TTL_S_DEFAULT, Origin, RetentionConfig, UserLimits, UsersFileConfig
from artemis_py.config.tables.fields import BYTES, INT, POSITIVE, make_setting
from artemis_py.config.tables.parts import PARTS
from artemis_py.config.xml.source import Element, local_name

_PERIOD: Final = make_setting(INT, "period", None, "how long journal files are kept", check=POSITIVE)
_STORAGE_LIMIT: Final = make_setting(BYTES, "storage_limit", None, "how much of them is kept", check=POSITIVE)
_CURSOR_TTL: Final = make_setting(INT, "cursor_ttl", None, "how long a cursor holds files back", check=POSITIVE)
_UNITS_MS: Final = {"DAYS": 86_400_000, "HOURS": 3_600_000, "MINUTES": 60_000, "SECONDS": 1000}
USER_LIMITS: Final = {
    "max-connections": make_setting(INT, "connections_max", -1, "connections of a user", name="max-connections"),
    "max-queues": make_setting(INT, "queues_max", -1, "queues of a user", name="max-queues"),
}
USERS_FILE: Final = "artemis-users.properties"
ROLES_FILE: Final = "artemis-roles.properties"
"""As an instance of Artemis names them; beside broker.xml they are found without being named."""
_FIRST_ROLE: Final = "amq"
_CHARACTERS: Final = {"delimiter": "delimiter", "any-words": "any_words", "single-word": "single_word"}


def read_acceptors(reading: Reading, parent: Element) -> None:
    """Read every ``acceptor``: its URI is parsed here, its parameters are checked later."""
    for element in parent.iterchildren("{*}acceptor"):
        origin = reading.origin(element)
        text = element.text or ""
        try:
            acceptor = parse_acceptor(element.get("name"), text, origin)
        except UriError as problem:
            reading.problems.error(origin, f"acceptor: {problem}", value=text.strip(), allowed=problem.allowed)
            continue
        reading.draft.acceptors.append(acceptor)
        if element.get("lock-coordinator"):
            ignore_lock(reading.draft, origin)


def ignore_lock(draft: Draft, origin: Origin) -> None:
    """Report that an acceptor does not wait for its ``lock-coordinator``."""
    draft.ignore("lock-coordinator of an acceptor", origin, PARTS["acceptors/acceptor/@lock-coordinator"].reason)


def read_security(reading: Reading, parent: Element) -> None:
    """Read permissions and role mappings. Of two settings with the same match the last counts, as in Artemis."""
    for element in parent:
        name = local_name(element)
        if name == "security-setting":
            _read_security_setting(reading, element)
        elif name == "role-mapping":
            outside, inside = element.get("from"), element.get("to")
            if outside is not None and inside is not None:
                roles = [role.strip() for role in str(inside).split(",") if role.strip()]
                reading.draft.role_mappings.append((str(outside).strip(), roles))
        elif name == "security-setting-plugin":
            part = PARTS["security-settings/security-setting-plugin"]
            reading.draft.ignore(name, reading.origin(element), part.reason)


def _read_security_setting(reading: Reading, element: Element) -> None:
    match = element.get("match")
    if match is None:
        return
    origin = reading.origin(element)
    setting = SecurityDraft(str(match), origin)
    for permission in element.iterchildren("{*}permission"):
        kind, roles = permission.get("type"), permission.get("roles")
        if kind is None or roles is None:
            continue
        name = PERMISSION_ALIASES.get(str(kind), str(kind))
        if name not in PERMISSIONS:
            reading.problems.warning(
                "left-out",
                reading.origin(permission),
                "unknown permission is ignored",
                value=str(kind),
                allowed=", ".join(PERMISSIONS),
                suggestion=nearest(str(kind), (*PERMISSIONS, *PERMISSION_ALIASES)),
            )
            continue
        have = setting.roles.setdefault(name, [])
        have.extend(role.strip() for role in str(roles).split(",") if role.strip())
    earlier = reading.draft.security.get(setting.match)
    if earlier is not None:
        reading.problems.warning(
            "declared-twice",
            origin,
            f"a second security-setting for the match {setting.match!r} replaces the one at {earlier.origin}",
        )
    reading.draft.security[setting.match] = setting


def read_wildcards(reading: Reading, parent: Element) -> None:
    """Read ``wildcard-addresses``: only the first character of each text is used, as in Artemis."""
    wildcards = reading.draft.wildcards
    for element in parent:
        name = local_name(element)
        text = element.text or ""
        origin = reading.origin(element)
        if name in _CHARACTERS:
            character = text.strip()
            if not character:
                reading.problems.error(origin, f"{name} must be a character", value=text)
                continue
            if len(character) > 1:
                reading.problems.warning(
                    "doubtful-value",
                    origin,
                    f"only the first character of {name} is used",
                    value=text,
                    allowed="one character",
                )
            wildcards.put(_CHARACTERS[name], character[0], origin)
        elif name == "routing-enabled" or (name == "enabled" and "routing_enabled" not in wildcards.values):
            wildcards.put("routing_enabled", text.strip().lower() == "true", origin)


def read_user_limits(reading: Reading, parent: Element) -> None:
    """Read ``resource-limit-settings``. Of two for the same login the last counts, as in Artemis."""
    for element in parent.iterchildren("{*}resource-limit-setting"):
        match = reading.required_name(element, "match")
        if match is None:
            continue
        limits = Values()
        for child in element:
            name = local_name(child)
            if name in USER_LIMITS:
                reading.element(USER_LIMITS[name], child, limits)
            elif name == "max-sessions":
                reading.ignore_part(PARTS["resource-limit-settings/resource-limit-setting/max-sessions"], child)
        reading.draft.user_limits[match] = UserLimits(**limits.values)


def read_users_file(reading: Reading, element: Element) -> None:
    """Read ``users-file``: the file of the users, the one of their roles, and who the first user is."""
    origin = reading.origin(element)
    users = (element.text or "").strip()
    first_role = element.get("first-role")
    if not users:
        reading.problems.error(origin, "users-file must name a file", allowed=USERS_FILE)
        return
    if first_role is not None and not element.get("first-user"):
        reading.problems.warning(
            "without-limit", origin, "first-role has no effect without first-user", allowed='first-user="admin"'
        )
    reading.draft.users_file = UsersFileConfig(
        users=users,
        roles=(element.get("roles-file") or "").strip() or os.path.join(os.path.dirname(users), ROLES_FILE),
        first_user=(element.get("first-user") or "").strip(),
        first_role=(first_role or "").strip() or _FIRST_ROLE,
        origin=origin,
    )


def read_retention(reading: Reading, element: Element) -> None:
    """Read ``journal-retention-directory``: a directory, and a limit in time or in bytes or both."""
    origin = reading.origin(element)
    period, storage_limit = element.get("period"), element.get("storage-limit")
    limits = Values()
    rows = ((_PERIOD, period), (_STORAGE_LIMIT, storage_limit), (_CURSOR_TTL, element.get("cursor-ttl")))
    for row, text in rows:
        if text is not None:
            reading.attribute(row, element, str(text), limits)
    directory = (element.text or "").strip()
    if not directory:
        reading.problems.error(origin, "journal-retention-directory must name a directory")
    elif period is None and storage_limit is None:
        reading.problems.error(origin, "journal-retention-directory needs the attribute period or storage-limit")
    else:
        unit_ms = _UNITS_MS.get(element.get("unit") or "DAYS", 0)
        count = limits.values.get("period")
        period_ms = None if count is None else count * unit_ms
        reading.draft.retention_origin = origin
        cursor_ttl = limits.values.get("cursor_ttl")
        reading.draft.retention = RetentionConfig(
            directory=directory,
            period_ms=period_ms,
            storage_limit=limits.values.get("storage_limit"),
            cursor_ttl_s=CURSOR_TTL_S_DEFAULT if cursor_ttl is None else cursor_ttl * unit_ms // 1000,
        )
