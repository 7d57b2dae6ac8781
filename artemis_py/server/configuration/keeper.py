"""The configuration of a running broker: what is in force, and the reload that changes it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

from artemis_py.config.changes.change import NOW, WHEN_IDLE, Change, Plan
from artemis_py.config.changes.remembered import FORCE
from artemis_py.config.settings import AddressConfig, BrokerConfig
from artemis_py.core.broker import Broker
from artemis_py.core.notifications import CONFIGURATION_REFUSED, CONFIGURATION_RELOADED, Fields
from artemis_py.core.reload import Redeployment
from artemis_py.errors import ArtemisError, BrokerError, Problem
from artemis_py.management.affected import ROWS_MAX, Affected, affected_by
from artemis_py.management.lists.field import Row
from artemis_py.management.managed import Steps
from artemis_py.server.calls import Calls
from artemis_py.server.clocks import wall_clock_ms
from artemis_py.server.configuration.pending import after, as_running, still_pending
from artemis_py.server.configuration.reading import Reading, Source, Stamps, problems_of, read, stamps_of, warnings_of
from artemis_py.server.configuration.watch import ConfigurationWatch
from artemis_py.server.gate import SecurityGate
from artemis_py.server.long_answers import LongAnswers
from artemis_py.server.operational_log import LOGGER_NAME
from artemis_py.server.ports import Ports
from artemis_py.server.stats import ServerStats
from artemis_py.server.turns import Turns
from artemis_py.shown import quoted
from artemis_py.stomp.service import StompService

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


def told(problem: Problem) -> str:
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
    changes: Sequence[Change] = ()
    """What the last reload that changed something has changed."""
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
            first = told(self.problems[0])
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
            "problems": [told(each) for each in self.problems[:_SHOWN_MAX]],
            "failures": list(self.failures),
            "pendingRestart": [str(each) for each in self.pending[:_SHOWN_MAX]],
            "reloads": dict(self.counts),
        }


# ---- keeper ----------------------------------------------------------------------------------------------------------
#
# Keeps the configuration of a running broker: reads it again when asked, and brings it into force.


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
class ConfigurationKeeper:
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
        gate: SecurityGate | None,
    ) -> None:
        now = wall_clock_ms()
        self.state = ConfigurationState(config.file, now, now)
        self.calls: Calls | None = None
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
        self.answers: Final = LongAnswers(ports.http.ask_again, connections, isolation, self._carry_out)
        """What ends with the right to it."""
        turns.stats.configuration = self.state
        self._gate = gate
        self._held: set[str] = set()
        """Queues that may need a restart to become what the file says."""
        self._lock = asyncio.Lock()
        self._next: asyncio.Task[dict[str, Any]] | None = None
        """A reload that waits for its turn."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._watch: ConfigurationWatch | None = None

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
            _note_failures(self.state, [told(each) for each in broker.kept_back.values()])
        period_ms = self._start.configuration_file_refresh_period
        if self._source is None or period_ms <= 0:
            return
        watch = self._watch = ConfigurationWatch(self._loop, self._source.path, period_ms / 1000, self.reload_soon)
        self._run(watch.begin(self._in_force.files, self._first_stamps))
        self.state.is_watched = True

    def end(self) -> None:
        """Read nothing any more."""
        if self._watch is not None:
            self._watch.end()
        for task in list(self._tasks):
            task.cancel()

    def reload(self) -> asyncio.Task[dict[str, Any]]:
        """Read the files and bring them into force. The result tells what came of it. Raises BrokerError if the broker
        was not started from a file, and in the task if the files are refused.
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
        """For ``/health``: what an operator must see to, of ports, logins and the configuration."""
        complaints = [f"a file of users is not in force as it is: {why}" for why in self._stats.login_complaints()]
        return self._ports.warnings() + complaints + self.state.warnings()

    def _now_ms(self) -> int:
        return self._turns.isolation.turn_ms

    def _named_source(self) -> Source:
        if self._source is None:
            raise BrokerError("this broker was not started from a file, so there is none to read again")
        return self._source

    def reload_soon(self) -> None:
        """A signal, or a file that has changed: nobody waits for the result, which the log tells."""
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
            raise BrokerError(_refusal(error)) from None
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
        if changes:
            state.changes = changes
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
        realms = None if self._gate is None else self._gate.desk.authenticator
        return await self._loop.run_in_executor(None, read, source, self._start, self._in_force, prepare, realms)

    async def _bring_into_force(self, reading: Reading) -> tuple[Redeployment, Sequence[str]]:
        """Permissions and logins, then in the order of Artemis: settings, diverts, deletions, declarations, acceptors.
        What goes on for long ends with the right to it before anything else changes.
        """
        self._in_force = config = reading.in_force
        if self._gate is not None:
            self._gate.authorizer.use(config)
            if reading.authenticator is not None:
                self._gate.desk.use(reading.authenticator)
            await self.answers.ask_again()
        redeployment = self._broker.redeploy(config, self._now_ms, self._disconnect)
        await self._carry_out(redeployment.run())
        _begin_fills(self._turns)
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
            raise BrokerError(_refusal(error)) from None
        plan = as_running(reading.plan, self._broker, reading.in_force)
        affected = Affected()
        await self._carry_out(affected_by(self._broker, reading.in_force, affected))
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
        first = told(state.problems[0])[:_TOLD_MAX] if count else ""
        self._notify(CONFIGURATION_REFUSED, {"file": state.file, "problem": first, "problems": count})

    def _tell_problem(self, problem: Problem, meaning: str) -> None:
        place = {"line": problem.line} if problem.line else {}
        fields = {"file": problem.file or self.state.file, **place, "problem": told(problem)}
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
        turns.replays.fills.begin()


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


def _refusal(error: Exception) -> str:
    problems = [told(problem) for problem in problems_of(error)]
    return "the configuration is refused, and nothing has changed: " + "; ".join(problems)


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

    __slots__ = ("_keeper",)

    def __init__(self, keeper: ConfigurationKeeper) -> None:
        self._keeper = keeper

    def reload(self) -> Steps:
        """Read it again and bring it into force."""
        return _waited_for(self._keeper.reload)

    def diff(self) -> Steps:
        """What that would change."""
        return _waited_for(self._keeper.diff)

    def show(self) -> Row:
        """What is in force, and what is wrong with the file as it is now."""
        return self._keeper.state.row()


def _waited_for(begin: Callable[[], asyncio.Task[dict[str, Any]]]) -> Steps:
    task = begin()
    if not task.done():
        yield task
    return task.result()
