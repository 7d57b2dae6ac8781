"""What operators reach of a broker, put together: the operations, their routes, events, and messages about them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from artemis_py.config.settings import BrokerConfig
from artemis_py.management.artemis.beans import Beans
from artemis_py.management.jolokia.agent import Agent
from artemis_py.management.managed import BodyRoom, Managed
from artemis_py.server.calls import Calls
from artemis_py.server.clocks import wall_clock_ms
from artemis_py.server.configuration.keeper import ConfigurationKeeper
from artemis_py.server.configuration.operated import OperatedConfiguration
from artemis_py.server.connected import client_of, connected
from artemis_py.server.disk_watch import DiskWatch
from artemis_py.server.events.hub import Hub
from artemis_py.server.events.notifying import Notifying
from artemis_py.server.events.watches import Watches
from artemis_py.server.gate import SecurityGate
from artemis_py.server.gateway.described import PATHS
from artemis_py.server.gateway.opening import routes_for_messages
from artemis_py.server.gateway.sending import Sending
from artemis_py.server.http.downloads import Downloads
from artemis_py.server.http.event_routes import event_routes
from artemis_py.server.http.guards import guard_of
from artemis_py.server.http.jolokia_routes import jolokia_routes
from artemis_py.server.http.management_routes import management_routes
from artemis_py.server.http.routing import Route
from artemis_py.server.known_users import OperatedUsers
from artemis_py.server.managed_parts import open_ports, stored_files
from artemis_py.server.management_messages import ManagementMessages
from artemis_py.server.ports import Ports
from artemis_py.server.store import Store
from artemis_py.server.turns import Turns
from artemis_py.server.vitals import ServerVitals
from artemis_py.stomp.wire.frames import Limits
from artemis_py.uploads import BodyStore


def _body_room(config: BrokerConfig, store: BodyStore | None) -> BodyRoom | None:
    """By the rules of the first HTTP acceptor, as for messages that are published over HTTP."""
    acceptor = next((one for one in config.acceptors if "HTTP" in one.protocols), None)
    if acceptor is None:
        return None
    limits = Limits.of(acceptor)
    return BodyRoom(store, limits.large_body_bytes_min, limits.body_bytes_max, limits.header_bytes_max)


def operating(  # noqa: PLR0913 - all but the first five are named where they are given
    config: BrokerConfig,
    loop: asyncio.AbstractEventLoop,
    turns: Turns,
    ports: Ports,
    store: Store,
    *,
    gate: SecurityGate | None,
    configuration: ConfigurationKeeper,
    disk_watch: DiskWatch,
    date_ms: Callable[[], int],
    is_busy: Callable[[], bool],
) -> tuple[Managed, list[Route]]:
    """What the operations work on, and the routes of HTTP. Turns carry out the operations from now on."""
    broker, stats = turns.broker, turns.stats
    begun_s = loop.time()
    calls = configuration.calls = turns.calls = Calls(
        loop, broker.clock, turns.schedule, lambda call: turns.when_durable(broker.log.last_lsn, call)
    )
    managed = Managed(
        broker,
        config.name,
        clients=lambda: connected(stats.connections, turns),
        client=lambda number: client_of(stats.connections, number, turns),
        client_count=lambda: stats.connections_open,
        uptime_ms=lambda: round(1000 * (loop.time() - begun_s)),
        now_ms=lambda: turns.isolation.turn_ms,
        acceptors=lambda: open_ports(config, ports),
        stored=stored_files(config, store, disk_watch.probe, loop, broker.by_id),
        vitals=ServerVitals(stats, turns, store.durability, is_busy, disk_watch.headroom_bytes),
        begin=lambda work: calls.begin(work, changes=True),
        configuration=OperatedConfiguration(configuration),
        users=OperatedUsers(loop, lambda: configuration.in_force, gate),
        bodies=_body_room(config, turns.large),
        send=Sending(turns, ports, gate),
    )
    hub = Hub(broker.notices, loop, broker.holdings, date_ms)
    turns.notifying = notifying = Notifying(broker, hub, turns.schedule)
    if gate is not None:
        gate.authorizer.on_denial = notifying.note_denial
        gate.authorizer.peer_of = turns.input.peer_of
        gate.refusals.on_refusal = notifying.note_refusal
    beans = Beans(managed, config)
    note_fault = partial(stats.faults.note, "", "management")
    ports.receiver = turns.managing = ManagementMessages(beans, calls, turns.schedule, note_fault)
    guard = partial(guard_of, gate, config.management_rbac_prefix)
    return managed, [
        *management_routes(managed, calls, Downloads(store.large), PATHS),
        *routes_for_messages(loop, turns, calls, ports, gate),
        *event_routes(managed, hub, Watches(loop, managed, calls), guard),
        *jolokia_routes(Agent(beans), calls, guard, wall_clock_ms, config.web_access),
    ]
