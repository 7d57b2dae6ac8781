"""What operations work on, and the shape of their work: it goes on in steps, and between two of them the broker does
other things.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Protocol, TypeVar

from artemis_py.config.problems import nearest
from artemis_py.core.broker import Broker
from artemis_py.errors import NotFoundError
from artemis_py.management.lists.connections import Connected
from artemis_py.management.lists.field import Row
from artemis_py.management.lists.selection import Selection
from artemis_py.management.why.vitals import Vitals

Owner = TypeVar("Owner")
Given = Mapping[str, Any]
"""The arguments by name; all are there."""
Result = Row | Selection[Any]
WAIT: Final = True
"""What a step yields if the work can only go on in another turn."""


@dataclass(frozen=True, slots=True)
class Pause:
    """What a step yields if the work can go on after so many ms, and not before."""

    span_ms: int


Steps = Generator[bool | Pause | None, None, Result]
_SHOWN_MAX: Final = 200
_NAMES_COMPARED_MAX: Final = 1_000


class Configuration(Protocol):
    """What operators ask about the configuration. The works raise BrokerError."""

    def reload(self) -> Steps:
        """Read it again and bring it into force."""

    def diff(self) -> Steps:
        """What that would change."""

    def show(self) -> Row:
        """What is in force, and what is wrong with the file as it is now."""


@dataclass(frozen=True, slots=True)
class Managed:
    """The broker, its name, the clients that are connected, and for how long it runs."""

    broker: Broker
    name: str
    clients: Callable[[], Sequence[Connected]]
    """Those that are connected, in no order."""
    client_count: Callable[[], int]
    uptime_ms: Callable[[], int]
    now_ms: Callable[[], int]
    """The date of the turn, in epoch ms."""
    close: Callable[[int], bool]
    """Closes the connection of this number; False: there is none."""
    vitals: Vitals
    """How the server does."""
    configuration: Configuration | None = None
    """The configuration of a broker that can read it again; None: nobody keeps one."""


Work = Callable[[Managed, Given], Steps]
"""The work of an operation. It raises BrokerError, at once or in a step."""


def at_once(result: Row) -> Steps:
    """The result of a work that is done in one step."""
    yield from ()
    return result


def found(owners: Mapping[str, Owner], one: str, name: str) -> Owner:
    """What has this name. Raises NotFoundError, with the most similar name if there is one."""
    owner = owners.get(name)
    if owner is None:
        near = nearest(name, islice(owners, _NAMES_COMPARED_MAX))
        advice = "" if near is None else f"; did you mean {near}?"
        raise NotFoundError(f"there is no {one} {name[:_SHOWN_MAX]!r}{advice}")
    return owner
