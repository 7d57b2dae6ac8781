"""What operations work on (``Managed``: the broker, and what they need of its server), and what they answer with.

An operation is a generator: between two of its steps the broker does other things.
"""

from __future__ import annotations

import binascii
import json
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol, TypeVar, final

from artemis_py.config.problems import nearest
from artemis_py.config.settings import AcceptorConfig, BridgeConfig
from artemis_py.core.addresses.address import Address
from artemis_py.core.broker import Broker
from artemis_py.core.operations.scan import MessageFilter, QueueScan, ScanCursor
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import Coming, Step, Task, Until
from artemis_py.core.transactions import Transaction
from artemis_py.errors import BadRequestError, LimitError, NotFoundError
from artemis_py.histogram import Histogram
from artemis_py.management.listing import Row, Selection
from artemis_py.message import LargeBody
from artemis_py.security.user_files import KnownUser
from artemis_py.uploads import BodyStore

Owner = TypeVar("Owner")
Arguments = Mapping[str, Any]
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


# ---- clients -------------------------------------------------------------------------------------


class Sender(Protocol):
    """What a client has sent to one address."""

    address: str
    begun_ms: int
    last_ms: int
    sent_count: int
    sent_bytes: int


class Connected(Protocol):
    """A client that is connected now."""

    @property
    def number(self) -> int:
        """The connection's number."""

    @property
    def address(self) -> str:
        """Host and port of the client; empty if unknown."""

    @property
    def client_id(self) -> str | None:
        """The header of CONNECT."""

    @property
    def user(self) -> str | None:
        """The login of CONNECT."""

    @property
    def version(self) -> str:
        """The version of STOMP."""

    @property
    def acceptor(self) -> AcceptorConfig:
        """The acceptor that it connected to."""

    @property
    def local_address(self) -> str:
        """Host and port of the broker that it uses; empty if unknown."""

    @property
    def proxy(self) -> tuple[str, str] | None:
        """The address of the proxy that has handed it on, and the version of the PROXY protocol: V1 or V2."""

    @property
    def begun_ms(self) -> int:
        """When it connected, in epoch ms."""

    @property
    def session(self) -> str:
        """The name of its session."""

    @property
    def is_open(self) -> bool:
        """Has it a session: is its CONNECT accepted, and is it not closing?"""

    @property
    def producers(self) -> Sequence[Sender]:
        """To which addresses it has sent lately."""

    @property
    def transactions(self) -> Sequence[tuple[str, Transaction]]:
        """Its open transactions, with their names."""

    def end(self, why: str) -> None:
        """Closes the connection with an ERROR."""

    def end_consumer(self, consumer_id: int, why: str) -> bool:
        """End one of its consumers, with an ERROR. False: it has none of this number."""

    def roll_back(self, name: str) -> Sequence[Task]:
        """Rolls one of its transactions back. Returns what is not finished. Raises BrokerError."""

    def prepare(self, name: str) -> bool:
        """Evaluates selectors that a commit needs; False: not all yet. Raises BrokerError."""

    def commit(self, name: str) -> Sequence[Task]:
        """Commits what one of its transactions has so far. Returns what is not finished. Raises BrokerError."""

    @property
    def state(self) -> str:
        """What it does."""

    @property
    def subscription_count(self) -> int:
        """How many subscriptions it has."""

    @property
    def held_bytes(self) -> int:
        """What the broker holds for it, in bytes."""


# ---- acceptors and disks -------------------------------------------------------------------------


class AcceptorState(Protocol):
    """An acceptor as it is now."""

    @property
    def config(self) -> AcceptorConfig:
        """What the file says."""

    @property
    def place(self) -> str | None:
        """Host and port on which it listens; None: it is not open."""

    @property
    def connection_count(self) -> int:
        """How many clients it serves now."""

    @property
    def connections_left(self) -> int:
        """How many more it takes; -1: any number."""


class BridgeState(Protocol):
    """A bridge as it is now."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def config(self) -> BridgeConfig:
        """What the file says."""

    @property
    def is_started(self) -> bool:
        """Is it to be connected?"""

    @property
    def state(self) -> str:
        """connected, stopping, connecting, waiting or stopped."""

    @property
    def peer(self) -> str:
        """Where it is connected to, or tries to; empty: nowhere."""

    @property
    def reason(self) -> str:
        """Why it is not connected, or has stopped."""

    @property
    def next_ms(self) -> int:
        """When it next tries to connect, in epoch ms; 0: no attempt is planned."""

    @property
    def connected_count(self) -> int:
        """How many connections it has."""

    @property
    def unconfirmed_count(self) -> int:
        """How many messages are on the way."""

    @property
    def forwarded_count(self) -> int:
        """How many messages the other broker has confirmed since the start."""

    @property
    def refused_count(self) -> int:
        """How often it has refused one."""

    @property
    def looped_count(self) -> int:
        """How often a message came back that it had forwarded."""

    @property
    def forwarded_ms(self) -> int:
        """When it last confirmed one, in epoch ms; 0: never."""

    @property
    def may_go_on(self) -> bool:
        """Has it stopped?"""

    def start(self) -> None:
        """Connect."""

    def stop(self, now_ms: int) -> None:
        """Connect no more; connections end when all that is on the way is confirmed."""


class Space(NamedTuple):
    """A directory of the broker, and the file system that it is on."""

    directory: str
    total_bytes: int
    free_bytes: int
    used_percent: int
    left_bytes: int
    """How much may be written until the disk counts as full."""


# ---- the log -------------------------------------------------------------------------------------


UNKNOWN: Final = -1


class LogCursor(NamedTuple):
    """A cursor, and how things stand. ``lag_bytes`` is ``UNKNOWN``, and ``is_overtaken`` None, where no broker runs."""

    name: str
    lsn: int
    owner: str
    moved_ms: int
    ttl_s: float
    holds: bool
    lag_bytes: int
    is_overtaken: bool | None


class Life(NamedTuple):
    """What was read of a message's life: moments in their order. ``is_whole``: to the end of the log. ``lost`` parts
    of the log could not be read, and ``left_out`` copies were not followed.
    """

    moments: Sequence[Mapping[str, Any]]
    is_whole: bool
    read_lsn: int
    log_began_ms: int
    read_bytes: int
    lost: int
    left_out: int


class ComingLife(Coming, Protocol):
    """A life that is being read."""

    def result(self) -> Life:
        """When it is there. Raises BrokerError."""


class ComingSegments(Coming, Protocol):
    """Segments of the log that are being examined."""

    def result(self) -> Sequence[dict[str, Any]]:
        """Their indexes, when they are there."""


class ComingCursors(Coming, Protocol):
    """Cursors whose lag is being computed."""

    def result(self) -> Sequence[LogCursor]:
        """Each of them, when they are there."""


class Stored(Protocol):
    """The journal, and the disks that the broker writes to."""

    @property
    def node_id(self) -> str:
        """The id of the log, which stays with the files."""

    def figures(self) -> Mapping[str, int]:
        """Figures of the journal and of the retained log, by name."""

    def spaces(self) -> Sequence[Space]:
        """The directories, with the room that they have. Raises BrokerError if the system does not say."""

    def compact(self) -> None:
        """Begin to compact all journal files but the one that is written to."""

    @property
    def is_compacting(self) -> bool:
        """Is that not done yet?"""

    def tell_life(self, message: int, after_lsn: int, seconds: float) -> ComingLife:
        """Read the life of a message from the log, outside of turns. It begins after an lsn up to which it was read
        before, or at the beginning (0). Raises BrokerError.
        """

    def read_segments(self) -> ComingSegments:
        """Look at all segments of the log, outside of turns."""

    def read_cursors(self) -> ComingCursors:
        """Look at all cursors in the log, outside of turns."""

    def remove_cursor(self, name: str) -> bool:
        """Remove a cursor. False: no cursor has this name."""


# ---- health --------------------------------------------------------------------------------------


Awaited = Address | Queue | str
"""What a client waits for: room on an address or queue, or a word of the table of causes."""


class Health(Protocol):
    """The server as it is now. Numbers count since the start."""

    @property
    def turns(self) -> int:
        """How many turns there were."""

    @property
    def turn_ns_max(self) -> int:
        """The longest turn."""

    @property
    def turn_bounds_s(self) -> Sequence[float]:
        """The upper bounds of ``turn_buckets``."""

    @property
    def turn_buckets(self) -> Sequence[int]:
        """Turns by duration: one count for each bound, and one for longer turns."""

    @property
    def sync_times(self) -> Histogram | None:
        """How long it took to make each batch durable, in ns; None if nothing is stored."""

    @property
    def durable_lsn(self) -> int:
        """Everything up to this record survives a crash."""

    @property
    def is_busy(self) -> bool:
        """Do turns take most of the time, so that work which can wait does so?"""

    def headroom_bytes(self) -> int | None:
        """How much may be written until a disk counts as full; None if nothing is stored."""

    def blocked_ns(self) -> int:
        """How long senders have waited for room, all together."""

    def client_of(self, owner: object) -> Connected | None:
        """The client that owns a consumer; None if it is gone."""

    def awaited(self) -> Iterable[tuple[Awaited, int]]:
        """What clients wait for, and how many for each."""

    def awaited_by(self, number: int) -> Awaited | None:
        """What the client with this connection waits for; None: for nothing."""


# ---- configuration, users and bodies -------------------------------------------------------------


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


class Send(Protocol):
    """Publishes a message for an operator."""

    def __call__(
        self, user: str | None, password: str | None, headers: list[tuple[str, str]], parts: Sequence[bytes]
    ) -> Steps:
        """Publish a SEND with these headers and a body in parts, for this user, who must have the right to it; None:
        for whoever may do anything. The result has ``messageID``, and whether it was ``routed``. Raises BrokerError.
        """


# ---- background jobs -----------------------------------------------------------------------------
#
# Work that goes on after its operation was answered. A restart forgets jobs, not what they did.

RUNNING: Final = "running"
DONE: Final = "done"
STOPPED: Final = "stopped"
_JOBS_KEPT_MAX: Final = 100
"""So many jobs that are over are remembered."""
_JOBS_RUNNING_MAX: Final = 20
"""So many jobs may run at the same time."""


@final
class Job:
    """One work: what it does, on which queue, when it began (epoch ms), and how far it is."""

    def __init__(self, id: int, what: str, queue: str, begun_ms: int, planned_count: int, rate: int) -> None:
        self.id = id
        self.what = what
        self.queue = queue
        self.begun_ms = begun_ms
        self.planned_count = planned_count
        """How many messages it is about."""
        self.rate = rate
        """How many messages it does in a second, at most."""
        self.ended_ms = 0
        self.state = RUNNING
        self.done: Callable[[], int] = lambda: 0
        """How many messages it has done."""
        self.remark = ""
        """What was left, and why, once it is over."""

    @property
    def is_running(self) -> bool:
        """Is it not over?"""
        return self.state == RUNNING

    def was_stopped(self) -> bool:
        """Has an operator stopped it?"""
        return self.state == STOPPED


@final
class Jobs:
    """The jobs since the start: those that run, and the last ones that are over."""

    def __init__(self) -> None:
        self.by_id: dict[int, Job] = {}
        self._last_id = 0

    def begin(self, what: str, queue: str, begun_ms: int, planned_count: int, rate: int) -> Job:
        """A new job. Raises LimitError if too many run."""
        over = [job for job in self.by_id.values() if not job.is_running]
        if len(self.by_id) - len(over) >= _JOBS_RUNNING_MAX:
            raise LimitError(f"{_JOBS_RUNNING_MAX} jobs run already; wait until one is over, or stop one")
        for job in over[: max(len(over) - _JOBS_KEPT_MAX + 1, 0)]:
            del self.by_id[job.id]
        self._last_id += 1
        job = self.by_id[self._last_id] = Job(self._last_id, what, queue, begun_ms, planned_count, rate)
        return job

    def end(self, job: Job, now_ms: int, remark: str) -> None:
        """End a job. ``remark`` is what was left, and why."""
        job.ended_ms = now_ms
        job.remark = remark
        if job.is_running:
            job.state = DONE


# ---- cursors of lists ----------------------------------------------------------------------------

_SEAL_BYTES: Final = 12
_CURSOR_MAX: Final = 8192
_ANEW: Final = "; begin without after"


@final
class Cursors:
    """Makes and reads cursors, with which clients go on behind a page of messages. A cursor has all that is needed, so
    the broker keeps nothing for a client that reads slowly or not at all.

    Each is sealed with a secret of this run: places in memory mean nothing to the next one, and a place that a client
    made up could lie anywhere in a page.
    """

    def __init__(self) -> None:
        self.run = secrets.token_hex(4)
        """A name for this run."""
        self._secret = secrets.token_bytes(16)

    def text_of(self, queue: Queue, states: Sequence[str], scan_cursor: ScanCursor) -> str:
        """The text of a cursor with which a scan of this queue goes on."""
        data = json.dumps([queue.id, list(states), list(scan_cursor)], separators=(",", ":")).encode()
        return urlsafe_b64encode(self._seal(data) + data).decode().rstrip("=")

    def scan(self, queue: Queue, states: Sequence[str], message_filter: MessageFilter, after: str) -> QueueScan:
        """A scan of a queue behind this cursor; empty: from the beginning. Raises BadRequestError."""
        if not after:
            return QueueScan(queue, states, message_filter.ids or ())
        try:
            return QueueScan(queue, states, message_filter.ids or (), self._scan_cursor(after, queue, states))
        except ValueError:
            raise BadRequestError(f"the order of queue {queue.name} is another one than when it began{_ANEW}") from None

    def _scan_cursor(self, text: str, queue: Queue, states: Sequence[str]) -> ScanCursor:
        try:
            sealed = urlsafe_b64decode(text + "=" * (-len(text) % 4)) if len(text) <= _CURSOR_MAX else b""
        except (ValueError, binascii.Error):
            sealed = b""
        data = sealed[_SEAL_BYTES:]
        if not data or not secrets.compare_digest(sealed[:_SEAL_BYTES], self._seal(data)):
            raise BadRequestError(
                f"after is not a cursor of this broker, or of an earlier run of it: give next of a page{_ANEW}"
            )
        queue_id, its_states, values = json.loads(data)
        if queue_id != queue.id:
            raise BadRequestError(f"after is a cursor of another queue than {queue.name}{_ANEW}")
        if its_states != list(states):
            raise BadRequestError(f"after is a cursor of messages that are {','.join(its_states)}: give the same which")
        return ScanCursor.of(values)

    def _seal(self, data: bytes) -> bytes:
        return blake2b(data, digest_size=_SEAL_BYTES, key=self._secret).digest()


@dataclass(frozen=True, slots=True)
# ---- all of it -----------------------------------------------------------------------------------


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
    acceptors: Callable[[], Sequence[AcceptorState]]
    stored: Stored | None
    """The files of the broker; None: it stores nothing."""
    health: Health
    """How the server does."""
    begin: Callable[[Steps], object]
    """Begins a background job. Its result is dropped."""
    jobs: Jobs = field(default_factory=Jobs)
    cursors: Cursors = field(default_factory=Cursors)
    configuration: Configuration | None = None
    """The configuration of a broker that can read it again; None: it cannot."""
    users: Users | None = None
    """None: the broker has no files that could name some."""
    bodies: BodyRoom | None = None
    """None: no acceptor says how large a message may be, so none is imported."""
    bridges: Callable[[], Mapping[str, BridgeState]] = dict
    """By name."""
    disconnect_bridge: Callable[[int, str], object] | None = None
    """End a bridge's connection by its number, and say why; it connects again. None: there are no bridges."""
    send: Send | None = None
    """None: operators cannot publish."""

    def in_a_moment(self) -> Until:
        """What a step yields that waits for something without a signal, such as the disk: it looks again after 1 ms."""
        return self.after_ms(1)

    def steady_ms(self) -> int:
        """The steady time of the turn, in ms."""
        return self.broker.clock.steady_ms(self.now_ms())

    def after_ms(self, span_ms: int) -> Until:
        """What a step yields if the work can go on after so many ms."""
        return Until(self.steady_ms() + span_ms)


Work = Callable[[Managed, Arguments], Steps]
"""The work of an operation. It raises BrokerError, at once or in a step."""


def at_once(result: Mapping[str, Any]) -> Steps:
    """The result of an operation that is done in one step."""
    yield from ()
    return result


def lookup(owners: Mapping[str, Owner], one: str, name: str) -> Owner:
    """What has this name. Raises NotFoundError, with the most similar name if there is one."""
    owner = owners.get(name)
    if owner is None:
        near = nearest(name, islice(owners, _NAMES_COMPARED_MAX))
        advice = "" if near is None else f"; did you mean {near}?"
        raise NotFoundError(f"there is no {one} {name[:_SHOWN_MAX]!r}{advice}")
    return owner
