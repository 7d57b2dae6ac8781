"""Jolokia's ``search`` and ``list``: names of beans, and descriptions of their attributes and operations."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from artemis_py.core.tasks import Step
from artemis_py.management.artemis.beans import KINDS, Bean, BeanKind, Beans
from artemis_py.management.artemis.extra_operations import Extra
from artemis_py.management.artemis.java_errors import illegal
from artemis_py.management.artemis.object_names import BadNameError, parse_name
from artemis_py.management.artemis.operations import BEAN_OPERATIONS, BeanOperation
from artemis_py.management.artemis.results import Items, compact_json
from artemis_py.management.jolokia.request import JolokiaRequest, Options
from artemis_py.management.jolokia.values import Encoded, Entries, in_pieces, inner, limited
from artemis_py.management.operation import VIEW, Guard

Steps = Generator[Step, None, Any]

_SENTENCES: Final = {
    "broker": "The broker",
    "acceptors": "A port on which clients connect",
    "address": "An address",
    "queue": "A queue",
    "divert": "A divert",
}


def search(beans: Beans, guard: Guard, request: JolokiaRequest) -> Steps:
    """The names of the beans that match a pattern, of those that the client may see. Raises BrokerError."""
    guard.demand(VIEW, "mbeanserver.queryNames")
    is_canonical = request.options.is_canonical
    matching = yield from beans.matching(request.name)
    visible = yield from _visible(matching, guard)
    return Items([beans.name_of(bean, is_canonical=is_canonical) for bean in some] for some in in_pieces(visible))


def list_beans(beans: Beans, guard: Guard, request: JolokiaRequest) -> Steps:
    """The descriptions of all beans, or of what the path names. Raises JavaError, BrokerError."""
    guard.demand(VIEW, "mbeanserver.queryMBeans")
    path, options = request.path, request.options
    if path and path[0] != beans.domain:
        return {}
    if len(path) < 2:
        every = yield from beans.all()
        visible = yield from _visible(every, guard)
        return _of_domain(beans, visible, options) if path else _everything(beans, visible, options)
    name = f"{path[0]}:{path[1]}"
    try:
        bean = beans.one(parse_name(name))
    except BadNameError:
        bean = None
    if bean is None or not guard.may(VIEW, bean.address):
        raise illegal(f"No MBean '{name}' found")
    return _of_bean(bean, name, path[2:])


def _visible(beans: Sequence[Bean], guard: Guard) -> Generator[None, None, list[Bean]]:
    """Those that the client may see."""
    visible: list[Bean] = []
    for some in in_pieces(beans):
        visible += [bean for bean in some if guard.may(VIEW, bean.address)]
        yield
    return visible


@cache
def _info_of(kind: BeanKind) -> dict[str, Any]:
    """The description of a kind of beans."""
    operations: dict[str, Any] = {}
    for name, overloads in BEAN_OPERATIONS[kind].items():
        described = [_operation(one) for one in overloads]
        operations[name] = described if len(described) > 1 else described[0]
    return {
        "op": operations,
        "attr": {
            one.name: {"rw": False, "type": one.type, "desc": one.sentence, "canRead": True}
            for one in kind.attributes.values()
        },
        "class": kind.java_class,
        "desc": _SENTENCES[kind.component],
        "canInvoke": True,
    }


def _operation(one: BeanOperation) -> dict[str, Any]:
    source = one.source
    sentences = {} if isinstance(source, Extra) else {it.name: it.sentence for it in source.arguments}
    arguments = [
        {"name": it.name, "type": it.type, "desc": sentences.get(it.argument, it.name)}
        for it in one.signature.parameters
    ]
    return {"args": arguments, "ret": one.signature.returns, "desc": one.sentence, "canInvoke": True}


def _everything(beans: Beans, visible: Sequence[Bean], options: Options) -> Any:
    """The value of a ``list`` without a path. With a cache, beans of the same kind share one description."""
    if not options.uses_cache:
        if options.depth_max == 1:
            return {beans.domain: "1"}
        return Entries(iter([[(beans.domain, _of_domain(beans, visible, options, depth=1))]]))
    cached = {f"{beans.domain}:{kind.component}": _info_of(kind) for kind in KINDS}
    names = {kind: Encoded(json.dumps(f"{beans.domain}:{kind.component}")) for kind in KINDS}
    domains = Entries(iter([[(beans.domain, Entries(_named(beans, visible, names, options)))]]))
    return Entries(iter([[("cache", cached), ("domains", domains)]]))


def _of_domain(beans: Beans, visible: Sequence[Bean], options: Options, *, depth: int = 0) -> Entries:
    """The beans of the domain, which lies so deep, with their descriptions."""
    infos = {kind: Encoded(compact_json(limited(_info_of(kind), options, depth + 1))) for kind in KINDS}
    return Entries(_named(beans, visible, infos, options))


def _named(
    beans: Beans, visible: Sequence[Bean], values: Mapping[BeanKind, Encoded], options: Options
) -> Iterator[list[tuple[str, Encoded]]]:
    pieces = in_pieces(visible)
    del visible  # they go one after the other
    for some in pieces:
        yield [(beans.properties_of(bean, is_canonical=options.is_canonical), values[bean.kind]) for bean in some]


def _of_bean(bean: Bean, name: str, path: Sequence[str]) -> Any:
    """The description of one bean, or a part of it. Raises JavaError."""
    value = inner(_info_of(bean.kind), path)
    if value is None:
        raise illegal(f"Illegal path element in {'/'.join(path)} for {name}")
    return value
