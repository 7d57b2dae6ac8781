"""Management messages as in Artemis: headers name a resource and what is asked of it, bodies are JSON arrays."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Final

from artemis_py.errors import BadRequestError
from artemis_py.management.artemis.attributes import Attribute, with_summary
from artemis_py.management.artemis.beans import ACCEPTOR, ADDRESS, BRIDGE, BROKER, DIVERT, QUEUE, Bean, BeanKind, Beans
from artemis_py.management.artemis.java import Items, JavaError, RowsInText, illegal
from artemis_py.management.artemis.operations import BEAN_OPERATIONS, Call, CallSteps, Outcome
from artemis_py.management.operation import VIEW

RESOURCE: Final = "_AMQ_ResourceName"
OPERATION: Final = "_AMQ_OperationName"
ATTRIBUTE: Final = "_AMQ_Attribute"
REPLY_BYTES_MAX: Final = 4 * 1024 * 1024
_SHOWN_MAX: Final = 200
_KINDS: Final[dict[str, BeanKind]] = {
    "queue": QUEUE, "address": ADDRESS, "acceptor": ACCEPTOR, "divert": DIVERT, "bridge": BRIDGE,
}  # fmt: skip


def call_of(beans: Beans, headers: Mapping[str, str], body: bytes, parse: Callable[[bytes], Any]) -> Call:
    """What a message asks for; ``parse`` reads JSON and raises ValueError. An operation counts before an attribute.
    Raises JavaError, BrokerError.
    """
    bean = _bean_of(beans, headers.get(RESOURCE))
    operation, attribute = headers.get(OPERATION), headers.get(ATTRIBUTE)
    if operation is not None:
        return _call_of(beans, bean, operation, _arguments(body, parse))
    if attribute is None:
        raise illegal(f"a management message needs the header {OPERATION} or {ATTRIBUTE}")
    known = bean.kind.attributes.get(attribute[:1].upper() + attribute[1:])
    if known is None:
        raise illegal(f"Problem while retrieving attribute {attribute[:_SHOWN_MAX]}")
    return _reading(bean, known)


def _bean_of(beans: Beans, resource: str | None) -> Bean:
    if resource is None:
        raise illegal(f"a management message needs the header {RESOURCE}: broker, queue.NAME or address.NAME")
    word, _, name = resource.partition(".")
    kind = BROKER if resource == BROKER.component else _KINDS.get(word)
    bean = None if kind is None else beans.named(kind, name)
    if bean is None:
        raise illegal(f"AMQ229067: Cannot find resource with name {resource[:_SHOWN_MAX]}")
    return bean


def _arguments(body: bytes, parse: Callable[[bytes], Any]) -> Sequence[Any]:
    if not body.strip():
        return ()
    try:
        values = parse(body)
    except ValueError as error:
        raise illegal(f"the body is not a JSON array of arguments: {error}") from None
    if not isinstance(values, list):
        raise illegal("the body must be a JSON array of arguments")
    return values


def _call_of(beans: Beans, bean: Bean, name: str, values: Sequence[Any]) -> Call:
    """Of several operations of a name the first counts that can have these arguments."""
    if not values:
        reader = next((one for one in bean.kind.attributes.values() if one.reader == name), None)
        if reader is not None:
            return _reading(bean, reader)
    count = len(values)
    overloads = BEAN_OPERATIONS[bean.kind].get(name, ())
    failure = illegal(f"AMQ229069: no operation {name[:_SHOWN_MAX]}/{count}")
    for one in overloads:
        if len(one.signature.parameters) == count:
            try:
                return one.prepare(beans.managed, bean, values)
            except JavaError as error:
                failure = error
    raise failure


def _reading(bean: Bean, attribute: Attribute) -> Call:
    def begin() -> CallSteps:
        owner = (yield from with_summary(bean.owner)) if attribute.adds_up else bean.owner
        return Outcome(attribute.read(owner))

    return Call(attribute.reader, VIEW, f"{bean.address}.{attribute.reader}", {}, begin)


def body_of(value: Any) -> Generator[None, None, str]:
    """A result as the body of a reply, made in steps: a JSON array with it, or nothing if there is none. Raises
    BadRequestError if it is too large.
    """
    if value is None:
        return ""
    pieces = ["["]
    size = 0
    for piece in _pieces(value):
        pieces.append(piece)
        size += len(piece)
        if size > REPLY_BYTES_MAX:
            raise BadRequestError(f"the reply would have more than {REPLY_BYTES_MAX} bytes; ask for a page of it")
        yield
    return "".join([*pieces, "]"])


def _pieces(value: Any) -> Generator[str, None, None]:
    if isinstance(value, RowsInText):
        yield '"'
        for text in value.pieces:
            yield json.dumps(text, ensure_ascii=False)[1:-1]
        yield '"'
    elif isinstance(value, Items):
        separator = "["
        for rows in value.pieces:
            yield separator + json.dumps(rows, ensure_ascii=False)[1:-1]
            separator = ","
        yield "[]" if separator == "[" else "]"
    else:
        yield json.dumps(value, ensure_ascii=False)
