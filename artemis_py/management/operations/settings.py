"""Address settings and permissions: operations that show those in force, with the line of broker.xml, and set them.
And operations that reload broker.xml, and show what a reload would change.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Final, NamedTuple

from artemis_py.config.checks.requested import check_queue, check_setting, setting_values
from artemis_py.config.explain import Explained, explain_address, explain_queue_config
from artemis_py.config.properties import SETTING_BEANS, property_names
from artemis_py.config.security_settings import PERMISSIONS
from artemis_py.config.settings import AddressSettings, BrokerConfig, Origin, SecuritySetting
from artemis_py.config.tables.fields import show
from artemis_py.core.queue.attributes import config_of
from artemis_py.core.tasks import Step
from artemis_py.errors import BadRequestError, BrokerError
from artemis_py.management.listing import EPOCH_MS, FLAG, NUMBER, TEXT, Field, Kind
from artemis_py.management.managed import Arguments, Configuration, Managed, Steps, at_once, lookup
from artemis_py.management.operation import EDIT, LISTING, TEXTS, VIEW, Argument, Operation, select_rows

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


_NAME: Final = Argument("address", TEXT, "the address, or ADDRESS::QUEUE for a queue that is there")
_CHECKS_PER_STEP: Final = 20
_SET_WHILE_RUNNING: Final = Origin("an operator or a client", 0)


def _settings(managed: Managed, arguments: Arguments) -> Steps:
    address, separator, queue = arguments["address"].partition("::")
    if not address:
        raise BadRequestError("address is the name of an address, or ADDRESS::QUEUE")
    rows = _of_queue(managed, queue) if separator else explain_address(managed.broker.config, address)
    return (yield from select_rows(SETTINGS, rows, arguments))


def _of_queue(managed: Managed, name: str) -> list[Explained]:
    """What the queue has now. What broker.xml says at another place than the queue is not repeated."""
    queue = lookup(managed.broker.queues, "queue", name)
    config = config_of(queue)
    declared: dict[str, Origin] = {}
    if queue.origin is not None:
        declared = {
            attribute: origin
            for address in managed.broker.config.addresses
            if address.name == queue.address.name
            for one in address.queues
            if one.name == name
            for attribute, origin in one.origins
            if getattr(one, attribute) == getattr(config, attribute)
        }
    written = {**dict.fromkeys(queue.attributes, _SET_WHILE_RUNNING), **declared}
    if config.filter is not None and "filter" not in written:
        written["filter"] = _SET_WHILE_RUNNING
    if queue.ring_size_changed is not None:
        written["ring_size"] = _SET_WHILE_RUNNING
    config = replace(config, origins=tuple(written.items()))
    return explain_queue_config(managed.broker.config, config, declared=not queue.auto_created)


def _add(managed: Managed, arguments: Arguments) -> Steps:
    """Everything is checked before anything is changed: the values, and each queue with them."""
    broker, match = managed.broker, arguments["address"]
    values = setting_values(match, {**_of_json(arguments["settings"]), **_of_texts(arguments["values"])}, broker.config)
    if not values:
        raise BadRequestError("no setting is given, such as max-size-bytes=10M")
    changed = broker.settings_changes.over(broker.settings_changes.declared, match, values)
    check_setting(match, changed)
    yield from _check(managed, changed)
    broker.settings_changes.put(match, values)
    return (yield from _settled(managed))


def _remove(managed: Managed, arguments: Arguments) -> Steps:
    managed.broker.settings_changes.remove(arguments["address"])
    return (yield from _settled(managed))


def _settled(managed: Managed) -> Steps:
    """Bring the settings into force for what is there."""
    redeployment = managed.broker.settle(managed.now_ms, lambda _number, _reason: None)
    yield from redeployment.settle_addresses()
    if redeployment.failures:
        raise BrokerError(f"the settings count from now on, but not everywhere: {'; '.join(redeployment.failures)}")
    return {"pendingRestart": {queue: ", ".join(sorted(names)) for queue, names in sorted(redeployment.held.items())}}


def _check(managed: Managed, changed: BrokerConfig) -> Generator[Step, None, None]:
    """Raises BadRequestError for a queue that could not be what its address would say."""
    for number, queue in enumerate(list(managed.broker.queues.values()), 1):
        settings = changed.settings_for(queue.address.name)
        if not queue.deleted and settings != queue.address.settings and not queue.temporary:
            check_queue(config_of(queue), (), changed)
        if number % _CHECKS_PER_STEP == 0:
            yield None


def _of_texts(texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    wrong = next((name for name, equals, _ in pairs if not equals), None)
    if wrong is not None:
        raise BadRequestError(f"{wrong[:100]!r} is not a setting; write it as name=value")
    return {name.strip(): value for name, _, value in pairs}


def _of_json(text: str | None) -> dict[str, str]:
    """By the names of elements; what is null is not given. Raises BadRequestError."""
    if text is None:
        return {}
    try:
        settings = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRequestError(f"the settings are not JSON: {error}") from None
    if not isinstance(settings, dict):
        raise BadRequestError("the settings must be a JSON object")
    return {_element(name): show(value) for name, value in settings.items() if value is not None}


def _element(name: str) -> str:
    """The element of a name in Artemis' JSON."""
    row = property_names(AddressSettings).get(name)
    return SETTING_BEANS.get(name) or (name if row is None else row.name)


def _roles(managed: Managed, arguments: Arguments) -> Steps:
    setting = managed.broker.config.security.setting_for(arguments["address"])
    return (yield from select_rows(ROLES, [Granted(permission, setting) for permission in PERMISSIONS], arguments))


_MATCH: Final = Argument("address", TEXT, "the match, as that of an address-setting in broker.xml: orders.#")
_RESULT: Final = "pendingRestart: by queue, the attributes that wait for a restart"

SETTINGS_OPERATIONS: Final = (
    Operation(
        name="addAddressSettings",
        right=EDIT,
        method="POST",
        path="/api/settings",
        command="settings set",
        sentence="Give all addresses that a match covers these settings, instead of what broker.xml, or an "
        "earlier call, says for the same match. A restart and a reload keep them.",
        result=_RESULT,
        arguments=(
            _MATCH,
            Argument("values", TEXTS, "a setting as name=value, such as max-size-bytes=10M", ()),
            Argument("settings", TEXT, "settings as a JSON object, by these names or Artemis' (maxSizeBytes)", None),
        ),
        work=_add,
        mbean=("void addAddressSettings(String addressMatch=address, String addressSettingsAsJson=settings)",),
    ),
    Operation(
        name="removeAddressSettings",
        right=EDIT,
        method="DELETE",
        path="/api/settings/{address}",
        command="settings remove",
        sentence="Remove the settings that an operator has made for a match: what broker.xml says counts again.",
        result=_RESULT,
        arguments=(_MATCH,),
        destroys="the settings that an operator made for {address}",
        work=_remove,
        mbean=("void removeAddressSettings(String addressMatch=address)",),
    ),
    Operation(
        name="getAddressSettingsAsJSON",
        right=VIEW,
        method="GET",
        path="/api/settings/{address}",
        command="settings show",
        sentence="The settings in force for an address or a queue, each with the line that decided it.",
        result="count: how many settings match; page and size; data: those of the page",
        arguments=(_NAME, *LISTING),
        lists=SETTINGS,
        work=_settings,
        no_mbean="Artemis' JSON of settings has other names, and a bean tells it in that form",
    ),
    Operation(
        name="getRolesAsJSON",
        right=VIEW,
        method="GET",
        path="/api/roles/{address}",
        command="settings roles",
        sentence="Which roles have which permission on an address, and the security-setting that decides it.",
        result="count: how many permissions match; page and size; data: those of the page",
        arguments=(Argument("address", TEXT, "the address, or ADDRESS::QUEUE"), *LISTING),
        lists=ROLES,
        work=_roles,
        no_mbean="Artemis lists by role, and this by permission",
    ),
)


# ---- reload ----------------------------------------------------------------------------------------------------------

_NONE: Final = "Artemis has no such operation"


def _configuration(managed: Managed) -> Configuration:
    if managed.configuration is None:
        raise BrokerError("this broker was not started from a file, so there is none to read again")
    return managed.configuration


def _reload(managed: Managed, arguments: Arguments) -> Steps:
    return _configuration(managed).reload()


def _diff(managed: Managed, arguments: Arguments) -> Steps:
    return _configuration(managed).diff()


def _show(managed: Managed, arguments: Arguments) -> Steps:
    return at_once(_configuration(managed).show())


CONFIGURATION_OPERATIONS: Final = (
    Operation(
        name="reloadConfigurationFile",
        right=EDIT,
        method="POST",
        path="/api/broker/reload",
        command="broker reload",
        sentence="Read the configuration again and bring it into force. A file with errors changes nothing.",
        result="result: applied, unchanged or partly; changeCount, and the first 1,000 changes; pendingRestart: what"
        " waits for a restart; failures; removedMessages: those of deleted queues",
        previews="/api/broker/changes",
        mbean=("void reloadConfigurationFile()",),
        work=_reload,
    ),
    Operation(
        name="getConfiguration",
        right=VIEW,
        method="GET",
        path="/api/broker/configuration",
        command="broker configuration",
        sentence="The file that is in force, when it was read, and what is wrong with it as it is now.",
        result="file; valid; readAt and triedAt in epoch ms; watched; problems with their lines; failures;"
        " pendingRestart; reloads by result",
        also=(
            Field("readAt", NUMBER, "When what is in force was read", itemgetter("readAt"), EPOCH_MS),
            Field("triedAt", NUMBER, "When the file was read last", itemgetter("triedAt"), EPOCH_MS),
        ),
        no_mbean=_NONE,
        work=_show,
    ),
    Operation(
        name="getConfigurationChanges",
        right=VIEW,
        method="GET",
        path="/api/broker/changes",
        command="broker changes",
        sentence="What a reload would change now, and which messages that would affect.",
        result="changeCount, and the first 1,000 changes, each with file, line and effect; affected: what has messages;"
        " pendingRestart",
        no_mbean=_NONE,
        work=_diff,
    ),
)
