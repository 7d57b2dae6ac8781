"""Answers requests of Jolokia one after the other, in steps, each with its own error: ``read`` and ``write`` for
attributes, ``exec`` for operations, ``search`` for names of beans, ``list`` for descriptions of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from artemis_py.core.tasks import Step
from artemis_py.errors import BrokerError, NotAllowedError
from artemis_py.management.artemis.attributes import Attribute, with_summary
from artemis_py.management.artemis.beans import BROKER, KINDS, Bean, BeanKind, Beans
from artemis_py.management.artemis.java import (
    Items,
    JavaError,
    compact_json,
    failed,
    illegal,
    no_attribute,
    no_instance,
)
from artemis_py.management.artemis.object_names import BadNameError, parse_name
from artemis_py.management.artemis.operations import (
    BEAN_OPERATIONS,
    BeanOperation,
    Extra,
    changes,
    find_operation,
    without_secrets,
)
from artemis_py.management.jolokia.request import EXEC, LIST, READ, SEARCH, WRITE, JolokiaRequest, Options
from artemis_py.management.jolokia.values import Encoded, Entries, in_pieces, inner, json_pieces, limited
from artemis_py.management.operation import EDIT, VIEW, Guard
from artemis_py.version import VERSION as OUR_VERSION

Steps = Generator[Step, None, Any]
Note = Callable[[str, Mapping[str, Any], str, bool], None]
"""Tells the audit log of a change: id, arguments, result, and whether it was not permitted."""
AGENT: Final = "2.2.8"
PROTOCOL: Final = "8.0"
"""The versions of Jolokia whose protocol this is: tools choose by them what they ask for."""
BULK_MAX: Final = 1_000
"""So many requests may stand in one body."""
_BY_GET: Final = (
    "{} changes something, and GET may not: a picture on any web page sends one, with the login that the browser "
    "remembers; send the same as JSON with POST"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A value, or a problem; ``request`` is None if it could not be read."""

    request: JolokiaRequest | None
    value: Any = None
    problem: JavaError | None = None

    def pieces(self, timestamp_s: int) -> Iterator[str]:
        """The answer as JSON, in pieces."""
        request, problem = self.request, self.problem
        options = Options() if request is None else request.options
        head = {"request": request.echo()} if request is not None and options.has_request else {}
        if problem is not None:
            error = {"error_type": problem.type, "error": f"{problem.type} : {problem}", "status": problem.status}
            yield compact_json({**head, **error, "timestamp": timestamp_s})
            return
        begin = compact_json(head)[:-1]
        yield f'{begin}{"," if head else ""}"value":'
        yield from json_pieces(self.value, options)
        yield f',"status":200,"timestamp":{timestamp_s}}}'


class Agent:
    """Answers for one broker."""

    def __init__(self, beans: Beans) -> None:
        self._beans = beans

    def run(self, requests: Sequence[JolokiaRequest | JavaError], guard: Guard, note: Note) -> Steps:
        """The answers, in the order of the requests; one that could not be read is its problem."""
        answers: list[Answer] = []
        for request in requests:
            if isinstance(request, JavaError):
                answers.append(Answer(None, problem=request))
                continue
            echoed = self._without_secrets(request)
            try:
                value = yield from self._value(request, guard, note)
                answers.append(Answer(echoed, value))
            except JavaError as error:
                answers.append(Answer(echoed, problem=error))
            except BrokerError as error:
                answers.append(Answer(echoed, problem=failed(error)))
            yield None
        return answers

    def changes(self, requests: Sequence[JolokiaRequest | JavaError]) -> bool:
        """May one of the requests change something?"""
        return any(self._changes(request) for request in requests if isinstance(request, JolokiaRequest))

    def _changes(self, request: JolokiaRequest) -> bool:
        if request.type != EXEC or request.name.is_pattern:
            return False
        bean = self._beans.one(request.name)
        return bean is not None and changes(bean.kind, request.operation)

    def _without_secrets(self, request: JolokiaRequest) -> JolokiaRequest:
        """What an answer repeats of a request."""
        bean = self._beans.one(request.name) if request.type == EXEC and not request.name.is_pattern else None
        if bean is None or not request.arguments:
            return request
        return replace(request, arguments=without_secrets(bean.kind, request.operation, request.arguments))

    def _value(self, request: JolokiaRequest, guard: Guard, note: Note) -> Steps:
        if request.type == READ:
            return (yield from read(self._beans, guard, request))
        if request.type == EXEC:
            return (yield from self._execute(request, guard, note))
        if request.type == SEARCH:
            return (yield from search(self._beans, guard, request))
        if request.type == LIST:
            return (yield from list_beans(self._beans, guard, request))
        if request.type == WRITE:
            return self._write(request)
        return _version()

    def _one(self, request: JolokiaRequest) -> Bean:
        bean = None if request.name.is_pattern else self._beans.one(request.name)
        if bean is None:
            raise no_instance(request.name.canonical)
        return bean

    def _execute(self, request: JolokiaRequest, guard: Guard, note: Note) -> Steps:
        bean = self._one(request)
        arguments = request.arguments or ()
        operation = find_operation(bean.kind, request.operation, request.name.canonical, len(arguments))
        if request.is_url and operation.secrets:
            raise illegal(f"{operation.signature.name} takes a password, which has no place in a URL; use POST")
        call = operation.prepare(self._beans.managed, bean, arguments)
        if call.right != EDIT:
            guard.demand(call.right, call.permission)
            return inner((yield from call.begin()).value, request.path)
        if request.is_url:
            raise JavaError(403, "java.lang.SecurityException", _BY_GET.format(operation.signature.name))
        logged = {name: value for name, value in call.arguments.items() if value is not None}
        try:
            guard.demand(call.right, call.permission)
            done = yield from call.begin()
        except Exception as error:
            note(call.id, logged, str(error), isinstance(error, NotAllowedError))
            raise
        note(call.id, logged, done.outcome, False)
        return inner(done.value, request.path)

    def _write(self, request: JolokiaRequest) -> None:
        bean = self._one(request)
        name = request.attributes[0] if request.attributes else ""
        word = "Read-only" if name in bean.kind.attributes else "No such"
        raise no_attribute(f"{word} attribute: {name}")


def _version() -> dict[str, Any]:
    return {
        "agent": AGENT,
        "protocol": PROTOCOL,
        "details": {"agent_version": AGENT, "agent_id": "artemis_py", "secured": False},
        "id": "artemis_py",
        "config": {"agentId": "artemis_py"},
        "info": {"product": "artemis_py", "vendor": "artemis_py", "version": OUR_VERSION, "proxy": {}, "jmx": {}},
    }


# ---- read ------------------------------------------------------------------------------------------------------------

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


# ---- search and list -------------------------------------------------------------------------------------------------

_SENTENCES: Final = {
    "broker": "The broker",
    "acceptors": "A port on which clients connect",
    "address": "An address",
    "queue": "A queue",
    "divert": "A divert",
    "bridge": "A bridge to another broker",
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
