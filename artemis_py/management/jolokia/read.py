"""Jolokia's ``read``: attributes of one bean, or of all beans that match a pattern."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Any, Final

from artemis_py.core.tasks import Step
from artemis_py.errors import BrokerError
from artemis_py.management.artemis.attributes import Attribute, with_summary
from artemis_py.management.artemis.beans import BROKER, Bean, Beans
from artemis_py.management.artemis.java_errors import JavaError, failed, illegal, no_attribute, no_instance
from artemis_py.management.jolokia.request import JolokiaRequest
from artemis_py.management.jolokia.values import Entries, in_pieces, inner
from artemis_py.management.operation import VIEW, Guard

Steps = Generator[Step, None, Any]
_BEANS_PER_PIECE: Final = 20
_BEANS_PER_STEP: Final = 20
_SHOWN_MAX: Final = 10


def read(beans: Beans, guard: Guard, request: JolokiaRequest) -> Steps:
    """The value. Raises JavaError, BrokerError."""
    if request.name.is_pattern:
        return (yield from _read_many(beans, guard, request))
    bean = beans.one(request.name)
    if bean is None:
        raise no_instance(request.name.canonical)
    values = yield from _values(bean, guard, request)
    value = values[request.attributes[0]] if request.is_one and request.attributes else values
    return inner(value, request.path)


def _values(bean: Bean, guard: Guard, request: JolokiaRequest) -> Generator[Step, None, dict[str, Any]]:
    if request.attributes is None:
        allowed = [one for one in bean.kind.attributes.values() if guard.may(VIEW, _place(bean, one))]
        if not allowed:
            guard.demand(VIEW, bean.address)
        return _read(allowed, (yield from _ready(bean, allowed)))
    attributes: dict[str, Attribute] = {}
    errors: dict[str, str] = {}
    for name in request.attributes:
        try:
            attributes[name] = _attribute(bean, guard, name)
        except JavaError as error:
            if not request.options.ignores_errors:
                raise
            errors[name] = f"ERROR: {error} (class {error.type})"
    return {**_read(attributes.values(), (yield from _ready(bean, attributes.values()))), **errors}


def _attribute(bean: Bean, guard: Guard, name: str) -> Attribute:
    attribute = bean.kind.attributes.get(name)
    if attribute is None:
        raise no_attribute(f"No such attribute: {name}")
    try:
        guard.demand(VIEW, _place(bean, attribute))
    except BrokerError as error:
        raise failed(error) from None
    return attribute


def _ready(bean: Bean, attributes: Iterable[Attribute]) -> Generator[Step, None, Any]:
    """The owner, with what the attributes need of all queues."""
    if bean.kind is BROKER and any(one.adds_up for one in attributes):
        return (yield from with_summary(bean.owner))
    return bean.owner


def _read(attributes: Iterable[Attribute], owner: Any) -> dict[str, Any]:
    return {one.name: one.read(owner) for one in attributes}


def _place(bean: Bean, attribute: Attribute) -> str:
    return f"{bean.address}.{attribute.reader}"


def _read_many(beans: Beans, guard: Guard, request: JolokiaRequest) -> Steps:
    guard.demand(VIEW, "mbeanserver.queryNames")
    matching = yield from beans.matching(request.name)
    if not matching:
        raise no_instance(f"No MBean with pattern {request.name.canonical} found for reading attributes")
    ready: list[tuple[Bean, list[Attribute]]] = []
    has_attribute = False
    for number, bean in enumerate(matching):
        known = bean.kind.attributes
        requested = [known[name] for name in request.attributes or known if name in known]
        has_attribute = has_attribute or bool(requested)
        allowed = [one for one in requested if guard.may(VIEW, _place(bean, one))]
        if any(one.adds_up for one in allowed):
            bean = Bean(bean.kind, bean.name, bean.values, (yield from _ready(bean, allowed)))  # noqa: PLW2901
        if allowed:
            ready.append((bean, allowed))
        if number % _BEANS_PER_STEP == 0:
            yield None
    if not has_attribute:
        names = ", ".join(beans.name_of(bean, is_canonical=False) for bean in matching[:_SHOWN_MAX])
        raise illegal(f"No matching attributes [{', '.join(request.attributes or ())}] found on MBeans [{names}]")
    return Entries(_entries(beans, in_pieces(ready, _BEANS_PER_PIECE), request))


def _entries(
    beans: Beans, ready: Iterator[list[tuple[Bean, list[Attribute]]]], request: JolokiaRequest
) -> Iterator[list[tuple[str, Any]]]:
    """The values of the moment in which they are sent."""
    is_canonical, path = request.options.is_canonical, request.path
    for some in ready:
        piece: list[tuple[str, Any]] = []
        for bean, attributes in some:
            name = beans.name_of(bean, is_canonical=is_canonical)
            values: Any = _read(attributes, bean.owner)
            if path:
                values = inner(values, path[1:]) if path[0] in ("*", name) else None
            if values is not None:
                piece.append((name, values))
        yield piece
