"""Operations that tell which settings are in force, and who may do what, each with its line of broker.xml."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from artemis_py.config.explain.explanation import Explained, explain_address, explain_queue_config
from artemis_py.config.security_settings import PERMISSIONS
from artemis_py.config.settings import Origin
from artemis_py.core.queue.amending import config_of
from artemis_py.errors import BadRequestError
from artemis_py.management.lists.explained import ROLES, SETTINGS, Granted
from artemis_py.management.lists.field import TEXT
from artemis_py.management.managed import Given, Managed, Steps, found
from artemis_py.management.operation import VIEW, Argument, Operation
from artemis_py.management.operations.listing import LISTING, selected

_NAME: Final = Argument("address", TEXT, "the address, or ADDRESS::QUEUE for a queue that is there")
_SET_WHILE_RUNNING: Final = Origin("an operator or a client", 0)


def _settings(managed: Managed, given: Given) -> Steps:
    address, separator, queue = given["address"].partition("::")
    if not address:
        raise BadRequestError("address is the name of an address, or ADDRESS::QUEUE")
    rows = _of_queue(managed, queue) if separator else explain_address(managed.broker.config, address)
    return (yield from selected(SETTINGS, rows, given))


def _of_queue(managed: Managed, name: str) -> list[Explained]:
    """What the queue has now. What broker.xml says at another place than the queue is not repeated."""
    queue = found(managed.broker.queues, "queue", name)
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


def _roles(managed: Managed, given: Given) -> Steps:
    setting = managed.broker.config.security.setting_for(given["address"])
    return (yield from selected(ROLES, [Granted(permission, setting) for permission in PERMISSIONS], given))


SETTINGS_OPERATIONS: Final = (
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
        no_mbean="Artemis' JSON of settings has other names",
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
