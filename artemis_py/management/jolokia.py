"""Jolokia: requests about beans, and their answers as JSON.

Requests are answered one after the other, in steps, each with its own error: ``read`` and ``write`` for attributes,
``exec`` for operations, ``search`` for names of beans, ``list`` for descriptions of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from typing import Any, Final, TypeVar
from urllib.parse import unquote

from artemis_py.core.tasks import Step
from artemis_py.errors import BrokerError, NotAllowedError
from artemis_py.management.artemis.attributes import Attribute, with_summary
from artemis_py.management.artemis.beans import (
    BROKER,
    KINDS,
    BadNameError,
    Bean,
    BeanKind,
    Beans,
    ObjectName,
    parse_name,
)
from artemis_py.management.artemis.java import (
    Items,
    JavaError,
    RowsInText,
    compact_json,
    failed,
    illegal,
    no_attribute,
    no_instance,
)
from artemis_py.management.artemis.operations import (
    BEAN_OPERATIONS,
    BeanOperation,
    Extra,
    changes,
    find_operation,
    without_secrets,
)
from artemis_py.management.operation import EDIT, VIEW, Guard
from artemis_py.version import VERSION as OUR_VERSION

Item = TypeVar("Item")
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


# ---- requests --------------------------------------------------------------------------------------------------------
#
# With their options, from the path of a GET or the JSON of a POST.


@dataclass(frozen=True, slots=True)
class Options:
    """The options; 0 is no limit."""

    depth_max: int = 0
    collection_size_max: int = 0
    ignores_errors: bool = False
    has_request: bool = True
    is_canonical: bool = True
    uses_cache: bool = False
    mime_type: str = ""

    def changed(self, values: Mapping[str, Any]) -> Options:
        """The options, changed by those in ``values``."""
        changes = {name: convert(values[known]) for known, (name, convert) in _KNOWN.items() if known in values}
        return replace(self, **changes)


def _number(value: Any) -> int:
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _flag(value: Any) -> bool:
    return value is True or str(value).lower() == "true"


_KNOWN: Final[dict[str, tuple[str, Callable[[Any], Any]]]] = {
    "maxDepth": ("depth_max", _number),
    "maxCollectionSize": ("collection_size_max", _number),
    "ignoreErrors": ("ignores_errors", _flag),
    "includeRequest": ("has_request", _flag),
    "canonicalNaming": ("is_canonical", _flag),
    "listCache": ("uses_cache", _flag),
    "mimeType": ("mime_type", str),
}


READ: Final = "read"
WRITE: Final = "write"
EXEC: Final = "exec"
SEARCH: Final = "search"
LIST: Final = "list"
VERSION: Final = "version"
_OF_BEANS: Final = frozenset({READ, WRITE, EXEC, SEARCH})
_TYPES: Final = _OF_BEANS | {LIST, VERSION}
_ESCAPED: Final = re.compile(r"!(.)", re.DOTALL)
_SHOWN_CHARACTERS_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class JolokiaRequest:
    """One request. ``attributes`` are None for all; ``is_one``: is one of them asked for, and not a list with one?
    ``path`` leads into the value. ``is_url``: is all of it in the URL?
    """

    type: str
    mbean: ObjectName | None = None
    attributes: tuple[str, ...] | None = None
    is_one: bool = False
    operation: str = ""
    arguments: Sequence[Any] | None = None
    value: Any = None
    path: tuple[str, ...] = ()
    options: Options = field(default_factory=Options)
    is_url: bool = False

    @property
    def name(self) -> ObjectName:
        """The name of the bean, which all types have that are about beans."""
        assert self.mbean is not None
        return self.mbean

    def echo(self) -> dict[str, Any]:
        """The request as it was understood; tools match answers with requests by it."""
        echo: dict[str, Any] = {}
        if self.path:
            echo["path"] = "/".join(re.sub("[!/]", lambda one: f"!{one[0]}", part) for part in self.path)
        if self.mbean is not None:
            echo["mbean"] = self.mbean.canonical
        if self.attributes is not None:
            echo["attribute"] = self.attributes[0] if self.is_one else list(self.attributes)
        if self.arguments:
            echo["arguments"] = list(self.arguments)
        echo["type"] = self.type
        if self.operation:
            echo["operation"] = self.operation
        if self.type == WRITE:
            echo["value"] = self.value
        return echo


def of_path(path: str, options: Options) -> JolokiaRequest:
    """The request of a GET; ``path`` is what follows the base, percent-encoded. Raises JavaError."""
    type, *rest = _segments(path)
    if not type:
        return JolokiaRequest(VERSION, options=options)
    parts = [unquote(part) for part in rest]
    if type in (LIST, VERSION):
        return JolokiaRequest(type, path=_plain(parts), options=options)
    if type not in _TYPES:
        raise _unknown(type)
    least = {READ: 1, SEARCH: 1, EXEC: 2, WRITE: 3}[type]
    if len(parts) < least:
        raise illegal(f"Invalid arguments in pathinfo /{path[:_SHOWN_CHARACTERS_MAX]} for command {type.upper()}")
    name = _name(_unescaped(parts[0]))
    if type == READ:
        attributes = tuple(filter(None, parts[1].split(","))) if len(parts) > 1 else ()
        asked = tuple(map(_unescaped, attributes)) or None
        return JolokiaRequest(
            READ, name, asked, is_one=asked is not None and len(asked) == 1, path=_plain(parts[2:]), options=options
        )
    if type == EXEC:
        arguments = [_argument(part) for part in parts[2:]]
        operation = _unescaped(parts[1])
        return JolokiaRequest(EXEC, name, operation=operation, arguments=arguments, options=options, is_url=True)
    if type == WRITE:
        value = _argument(parts[2])
        return JolokiaRequest(WRITE, name, (_unescaped(parts[1]),), True, value=value, options=options)
    return JolokiaRequest(SEARCH, name, options=options)


def of_json(sent: Mapping[str, Any], options: Options) -> JolokiaRequest:
    """The request of a JSON object; ``options`` are those of the query. Raises JavaError."""
    config = sent.get("config")
    if isinstance(config, Mapping):
        options = options.changed(config)
    type = str(sent.get("type") or "").lower()
    if not type:
        raise illegal("No type given")
    if type not in _TYPES:
        raise _unknown(type)
    path = sent.get("path")
    parts = _plain(_segments(path)) if isinstance(path, str) and path else ()
    if type not in _OF_BEANS:
        return JolokiaRequest(type, path=parts, options=options)
    name = sent.get("mbean")
    if not isinstance(name, str):
        raise illegal("Object name can not be null")
    asked = sent.get("attribute")
    attributes = None if asked is None else (asked,) if isinstance(asked, str) else _texts(asked)
    arguments = sent.get("arguments")
    operation = sent.get("operation")
    if type == EXEC and not isinstance(operation, str):
        raise illegal("No operation given")
    if arguments is not None and not isinstance(arguments, list):
        raise illegal("arguments must be a list")
    return JolokiaRequest(
        type,
        _name(name),
        (attributes or None) if type in (READ, WRITE) else None,
        is_one=isinstance(asked, str),
        operation=operation if type == EXEC and isinstance(operation, str) else "",
        arguments=arguments if type == EXEC else None,
        value=sent.get("value"),
        path=parts,
        options=options,
    )


def _texts(asked: Any) -> tuple[str, ...]:
    if not isinstance(asked, list) or not all(isinstance(one, str) for one in asked):
        raise illegal("attribute must be a text or a list of texts")
    return tuple(asked)


def _unknown(type: str) -> JavaError:
    return illegal(f"No type with name {type[:_SHOWN_CHARACTERS_MAX]!r} exists; there are {', '.join(sorted(_TYPES))}")


def _name(text: str) -> ObjectName:
    try:
        return parse_name(text)
    except BadNameError as error:
        raise illegal(str(error)) from None


def _segments(path: str) -> list[str]:
    """The parts between slashes; a slash behind an exclamation mark belongs to its part."""
    parts, start, place = [], 0, 0
    while place < len(path):
        if path[place] == "!":
            place += 1
        elif path[place] == "/":
            parts.append(path[start:place])
            start = place + 1
        place += 1
    return [*parts, path[start:]]


def _plain(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(_unescaped(part) for part in parts if part)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)


def _argument(part: str) -> str | None:
    if part == "[null]":
        return None
    return "" if part == '""' else _unescaped(part)


# ---- answers ---------------------------------------------------------------------------------------------------------


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
_SHOWN_NAMES_MAX: Final = 10


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
        names = ", ".join(beans.name_of(bean, is_canonical=False) for bean in matching[:_SHOWN_NAMES_MAX])
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
    names = {kind: _Encoded(json.dumps(f"{beans.domain}:{kind.component}")) for kind in KINDS}
    domains = Entries(iter([[(beans.domain, Entries(_named(beans, visible, names, options)))]]))
    return Entries(iter([[("cache", cached), ("domains", domains)]]))


def _of_domain(beans: Beans, visible: Sequence[Bean], options: Options, *, depth: int = 0) -> Entries:
    """The beans of the domain, which lies so deep, with their descriptions."""
    infos = {kind: _Encoded(compact_json(_limited(_info_of(kind), options, depth + 1))) for kind in KINDS}
    return Entries(_named(beans, visible, infos, options))


def _named(
    beans: Beans, visible: Sequence[Bean], values: Mapping[BeanKind, _Encoded], options: Options
) -> Iterator[list[tuple[str, _Encoded]]]:
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


# ---- values ----------------------------------------------------------------------------------------------------------
#
# Limits, inner paths, and JSON in pieces, so that no answer is in memory as a whole.


_ITEMS_PER_PIECE: Final = 50


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """An object, made while it is sent, some entries at a time."""

    pieces: Iterator[list[tuple[str, Any]]]


@dataclass(frozen=True, slots=True, eq=False)
class _Encoded:
    """A value that is JSON already, because many entries share it."""

    text: str


def _limited(value: Any, options: Options, depth: int = 0) -> Any:
    """The value with shorter lists, and what lies too deep as a text. ``depth`` is how deep the value itself lies."""
    if not options.depth_max and not options.collection_size_max:
        return value
    if not isinstance(value, dict | list):
        return value
    if options.depth_max and depth >= options.depth_max:
        return "1"
    if isinstance(value, list):
        return [_limited(one, options, depth + 1) for one in value[: options.collection_size_max or None]]
    entries = islice(value.items(), options.collection_size_max or None)
    return {name: _limited(one, options, depth + 1) for name, one in entries}


def inner(value: Any, path: Sequence[str]) -> Any:
    """What a path leads to; None if there is nothing. ``*`` goes through all entries, and keeps those that go on."""
    for place, part in enumerate(path):
        if part == "*" and isinstance(value, dict):
            rest = path[place + 1 :]
            inside = {name: inner(one, rest) for name, one in value.items()}
            return {name: one for name, one in inside.items() if one is not None}
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isascii() and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def json_pieces(value: Any, options: Options) -> Iterator[str]:
    """A value as JSON, in pieces of bounded size."""
    if isinstance(value, RowsInText):
        yield '"'
        for piece in value.pieces:
            yield compact_json(piece)[1:-1]
        yield '"'
    elif isinstance(value, Entries):
        yield from _pieces_of_object(value, options)
    elif isinstance(value, Items):
        yield from _pieces_of_list(value, options)
    elif isinstance(value, list) and len(value) > _ITEMS_PER_PIECE:
        yield from json_pieces(Items(in_pieces(value)), options)
    elif isinstance(value, _Encoded):
        yield value.text
    else:
        yield compact_json(_limited(value, options))


def in_pieces(values: Sequence[Item], size: int = _ITEMS_PER_PIECE) -> Iterator[list[Item]]:
    """Some values at a time. They are let go one after the other: to free very many at once takes milliseconds."""
    left = list(values)
    del values
    left.reverse()
    while left:
        some = left[: -size - 1 : -1]
        del left[-size:]
        yield some


def _pieces_of_object(entries: Entries, options: Options) -> Iterator[str]:
    texts: list[str] = []
    separator = "{"
    for piece in _cut(entries.pieces, options):
        for name, value in piece:
            texts.append(f"{separator}{compact_json(name)}:")
            separator = ","
            if isinstance(value, Entries | Items):
                yield "".join(texts)
                yield from json_pieces(value, Options())
                texts = []
            else:
                texts.append(value.text if isinstance(value, _Encoded) else compact_json(_limited(value, options, 1)))
        yield "".join(texts)
        texts = []
    yield "{}" if separator == "{" else "}"


def _cut(pieces: Iterator[list[Any]], options: Options) -> Iterator[list[Any]]:
    left = options.collection_size_max
    if not left:
        yield from pieces
        return
    for piece in pieces:
        yield piece[:left]
        left -= len(piece[:left])
        if not left:
            return


def _pieces_of_list(items: Items, options: Options) -> Iterator[str]:
    yield "["
    separator = ""
    for piece in _cut(items.pieces, options):
        if piece:
            yield separator + ",".join(compact_json(_limited(one, options, 1)) for one in piece)
            separator = ","
    yield "]"
