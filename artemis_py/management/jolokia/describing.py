"""What ``list`` tells: the attributes and operations of beans, made from their tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from artemis_py.management.artemis.beans import KINDS, Bean, BeanKind, Beans
from artemis_py.management.artemis.extras import Extra
from artemis_py.management.artemis.operations import BEAN_OPERATIONS, BeanOperation
from artemis_py.management.artemis.problem import illegal
from artemis_py.management.jolokia.options import Options
from artemis_py.management.jolokia.values import Encoded, Entries, in_pieces, inner, limited

_SENTENCES: Final = {
    "broker": "The broker",
    "acceptors": "A port on which clients connect",
    "address": "An address",
    "queue": "A queue",
    "divert": "A divert",
}


@cache
def info_of(kind: BeanKind) -> dict[str, Any]:
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


def everything(beans: Beans, found: Sequence[Bean], options: Options) -> Any:
    """The value of a ``list`` without a path. With a cache, beans that are described alike say where that is."""
    if not options.uses_cache:
        if options.depth_max == 1:
            return {beans.domain: "1"}
        return Entries(iter([[(beans.domain, of_domain(beans, found, options, depth=1))]]))
    cached = {f"{beans.domain}:{kind.component}": info_of(kind) for kind in KINDS}
    names = {kind: Encoded(json.dumps(f"{beans.domain}:{kind.component}")) for kind in KINDS}
    domains = Entries(iter([[(beans.domain, Entries(_named(beans, found, names, options)))]]))
    return Entries(iter([[("cache", cached), ("domains", domains)]]))


def of_domain(beans: Beans, found: Sequence[Bean], options: Options, *, depth: int = 0) -> Entries:
    """The beans of the domain, which lies so deep, with their descriptions."""
    infos = {kind: _encoded(limited(info_of(kind), options, depth + 1)) for kind in KINDS}
    return Entries(_named(beans, found, infos, options))


def _named(
    beans: Beans, found: Sequence[Bean], values: Mapping[BeanKind, Encoded], options: Options
) -> Iterator[list[tuple[str, Encoded]]]:
    pieces = in_pieces(found)
    del found  # they go one after the other
    for some in pieces:
        yield [(beans.properties_of(bean, is_canonical=options.is_canonical), values[bean.kind]) for bean in some]


def _encoded(value: Any) -> Encoded:
    return Encoded(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def of_bean(bean: Bean, name: str, path: Sequence[str]) -> Any:
    """The description of one bean, or a part of it. Raises JavaError."""
    value = inner(info_of(bean.kind), path)
    if value is None:
        raise illegal(f"Illegal path element in {'/'.join(path)} for {name}")
    return value
