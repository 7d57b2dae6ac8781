"""Reads the elements of broker.xml into a draft: single values; what concerns the server as a whole (``acceptors``,
``security-settings``, ``authentication``, ``users-file``, ``resource-limit-settings``, ``wildcard-addresses``,
``journal-retention-directory``, ``ha-policy``); ``address-settings``, ``addresses``, the old ``queues``, ``diverts``,
``connectors`` and ``bridges``.
"""

from __future__ import annotations

import os
import re
from typing import Any, Final, final
from urllib.parse import unquote, unquote_plus

from artemis_py.config.draft import AcceptorDraft, BridgeDraft, Draft, NamedDraft, QueueDraft, SecurityDraft, Values
from artemis_py.config.problems import nearest
from artemis_py.config.security_settings import PERMISSION_ALIASES, PERMISSIONS
from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.bridges import BridgeConfig
from artemis_py.config.tables.declarations import (
    ANYCAST,
    CURSOR_TTL_S_DEFAULT,
    MULTICAST,
    POLICY_ROLES,
    AuthenticatorConfig,
    DivertConfig,
    JaasConfig,
    Origin,
    QueueConfig,
    RetentionConfig,
    SharedStoreConfig,
    UserLimits,
    UsersFileConfig,
)
from artemis_py.config.tables.fields import (
    BOOLEAN,
    BYTES,
    IGNORED,
    INT,
    POSITIVE,
    REFUSED,
    TEXT,
    Setting,
    ValueTextError,
    doubtful_boolean,
    make_setting,
    names_of,
    parse_value,
    settings_of,
    show,
)
from artemis_py.config.tables.structured_elements import PARTS, Part
from artemis_py.config.xml.source import Element, Source, load_text, local_name, relative_to

# ---- single values ---------------------------------------------------------------------------------------------------


@final
class Reading:
    """One tree being read into a draft. Elements and attributes in ``flagged`` were already reported, so they fail
    silently.
    """

    def __init__(self, source: Source, draft: Draft, flagged: set[tuple[Element, str]]) -> None:
        self.source: Final = source
        self.draft: Final = draft
        self.problems: Final = draft.problems
        self._flagged: Final = flagged

    def origin(self, element: Element) -> Origin:
        """Return the place of an element."""
        return self.source.origin(element)

    def element(self, row: Setting, element: Element, into: Values) -> None:
        """Read the text of an element."""
        self._read(row, element, element.text or "", into, is_attribute=False)

    def attribute(self, row: Setting, element: Element, text: str, into: Values) -> None:
        """Read the text of an attribute of ``element``."""
        self._read(row, element, text, into, is_attribute=True)

    def required_name(self, element: Element, attribute: str = "name") -> str | None:
        """Return an attribute that must be present and not empty; None after reporting that it is empty."""
        name = element.get(attribute)
        if name == "":
            self.problems.error(self.origin(element), f"{attribute} must not be empty")
        return str(name) if name else None

    def ignore_part(self, part: Part, element: Element) -> None:
        """Report that a part has no effect, if its presence would make a difference in Artemis."""
        empty = len(element) == 0 and not (element.text or "").strip()
        lacks = part.only_with and element.find(f"{{*}}{part.only_with}") is None
        if not (part.silent or empty or lacks):
            self.draft.ignore(part.path.rpartition("/")[2], self.origin(element), part.reason)

    def _read(self, row: Setting, element: Element, text: str, into: Values, *, is_attribute: bool) -> None:
        origin = self.origin(element)
        try:
            value = parse_value(row, text, is_attribute=is_attribute)
        except ValueTextError as problem:
            if (element, row.name if is_attribute else "") not in self._flagged:
                self.problems.error(origin, f"{row.name} has a wrong value", value=text, allowed=problem.allowed)
            return
        if row.kind == BOOLEAN and doubtful_boolean(text):
            self.draft.doubtful.add(row.attribute)
            message = f"{row.name} is read as false, as in Artemis"
            self.problems.warning("doubtful-value", origin, message, value=text, allowed="true, false")
        into.put(row.attribute, value, origin)
        note_treatment(self.draft, row, value, origin)


def note_treatment(draft: Draft, row: Setting, value: Any, origin: Origin) -> None:
    """Report a refused setting, and note one without effect unless it only repeats its default."""
    if row.treatment == REFUSED:
        draft.problems.error(origin, f"{row.name} is refused: {row.reason}", value=show(value))
    elif row.treatment == IGNORED and not row.silent and show(value) != show(row.default):
        draft.ignore_setting(row, origin)


# ---- the server ------------------------------------------------------------------------------------------------------

_PERIOD: Final = make_setting(INT, "period", None, "how long journal files are kept", check=POSITIVE)
_STORAGE_LIMIT: Final = make_setting(BYTES, "storage_limit", None, "how much of them is kept", check=POSITIVE)
_CURSOR_TTL: Final = make_setting(INT, "cursor_ttl", None, "how long a cursor holds files back", check=POSITIVE)
_UNITS_MS: Final = {"DAYS": 86_400_000, "HOURS": 3_600_000, "MINUTES": 60_000, "SECONDS": 1000}
_USER_LIMITS: Final = {
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
            acceptor = parse_uri(element.get("name"), text, origin)
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
            if name in _USER_LIMITS:
                reading.element(_USER_LIMITS[name], child, limits)
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


# ---- the URI of an acceptor ----------------------------------------------------------------------
#
# Parsed as liberally as Artemis does: all blanks are removed, ``;`` means ``&``, and only the first URI of ``(a,b)?c``
# is used. Names and values of parameters are decoded twice (as part of a URI, then as part of a form). If a parameter
# is given twice, the last value counts.

_SCHEMES: Final = ("tcp", "vm")

_URI: Final = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?:[^/?#@]*@)?(?P<host>\[[0-9A-Fa-f:.%]*\]|[^/?#:\[\]]*)"
    r"(?::(?P<port>[^/?#]*))?(?P<path>/[^?#]*)?(?:\?(?P<query>[^#]*))?(?:#.*)?"
)
_LEGAL: Final = re.compile(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2}|[^\x00-\x7f])*")
_BLANKS: Final = re.compile(r"\s+")
_GROUP: Final = re.compile(r"\(([^,()]*)[^()]*\)(\?.*)?")

_EXAMPLE: Final = "tcp://host:port?parameter=value"


class UriError(Exception):
    """A text is not the URI of an acceptor or connector."""

    def __init__(self, message: str, allowed: str = _EXAMPLE) -> None:
        super().__init__(message)
        self.allowed = allowed


def parse_uri(name: str | None, text: str, origin: Origin) -> AcceptorDraft:
    """Return the parts of an acceptor or connector. Raises UriError."""
    compact = _BLANKS.sub("", text).replace(";", "&")
    group = _GROUP.fullmatch(compact)
    if group is not None:
        compact = group[1] + (group[2] or "")
    if not compact:
        raise UriError("the URI is empty")
    found = _URI.fullmatch(compact) if _LEGAL.fullmatch(compact) else None
    if found is None:
        raise UriError("this is not a URI")
    scheme = found["scheme"]
    if scheme not in _SCHEMES:
        raise UriError(f"unknown scheme {scheme!r}")
    host = found["host"].removeprefix("[").removesuffix("]")
    if scheme == "vm":
        return AcceptorDraft(name or f"vm://{host}", origin, scheme, host, 0)
    if not host:
        raise UriError("the host is missing")
    port = _port(found["port"])
    params = _parse_query(found["query"] or "")
    acceptor = AcceptorDraft(name or f"tcp://{found['host']}:{port}", origin, scheme, host, port, params)
    acceptor.param_origins = dict.fromkeys(params, origin)
    return acceptor


def _port(text: str | None) -> int:
    if not text:
        raise UriError("the port is missing")
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise UriError(f"wrong port {text}", "a port from 0 to 65535 (0: any free one)")
    return int(text)


def _parse_query(query: str) -> dict[str, str]:
    """Return the parameters of a query that is not yet decoded; a parameter without ``=`` has an empty value."""
    params: dict[str, str] = {}
    for part in unquote(query).split("&"):
        key, _, value = part.partition("=")
        if key:
            params[unquote_plus(key)] = unquote_plus(value)
    return params


# ---- ha-policy -----------------------------------------------------------------------------------


def read_ha_policy(reading: Reading, parent: Element) -> None:
    """Read the element: only ``shared-store`` with a primary or a backup has an effect."""
    for policy in parent:
        name = local_name(policy)
        if name != "shared-store":
            _ignore(reading, f"ha-policy/{name}", policy)
            continue
        for element in policy:
            role = local_name(element)
            if role in POLICY_ROLES:
                _read_role(reading, element, is_backup=POLICY_ROLES[role])
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


# ---- authentication: a login.config, and authenticators with their options -----------------------

_DOMAIN_DEFAULT: Final = "activemq"
_SECRET_LENGTH_MAX: Final = 65536


def read_authentication(reading: Reading, parent: Element) -> None:
    """Read the element. Paths in it are relative to the file it stands in."""
    origin = reading.origin(parent)
    path = parent.get("login-config")
    if path is not None:
        reading.draft.jaas = JaasConfig(
            file=relative_to(origin.file, str(path)),
            domain=str(parent.get("domain") or _DOMAIN_DEFAULT),
            certificate_domain=str(parent.get("certificate-domain") or "") or None,
            origin=origin,
        )
    elif parent.get("domain") is not None or parent.get("certificate-domain") is not None:
        reading.problems.error(origin, "authentication names a domain, but no login-config that has it")
    for element in parent.iterchildren("{*}authenticator"):
        name = reading.required_name(element)
        if name is not None:
            options = _options(reading, element)
            reading.draft.authenticators.append(
                AuthenticatorConfig(name=name, options=options, origin=reading.origin(element))
            )


def _options(reading: Reading, parent: Element) -> dict[str, str]:
    options: dict[str, str] = {}
    for element in parent.iterchildren("{*}option"):
        name = reading.required_name(element)
        value, file = element.get("value"), element.get("file")
        if name is None:
            continue
        origin = reading.origin(element)
        if name in options:
            reading.problems.error(origin, f"option {name} is given twice")
        elif (value is None) == (file is None):
            reading.problems.error(origin, f"option {name} needs a value, or a file with the value, and not both")
        elif value is not None:
            options[name] = str(value)
        else:
            options[name] = _content(reading, element, str(file))
    return options


def _content(reading: Reading, element: Element, file: str) -> str:
    """Return the first line of a file: a secret that is in no configuration."""
    origin = reading.origin(element)
    text = load_text(os.path.abspath(relative_to(origin.file, file)), origin, reading.problems)
    if text is not None and len(text) > _SECRET_LENGTH_MAX:
        reading.problems.error(origin, f"{file} is too long for an option")
    return (text or "").partition("\n")[0]


# ---- addresses, queues, diverts --------------------------------------------------------------------------------------

_ROUTING_TYPES: Final = {"anycast": ANYCAST, "multicast": MULTICAST}
_PREFETCH: Final = ("prefetch_page_messages", "prefetch_page_bytes")


def read_address_settings(reading: Reading, parent: Element) -> None:
    """Read every ``address-setting``. Of two with the same match the first counts; the other is ignored entirely."""
    for element in parent.iterchildren("{*}address-setting"):
        match = element.get("match")
        if match is None:
            continue
        origin = reading.origin(element)
        entry = NamedDraft(str(match).partition("::")[0], origin)
        _read_entry(reading, element, entry.written)
        first = reading.draft.entries.setdefault(entry.name, entry)
        if first is not entry:
            reading.problems.warning(
                "declared-twice",
                origin,
                f"a second address-setting for the match {entry.name!r} is ignored; the one at {first.origin} counts",
            )


def _read_entry(reading: Reading, element: Element, written: Values) -> None:
    rows = names_of(AddressSettings)
    for child in element:
        row = rows.get(local_name(child))
        if row is not None:
            reading.element(row, child, written)
    drop_unset(written)


def drop_unset(written: Values) -> None:
    """Remove values that Artemis treats as "not set": they do not stop inheritance."""
    for attribute in _PREFETCH:
        if written.values.get(attribute, 1) <= 0:
            written.remove(attribute)
    if written.values.get("page_size_bytes", 1) < 0:
        written.remove("page_size_bytes")
    for attribute in ("dead_letter_address", "expiry_address"):
        if written.values.get(attribute) == "":
            written.values[attribute] = None


def read_addresses(reading: Reading, parent: Element) -> None:
    """Read every ``address`` with its queues."""
    for element in parent.iterchildren("{*}address"):
        name = reading.required_name(element)
        if name is None:
            continue
        origin = reading.origin(element)
        if name in reading.draft.addresses:
            reading.problems.warning(
                "declared-twice", origin, f"address {name!r} is declared again; both declarations are merged"
            )
        address = reading.draft.address(name, origin)
        if len(element) == 0 and element.text is None:
            reading.problems.error(
                origin, f"address {name!r} has no routing type", allowed="<anycast/> or <multicast/> or both inside"
            )
        for kind in element:
            routing_type = _ROUTING_TYPES.get(local_name(kind))
            if routing_type is None:
                continue
            if routing_type not in address.routing_types:
                address.routing_types.append(routing_type)
            for queue in kind.iterchildren("{*}queue"):
                _read_queue(reading, queue, name, routing_type)


def _read_queue(reading: Reading, element: Element, address: str, routing_type: str) -> None:
    """Read one ``queue``. If its name is already taken, the queue is ignored with a warning, as in Artemis."""
    full_name = reading.required_name(element)
    if full_name is None:
        return
    origin = reading.origin(element)
    queue = QueueDraft(full_name.rpartition("::")[2], address, routing_type, origin)
    rows = settings_of(QueueConfig)
    for name, text in element.attrib.items():
        row = rows.get(str(name))
        if row is not None and row.name not in ("durable", "filter", "user"):
            reading.attribute(row, element, str(text), queue.written)
    for child in element:
        row = rows.get(local_name(child))
        if row is not None and row.name in ("durable", "filter", "user"):
            _read_child(reading, row, child, queue.written)
    if not reading.draft.add_queue(queue):
        other = reading.draft.queues[queue.name]
        reading.problems.warning(
            "declared-twice",
            origin,
            f"queue {queue.name!r} is ignored: address {other.address!r} already has a queue of that name at "
            f"{other.origin}",
        )


def _read_child(reading: Reading, row: Setting, child: Element, written: Values) -> None:
    if row.name == "filter":
        text = child.get("string")
        if text is not None:
            _read_filter(reading, row, child, str(text), written)
    else:
        reading.element(row, child, written)


def _read_filter(reading: Reading, row: Setting, element: Element, text: str, written: Values) -> None:
    """Read a selector; a blank text means none."""
    if row.kind == TEXT and text.strip():
        reading.attribute(row, element, text, written)


def read_old_queues(reading: Reading, parent: Element) -> None:
    """Read the deprecated element ``queues``: every queue is multicast, on the address named inside or of its own
    name.
    """
    reading.problems.warning(
        "old-form",
        reading.origin(parent),
        "the element queues is deprecated, and its queues are multicast; write addresses instead",
    )
    for element in parent.iterchildren("{*}queue"):
        inside = element.find("{*}address")
        name = element.get("name")
        address = (inside.text or "").strip() if inside is not None else name
        if not address:
            continue
        draft = reading.draft.address(address, reading.origin(element))
        if MULTICAST not in draft.routing_types:
            draft.routing_types.append(MULTICAST)
        _read_queue(reading, element, address, MULTICAST)


def read_diverts(reading: Reading, parent: Element) -> None:
    """Read every ``divert``; two with the same name are an error."""
    rows = settings_of(DivertConfig)
    for element in parent.iterchildren("{*}divert"):
        name = reading.required_name(element)
        if name is None:
            continue
        origin = reading.origin(element)
        divert = NamedDraft(name, origin)
        for child in element:
            child_name = local_name(child)
            part = PARTS.get(f"diverts/divert/{child_name}")
            row = rows.get(child_name)
            if row is not None:
                _read_child(reading, row, child, divert.written)
            elif part is not None:
                reading.ignore_part(part, child)
        first = reading.draft.diverts.setdefault(name, divert)
        if first is not divert:
            reading.problems.error(origin, f"two diverts are named {name!r}; the other one is at {first.origin}")


# ---- bridges ---------------------------------------------------------------------------------------------------------


def read_connectors(reading: Reading, parent: Element) -> None:
    """Read every ``connector``. Its URI is parsed when a bridge refers to it: Artemis' own files have connectors for
    protocols that are not spoken here.
    """
    for element in parent.iterchildren("{*}connector"):
        name = reading.required_name(element)
        if name is None:
            continue
        origin = reading.origin(element)
        first = reading.draft.connectors.setdefault(name, (element.text or "", origin))
        if first[1] is not origin:
            reading.problems.error(origin, f"two connectors are named {name!r}; the other one is at {first[1]}")


def read_bridges(reading: Reading, parent: Element) -> None:
    """Read every ``bridge``; two with the same name are an error."""
    rows = settings_of(BridgeConfig)
    for element in parent.iterchildren("{*}bridge"):
        name = reading.required_name(element)
        if name is None:
            continue
        bridge = BridgeDraft(name, reading.origin(element))
        for child in element:
            child_name = local_name(child)
            part = PARTS.get(f"bridges/bridge/{child_name}")
            row = rows.get(child_name)
            if row is not None:
                _read_child(reading, row, child, bridge.written)
            elif child_name == "static-connectors":
                for ref in child.iterchildren("{*}connector-ref"):
                    bridge.connectors.append(((ref.text or "").strip(), reading.origin(ref)))
            elif part is not None and part.treatment == REFUSED:
                what = f"bridge {name!r}: {child_name} is refused: {part.reason}"
                reading.problems.error(reading.origin(child), what)
            elif part is not None:
                reading.ignore_part(part, child)
        first = reading.draft.bridges.setdefault(name, bridge)
        if first is not bridge:
            reading.problems.error(bridge.origin, f"two bridges are named {name!r}; the other one is at {first.origin}")
