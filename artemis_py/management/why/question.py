"""A question about the broker, an address or a queue, with the findings so far, and what several questions need."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from shlex import quote
from typing import Any, Final, TypeVar, final

from artemis_py.core.addresses.address import Address
from artemis_py.core.consumer import Consumer
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.why import Reason
from artemis_py.core.tasks import Step
from artemis_py.errors import BrokerError
from artemis_py.management.managed import Managed
from artemis_py.management.why.causes import CAUSES
from artemis_py.management.why.finding import UNKNOWN, Finding, Place, place_of

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
