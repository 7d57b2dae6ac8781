"""Properties of structures: address-settings, addresses, queues, diverts, acceptors, permissions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from artemis_py.config.draft import AcceptorDraft, Draft, NamedDraft, QueueDraft, SecurityDraft
from artemis_py.config.overlay.bean_names import IGNORED_QUEUE_BEANS, QUEUE_BEANS, QUIET_QUEUE_BEANS, SETTING_BEANS
from artemis_py.config.overlay.properties_file import Property
from artemis_py.config.overlay.values import UnknownKeyError, left_out, property_names, set_value
from artemis_py.config.read.addresses import drop_unset
from artemis_py.config.read.server import ignore_lock
from artemis_py.config.security_settings import PERMISSION_ALIASES, PERMISSIONS
from artemis_py.config.tables.address_settings import ROUTING_TYPES, AddressSettings
from artemis_py.config.tables.entities import MULTICAST, DivertConfig, QueueConfig, UserLimits
from artemis_py.config.tables.fields import Setting
from artemis_py.config.tables.parts import PARTS
from artemis_py.units import parse_long

_QUEUES: Final = ("queueConfigs", "queueConfigurations")
_USER_LIMITS: Final = {"maxSessions": "connections_max", "maxQueues": "queues_max"}
_CHARACTERS: Final = {"delimiter": "delimiter", "anyWords": "any_words", "singleWord": "single_word"}


def lay_over_part(draft: Draft, segments: list[str], given: Property, *, remove: bool) -> None:
    """Apply a property whose path has two or more segments. Raises UnknownKeyError."""
    _PARTS[segments[0]](draft, segments[1:], given, remove)


def _row(table: type, odd: Mapping[str, str], name: str) -> Setting:
    rows = property_names(table)
    found = next((row for row in rows.values() if row.name == odd.get(name)), rows.get(name))
    if found is None:
        raise UnknownKeyError(name, (*rows, *odd))
    return found


def _address_setting(draft: Draft, path: list[str], given: Property, remove: bool) -> None:
    match = path[0].partition("::")[0]
    if len(path) == 1 and remove:
        draft.entries.pop(match, None)
        return
    if len(path) != 2:
        raise UnknownKeyError(".".join(path[1:]) or match, ())
    row = _row(AddressSettings, SETTING_BEANS, path[1])
    entry = draft.entries.setdefault(match, NamedDraft(match, given.origin))
    set_value(draft, row, entry.written, given, remove=remove)
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
            left_out(draft, given, ", ".join(ROUTING_TYPES))
        else:
            draft.address(name, given.origin).routing_types = words
    elif path[1:] == ["name"]:
        draft.address(name, given.origin)
    elif len(path) >= 3 and path[1] in _QUEUES:
        _queue(draft, name, path[2:], given, remove)
    else:
        raise UnknownKeyError(".".join(path[1:]) or name, ("routingTypes", "queueConfigs"))


def _queue(draft: Draft, address: str, path: list[str], given: Property, remove: bool) -> None:
    name = path[0]
    if len(path) == 1 and remove:
        gone = draft.queues.pop(name, None)
        if gone is not None:
            draft.addresses[gone.address].queues.pop(name, None)
        return
    if len(path) != 2:
        raise UnknownKeyError(".".join(path), ())
    queue = draft.queues.get(name)
    if queue is None:
        queue = QueueDraft(name, address, MULTICAST, given.origin)
        draft.add_queue(queue)
    if path[1] == "routingType":
        if given.value not in ROUTING_TYPES:
            left_out(draft, given, ", ".join(ROUTING_TYPES))
            return
        queue.routing_type = given.value
    elif path[1] in IGNORED_QUEUE_BEANS:
        draft.ignore(f"property {path[1]} of a queue", given.origin, IGNORED_QUEUE_BEANS[path[1]])
    elif path[1] not in QUIET_QUEUE_BEANS:
        set_value(draft, _row(QueueConfig, QUEUE_BEANS, path[1]), queue.written, given, remove=remove)
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
        raise UnknownKeyError(".".join(path[1:]) or path[0], ())
    divert = draft.diverts.setdefault(path[0], NamedDraft(path[0], given.origin))
    if path[1] != "name":
        set_value(draft, _row(DivertConfig, QUEUE_BEANS, path[1]), divert.written, given, remove=remove)


def _acceptor(draft: Draft, path: list[str], given: Property, remove: bool) -> None:
    name = path[0]
    acceptor = next((each for each in draft.acceptors if each.name == name), None)
    if len(path) == 1 and remove:
        if acceptor is not None:
            draft.acceptors.remove(acceptor)
        return
    known = ("params", "extraParams", "factoryClassName", "lockCoordinator", "name")
    if len(path) < 2 or path[1] not in known:
        raise UnknownKeyError(".".join(path[1:]) or name, known)
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
            left_out(draft, given, "a port from 0 to 65535")
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
        raise UnknownKeyError(".".join(path[1:]) or match, ())
    role, permission = path[1], PERMISSION_ALIASES.get(path[2], path[2])
    if permission not in PERMISSIONS:
        raise UnknownKeyError(path[2], PERMISSIONS)
    setting = draft.security.setdefault(match, SecurityDraft(match, given.origin))
    roles = setting.roles.setdefault(permission, [])
    if given.value.strip().lower() != "true":
        setting.roles[permission] = [each for each in roles if each != role]
    elif role not in roles:
        roles.append(role)


def _wildcards(draft: Draft, path: list[str], given: Property, remove: bool) -> None:
    known = (*_CHARACTERS, "routingEnabled")
    if len(path) != 1 or path[0] not in known:
        raise UnknownKeyError(".".join(path), known)
    attribute = _CHARACTERS.get(path[0], "routing_enabled")
    if remove:
        draft.wildcards.remove(attribute)
    elif attribute == "routing_enabled":
        draft.wildcards.put(attribute, given.value.strip().lower() == "true", given.origin)
    elif not given.value.strip():
        left_out(draft, given, "one character")
    else:
        draft.wildcards.put(attribute, given.value.strip()[0], given.origin)


def _user_limit(draft: Draft, path: list[str], given: Property, remove: bool) -> None:
    login = path[0]
    if len(path) == 1 and remove:
        draft.user_limits.pop(login, None)
        return
    if len(path) != 2 or path[1] not in _USER_LIMITS:
        raise UnknownKeyError(".".join(path[1:]) or login, tuple(_USER_LIMITS))
    try:
        value = -1 if remove else parse_long(given.value.strip())
    except ValueError:
        left_out(draft, given, "a whole number")
        return
    limits = draft.user_limits.get(login, UserLimits())
    draft.user_limits[login] = replace(limits, **{_USER_LIMITS[path[1]]: value})


_PARTS: Final[Mapping[str, Callable[[Draft, list[str], Property, bool], None]]] = {
    "addressSettings": _address_setting,
    "addressesSettings": _address_setting,
    "queueConfigurations": _old_queue,
    "addressConfigurations": _address,
    "divertConfigurations": _divert,
    "acceptorConfigurations": _acceptor,
    "resourceLimitSettings": _user_limit,
    "securityRoles": _permission,
    "wildCardConfiguration": _wildcards,
    "wildcardConfiguration": _wildcards,
}
PART_NAMES: Final = tuple(_PARTS)
