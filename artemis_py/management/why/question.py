"""A question about the broker, an address or a queue, with the findings so far, and what several questions need.

A finding is a reason that applies now: its word, a sentence, numbers, and the setting behind it with its line of
broker.xml.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any, Final, NamedTuple, TypeVar, final
from weakref import WeakKeyDictionary

from artemis_py.config.settings import AcceptorConfig, BrokerConfig
from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.core_settings import CoreSettings
from artemis_py.config.tables.declarations import QUEUE_DEFAULTS, Origin, QueueConfig
from artemis_py.config.tables.fields import Setting, settings_of, show
from artemis_py.core.addresses.address import Address
from artemis_py.core.consumer import Consumer
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.why import Reason
from artemis_py.core.tasks import Step
from artemis_py.errors import BrokerError
from artemis_py.management.listing import NUMBER, TEXT, Field, Kind
from artemis_py.management.managed import Managed
from artemis_py.management.why.causes import CAUSES, OF_ADDRESS, OF_BROKER, Cause

# ---- the setting behind a reason -----------------------------------------------------------------


_OF_ADDRESS: Final = settings_of(AddressSettings)
_OF_BROKER: Final = settings_of(CoreSettings)
_OF_QUEUE: Final = settings_of(QueueConfig)
DEFAULT: Final = "default"
MADE: Final = "the queue itself, as a client or operator made it"


_STEP: Final = 200
_LEARNED: Final[WeakKeyDictionary[BrokerConfig, dict[tuple[str, str], QueueConfig]]] = WeakKeyDictionary()
"""The declared queues of each configuration, by address and name."""


class Place(NamedTuple):
    """A setting with its value, and where it is written: ``broker.xml:12``, ``default``, or ``address-setting orders.#
    at broker.xml:12``. The texts are empty where no setting is behind a reason.
    """

    setting: str = ""
    value: str = ""
    where: str = ""


NOWHERE: Final = Place()


def place_of(config: BrokerConfig, cause: Cause, address: Address | None, queue: Queue | None, name: str = "") -> Place:
    """The place of a setting of a cause: of the one called ``name``, else of the first that somebody has written, else
    of the first.
    """
    places = [_place(config, cause.scope, one, address, queue) for one in ((name,) if name else cause.settings)]
    places = [one for one in places if one.setting]
    return next((one for one in places if one.where != DEFAULT), places[0] if places else NOWHERE)


def of_acceptor(acceptor: AcceptorConfig, name: str) -> Place:
    """A parameter of an acceptor, at the acceptor's line."""
    return Place(name, str(acceptor.int_param(name)), f"{acceptor.origin} (acceptor {acceptor.name})")


def _place(config: BrokerConfig, scope: str, name: str, address: Address | None, queue: Queue | None) -> Place:
    if scope == OF_BROKER:
        return of_broker(config, name)
    if scope != OF_ADDRESS and queue is not None and name in _OF_QUEUE:
        return _of_queue(config, name, queue)
    home = queue.address.name if queue is not None else "" if address is None else address.name
    return _of_address(config, name, home)


def of_broker(config: BrokerConfig, name: str) -> Place:
    """A setting of the whole broker."""
    row = _OF_BROKER.get(name)
    if row is None:
        return NOWHERE
    return Place(name, _text(row, getattr(config, row.attribute)), _where(config.origins.get(row.attribute)))


def _of_address(config: BrokerConfig, name: str, address: str) -> Place:
    row = _OF_ADDRESS.get(name)
    if row is None:
        return NOWHERE
    value = _text(row, getattr(config.settings_for(address), row.attribute))
    for entry in config.address_settings.candidates(address):
        if row.attribute in entry.values:
            where = _where(entry.origins.get(row.attribute, entry.origin))
            return Place(name, value, f"{where} (address-setting {entry.match})")
    return Place(name, value, DEFAULT)


def _of_queue(config: BrokerConfig, name: str, queue: Queue) -> Place:
    """The queue's own attribute, else the address-setting that gives its default."""
    row = _OF_QUEUE[name]
    declared = _declared(config, queue)
    if declared is not None and dict(declared.origins).get(row.attribute) is not None:
        return Place(name, _text(row, getattr(declared, row.attribute)), _where(declared.origin_of(row.attribute)))
    if row.attribute in queue.attributes:
        return Place(name, _text(row, queue.attributes[row.attribute]), MADE)
    default = QUEUE_DEFAULTS.get(row.attribute)
    if default is not None:
        return _of_address(config, default.replace("_", "-"), queue.address.name)
    if name == "filter" and queue.selector is not None:
        return Place(name, queue.selector.text, MADE)
    return Place(name, _text(row, row.default), DEFAULT)


def learn_queues(config: BrokerConfig) -> Iterator[None]:
    """Note which queues broker.xml declares, some in each step; once for each configuration."""
    if config in _LEARNED:
        return
    known: dict[tuple[str, str], QueueConfig] = {}
    for place, address in enumerate(config.addresses):
        for start in range(0, len(address.queues), _STEP):
            known.update({(address.name, one.name): one for one in address.queues[start : start + _STEP]})
            if len(address.queues) > _STEP:
                yield
        if not place % _STEP:
            yield
    _LEARNED[config] = known


def _declared(config: BrokerConfig, queue: Queue) -> QueueConfig | None:
    """What broker.xml says of the queue; None if nothing."""
    return _LEARNED.get(config, {}).get((queue.address.name, queue.name))


def _where(origin: Origin | None) -> str:
    """File and line; the file alone where no line is known, or where an operator set it."""
    return DEFAULT if origin is None else str(origin) if origin.line else origin.file


def _text(row: Setting, value: Any) -> str:
    text = show(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{text} {row.unit}" if is_number and row.unit and value != -1 else text


UNKNOWN: Final = -1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """``about`` is whom it is about, such as a consumer; empty: the queue or address that was asked for. ``used`` of
    ``limit`` are in ``unit``; -1: there is no such number. ``connection`` is the number of a client's connection; 0:
    none.
    """

    code: str
    sentence: str
    about: str = ""
    connection: int = 0
    used: int = UNKNOWN
    limit: int = UNKNOWN
    unit: str = ""
    place: Place = NOWHERE
    help: str = ""
    """What helps in this case; empty: what the table says."""

    @property
    def remedy(self) -> str:
        """What helps."""
        return self.help or CAUSES[self.code].remedy

    def saying(self, sentence: str) -> Finding:
        """The same in other words."""
        return replace(self, sentence=sentence)

    @property
    def text(self) -> str:
        """The sentence, with whom it is about."""
        return f"{self.about}: {self.sentence}" if self.about else self.sentence


REASONS: Final[Kind[Finding]] = Kind(
    "reason",
    "reasons",
    [
        Field("reason", TEXT, "The reason's word (docs/why.md)", lambda it: it.code, is_brief=True),
        Field("about", TEXT, "Whom it is about; empty: what was asked for", lambda it: it.about, is_brief=True),
        Field("sentence", TEXT, "The reason in words", lambda it: it.sentence, is_brief=True),
        Field("connection", NUMBER, "The number of the client's connection; 0: none", lambda it: it.connection),
        Field("used", NUMBER, "How much is used, or how often it happened; -1: nobody counts", lambda it: it.used),
        Field("limit", NUMBER, "Of how much; -1: no limit", lambda it: it.limit),
        Field("unit", TEXT, "The unit of both", lambda it: it.unit),
        Field("setting", TEXT, "The setting behind it; empty: none", lambda it: it.place.setting, is_brief=True),
        Field("value", TEXT, "Its value in force", lambda it: it.place.value, is_brief=True),
        Field("place", TEXT, "Where it is written, such as broker.xml:12", lambda it: it.place.where, is_brief=True),
        Field("remedy", TEXT, "What helps", lambda it: it.remedy, is_brief=True),
    ],
)


Owner = TypeVar("Owner")
LOOKS_PER_STEP: Final = 200
LINES_MAX: Final = 8
"""So many consumers, queues or addresses are named, and the rest is counted."""
_NAMES: Final = re.compile(r"\b(ADDRESS|QUEUE)\b")
Findings = Generator[Step, None, None]


@final
class Question:
    """One question. ``findings`` has the reasons, the first the most important."""

    def __init__(self, managed: Managed, address: Address | None = None, queue: Queue | None = None) -> None:
        self.managed = managed
        self.broker = managed.broker
        self.address = address_of(queue) if queue is not None else address
        self.queue = queue
        self.findings: list[Finding] = []

    @property
    def now_ms(self) -> int:
        """The date of the turn, in epoch ms; outside of turns, that of the last one."""
        return self.managed.now_ms() or self.broker.log.now_ms

    def add(  # noqa: PLR0913 - all but the first two are named where they are given
        self,
        code: str,
        sentence: str,
        *,
        about: str = "",
        connection: int = 0,
        used: int = UNKNOWN,
        limit: int = UNKNOWN,
        unit: str = "",
        setting: str = "",
        queue: Queue | None = None,
        address: Address | None = None,
        place: Place | None = None,
        help: str = "",
    ) -> None:
        """Note a reason. ``setting`` is the one of the cause's settings that leads to it, if that is known; ``place``
        is where it is, if it is not of an address, a queue or the broker.
        """
        of_queue = queue if queue is not None else self.queue if address is None else None
        of_address = address or self.address
        place = place or place_of(self.broker.config, CAUSES[code], of_address, of_queue, setting)
        self.findings.append(
            Finding(
                code=code, sentence=sentence, about=about, connection=connection, used=used, limit=limit, unit=unit,
                place=place, help=help or _named(CAUSES[code].remedy, of_address, of_queue),
            )
        )  # fmt: skip

    def add_reason(
        self,
        reason: Reason | None,
        *,
        about: str = "",
        connection: int = 0,
        more: str = "",
        setting: str = "",
        place: Place | None = None,
    ) -> None:
        """Note a reason that the core gives, if there is one."""
        if reason is None:
            return
        used, limit = _numbers(reason)
        unit = "messages" if used >= 0 else ""
        self.add(
            reason.kind, reason.text + more, about=about, connection=connection, used=used, limit=limit, unit=unit,
            setting=setting, place=place,
        )  # fmt: skip

    def describe(self, consumer: Consumer) -> str:
        """A consumer by its number, and what is known of its client."""
        reader = consumer.reader
        known = [f"client-id {reader.client_id}"] if reader.client_id else []
        known += [f"user {reader.user}"] if reader.user else []
        client = self.managed.health.client_of(consumer.owner)
        known += [f"from {client.address}"] if client is not None else []
        return f"consumer {consumer.id}" + (f" ({', '.join(known)})" if known else "")


def _named(remedy: str, address: Address | None, queue: Queue | None) -> str:
    """A remedy with the names that its commands need, as far as they are known; a name may have any characters."""
    named = {"ADDRESS": address, "QUEUE": queue}

    def name(match: re.Match[str]) -> str:
        thing = named[match[0]]
        return match[0] if thing is None else quote(thing.name)

    return _NAMES.sub(name, remedy)


def _numbers(reason: Reason) -> tuple[int, int]:
    """How much is used, and of how much, as far as the reason says."""
    fields = reason.fields
    names = ("held", "in_delivery", "unwanted", "active", "leased", "consumers", "behind")
    used = next((fields[name] for name in names if name in fields), UNKNOWN)
    limit = next((fields[name] for name in ("max_backlog", "target", "consumers_min") if name in fields), UNKNOWN)
    return (used if isinstance(used, int) else UNKNOWN), (limit if isinstance(limit, int) else UNKNOWN)


def connections(count: int) -> str:
    """So many connections wait, in words."""
    return "1 connection waits" if count == 1 else f"{count:,} connections wait"


def address_of(queue: Queue) -> Address:
    """The address on which a queue is."""
    assert isinstance(queue.address, Address)
    return queue.address


def some_at_a_time(owners: Sequence[Owner]) -> Iterator[list[Owner]]:
    """The owners, as many at a time as a step may look at."""
    for start in range(0, len(owners), LOOKS_PER_STEP):
        yield list(owners[start : start + LOOKS_PER_STEP])


def listed(names: Sequence[str]) -> str:
    """Some names, and how many more there are."""
    listed_names = ", ".join(names[:LINES_MAX]) or "none"
    return listed_names if len(names) <= LINES_MAX else f"{listed_names} and {len(names) - LINES_MAX} more"


def full_disk(question: Question) -> tuple[str, dict[str, Any]]:
    """The fullest disk that the broker writes to, and its figures for a finding; no figures if the system does not give
    them.
    """
    stored = question.managed.stored
    try:
        spaces = () if stored is None else stored.spaces()
    except BrokerError:
        spaces = ()
    if not spaces:
        return "a disk of the broker is full", {}
    fullest = min(spaces, key=lambda space: space.left_bytes)
    config = question.broker.config
    text = f"the disk of {fullest.directory} is full: {fullest.used_percent} % of it is used"
    if config.min_disk_free >= 0:
        text += f", and {fullest.free_bytes:,} bytes are free"
        return text, {"used": fullest.free_bytes, "limit": config.min_disk_free, "unit": "bytes"}
    return text, {"used": fullest.used_percent, "limit": config.max_disk_usage, "unit": "percent"}
