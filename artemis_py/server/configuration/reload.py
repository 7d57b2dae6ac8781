"""The configuration of a running broker: what is in force, and the reload that changes it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, final

from artemis_py.config.changes import (
    ADDED,
    CHANGED,
    FORCE,
    NOW,
    QUEUE_ATTRIBUTES,
    REMOVED,
    RESTART,
    WHEN_IDLE,
    Change,
    Plan,
    divert_changes,
    held_back,
)
from artemis_py.config.settings import AddressConfig, AddressSettings, BrokerConfig, QueueConfig
from artemis_py.config.tables.fields import settings_of, show
from artemis_py.config.tables.queue_settings import QueueSettings
from artemis_py.core.broker import Broker
from artemis_py.core.notifications import CONFIGURATION_REFUSED, CONFIGURATION_RELOADED, Fields
from artemis_py.core.queue.attributes import declaration_of
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.recipe import own_settings
from artemis_py.core.reload import Redeployment
from artemis_py.errors import ArtemisError, BrokerError, Problem, RefusedConfigurationError
from artemis_py.management.listing import Row
from artemis_py.management.managed import Steps
from artemis_py.management.reload_impact import ROWS_MAX, Impact, impact_of
from artemis_py.server.bridges.bridge import Bridges
from artemis_py.server.configuration.file_watch import FileWatch
from artemis_py.server.configuration.reading import Reading, Source, Stamps, problems_of, read, stamps_of, warnings_of
from artemis_py.server.operational_log import LOGGER_NAME
from artemis_py.server.operator_requests import OperatorRequests
from artemis_py.server.ports import Ports
from artemis_py.server.security import RightsCheck, Security
from artemis_py.server.stats import ServerStats
from artemis_py.server.turns import Turns
from artemis_py.server.wall_clock import wall_clock_ms
from artemis_py.stomp.service import StompService
from artemis_py.terminal_output import quoted

# ---- pending restart -------------------------------------------------------------------------------------------------
#
# What the file says of queues and diverts and only a restart brings into force: of those that are there, as they are. A
# comparison of two files does not tell it. A queue may have been deleted and made again meanwhile, may have stayed as
# it was at the start, or may be what the file says already.


_QUEUE: Final = "queue"
_SETTING: Final = "address-setting"
_DIVERT: Final = "divert"
_ADDRESS: Final = "address"
_OF_QUEUE: Final = {row.attribute: row.name for row in settings_of(QueueConfig).values()}
_OF_ADDRESS: Final = {row.name: row.attribute for row in settings_of(AddressSettings).values()}
_BACK: Final = "it was deleted while the broker ran, and comes back"
_OPERATED: Final = "an operator changed it while the broker ran, and the file counts again"
_LEFT: Final = "stays until then: config-delete-diverts is OFF"
_MOVES_NOT: Final = "a queue does not move: with messages it stays, without any a restart creates it anew"


def as_running(plan: Plan, broker: Broker, config: BrokerConfig) -> Plan:
    """The same changes, as far as things are as the file said before: queues that are already what they are to be need
    no restart, and what an operator has deleted comes back, or is changed back. ``config`` is the new one.
    """
    declared = _declared(config)
    changes = [
        replace(change, effect=NOW, note="")
        if change.part == _QUEUE
        and change.effect == RESTART
        and change.setting not in _held_settings(broker.queues.get(change.name), declared.get(change.name))
        else change
        for change in plan.changes
    ]
    told = {(change.part, change.name) for change in changes}
    back = [(_ADDRESS, each.name, each.origin) for each in config.addresses if each.name not in broker.addresses]
    back += [(_QUEUE, name, each.origin) for name, each in declared.items() if name not in broker.queues]
    diverts = broker.diverts.in_force
    back += [(_DIVERT, each.name, each.origin) for each in config.diverts if each.name not in diverts]
    changes += [
        Change(part=part, name=name, action=ADDED, effect=NOW, note=_BACK, origin=origin)
        for part, name, origin in back
        if (part, name) not in told
    ]
    decided = {(change.part, change.name, change.setting) for change in changes}
    for each in config.diverts:
        for change in divert_changes(diverts.get(each.name, each), each, _OPERATED):
            if not decided & {(_DIVERT, each.name, ""), (_DIVERT, each.name, change.setting)}:
                changes.append(change)
    return Plan(tuple(changes))


def still_pending(
    changes: Sequence[Change], broker: Broker, config: BrokerConfig, held: set[str], left_diverts: Iterable[str]
) -> tuple[Change, ...]:
    """What waits for a restart. ``changes`` are those of the file since the start. ``held`` names the queues that may
    be otherwise than ``config`` says; those that are not are taken out. ``left_diverts`` are there undeclared.
    """
    declared = _declared(config)
    waiting: dict[str, frozenset[str]] = {}
    for name in sorted(held):
        found = _held(broker.queues.get(name), declared.get(name))
        if found:
            waiting[name] = found
    held.intersection_update(waiting)
    attributes = frozenset(attribute for found in waiting.values() for attribute in found)
    left = dict.fromkeys(left_diverts)
    rows: list[Change] = []
    by_setting: set[str] = set()
    by_file: set[str] = set()
    for change in changes:
        if change.part == _DIVERT:
            if change.name in left:
                del left[change.name]
                rows.append(change)
        elif change.part == _SETTING:
            attribute = QUEUE_ATTRIBUTES.get(_OF_ADDRESS[change.setting])
            if attribute in attributes:
                by_setting.add(attribute)
                rows.append(change)
        elif change.part != _QUEUE:
            rows.append(change)
        elif change.setting in {_OF_QUEUE.get(each, each) for each in waiting.get(change.name, ())}:
            by_file.add(change.name)
            rows.append(change)
    rows += [Change(part=_DIVERT, name=name, action=REMOVED, effect=RESTART, note=_LEFT) for name in left]
    for name, found in waiting.items():
        if name not in by_file:
            rows += _rows_of(broker.queues[name], declared.get(name), found, by_setting)
    return tuple(rows)


def after(plan: Plan, pending: Sequence[Change]) -> list[Change]:
    """What would wait for a restart if ``plan`` were carried out, where ``pending`` waits already."""
    decided = {(change.part, change.name, change.setting) for change in plan.changes}
    earlier = [each for each in pending if (each.part, each.name, each.setting) not in decided]
    return [*plan.need_restart, *earlier]


def _declared(config: BrokerConfig) -> dict[str, QueueConfig]:
    return {queue.name: queue for address in config.addresses for queue in address.queues}


def _wanted(queue: Queue, declared: QueueConfig | None) -> QueueSettings:
    is_declared = declared is not None or not queue.auto_created
    return own_settings(declared or declaration_of(queue), queue.address.settings, declared=is_declared)


def _held(queue: Queue | None, declared: QueueConfig | None) -> frozenset[str]:
    """The attributes of a queue that are not what they are to be, and need a restart."""
    if queue is None:
        return frozenset()
    if declared is not None and declared.address != queue.address.name:
        return frozenset((_ADDRESS,))
    return held_back(queue.own, _wanted(queue, declared))


def _held_settings(queue: Queue | None, declared: QueueConfig | None) -> set[str]:
    return {_OF_QUEUE.get(attribute, attribute) for attribute in _held(queue, declared)}


def _rows_of(
    queue: Queue, declared: QueueConfig | None, held: frozenset[str], by_setting: set[str]
) -> Iterator[Change]:
    """What waits of one queue, but for attributes of which the row of an address-setting tells it."""
    if declared is None:
        return
    if _ADDRESS in held:
        yield Change(
            part=_QUEUE, name=queue.name, action=CHANGED, effect=RESTART, setting=_ADDRESS, old=queue.address.name,
            new=declared.address, note=_MOVES_NOT, origin=declared.origin,
        )  # fmt: skip
        return
    wanted = _wanted(queue, declared)
    for attribute in sorted(held):
        if attribute in by_setting and getattr(declared, attribute) is None:
            continue
        old, new = getattr(queue.own, attribute), getattr(wanted, attribute)
        yield Change(
            part=_QUEUE, name=queue.name, action=CHANGED, effect=RESTART, setting=_OF_QUEUE[attribute],
            old=None if old is None else show(old), new=None if new is None else show(new),
            note="the queue is composed of it", origin=declared.origin_of(attribute),
        )  # fmt: skip


# ---- state -----------------------------------------------------------------------------------------------------------
#
# What is known of the configuration of a running broker: what is in force, since when, and what is wrong with the
# file as it is now.


APPLIED: Final = "applied"
UNCHANGED: Final = "unchanged"
REFUSED: Final = "refused"
PARTLY: Final = "partly"
RESULTS: Final = (APPLIED, UNCHANGED, REFUSED, PARTLY)
"""How a reload ends: everything was brought into force; nothing differs; the file is wrong, and nothing has changed;
some of it could not be done, and that stays as it was.
"""


_SHOWN_MAX: Final = 100


def shown(problem: Problem) -> str:
    """A problem for people. Some have their place in their text."""
    return str(problem) if problem.file else problem.message


@final
@dataclass
class ConfigurationState:
    """Dates are in epoch ms."""

    file: str
    read_ms: int
    """When what is in force was read."""
    tried_ms: int
    """When the file was read last, also if it was refused."""
    problems: Sequence[Problem] = ()
    """What is wrong with the file as it is now; empty if it is in force."""
    failures: Sequence[str] = ()
    """What the last reload could not do."""
    pending: Sequence[Change] = ()
    """What the file says and only a restart brings into force."""
    is_watched: bool = False
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RESULTS, 0))
    """Reloads since the start, by result."""

    @property
    def is_valid(self) -> bool:
        """Is the file as it is now in force, as far as that needs no restart?"""
        return not self.problems and not self.failures

    def warnings(self) -> list[str]:
        """For ``/health``."""
        if self.problems:
            count = len(self.problems)
            more = f" (and {count - 1} more)" if count > 1 else ""
            first = shown(self.problems[0])
            return [f"the configuration is refused, and the one read before is in force: {first}{more}"]
        return [f"the configuration is in force but for this: {failure}" for failure in self.failures[:1]]

    def row(self) -> dict[str, Any]:
        """For operators."""
        return {
            "file": self.file,
            "valid": self.is_valid,
            "readAt": self.read_ms,
            "triedAt": self.tried_ms,
            "watched": self.is_watched,
            "problems": [shown(each) for each in self.problems[:_SHOWN_MAX]],
            "failures": list(self.failures),
            "pendingRestart": [str(each) for each in self.pending[:_SHOWN_MAX]],
            "reloads": dict(self.counts),
        }


# ---- running configuration -------------------------------------------------------------------------------------------
#
# Reads the configuration of a running broker again when asked, and brings it into force.


CODE_APPLIED: Final = "CFG-1001"
CODE_REFUSED: Final = "CFG-1002"
CODE_CHANGE: Final = "CFG-1003"
CODE_LOST: Final = "CFG-1004"
_NOT_DONE: Final = "could not be done, and stays as it was"
_LINES_MAX: Final = 50
"""How many changes of one reload the log lists."""
_TOLD_MAX: Final = 500
"""How many characters of a problem a notification has."""
_CLOSED_PER_STEP: Final = 16
_FORGOTTEN_PER_STEP: Final = 100


@final
class RunningConfiguration:
    """For the event loop's thread. One reload runs at a time; those that are asked for meanwhile are one more after it.

    ``source`` is None for a broker that was not started from a file: it cannot read one again.
    """

    def __init__(
        self,
        source: Source | None,
        config: BrokerConfig,
        loop: asyncio.AbstractEventLoop,
        turns: Turns,
        ports: Ports,
        security: Security | None,
        bridges: Bridges,
    ) -> None:
        now = wall_clock_ms()
        self.state = ConfigurationState(config.file, now, now)
        self.calls: OperatorRequests | None = None
        """Carries out what a reload changes in the core."""
        self._source = source
        self._first_stamps: Final[Stamps] = () if source is None else stamps_of(source.path, config.files)
        """What the files were before anybody could know that the broker runs, and edit them."""
        self._start = config
        self._in_force = config
        self._loop = loop
        self._broker: Final[Broker] = turns.broker
        self._turns = turns
        self._ports = ports
        self._stats: Final[ServerStats] = turns.stats
        connections, isolation = turns.stats.connections, turns.isolation
        self.rights_check: Final = RightsCheck(ports.http.recheck_rights, connections, isolation, self._carry_out)
        """What ends with the right to it."""
        turns.stats.configuration = self.state
        self._security = security
        self._bridges = bridges
        self._held: set[str] = set()
        """Queues that may need a restart to become what the file says."""
        self._lock = asyncio.Lock()
        self._next: asyncio.Task[dict[str, Any]] | None = None
        """A reload that waits for the current one."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._watch: FileWatch | None = None

    # ---- what others ask -------------------------------------------------------------------------

    def begin(self) -> None:
        """Tell what the start could not do, delete what broker.xml does not declare any more, and watch its files, if
        ``configuration-file-refresh-period`` says so.
        """
        broker = self._broker
        for each in broker.lost:
            _log(
                CODE_LOST,
                {"file": each.place or self.state.file, "problem": each.message},
                "the start does not keep all messages",
            )
        if _deletes(self._in_force):
            self._run(self._delete_undeclared())
        else:
            self._held.update(broker.kept_back)
            self.state.pending = still_pending((), broker, self._in_force, self._held, ())
            _note_failures(self.state, [shown(each) for each in broker.kept_back.values()])
        period_ms = self._start.configuration_file_refresh_period
        if self._source is None or period_ms <= 0:
            return
        watch = self._watch = FileWatch(self._loop, self._source.path, period_ms / 1000, self.reload_soon)
        self._run(watch.begin(self._in_force.files, self._first_stamps))
        self.state.is_watched = True

    def end(self) -> None:
        """Read nothing any more."""
        if self._watch is not None:
            self._watch.end()
        for task in list(self._tasks):
            task.cancel()

    def reload(self) -> asyncio.Task[dict[str, Any]]:
        """Read the files and bring them into force. Returns what has changed and what failed. Raises BrokerError if
        the broker was not started from a file, and in the task if the files are refused.
        """
        source = self._named_source()
        if self._next is None:
            self._next = self._run(self._reload_in_turn(source))
        return self._next

    def diff(self) -> asyncio.Task[dict[str, Any]]:
        """What a reload would change. Raises BrokerError, as ``reload``."""
        return self._run(self._compare(self._named_source()))

    @property
    def in_force(self) -> BrokerConfig:
        """The configuration as it is in force."""
        return self._in_force

    def warnings(self) -> list[str]:
        """For ``/health``: what an operator must fix, of ports, logins and the configuration."""
        return self._ports.warnings() + self._stats.login_file_warnings() + self.state.warnings()

    def _now_ms(self) -> int:
        return self._turns.isolation.turn_ms

    def _named_source(self) -> Source:
        if self._source is None:
            raise BrokerError("this broker was not started from a file, so there is none to read again")
        return self._source

    def reload_soon(self) -> None:
        """A signal, or a file that has changed: nobody waits for the result, which is in the log."""
        if self._source is None:
            return
        task = self.reload()
        task.add_done_callback(lambda done: None if done.cancelled() else done.exception())

    def _run(self, work: Any) -> asyncio.Task[Any]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # ---- a reload --------------------------------------------------------------------------------

    async def _reload_in_turn(self, source: Source) -> dict[str, Any]:
        async with self._lock:
            self._next = None  # whoever asks from now on wants what the files say from now on
            return await self._reload(source)

    async def _reload(self, source: Source) -> dict[str, Any]:
        state = self.state
        state.tried_ms = wall_clock_ms()
        stamps = () if self._watch is None else self._watch.stamps()
        try:
            reading = await self._read(source, binds=True)
        except Exception as error:
            self._note_files(self._in_force, stamps)
            self._refused(error)
            raise _refusal(error) from None
        self._note_files(reading.config, stamps)
        state.problems = ()
        state.read_ms = state.tried_ms
        plan, before = as_running(reading.plan, self._broker, reading.in_force), self._in_force
        changes = plan.changes
        removed_count = 0
        try:
            redeployment, failures = await self._bring_into_force(reading)
        except Exception as error:  # what is done stands; the next reload or start does the rest
            state.failures = (f"the reload broke off: {type(error).__name__}: {error}",)
        else:
            state.failures = (*redeployment.failures, *failures)
            removed_count = redeployment.removed_messages
            self._held.update(redeployment.held)
            pending, left = reading.pending.need_restart, redeployment.left_diverts
            state.pending = still_pending(pending, self._broker, self._in_force, self._held, left)
        what = PARTLY if state.failures else APPLIED if changes else UNCHANGED
        state.counts[what] += 1
        self._tell_applied(what, plan)
        self._forget_soon(before, reading.config)
        return {
            "result": what,
            "file": state.file,
            "changeCount": len(changes),
            "changes": _rows(changes),
            "pendingRestart": _rows(state.pending),
            "failures": list(state.failures),
            "removedMessages": removed_count,
        }

    async def _read(self, source: Source, *, binds: bool) -> Reading:
        prepare = self._ports.prepare if binds else None
        realms = None if self._security is None else self._security.logins.authenticator
        return await self._loop.run_in_executor(None, read, source, self._start, self._in_force, prepare, realms)

    async def _bring_into_force(self, reading: Reading) -> tuple[Redeployment, Sequence[str]]:
        """Permissions and logins, then in the order of Artemis: settings, diverts, deletions, declarations, bridges,
        acceptors. What goes on for long ends with the right to it before anything else changes.
        """
        self._in_force = config = reading.in_force
        if self._security is not None:
            self._security.authorizer.use(config)
            if reading.authenticator is not None:
                self._security.logins.use(reading.authenticator)
            await self.rights_check.begin()
        redeployment = self._broker.redeploy(config, self._now_ms, self._disconnect)
        await self._carry_out(redeployment.run())
        _begin_fills(self._turns)
        self._bridges.use(config)
        ended, failures = self._ports.exchange(reading.exchange)
        for service in ended:
            await self._carry_out(self._close_connections(service))
        return redeployment, failures

    def _carry_out(self, steps: Iterator[bool | None]) -> asyncio.Future[Any]:
        assert self.calls is not None, "the server has turns before it reads its configuration again"
        return self.calls.begin(_without_result(steps), changes=True)

    async def _delete_undeclared(self) -> None:
        """What a start deletes: what takes its place, under the same name, is made then."""
        redeployment = self._broker.redeploy(self._in_force, self._now_ms, self._disconnect)
        await self._carry_out(redeployment.delete_undeclared())
        await self._carry_out(redeployment.deploy())
        _begin_fills(self._turns)
        self._held.update(redeployment.held)
        self.state.pending = still_pending((), self._broker, self._in_force, self._held, ())
        _note_failures(self.state, redeployment.failures)

    def _close_connections(self, service: StompService) -> Iterator[bool | None]:
        clients = [each for each in self._stats.connections if each.session.state.service is service]
        for closed, client in enumerate(clients, 1):
            client.dismiss("The acceptor of this connection has changed; connect again", self._now_ms())
            if closed % _CLOSED_PER_STEP == 0:
                yield None
        yield None

    def _disconnect(self, number: int, reason: str) -> None:
        client = next((each for each in self._stats.connections if each.session.state.origin == number), None)
        if client is not None:
            client.dismiss(reason, self._now_ms())
        else:
            self._bridges.disconnect(number, reason, self._now_ms())

    def _forget_soon(self, *configs: BrokerConfig) -> None:
        """Let go of what configurations declare, some at a time: all of 10,000 queues takes 10 ms. The caller is about
        to end, and refers to them no more when this begins.
        """
        self._run(_forgotten([address for config in configs for address in config.addresses]))

    # ---- a comparison ----------------------------------------------------------------------------

    async def _compare(self, source: Source) -> dict[str, Any]:
        try:
            reading = await self._read(source, binds=False)
        except ArtemisError as error:
            raise _refusal(error) from None
        plan = as_running(reading.plan, self._broker, reading.in_force)
        affected = Impact()
        await self._carry_out(impact_of(self._broker, reading.in_force, affected))
        self._forget_soon(reading.config, reading.in_force)
        return {
            "file": self.state.file,
            "changeCount": len(plan.changes),
            "changes": _rows(plan.changes),
            "affected": [row.as_row() for row in affected.rows],
            "pendingRestart": _rows(after(plan, self.state.pending)),
        }

    # ---- telling ---------------------------------------------------------------------------------

    def _note_files(self, config: BrokerConfig, read: Stamps) -> None:
        if self._watch is not None:
            self._watch.note(config.files, read)

    def _refused(self, error: Exception) -> None:
        state = self.state
        state.problems = problems_of(error)
        state.counts[REFUSED] += 1
        for problem in state.problems[:_LINES_MAX]:
            self._tell_problem(problem, "configuration refused; the one read before stays in force")
        for problem in [each for each in warnings_of(error) if each not in state.problems][:_LINES_MAX]:
            self._tell_problem(problem, "a warning; the configuration is not refused for it")
        count = len(state.problems)
        first = shown(state.problems[0])[:_TOLD_MAX] if count else ""
        self._notify(CONFIGURATION_REFUSED, {"file": state.file, "problem": first, "problems": count})

    def _tell_problem(self, problem: Problem, meaning: str) -> None:
        place = {"line": problem.line} if problem.line else {}
        fields = {"file": problem.file or self.state.file, **place, "problem": shown(problem)}
        _log(CODE_REFUSED, fields, meaning)

    def _tell_applied(self, what: str, plan: Plan) -> None:
        state = self.state
        live, pending = plan.those((NOW, WHEN_IDLE)), state.pending
        for change in live[:_LINES_MAX]:
            _log(CODE_CHANGE, {"change": str(change)}, "configuration changed")
        for change in plan.need_restart[:_LINES_MAX]:
            _log(CODE_CHANGE, {"change": str(change)}, "needs a restart")
        _note_failures(state, state.failures)
        fields = {"file": state.file, "result": what, "changes": len(live), "pending_restart": len(pending)}
        _log(CODE_APPLIED, fields, "configuration read")
        self._notify(CONFIGURATION_RELOADED, {
            "file": state.file, "result": what, "changes": len(live), "pendingRestart": len(pending),
            "failures": len(state.failures),
        })  # fmt: skip

    def _notify(self, type: str, fields: Fields) -> None:
        if self._turns.notifying is not None:
            self._turns.notifying.note(type, fields)


def _begin_fills(turns: Turns) -> None:
    """For new queues that begin in the log."""
    if turns.replays is not None:
        turns.replays.backfills.begin()


def _note_failures(state: ConfigurationState, failures: Sequence[str]) -> None:
    state.failures = tuple(failures)
    for failure in failures[:_LINES_MAX]:
        _log(CODE_REFUSED, {"file": state.file, "failure": failure}, _NOT_DONE)


async def _forgotten(declared: list[AddressConfig]) -> None:
    """Drops what may be the last references."""
    while declared:
        del declared[-_FORGOTTEN_PER_STEP:]
        await asyncio.sleep(0)


def _deletes(config: BrokerConfig) -> bool:
    """Does some address have what is not declared any more deleted?"""
    settings = ("config_delete_addresses", "config_delete_queues")
    return any(entry.values.get(name) == FORCE for entry in config.address_settings.entries for name in settings)


def _rows(changes: Sequence[Change]) -> list[dict[str, Any]]:
    return [change.as_row() for change in changes[:ROWS_MAX]]


def _refusal(error: Exception) -> RefusedConfigurationError:
    return RefusedConfigurationError(
        "the configuration is refused, and nothing has changed", [shown(problem) for problem in problems_of(error)]
    )


def _without_result(steps: Iterator[bool | None]) -> Steps:
    yield from steps
    return {}


def _log(code: str, fields: dict[str, Any], meaning: str) -> None:
    shown = " ".join(f"{name}={quoted(str(value))}" for name, value in fields.items())
    logging.getLogger(LOGGER_NAME).info("%s %s %s", code, shown, meaning)


# ---- operated --------------------------------------------------------------------------------------------------------
#
# The configuration as operators reach it.


@final
class OperatedConfiguration:
    """The ``Configuration`` of the operations."""

    __slots__ = ("_running",)

    def __init__(self, running: RunningConfiguration) -> None:
        self._running = running

    def reload(self) -> Steps:
        """Read it again and bring it into force."""
        return _waited_for(self._running.reload)

    def diff(self) -> Steps:
        """What that would change."""
        return _waited_for(self._running.diff)

    def show(self) -> Row:
        """What is in force, and what is wrong with the file as it is now."""
        return self._running.state.row()


def _waited_for(begin: Callable[[], asyncio.Task[dict[str, Any]]]) -> Steps:
    task = begin()
    if not task.done():
        yield task
    return task.result()
