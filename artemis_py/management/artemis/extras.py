"""Operations that tools call on beans and that the table does not have: small ones, whose answer is known here."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from artemis_py.config.overlay.bean_names import SETTING_BEANS
from artemis_py.config.overlay.values import camel
from artemis_py.config.settings import AddressSettings
from artemis_py.config.tables.fields import HONOURED, settings_of
from artemis_py.management.artemis.beans import BROKER, QUEUE, Bean, BeanKind
from artemis_py.management.artemis.signature import Signature, signature_of
from artemis_py.management.managed import Managed, found
from artemis_py.management.operation import VIEW

_OF_OPENWIRE: Final = "queuePrefetch"
"""One of two names of a setting."""


class Extra(NamedTuple):
    """An operation. ``work`` gets the arguments by position, and returns the answer or the steps to it. ``secrets`` are
    the parameters that nobody may be told.
    """

    kind: BeanKind
    signature: Signature
    sentence: str
    work: Callable[[Managed, Bean, Sequence[Any]], Any]
    right: str = VIEW
    secrets: frozenset[str] = frozenset()


def _nothing(_managed: Managed, _bean: Bean, _given: Sequence[Any]) -> None:
    """Whatever is read after it is true already."""


def _topology(managed: Managed, _bean: Bean, _given: Sequence[Any]) -> str:
    return "[]"


def _address_names(managed: Managed, _bean: Bean, given: Sequence[Any]) -> str:
    separator = "," if given[0] is None else str(given[0])
    return separator.join(managed.broker.addresses)


def _bindings(managed: Managed, _bean: Bean, given: Sequence[Any]) -> str:
    address = found(managed.broker.addresses, "address", str(given[0]))
    return ",".join([*(queue.name for queue in address.queues.values()), *(one.name for one in address.diverts)])


def _queue_names(managed: Managed, _bean: Bean, given: Sequence[Any]) -> list[str]:
    wanted = str(given[0] or "").upper()
    return [queue.name for queue in managed.broker.queues.values() if not wanted or queue.routing_type == wanted]


def _count(_managed: Managed, bean: Bean, _given: Sequence[Any]) -> int:
    return int(bean.owner.message_count)


def _address_info(managed: Managed, _bean: Bean, given: Sequence[Any]) -> str:
    address = found(managed.broker.addresses, "address", str(given[0]))
    return json.dumps({"name": address.name, "routingTypes": sorted(address.routing_types)})


def _divert_names(managed: Managed, _bean: Bean, _given: Sequence[Any]) -> list[str]:
    return list(managed.broker.diverts.in_force)


def _settings(managed: Managed, _bean: Bean, given: Sequence[Any]) -> str:
    settings = managed.broker.config.settings_for(str(given[0]))
    named = {element: bean for bean, element in reversed(SETTING_BEANS.items()) if bean != _OF_OPENWIRE}
    values = {
        named.get(row.name, camel(row.name)): getattr(settings, row.attribute)
        for row in settings_of(AddressSettings).values()
        if row.treatment == HONOURED
    }
    return json.dumps({name: value for name, value in values.items() if value is not None}, separators=(",", ":"))


EXTRAS: Final = (
    Extra(QUEUE, signature_of("void flushExecutor()"), "Do nothing: counts are exact at any time.", _nothing),
    Extra(QUEUE, signature_of("long countMessages()"), "How many messages are on the queue.", _count),
    Extra(BROKER, signature_of("String listNetworkTopology()"), "The cluster: empty.", _topology),
    Extra(BROKER, signature_of("String listAddresses(String separator)"), "All addresses.", _address_names),
    Extra(BROKER, signature_of("String listBindingsForAddress(String address)"), "Its queues and diverts.", _bindings),
    Extra(BROKER, signature_of("String[] getQueueNames(String routingType)"), "The names of queues.", _queue_names),
    Extra(BROKER, signature_of("String[] listDivertNames()"), "The names of all diverts.", _divert_names),
    Extra(
        BROKER,
        signature_of("String getAddressSettingsAsJSON(String addressMatch)"),
        "The settings of an address.",
        _settings,
    ),
    Extra(BROKER, signature_of("String getAddressInfo(String address)"), "Name and routing types.", _address_info),
)
