"""The bridges of a broker: their connections, when they are tried again, and what operators see and do of them.

To connect is what turns do not do, so it has tasks and timers of the event loop. A bridge whose other broker is down
costs one timer; a broker without bridges, nothing.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, final
from uuid import uuid4

from artemis_py.client.retry import Pauses
from artemis_py.config.changes import without_places
from artemis_py.config.settings import BridgeConfig, BrokerConfig
from artemis_py.config.tables.bridges import ConnectorConfig
from artemis_py.errors import ArtemisError, BrokerError
from artemis_py.log_codes import BRIDGE
from artemis_py.server.bridges.connection import BridgeConnection, End, Login, find_queue
from artemis_py.server.failures import RateLimitedLog
from artemis_py.server.turns import Turns
from artemis_py.terminal_output import many

STOPPED: Final = "stopped"
STOPPING: Final = "stopping"
WAITING: Final = "waiting"
CONNECTING: Final = "connecting"
CONNECTED: Final = "connected"
_FIRST: Final = (CONNECTED, STOPPING, CONNECTING, WAITING, STOPPED)
"""Of several connections, the first of these states is that of the bridge."""
_NAMED: Final = {"caFile": "trustStorePath of the connector", "certificateFile": "keyStorePath of the connector"}
_TEXT_MAX: Final = 300
_PAUSE_S_MIN: Final = 0.1

# ---- link ------------------------------------------------------------------------------------------------------------
#
# One connection of a bridge, made again and again.


@final
class Link:
    """``state`` and ``reason`` are for operators. ``next_ms`` is the date of the next attempt; 0: none is planned."""

    def __init__(self, bridge: Bridge) -> None:
        self.state = STOPPED
        self.reason = ""
        self.next_ms = 0
        self.connection: BridgeConnection | None = None
        self._bridge = bridge
        config = bridge.config
        self._pauses = Pauses(
            config.retry_interval / 1000, config.max_retry_interval / 1000, config.retry_interval_multiplier
        )
        self._place = 0
        """Which connector is next."""
        self._tried = 0
        """How many connectors were tried since the last pause."""
        self._failures = 0
        """How often all were tried in vain."""
        self._was_connected = False
        self._suspects = self._suspected = 0
        """What the connection before has found out; see ``End``."""
        self._told = ""
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def peer(self) -> str:
        """Where it is connected to, or tries to; empty: nowhere."""
        return "" if self.state in (STOPPED, WAITING) else self._bridge.config.connectors[self._place].place

    def begin(self) -> None:
        """Connect."""
        self._failures = 0
        self._pauses.reset()
        self._connect()

    def stop(self, now_ms: int, wait_ms: int) -> None:
        """Connect no more, and end the connection when all is confirmed, or after ``wait_ms``."""
        self._give_up_attempt()
        connection = self.connection
        if connection is None or not connection.is_made:
            self.connection = None
            self._stopped("")
        else:
            self.state = STOPPING
            connection.stop(now_ms, wait_ms)

    def cut(self) -> None:
        """End at once."""
        self._give_up_attempt()
        if self.connection is not None:
            self.connection.cut()

    def _give_up_attempt(self) -> None:
        self.next_ms = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _stopped(self, reason: str) -> None:
        self.state, self.reason, self.next_ms = STOPPED, reason, 0
        self._bridge.link_stopped()

    # ---- attempts --------------------------------------------------------------------------------

    def _connect(self) -> None:
        self._timer = None
        self.next_ms = 0
        try:
            find_queue(self._bridge.turns.broker, self._bridge.config)
        except BrokerError as error:
            self.reason = str(error)
            self._tell_once(f"is not connected: {self.reason}")
            self._pause()
            return
        self.state = CONNECTING
        connector = self._bridge.config.connectors[self._place]
        self._task = self._bridge.loop.create_task(self._attempt(connector))

    async def _attempt(self, connector: ConnectorConfig) -> None:
        bridge = self._bridge
        try:
            login, context = await bridge.loop.run_in_executor(None, self._prepared, connector)
            name = connector.text("sniHost") or connector.host
            async with asyncio.timeout(connector.connect_ms / 1000):
                await bridge.loop.create_connection(
                    partial(self._new_connection, connector, login),
                    connector.host,
                    connector.port,
                    ssl=context,
                    server_hostname=None if context is None else name,
                )
        except TimeoutError:
            self._failed(f"{connector.place}: no connection within {connector.connect_ms} ms")
        except ssl.SSLError as error:
            from artemis_py.security.client_tls import why_refused

            self._failed(f"{connector.place}: {why_refused(error, _NAMED)}")
        except ConnectionRefusedError:
            self._failed(f"{connector.place}: nothing listens there")
        except OSError as error:
            self._failed(f"{connector.place}: {error.strerror or error}")
        except (ArtemisError, UnicodeError) as error:
            self._failed(f"{connector.place}: {error}")
        except Exception as error:  # else it would never be tried again
            bridge.turns.stats.faults.note(connector.place, "loop", error)
            self._failed(f"{connector.place}: {type(error).__name__}: {error}")

    def _prepared(self, connector: ConnectorConfig) -> tuple[Login, ssl.SSLContext | None]:
        """What an attempt needs of files, in another thread. Raises ArtemisError."""
        from artemis_py.security.masked import bridge_password
        from artemis_py.server.tls.context import connector_context

        broker_config, config = self._bridge.broker_config, self._bridge.config
        context = connector_context(broker_config, connector) if connector.is_tls else None
        host = connector.text("virtualHost") or connector.host
        return Login(host, config.user, bridge_password(broker_config, config), config.client_id), context

    def _new_connection(self, connector: ConnectorConfig, login: Login) -> BridgeConnection:
        bridge = self._bridge
        self.connection = BridgeConnection(
            bridge.turns,
            bridge.config,
            login,
            connector.place,
            bridge.log_id,
            connect_ms=connector.connect_ms,
            suspects=self._suspects,
            suspected=self._suspected,
            on_open=self._opened,
            on_confirmed=self._confirmed,
            on_loop=bridge.looped,
            on_end=self._ended,
        )
        return self.connection

    def _failed(self, reason: str) -> None:
        """There is no connection to one connector: try the next one, or pause."""
        self.connection = None
        connectors = self._bridge.config.connectors
        self._place = (self._place + 1) % len(connectors)
        self._tried += 1
        self.reason = reason[:_TEXT_MAX]
        if self._tried < len(connectors):
            self._connect()
            return
        self._failures += 1
        config = self._bridge.config
        limit = config.reconnect_attempts if self._was_connected else config.initial_connect_attempts
        if 0 <= limit <= self._failures:
            told = f"gave up after {many(self._failures, 'attempt')}: {self.reason}"
            self._bridge.tell(f"{told}; artemis-py bridge start {config.name} tries again")
            self._stopped(told)
            return
        self._tell_once(f"is not connected, and tries again: {self.reason}")
        self._pause()

    def _pause(self) -> None:
        self._tried = 0
        self.state = WAITING
        pause_s = self._pauses.next_s() or _PAUSE_S_MIN  # without any it would spin
        self.next_ms = self._bridge.turns.clock_ms() + round(pause_s * 1000)
        self._timer = self._bridge.loop.call_later(pause_s, self._connect)

    def _tell_once(self, text: str) -> None:
        if text != self._told:
            self._told = text
            self._bridge.tell(text)

    # ---- what the connection reports, in turns ---------------------------------------------------

    def _opened(self, connection: BridgeConnection) -> None:
        self._tried = self._failures = 0
        self._was_connected = True
        self.state, self.reason = CONNECTED, ""
        self._told = ""
        self._bridge.tell(f"is connected to {connection.peer}, and forwards queue {self._bridge.config.queue_name}")

    def _confirmed(self, count: int) -> None:
        self._pauses.reset()
        self._suspects = max(self._suspects - count, 0)
        self._bridge.confirmed(count)

    def _ended(self, connection: BridgeConnection, end: End) -> None:
        if connection is not self.connection:
            return
        self.connection = None
        self._give_up_attempt()
        self._suspects, self._suspected = end.suspects, end.suspected
        bridge = self._bridge
        if self.state == STOPPING:
            if bridge.is_started:  # again, meanwhile
                self.begin()
            else:
                self._stopped("" if end.is_orderly else end.reason)
            return
        if end.refused:
            effect = (
                "which stays, and all behind it: the queue has no dead-letter-address"
                if end.stays
                else "which counts as a failed delivery"
            )
            bridge.refused(f"was refused message {end.refused}, {effect}: {end.reason}")
        if not end.was_open:
            self._failed(f"{connection.peer}: {end.reason}")
            return
        self.reason = f"{connection.peer}: {end.reason}"[:_TEXT_MAX]
        if not (end.refused or end.suspects or end.stays):
            self._pauses.reset()
        self._tell_once(f"has lost its connection, and connects again: {self.reason}")
        self._pause()


# ---- bridge ----------------------------------------------------------------------------------------------------------


@final
class Bridge:
    """One bridge, with as many links as ``concurrency`` says. ``on_stopped`` is called when all have ended."""

    def __init__(
        self,
        config: BridgeConfig,
        broker_config: BrokerConfig,
        loop: asyncio.AbstractEventLoop,
        turns: Turns,
        log: RateLimitedLog,
        log_id: str,
    ) -> None:
        self.config = config
        self.broker_config = broker_config
        self.loop = loop
        self.turns = turns
        self.log_id = log_id
        self.is_started = False
        """Is it to be connected?"""
        self.forwarded_count = 0
        """How many messages the other broker has confirmed since the start."""
        self.refused_count = 0
        """How often it has refused one."""
        self.looped_count = 0
        """How often a message came back that it had forwarded."""
        self.forwarded_ms = 0
        """When it last confirmed one, in epoch ms; 0: never."""
        self.before: Bridge | None = None
        """Of the same name, before a reload: as long as it has not ended, this one waits."""
        self.on_stopped: Callable[[], None] | None = None
        self._log = log
        self.links = [Link(self) for _ in range(config.concurrency)]

    @property
    def name(self) -> str:
        """Its name."""
        return self.config.name

    @property
    def state(self) -> str:
        """connected, stopping, connecting, waiting or stopped."""
        states = {link.state for link in self.links}
        return next(state for state in _FIRST if state in states)

    @property
    def connected_count(self) -> int:
        """How many connections it has."""
        return sum(link.state == CONNECTED for link in self.links)

    @property
    def unconfirmed_count(self) -> int:
        """How many messages are on the way."""
        return sum(link.connection.unconfirmed_count for link in self.links if link.connection is not None)

    @property
    def reason(self) -> str:
        """Why it is not connected, or why it has stopped; empty if nobody need know."""
        return next((link.reason for link in self.links if link.reason and link.state != CONNECTED), "")

    @property
    def next_ms(self) -> int:
        """When it next tries to connect, in epoch ms; 0: no attempt is planned."""
        return min((link.next_ms for link in self.links if link.next_ms), default=0)

    @property
    def peer(self) -> str:
        """Where it is connected to, or tries to; empty: nowhere."""
        return next((link.peer for link in self.links if link.peer), "")

    def start(self) -> None:
        """Connect; links that are connected, or try to be, go on."""
        self.is_started = True
        self.on_stopped = None
        if self.before is not None and not self.before.may_go_on:
            return
        self.before = None
        for link in self.links:
            if link.state == STOPPED:
                link.begin()

    def stop(self, now_ms: int, wait_ms: int | None = None) -> None:
        """Connect no more, and take no more messages. A connection ends when all is confirmed, or after ``wait_ms``
        (None: ``pending-ack-timeout``).
        """
        self.is_started = False
        for link in self.links:
            if link.state not in (STOPPED, STOPPING):
                link.stop(now_ms, self.config.pending_ack_timeout if wait_ms is None else wait_ms)

    @property
    def may_go_on(self) -> bool:
        """Have all links ended? Whoever has stopped it waits for that."""
        return self.state == STOPPED

    # ---- what the links report -------------------------------------------------------------------

    def link_stopped(self) -> None:
        """One link has ended."""
        on_stopped = self.on_stopped
        if on_stopped is not None and self.state == STOPPED:
            self.on_stopped = None
            on_stopped()

    def confirmed(self, count: int) -> None:
        """The other broker has confirmed so many messages."""
        self.forwarded_count += count
        self.forwarded_ms = self.turns.isolation.turn_ms

    def refused(self, text: str) -> None:
        """The other broker has refused a message."""
        self.refused_count += 1
        self._write(text, "refused")

    def looped(self, numbers: list[int], effect: str) -> None:
        """These messages have come back."""
        self.looped_count += len(numbers)
        self._write(f"has forwarded message {numbers[0]} before: bridges form a loop, and it {effect}", "loop")

    def tell(self, text: str) -> None:
        """Write a line to the log."""
        self._write(text, "state")

    def _write(self, text: str, kind: str) -> None:
        name = self.name
        self._log.write(f"bridge {name} {text}", f"bridge {name} {kind}", code=BRIDGE, bridge=name)


# ---- bridges ---------------------------------------------------------------------------------------------------------


@final
class Bridges:
    """All of them. ``log_id`` is the id of the log here; None: there is no log, and ids mean something until the end of
    the process.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, turns: Turns, log: RateLimitedLog, log_id: str | None) -> None:
        self._loop = loop
        self._turns = turns
        self._log = log
        self._log_id = log_id or uuid4().hex
        self.by_name: dict[str, Bridge] = {}
        self._leaving: list[Bridge] = []
        """Bridges that a reload has removed or changed, and that have not ended."""
        self._has_ended = False

    def __iter__(self) -> Iterator[Bridge]:
        return iter(self.by_name.values())

    def use(self, config: BrokerConfig) -> None:
        """Bring into force what the file declares. A bridge that is declared otherwise begins anew when its connections
        have ended, so that messages keep their order.
        """
        now_ms = self._turns.clock_ms()
        declared = {each.name: each for each in config.bridges}
        for name, bridge in list(self.by_name.items()):
            wanted = declared.get(name)
            if wanted is not None and without_places(wanted) == without_places(bridge.config):
                bridge.broker_config = config
                continue
            del self.by_name[name]
            self._leaving.append(bridge)
            bridge.stop(now_ms)
        for name, wanted in declared.items():
            if name in self.by_name:
                continue
            bridge = Bridge(wanted, config, self._loop, self._turns, self._log, self._log_id)
            self.by_name[name] = bridge
            named = [each for each in self._leaving if each.config.name == name and not each.may_go_on]
            if named:
                bridge.before = named[-1]
                bridge.before.on_stopped = partial(self._take_over, bridge)
            bridge.start()
        self._leaving = [each for each in self._leaving if not each.may_go_on]

    def _take_over(self, bridge: Bridge) -> None:
        """The bridge before it, of the same name, has ended. One that a reload has removed meanwhile was stopped."""
        if bridge.is_started and not self._has_ended:
            bridge.start()

    def counts(self) -> dict[str, dict[str, int]]:
        """The figures of each bridge for the metrics, by its name."""
        return {
            name: {
                "started": bridge.is_started,
                "connections": bridge.connected_count,
                "pending": bridge.unconfirmed_count,
                "acknowledged": bridge.forwarded_count,
                "refused": bridge.refused_count,
                "looped": bridge.looped_count,
            }
            for name, bridge in self.by_name.items()
        }

    def disconnect(self, number: int, reason: str, now_ms: int) -> bool:
        """End the connection of this number; the bridge connects again. False: no bridge has it."""
        for bridge in (*self, *self._leaving):
            for link in bridge.links:
                connection = link.connection
                if connection is not None and connection.origin == number:
                    connection.disconnect(reason, now_ms)
                    return True
        return False

    def end(self, now_ms: int, wait_ms: int) -> None:
        """The broker stops: take no more messages, and wait so long for what is not confirmed."""
        self._has_ended = True
        for bridge in (*self, *self._leaving):
            bridge.stop(now_ms, wait_ms)

    def cut(self) -> None:
        """End at once: no further frame is sent, and nothing is given back."""
        self._has_ended = True
        for bridge in (*self, *self._leaving):
            for link in bridge.links:
                link.cut()

    def end_now(self, now_ms: int) -> None:
        """Wait no longer: what is not confirmed goes back."""
        for bridge in (*self, *self._leaving):
            for link in bridge.links:
                if link.connection is not None:
                    link.connection.disconnect("the broker stops", now_ms)

    @property
    def have_ended(self) -> bool:
        """Are all connections gone?"""
        return all(bridge.may_go_on for bridge in (*self, *self._leaving))
