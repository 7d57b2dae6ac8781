"""What operations work on, and the shape of their work: it goes on in steps, and between two of them the broker does
other things.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from artemis_py.config.problems import nearest
from artemis_py.core.broker import Broker
from artemis_py.core.tasks import Step, Until
from artemis_py.errors import NotFoundError
from artemis_py.management.jobs import Jobs
from artemis_py.management.lists.connections import Connected
from artemis_py.management.lists.field import Row
from artemis_py.management.lists.places import Port
from artemis_py.management.lists.selection import Selection
from artemis_py.management.messages.cursors import Cursors
from artemis_py.management.stored import Stored
from artemis_py.management.why.health import Health
from artemis_py.message import LargeBody
from artemis_py.security.known_users import KnownUser
from artemis_py.uploads import BodyStore

Owner = TypeVar("Owner")
Given = Mapping[str, Any]
"""The arguments by name; all are there."""


class Download(NamedTuple):
    """A body as it is, for a file with this name. ``content_type`` is what its sender says that it is."""

    body: bytes | LargeBody
    content_type: str | None
    name: str


class InPieces(NamedTuple):
    """A body that goes out as lines of ``piece``, a little at a time."""

    body: bytes | LargeBody


class Lines(NamedTuple):
    """Lines of an export, for a file with this name: whole ones, and bodies between them."""

    parts: Sequence[bytes | InPieces]
    name: str


Result = Mapping[str, Any] | Selection[Any] | Download | Lines
Steps = Generator[Step, None, Result]
_SHOWN_MAX: Final = 200
_NAMES_COMPARED_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class BodyRoom:
    """Where the bodies of imported messages go: those of ``large_bytes_min`` bytes or more into files of ``store``
    (None: all stay in memory). None may have more than ``bytes_max``. ``headers_bytes_max`` is the limit of all headers
    of one.
    """

    store: BodyStore | None
    large_bytes_min: int
    bytes_max: int
    headers_bytes_max: int


class Configuration(Protocol):
    """What operators ask about the configuration. The steps raise BrokerError."""

    def reload(self) -> Steps:
        """Read it again and bring it into force."""

    def diff(self) -> Steps:
        """What that would change."""

    def show(self) -> Row:
        """What is in force, and what is wrong with the file as it is now."""


class Users(Protocol):
    """The users that the files of the configuration name. The steps raise BrokerError."""

    def known(self) -> Generator[Step, None, Sequence[KnownUser]]:
        """All of them."""

    def is_changeable(self, user: KnownUser) -> bool:
        """Is it in the files that operations change?"""

    def last_login_ms(self, name: str) -> int:
        """When the user was last let in, in epoch ms; 0: not since the start."""

    def add(self, name: str, password: str, roles: Sequence[str], *, is_plain: bool) -> Generator[Step, None, Row]:
        """Adds a user. Returns where, and whether it counts without a restart."""

    def reset(
        self, name: str, password: str | None, roles: Sequence[str] | None, *, is_plain: bool
    ) -> Generator[Step, None, Row]:
        """Changes the password or all roles of a user; None changes nothing. Returns what ``add`` does."""

    def remove(self, name: str) -> Generator[Step, None, Row]:
        """Removes a user. Returns what ``add`` does."""


class Send(Protocol):
    """Publishes a message for an operator."""

    def __call__(
        self, user: str | None, password: str | None, headers: list[tuple[str, str]], parts: Sequence[bytes]
    ) -> Steps:
        """Publish a SEND with these headers and a body in parts, for this user, who must have the right to it; None:
        for whoever may do anything. The result has ``messageID``, and whether it was ``routed``. Raises BrokerError.
        """


@dataclass(frozen=True, slots=True)
class Managed:
    """The broker, its name, the clients that are connected, and for how long it runs."""

    broker: Broker
    name: str
    clients: Callable[[], Sequence[Connected]]
    """Those that are connected, in no order."""
    client: Callable[[int], Connected | None]
    """The one with this number."""
    client_count: Callable[[], int]
    uptime_ms: Callable[[], int]
    now_ms: Callable[[], int]
    """The date of the turn, in epoch ms."""
    acceptors: Callable[[], Sequence[Port]]
    stored: Stored | None
    """The files of the broker; None: it stores nothing."""
    health: Health
    """How the server does."""
    begin: Callable[[Steps], object]
    """Begins a background job. Its result is dropped."""
    jobs: Jobs = field(default_factory=Jobs)
    cursors: Cursors = field(default_factory=Cursors)
    configuration: Configuration | None = None
    """The configuration of a broker that can read it again; None: nobody keeps one."""
    users: Users | None = None
    """None: the broker has no files that could name some."""
    bodies: BodyRoom | None = None
    """None: no acceptor says how large a message may be, so none is imported."""
    send: Send | None = None
    """None: nobody publishes for operators."""

    def in_a_moment(self) -> Until:
        """What a step yields that waits for something which tells nobody when it is there, such as the disk."""
        return self.after_ms(1)

    def steady_ms(self) -> int:
        """The steady time of the turn, in ms."""
        return self.broker.clock.steady_ms(self.now_ms())

    def after_ms(self, span_ms: int) -> Until:
        """What a step yields if the work can go on after so many ms."""
        return Until(self.steady_ms() + span_ms)


Work = Callable[[Managed, Given], Steps]
"""The work of an operation. It raises BrokerError, at once or in a step."""


def at_once(result: Mapping[str, Any]) -> Steps:
    """The result of an operation that is done in one step."""
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
