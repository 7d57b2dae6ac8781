"""The beans of a broker, found by their names: the broker itself, acceptors, addresses, queues, diverts and bridges.

A bean is made when somebody asks for it. Its name has the properties in the order in which Artemis makes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Final

from artemis_py.config.settings import BrokerConfig
from artemis_py.core.queue.queue import Queue
from artemis_py.errors import BadRequestError
from artemis_py.management.artemis.attributes import (
    ACCEPTOR_ATTRIBUTES,
    ADDRESS_ATTRIBUTES,
    BRIDGE_ATTRIBUTES,
    BROKER_ATTRIBUTES,
    DIVERT_ATTRIBUTES,
    QUEUE_ATTRIBUTES,
    Attribute,
    BrokerOwner,
)
from artemis_py.management.managed import Managed

BEANS_MAX: Final = 100_000
"""So many beans may one HTTP request find."""
_BEANS_PER_STEP: Final = 50
_IMPLEMENTATION: Final = "org.apache.activemq.artemis.core.management.impl."
"""Tools tell beans apart by their Java classes; there are none here."""


@dataclass(frozen=True, slots=True, eq=False)
class BeanKind:
    """``component`` is its word in permissions: ``mops.queue.orders.pause``. ``keys`` are those of its names."""

    component: str
    java_class: str
    keys: tuple[str, ...]
    attributes: Mapping[str, Attribute]


_ON_ADDRESS: Final = ("broker", "component", "address")
BROKER: Final = BeanKind("broker", f"{_IMPLEMENTATION}ActiveMQServerControlImpl", ("broker",), BROKER_ATTRIBUTES)
ACCEPTOR: Final = BeanKind(
    "acceptors", f"{_IMPLEMENTATION}AcceptorControlImpl", ("broker", "component", "name"), ACCEPTOR_ATTRIBUTES
)
ADDRESS: Final = BeanKind("address", f"{_IMPLEMENTATION}AddressControlImpl", _ON_ADDRESS, ADDRESS_ATTRIBUTES)
QUEUE: Final = BeanKind(
    "queue",
    f"{_IMPLEMENTATION}QueueControlImpl",
    (*_ON_ADDRESS, "subcomponent", "routing-type", "queue"),
    QUEUE_ATTRIBUTES,
)
DIVERT: Final = BeanKind(
    "divert", f"{_IMPLEMENTATION}DivertControlImpl", (*_ON_ADDRESS, "subcomponent", "divert"), DIVERT_ATTRIBUTES
)
BRIDGE: Final = BeanKind(
    "bridge", f"{_IMPLEMENTATION}BridgeControlImpl", ("broker", "component", "name"), BRIDGE_ATTRIBUTES
)
KINDS: Final = (BROKER, ACCEPTOR, ADDRESS, QUEUE, DIVERT, BRIDGE)


@dataclass(frozen=True, slots=True, eq=False)
class Bean:
    """A bean: ``name`` is that of what it stands for, ``values`` are those of its keys."""

    kind: BeanKind
    name: str
    values: tuple[str, ...]
    owner: Any

    @property
    def address(self) -> str:
        """The address whose permission decides who sees it, behind the prefix."""
        return self.kind.component if self.kind is BROKER else f"{self.kind.component}.{self.name}"


class Beans:
    """The beans of one broker."""

    def __init__(self, managed: Managed, config: BrokerConfig) -> None:
        self.managed = managed
        self.domain: Final = config.jmx_domain
        self._config = config
        self._own: Final = quote(managed.name) if config.jmx_use_broker_name else "artemis"
        self._makers: Final[dict[str, Callable[[Any], Bean]]] = {
            BROKER.component: lambda _: Bean(BROKER, managed.name, (self._own,), BrokerOwner(managed, config)),
            ACCEPTOR.component: lambda it: Bean(ACCEPTOR, it.name, (self._own, "acceptors", quote(it.name)), it),
            ADDRESS.component: lambda it: Bean(ADDRESS, it.name, (self._own, "addresses", quote(it.name)), it),
            QUEUE.component: self.of_queue,
            BRIDGE.component: lambda it: Bean(BRIDGE, it.name, (self._own, "bridges", quote(it.name)), it),
            DIVERT.component: lambda it: Bean(
                DIVERT, it.name, (self._own, "addresses", quote(it.address), "diverts", quote(it.name)), it
            ),
        }

    def of_queue(self, queue: Queue) -> Bean:
        """The bean of a queue."""
        values = (
            self._own, "addresses", quote(queue.address.name), "queues", quote(queue.routing_type.lower()),
            quote(queue.name),
        )  # fmt: skip
        return Bean(QUEUE, queue.name, values, queue)

    def name_of(self, bean: Bean, *, is_canonical: bool) -> str:
        """Its whole name."""
        return f"{self.domain}:{self.properties_of(bean, is_canonical=is_canonical)}"

    @staticmethod
    def properties_of(bean: Bean, *, is_canonical: bool) -> str:
        """The properties of its name, in the order of the alphabet or in Artemis'."""
        pairs = zip(bean.kind.keys, bean.values, strict=True)
        return ",".join(f"{key}={value}" for key, value in (sorted(pairs) if is_canonical else pairs))

    def one(self, name: ObjectName) -> Bean | None:
        """The bean of a name that is no pattern."""
        if name.domain != self.domain:
            return None
        for kind in KINDS:
            if name.properties.keys() == set(kind.keys):
                values = tuple(name.properties[key] for key in kind.keys)
                bean = next((one for one in self._named(kind, unquote(values[-1])) if one.values == values), None)
                if bean is not None:
                    return bean
        return None

    def named(self, kind: BeanKind, name: str) -> Bean | None:
        """The bean of a kind that stands for what has this name; of the broker's there is one."""
        return next(self._named(kind, name), None)

    def all(self) -> Generator[None, None, list[Bean]]:
        """All beans."""
        return (yield from self.matching(ObjectName(self.domain, {}, is_open=True)))

    def matching(self, pattern: ObjectName) -> Generator[None, None, list[Bean]]:
        """The beans that a pattern stands for, found in steps. Raises BadRequestError if they are too many."""
        matches: list[Bean] = []
        if matcher_of(pattern.domain).fullmatch(self.domain) is None:
            return matches
        for kind in KINDS:
            tests = _tests(kind, pattern)
            if tests is None:
                continue
            beans = iter(self._candidates(kind, pattern))
            while some := list(islice(beans, _BEANS_PER_STEP)):
                matches += [bean for bean in some if all(test(bean.values[place]) for place, test in tests)]
                if len(matches) > BEANS_MAX:
                    raise BadRequestError(f"more than {BEANS_MAX} beans match; write a narrower pattern")
                yield
        return matches

    def _candidates(self, kind: BeanKind, pattern: ObjectName) -> Iterable[Bean]:
        """Those of a kind that may match; few if the pattern has the name."""
        last = pattern.properties.get(kind.keys[-1])
        if last is not None and not has_wildcard(last) and kind is not BROKER:
            return self._named(kind, unquote(last))
        make = self._makers[kind.component]
        return map(make, self._owners(kind))

    def _owners(self, kind: BeanKind) -> Sequence[Any]:
        broker = self.managed.broker
        if kind is QUEUE:
            return list(broker.queues.values())
        if kind is ADDRESS:
            return list(broker.addresses.values())
        if kind is ACCEPTOR:
            return self._config.acceptors
        if kind is BRIDGE:
            return list(self.managed.bridges().values())
        return list(broker.diverts.in_force.values()) if kind is DIVERT else (None,)

    def _named(self, kind: BeanKind, name: str) -> Iterator[Bean]:
        broker = self.managed.broker
        make = self._makers[kind.component]
        if kind is BROKER:
            yield make(None)
        elif kind in (QUEUE, ADDRESS):
            owner: object = broker.queues.get(name) if kind is QUEUE else broker.addresses.get(name)
            if owner is not None:
                yield make(owner)
        else:
            yield from (make(one) for one in self._owners(kind) if one.name == name)


def _tests(kind: BeanKind, pattern: ObjectName) -> list[tuple[int, Callable[[str], object]]] | None:
    """What the values of a bean must fulfil, by place; None if no bean of the kind matches."""
    properties = pattern.properties
    if not properties.keys() <= set(kind.keys) or (not pattern.is_open and len(properties) != len(kind.keys)):
        return None
    return [(kind.keys.index(key), matcher_of(value).fullmatch) for key, value in properties.items()]


# ---- names -----------------------------------------------------------------------------------------------------------
#
# Names of beans (``domain:key=value,…``) and patterns of such names, as Java's ObjectName has them. The order of the
# properties means nothing. A value in quotes has ``\"``, ``\\``, ``\*``, ``\?`` and ``\n`` for these characters. In a
# pattern, ``*`` and ``?`` stand for other characters, also inside quotes, and ``,*`` at the end allows further
# properties.


_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "*": "\\*", "?": "\\?", "\n": "\\n"}
_QUOTED_CHARACTERS: Final = re.compile(r'["\\*?\n]')
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_KEY: Final = re.compile(r"([^=,:*?]+)=")
_VALUE: Final = re.compile(r'"(?:[^"\\\n]|\\["\\*?n])*"|[^",=:\n"]*')
_TOKEN: Final = re.compile(r"\\.|.", re.DOTALL)
_ANY: Final = "*"
_ONE: Final = {"?": "."}


class BadNameError(ValueError):
    """A text is no name of a bean; the message says why, in the words of Java."""


def quote(text: str) -> str:
    """A value in quotes."""
    return '"' + _QUOTED_CHARACTERS.sub(lambda match: _ESCAPES[match[0]], text) + '"'


def unquote(value: str) -> str:
    """What a value stands for; one without quotes stands for itself."""
    if len(value) < 2 or not value.startswith('"'):
        return value
    return _ESCAPED.sub(lambda match: "\n" if match[1] == "n" else match[1], value[1:-1])


@dataclass(frozen=True)
class ObjectName:
    """A name, or a pattern of names. ``properties`` have their values as they are written, with quotes, in the order in
    which they were given. ``is_open``: may a bean have further properties?
    """

    domain: str
    properties: Mapping[str, str]
    is_open: bool = False

    @cached_property
    def is_pattern(self) -> bool:
        """Does it stand for several names?"""
        return self.is_open or _has_wildcard(self.domain) or any(map(has_wildcard, self.properties.values()))

    @property
    def canonical(self) -> str:
        """The text with the properties in the order of the alphabet."""
        parts = [f"{key}={value}" for key, value in sorted(self.properties.items())]
        return f"{self.domain}:{','.join([*parts, '*'] if self.is_open else parts)}"


def parse_name(text: str) -> ObjectName:
    """The name. Raises BadNameError."""
    domain, colon, rest = text.partition(":")
    if not colon or not rest:
        raise BadNameError("Invalid object name. Key properties cannot be empty")
    if rest == "*":
        return ObjectName(domain, {}, is_open=True)
    properties: dict[str, str] = {}
    place, is_open = 0, False
    while True:
        if rest.startswith("*", place) and rest[place + 1 : place + 2] in ("", ","):
            is_open, end = True, place + 1
        else:
            key = _KEY.match(rest, place)
            value = key and _VALUE.match(rest, key.end())
            if key is None or value is None or not value[0]:
                raise BadNameError(f"Invalid object name. {rest[place : place + 100]!r} is not a key=value")
            if key[1] in properties:
                raise BadNameError(f"Invalid object name. It has {key[1]!r} twice")
            properties[key[1]] = value[0]
            end = value.end()
        if end == len(rest):
            return ObjectName(domain, properties, is_open)
        if rest[end] != ",":
            raise BadNameError(f"Invalid object name. There must be a comma before {rest[end : end + 100]!r}")
        place = end + 1


def has_wildcard(value: str) -> bool:
    """Does a value stand for several?"""
    return _has_wildcard(_ESCAPED.sub("", value) if value.startswith('"') else value)


def _has_wildcard(text: str) -> bool:
    return "*" in text or "?" in text


def matcher_of(value: str) -> re.Pattern[str]:
    """What the values match that a pattern's value stands for, all with their quotes. The text behind an asterisk is
    looked for once, at its first place: so the time to match does not grow with a power of the asterisks.
    """
    tokens = _TOKEN.findall(value) if value.startswith('"') else list(value)
    parts = [""]
    for token in tokens:
        if token == _ANY:
            parts.append("")
        else:
            parts[-1] += _ONE.get(token) or re.escape(token)
    first, *others = parts
    if not others:
        return re.compile(first, re.DOTALL)
    *middle, last = others
    between = "".join(f"(?>.*?{part})" for part in middle if part)
    return re.compile(f"{first}{between}.*{last}", re.DOTALL)
