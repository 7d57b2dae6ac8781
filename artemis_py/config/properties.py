"""Applies ``broker.properties`` to a configuration read from XML.

Keys are those of Artemis: the path of a setting, with element names in camel case (``globalMaxSize=10M``,
``addressSettings."orders.#".maxSizeBytes=1G``). A name with dots is in quotes. The value ``-`` removes what the path
names. Unknown keys and wrong values are ignored with a warning; they never stop a broker.

Artemis names properties after the setters of its classes. The tables of ``…_BEANS`` have the names that differ from the
element's in camel case. They come from Artemis up to 2.57 and were tried on its parser; ``tests/unit/config/beans.txt``
has the whole list.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, final
from urllib.parse import quote, quote_plus

from artemis_py.config.draft import AcceptorDraft, BridgeDraft, Draft, NamedDraft, QueueDraft, SecurityDraft, Values
from artemis_py.config.elements import UriError, drop_unset, ignore_lock, note_treatment, parse_uri
from artemis_py.config.problems import nearest, unless_newer
from artemis_py.config.properties_file import Property, expand_paths, read_properties
from artemis_py.config.security_settings import PERMISSION_ALIASES, PERMISSIONS
from artemis_py.config.tables.address_settings import ROUTING_TYPES, AddressSettings
from artemis_py.config.tables.bridges import BridgeConfig
from artemis_py.config.tables.core_settings import CoreSettings
from artemis_py.config.tables.declarations import (
    CURSOR_TTL_S_DEFAULT,
    MULTICAST,
    DivertConfig,
    QueueConfig,
    RetentionConfig,
    SharedStoreConfig,
    UserLimits,
)
from artemis_py.config.tables.fields import (
    BOOLEAN,
    BYTES,
    LONG,
    POSITIVE,
    TEXT,
    Setting,
    ValueTextError,
    make_setting,
    names_of,
    parse_value,
)
from artemis_py.config.tables.structured_elements import PARTS
from artemis_py.config.xml.source import substitute
from artemis_py.units import parse_bytes, parse_long

CORE_BEANS: Final = {
    "connectionTTLOverride": "connection-ttl-override",
    "enabledAsyncConnectionExecution": "async-connection-execution-enabled",
    "IDCacheSize": "id-cache-size",
    "iDCacheSize": "id-cache-size",
    "JMXDomain": "jmx-domain",
    "JMXManagementEnabled": "jmx-management-enabled",
    "JMXNotificationEnabled": "jmx-notification-enabled",
    "JMXUseBrokerName": "jmx-use-broker-name",
    "journalBufferSize_AIO": "journal-buffer-size",
    "journalBufferSize_NIO": "journal-buffer-size",
    "journalBufferTimeout_AIO": "journal-buffer-timeout",
    "journalBufferTimeout_NIO": "journal-buffer-timeout",
    "journalMaxIO_AIO": "journal-max-io",
    "journalMaxIO_NIO": "journal-max-io",
    "networCheckNIC": "network-check-NIC",
    "pageMaxConcurrentIO": "page-max-concurrent-io",
    "persistIDCache": "persist-id-cache",
    "wildcardRoutingEnabled": "wild-card-routing-enabled",
}
"""Plain settings: property to element."""

PART_BEANS: Final = {
    "AMQPConnectionConfigurations": "broker-connections",
    "AMQPConnections": "broker-connections",
    "broadcastGroupConfigurations": "broadcast-groups",
    "brokerPlugins": "broker-plugins",
    "clusterConfigurations": "cluster-connections",
    "connectionRouters": "connection-routers",
    "connectorServiceConfigurations": "connector-services",
    "discoveryGroupConfigurations": "discovery-groups",
    "federationConfigurations": "federations",
    "groupingHandlerConfiguration": "grouping-handler",
    "incomingInterceptorClassNames": "remoting-incoming-interceptors",
    "lockCoordinatorConfigurations": "lock-coordinators",
    "metricsConfiguration": "metrics",
    "metricsPlugin": "metrics-plugin",
    "outgoingInterceptorClassNames": "remoting-outgoing-interceptors",
    "securitySettingPlugins": "security-settings/security-setting-plugin",
    "storeConfiguration": "store",
}
"""Structures without effect here: property to element."""

_OF_ARTEMIS_ITSELF: Final = "it is internal to Artemis"

INTERNAL_BEANS: Final = {
    "brokerInstance": _OF_ARTEMIS_ITSELF,
    "brokerPropertiesKeySurround": "write key.surround in the properties file instead",
    "checkForPrimaryServer": "this broker is a single node",
    "configurationUrl": _OF_ARTEMIS_ITSELF,
    "failoverOnServerShutdown": "write HAPolicyConfiguration.failoverOnServerShutdown instead",
    "federationDownstreamAuthorization": "this version has no federation",
    "fileDeployerScanPeriod": "it has no effect in Artemis either",
    "jaasConfigs": "logins are configured in login.config, or in the element authentication",
    "journalMaxAtticFiles": "journal files without live records are deleted or retained, never reused",
    "status": _OF_ARTEMIS_ITSELF,
}
"""Properties of Artemis that have no element, with the reason why they have no effect here."""

SETTING_BEANS: Final = {
    "addressFullMessagePolicy": "address-full-policy",
    "diskFullMessagePolicy": "disk-full-policy",
    "IDCacheSize": "id-cache-size",
    "iDCacheSize": "id-cache-size",
    "pageCacheMaxSize": "page-max-cache-size",
    "pageFullMessagePolicy": "page-full-policy",
    "queuePrefetch": "default-consumer-window-size",
    "redeliveryMultiplier": "redelivery-delay-multiplier",
    "sendToDLAOnNoRoute": "send-to-dla-on-no-route",
}
"""Properties of address-settings. ``queuePrefetch`` limits clients of OpenWire, which this broker does not support."""

QUEUE_BEANS: Final = {"filterString": "filter"}
"""Properties of queues and diverts."""

BRIDGE_BEANS: Final = {"filterString": "filter", "HA": "ha"}
"""Properties of bridges."""

_QUIET_BRIDGE_BEANS: Final = ("name", "parentName", "configurationManaged", "callTimeout", "discoveryGroupName")

QUIET_QUEUE_BEANS: Final = (
    "address", "autoCreateAddress", "autoCreated", "configurationManaged", "id", "internal", "name", "temporary",
    "transient",
)  # fmt: skip
"""Properties that Artemis uses internally, or that the property's path already gives."""

_BY_SETTINGS: Final = "address-settings decide when queues are deleted automatically"

IGNORED_QUEUE_BEANS: Final = {
    "autoDelete": _BY_SETTINGS,
    "autoDeleteDelay": _BY_SETTINGS,
    "autoDeleteMessageCount": _BY_SETTINGS,
    "consumerPriority": "each consumer sets its own priority",
}
"""Properties of queues without effect here, each with its reason."""


_REMOVE: Final = "-"
_SURROUND_KEY: Final = "key.surround"
_REMOVE_KEY: Final = "remove.value"


def lay_over(draft: Draft, paths: Sequence[str], environ: Mapping[str, str]) -> None:
    """Read every file of ``paths`` and apply its properties to the draft."""
    for path in expand_paths(list(paths), draft.problems):
        found = read_properties(path, draft.problems)
        options = {each.key: each.value for each in found if each.key in (_SURROUND_KEY, _REMOVE_KEY)}
        overlay = _Overlay(draft, options.get(_SURROUND_KEY, '"'), options.get(_REMOVE_KEY, _REMOVE))
        for each in found:
            if each.key not in options:
                overlay.apply(each._replace(value=substitute(each.value, environ).text))
    _check_retention(draft)


def _split_key(key: str, surround: str) -> list[str]:
    """Split a key at its dots, except those between two ``surround``."""
    segments, inside, current = [], False, ""
    place = 0
    while place < len(key):
        if surround and key.startswith(surround, place):
            inside = not inside
            place += len(surround)
            continue
        if key[place] == "." and not inside:
            segments.append(current)
            current = ""
        else:
            current += key[place]
        place += 1
    return [*segments, current]


@final
class _Overlay:
    def __init__(self, draft: Draft, surround: str, remove: str) -> None:
        self._draft = draft
        self._surround = surround
        self._remove = remove

    def apply(self, given: Property) -> None:
        """Apply one property to the draft."""
        segments = [
            camel(each) if "-" in each and place == 0 else each
            for place, each in enumerate(_split_key(given.key, self._surround))
        ]
        try:
            self._apply(segments, given)
        except _UnknownKeyError as unknown:
            guess = nearest(unknown.segment, unknown.known)
            what = f"property {given.key} is ignored: {unknown.segment!r} has no meaning there"
            self._draft.problems.warning(
                "left-out", given.origin, what + unless_newer(unknown.segment, guess), suggestion=guess
            )

    def _apply(self, segments: list[str], given: Property) -> None:
        first, remove = segments[0], given.value.strip() == self._remove
        rows = property_names(CoreSettings)
        row = names_of(CoreSettings).get(CORE_BEANS.get(first, "")) or rows.get(first)
        if row is not None and len(segments) == 1:
            _set_value(self._draft, row, self._draft.core, given, remove=remove)
        elif first in PART_BEANS:
            part = PARTS[PART_BEANS[first]]
            if not part.silent:
                self._draft.ignore(part.path, given.origin, part.reason)
        elif first in _PARTS and len(segments) > 1:
            _PARTS[first](self._draft, segments[1:], given, remove)
        elif first == _POLICY:
            _lay_over_policy(self._draft, segments[1:], given, remove=remove)
        elif first in _RETENTION_BEANS and len(segments) == 1:
            _lay_over_retention(self._draft, first, given, remove=remove)
        elif first in INTERNAL_BEANS:
            self._draft.ignore(f"property {first}", given.origin, INTERNAL_BEANS[first])
        else:
            raise _UnknownKeyError(first, (*rows, *_PARTS, *CORE_BEANS, *PART_BEANS, _POLICY))


# ---- one property: its name becomes a setting, its text a value ----------------------------------

_TRUE_WORDS: Final = ("true", "yes", "y", "on", "1")


class _UnknownKeyError(Exception):
    """A segment of a key is unknown; ``known`` are the valid names."""

    def __init__(self, segment: str, known: Sequence[str]) -> None:
        super().__init__(segment)
        self.segment = segment
        self.known = known


def camel(name: str) -> str:
    """Turn the name of an element into that of a property: ``max-size-bytes`` into ``maxSizeBytes``."""
    first, *others = name.split("-")
    return first + "".join(part[:1].upper() + part[1:] for part in others)


@functools.cache
def property_names(table: type) -> Mapping[str, Setting]:
    """Return the rows of a table by the names of their properties."""
    return {camel(name): row for name, row in names_of(table).items()}


def _set_value(draft: Draft, row: Setting, into: Values, given: Property, *, remove: bool) -> None:
    """Give a setting the value of a property; a wrong value is a warning. Sizes and 64-bit numbers take units."""
    if remove:
        into.remove(row.attribute)
        return
    try:
        value: Any = _value_of(row, given.value)
    except ValueTextError as problem:
        _left_out(draft, given, problem.allowed)
        return
    into.put(row.attribute, value, given.origin)
    note_treatment(draft, row, value, given.origin)


def _left_out(draft: Draft, given: Property, allowed: str | None) -> None:
    """Warn of a property with a wrong value; ``allowed`` are the valid ones."""
    draft.problems.warning(
        "left-out", given.origin, f"{given.key} is ignored: wrong value", value=given.value, allowed=allowed
    )


def _value_of(row: Setting, text: str) -> Any:
    """Return the value of a property's text. As in Artemis, and unlike in XML, numbers may have units, and ``yes``,
    ``y``, ``on`` and ``1`` are true. Raises ValueTextError.
    """
    if row.kind == BOOLEAN:
        return text.strip().lower() in _TRUE_WORDS
    if row.kind in (BYTES, LONG):
        with suppress(ValueError):
            text = str(parse_bytes(text.strip()))
    return parse_value(row, text)


# ---- journalRetentionDirectory and its limits, which are separate properties in Artemis ----------

_RETENTION_BEANS: Final[dict[str, Setting]] = {
    "journalRetentionDirectory": make_setting(TEXT, "directory", None, "where closed journal files are kept"),
    "journalRetentionPeriod": make_setting(LONG, "period_ms", None, "how long they are kept, in ms", check=POSITIVE),
    "journalRetentionMaxBytes": make_setting(
        BYTES, "storage_limit", None, ("how many bytes of them are kept"), check=POSITIVE
    ),
}


def _lay_over_retention(draft: Draft, bean: str, given: Property, *, remove: bool) -> None:
    """Apply one property to the retention settings; a wrong value is a warning."""
    row = _RETENTION_BEANS[bean]
    value: Any = None
    if not remove:
        try:
            value = _value_of(row, given.value)
        except ValueTextError as problem:
            _left_out(draft, given, problem.allowed)
            return
    kept = draft.retention or RetentionConfig(
        directory="", period_ms=None, storage_limit=None, cursor_ttl_s=CURSOR_TTL_S_DEFAULT
    )
    changes: dict[str, Any] = {row.attribute: value or ("" if row.kind == TEXT else None)}
    draft.retention = replace(kept, **changes)
    draft.retention_origin = given.origin


def _check_retention(draft: Draft) -> None:
    """Check retention after all properties: without a directory nothing is retained, and without a limit it would grow
    for ever.
    """
    kept = draft.retention
    if kept is None:
        return
    if not kept.directory:
        draft.retention = None
        if kept.period_ms or kept.storage_limit:
            draft.problems.warning(
                "without-limit",
                draft.retention_origin,
                "nothing is retained: journalRetentionDirectory is not set or was removed",
            )
    elif not (kept.period_ms or kept.storage_limit):
        draft.problems.error(
            draft.retention_origin,
            "journalRetentionDirectory needs journalRetentionPeriod (in ms) or journalRetentionMaxBytes",
        )


# ---- HAPolicyConfiguration: the part of this broker in a pair ------------------------------------

_POLICY: Final = "HAPolicyConfiguration"
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


def _lay_over_policy(draft: Draft, path: list[str], given: Property, *, remove: bool) -> None:
    """Apply one property: the policy itself, or with a ``path`` a setting of it. Raises _UnknownKeyError."""
    if path:
        _lay_over_setting(draft, path, given, remove=remove)
    elif remove:
        draft.shared_store = None
    elif given.value.strip() in _ROLES:
        is_backup = _ROLES[given.value.strip()]
        draft.shared_store = SharedStoreConfig(is_backup=is_backup, origin=given.origin)
    elif given.value.strip() in _WITHOUT:
        part = PARTS[_WITHOUT[given.value.strip()]]
        draft.ignore(_POLICY, given.origin, part.reason)
    else:
        _left_out(draft, given, ", ".join((*_ROLES, *_WITHOUT)))


def _lay_over_setting(draft: Draft, path: list[str], given: Property, *, remove: bool) -> None:
    row = _row(SharedStoreConfig, _ODD, ".".join(path))
    if draft.shared_store is None:
        return  # a setting of a policy that has no effect
    values = Values()
    _set_value(draft, row, values, given, remove=remove)
    changes: dict[str, Any] = {row.attribute: row.default} if remove else values.values
    draft.shared_store = replace(draft.shared_store, **changes)


# ---- structures: address-settings, addresses, queues, diverts, acceptors, permissions ------------

_QUEUES: Final = ("queueConfigs", "queueConfigurations")
_USER_LIMITS: Final = {"maxSessions": "connections_max", "maxQueues": "queues_max"}
_CHARACTERS: Final = {"delimiter": "delimiter", "anyWords": "any_words", "singleWord": "single_word"}


def _row(table: type, odd: Mapping[str, str], name: str) -> Setting:
    rows = property_names(table)
    found = next((row for row in rows.values() if row.name == odd.get(name)), rows.get(name))
    if found is None:
        raise _UnknownKeyError(name, (*rows, *odd))
    return found


def _address_setting(draft: Draft, path: list[str], given: Property, remove: bool) -> None:
    match = path[0].partition("::")[0]
    if len(path) == 1 and remove:
        draft.entries.pop(match, None)
        return
    if len(path) != 2:
        raise _UnknownKeyError(".".join(path[1:]) or match, ())
    row = _row(AddressSettings, SETTING_BEANS, path[1])
    entry = draft.entries.setdefault(match, NamedDraft(match, given.origin))
    _set_value(draft, row, entry.written, given, remove=remove)
    drop_unset(entry.written)


def _address(draft: Draft, path: list[str], given: Property, remove: bool) -> None:
    name = path[0]
    if len(path) == 1 and remove:
        gone = draft.addresses.pop(name, None)
        for queue in gone.queues if gone else ():
            draft.queues.pop(queue, None)
    elif path[1:] == ["routingTypes"]:
        words = [word.strip().upper() for word in given.value.split(",") if word.strip()]
        wrong = [word for word in words if word not in ROUTING_TYPES]
        if wrong:
            _left_out(draft, given, ", ".join(ROUTING_TYPES))
        else:
            draft.address(name, given.origin).routing_types = words
    elif path[1:] == ["name"]:
        draft.address(name, given.origin)
    elif len(path) >= 3 and path[1] in _QUEUES:
        _queue(draft, name, path[2:], given, remove)
    else:
        raise _UnknownKeyError(".".join(path[1:]) or name, ("routingTypes", "queueConfigs"))


def _queue(draft: Draft, address: str, path: list[str], given: Property, remove: bool) -> None:
    name = path[0]
    if len(path) == 1 and remove:
        gone = draft.queues.pop(name, None)
        if gone is not None:
            draft.addresses[gone.address].queues.pop(name, None)
        return
    if len(path) != 2:
        raise _UnknownKeyError(".".join(path), ())
    queue = draft.queues.get(name)
    if queue is None:
        queue = QueueDraft(name, address, MULTICAST, given.origin)
        draft.add_queue(queue)
    if path[1] == "routingType":
        if given.value not in ROUTING_TYPES:
            _left_out(draft, given, ", ".join(ROUTING_TYPES))
            return
        queue.routing_type = given.value
    elif path[1] in IGNORED_QUEUE_BEANS:
        draft.ignore(f"property {path[1]} of a queue", given.origin, IGNORED_QUEUE_BEANS[path[1]])
    elif path[1] not in QUIET_QUEUE_BEANS:
        _set_value(draft, _row(QueueConfig, QUEUE_BEANS, path[1]), queue.written, given, remove=remove)
    types = draft.address(queue.address, given.origin).routing_types
    if queue.routing_type not in types:
        types.append(queue.routing_type)


def _old_queue(draft: Draft, path: list[str], given: Property, remove: bool) -> None:
    """Apply a property of a queue outside any address: its address is a property, by default its name."""
    name = path[0]
    queue = draft.queues.get(name)
    address = name if queue is None else queue.address
    if path[1:] == ["address"] and not remove:
        address = given.value.strip()
        if queue is not None:
            del draft.queues[name]
            draft.addresses[queue.address].queues.pop(name, None)
            queue.address = address
            draft.add_queue(queue)
    _queue(draft, address, path, given, remove)


def _divert(draft: Draft, path: list[str], given: Property, remove: bool) -> None:
    if len(path) == 1 and remove:
        draft.diverts.pop(path[0], None)
        return
    if path[1:2] == ["transformerConfiguration"]:
        transformer = PARTS["diverts/divert/transformer"]
        draft.ignore("transformer", given.origin, transformer.reason)
        return
    if len(path) != 2:
        raise _UnknownKeyError(".".join(path[1:]) or path[0], ())
    divert = draft.diverts.setdefault(path[0], NamedDraft(path[0], given.origin))
    if path[1] != "name":
        _set_value(draft, _row(DivertConfig, QUEUE_BEANS, path[1]), divert.written, given, remove=remove)


def _bridge(draft: Draft, path: list[str], given: Property, remove: bool) -> None:
    if len(path) == 1 and remove:
        draft.bridges.pop(path[0], None)
        return
    if path[1:2] == ["transformerConfiguration"]:
        transformer = PARTS["bridges/bridge/transformer"]
        draft.ignore("transformer", given.origin, transformer.reason)
        return
    if len(path) != 2:
        raise _UnknownKeyError(".".join(path[1:]) or path[0], ())
    bridge = draft.bridges.setdefault(path[0], BridgeDraft(path[0], given.origin))
    if path[1] == "staticConnectors":
        bridge.connectors = [] if remove else [(name.strip(), given.origin) for name in given.value.split(",")]
    elif path[1] not in _QUIET_BRIDGE_BEANS:
        _set_value(draft, _row(BridgeConfig, BRIDGE_BEANS, path[1]), bridge.written, given, remove=remove)


def _connector(draft: Draft, path: list[str], given: Property, remove: bool) -> None:
    """Apply a property of a connector: its host, its port or a parameter. They become its URI."""
    name = path[0]
    if len(path) == 1 and remove:
        draft.connectors.pop(name, None)
        return
    if len(path) == 1:
        draft.connectors[name] = (given.value, given.origin)
        return
    known = ("params", "extraParams", "factoryClassName", "name")
    if path[1] not in known:
        raise _UnknownKeyError(".".join(path[1:]), known)
    if len(path) == 2:
        return
    try:
        parts = parse_uri(name, draft.connectors[name][0], given.origin)
    except (KeyError, UriError):
        parts = AcceptorDraft(name, given.origin)
    _acceptor_param(draft, parts, ".".join(path[2:]), given, remove)
    host = f"[{parts.host}]" if ":" in parts.host else parts.host
    query = "&".join(f"{quote(quote_plus(key))}={quote(quote_plus(value))}" for key, value in parts.params.items())
    draft.connectors[name] = (f"tcp://{host}:{parts.port}?{query}", given.origin)


def _acceptor(draft: Draft, path: list[str], given: Property, remove: bool) -> None:
    name = path[0]
    acceptor = next((each for each in draft.acceptors if each.name == name), None)
    if len(path) == 1 and remove:
        if acceptor is not None:
            draft.acceptors.remove(acceptor)
        return
    known = ("params", "extraParams", "factoryClassName", "lockCoordinator", "name")
    if len(path) < 2 or path[1] not in known:
        raise _UnknownKeyError(".".join(path[1:]) or name, known)
    if acceptor is None:
        acceptor = AcceptorDraft(name, given.origin)
        draft.acceptors.append(acceptor)
    if path[1] == "factoryClassName":
        acceptor.scheme = "vm" if "invm" in given.value.lower() else "tcp"
    elif path[1] == "lockCoordinator" and given.value.strip():
        ignore_lock(draft, given.origin)
    elif len(path) > 2:
        _acceptor_param(draft, acceptor, ".".join(path[2:]), given, remove)


def _acceptor_param(draft: Draft, acceptor: AcceptorDraft, name: str, given: Property, remove: bool) -> None:
    if name == "host":
        acceptor.host = given.value.strip()
    elif name == "port":
        text = given.value.strip()
        if text.isascii() and text.isdigit() and int(text) <= 65535:
            acceptor.port = int(text)
        else:
            _left_out(draft, given, "a port from 0 to 65535")
    elif remove:
        acceptor.params.pop(name, None)
    else:
        acceptor.params[name] = given.value
        acceptor.param_origins[name] = given.origin


def _permission(draft: Draft, path: list[str], given: Property, remove: bool) -> None:
    match = path[0]
    if len(path) == 1 and remove:
        draft.security.pop(match, None)
        return
    if len(path) == 2 and remove:
        setting = draft.security.get(match)
        for roles in setting.roles.values() if setting else ():
            if path[1] in roles:
                roles.remove(path[1])
        return
    if len(path) != 3:
        raise _UnknownKeyError(".".join(path[1:]) or match, ())
    role, permission = path[1], PERMISSION_ALIASES.get(path[2], path[2])
    if permission not in PERMISSIONS:
        raise _UnknownKeyError(path[2], PERMISSIONS)
    setting = draft.security.setdefault(match, SecurityDraft(match, given.origin))
    roles = setting.roles.setdefault(permission, [])
    if given.value.strip().lower() != "true":
        setting.roles[permission] = [each for each in roles if each != role]
    elif role not in roles:
        roles.append(role)


def _wildcards(draft: Draft, path: list[str], given: Property, remove: bool) -> None:
    known = (*_CHARACTERS, "routingEnabled")
    if len(path) != 1 or path[0] not in known:
        raise _UnknownKeyError(".".join(path), known)
    attribute = _CHARACTERS.get(path[0], "routing_enabled")
    if remove:
        draft.wildcards.remove(attribute)
    elif attribute == "routing_enabled":
        draft.wildcards.put(attribute, given.value.strip().lower() == "true", given.origin)
    elif not given.value.strip():
        _left_out(draft, given, "one character")
    else:
        draft.wildcards.put(attribute, given.value.strip()[0], given.origin)


def _user_limit(draft: Draft, path: list[str], given: Property, remove: bool) -> None:
    login = path[0]
    if len(path) == 1 and remove:
        draft.user_limits.pop(login, None)
        return
    if len(path) != 2 or path[1] not in _USER_LIMITS:
        raise _UnknownKeyError(".".join(path[1:]) or login, tuple(_USER_LIMITS))
    try:
        value = -1 if remove else parse_long(given.value.strip())
    except ValueError:
        _left_out(draft, given, "a whole number")
        return
    limits = draft.user_limits.get(login, UserLimits())
    draft.user_limits[login] = replace(limits, **{_USER_LIMITS[path[1]]: value})


_PARTS: Final[Mapping[str, Callable[[Draft, list[str], Property, bool], None]]] = {
    "addressSettings": _address_setting,
    "addressesSettings": _address_setting,
    "queueConfigurations": _old_queue,
    "addressConfigurations": _address,
    "divertConfigurations": _divert,
    "bridgeConfigurations": _bridge,
    "connectorConfigurations": _connector,
    "acceptorConfigurations": _acceptor,
    "resourceLimitSettings": _user_limit,
    "securityRoles": _permission,
    "wildCardConfiguration": _wildcards,
    "wildcardConfiguration": _wildcards,
}
