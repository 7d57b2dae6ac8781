"""Opens the gateway of a broker: its routes, by the rules of its first HTTP acceptor."""

from __future__ import annotations

import asyncio

from artemis_py.message import LargeBody
from artemis_py.server.calls import Calls
from artemis_py.server.gate import SecurityGate
from artemis_py.server.gateway.gateway import Gateway
from artemis_py.server.gateway.routes import message_routes
from artemis_py.server.http.messages import FileBody
from artemis_py.server.http.routing import Route
from artemis_py.server.ports import Ports
from artemis_py.server.turns import Turns
from artemis_py.stomp.service import StompService, Traffic


def routes_for_messages(
    loop: asyncio.AbstractEventLoop, turns: Turns, calls: Calls, ports: Ports, gate: SecurityGate | None
) -> list[Route]:
    """The routes; none where no acceptor serves HTTP. While the broker drains, nothing is delivered here, either."""
    acceptor = next((one for one in turns.broker.config.acceptors if "HTTP" in one.protocols), None)
    if acceptor is None:
        return []
    authorizer = None if gate is None else gate.authorizer
    service = StompService(turns.broker, acceptor, Traffic(), ports.temporaries, turns.large, authorizer=authorizer)
    service.receiver = ports.receiver
    ports.stomp_services.append(service)

    def open_body(body: LargeBody) -> FileBody | bytes:
        assert turns.large is not None
        past = turns.large.past
        descriptor = past.descriptor(body)
        return past.read_former(body) if descriptor is None else FileBody(descriptor, 0, body.size_bytes)

    return message_routes(Gateway(loop, turns, calls, service, authorizer), open_body)
