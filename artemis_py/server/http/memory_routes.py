"""The route that shows for whom the broker holds memory."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from artemis_py.server.client import Client
from artemis_py.server.http.messages import Request, Response, json_response
from artemis_py.server.http.routing import Route
from artemis_py.server.memory import MemoryGuard

CONNECTIONS_SHOWN: Final = 20


def memory_routes(guard: MemoryGuard) -> list[Route]:
    """``/memory``: bytes by kind, the limit, and the connections with the most memory."""

    def memory(_request: Request) -> Response:
        holdings = guard.holdings
        return json_response(
            HTTPStatus.OK,
            {
                "limit_bytes": holdings.bytes_max,
                "held_bytes": holdings.total_bytes,
                "kinds": holdings.by_kind(),
                "refused": holdings.refused_count,
                "cut_off": holdings.cut_off_count,
                "connections": [_fields(connection) for connection in guard.largest(CONNECTIONS_SHOWN)],
            },
        )

    return [Route("/memory", {"GET": memory}, {"GET": "broker.getMemory"})]


def _fields(connection: Client) -> dict[str, Any]:
    session, weight = connection.session, connection.weight
    return {
        "session": session.state.name,
        "client": session.state.address,
        "client_id": session.state.client_id,
        "login": session.state.user,
        "state": connection.state,
        "input_bytes": weight.input_bytes,
        "output_bytes": weight.output_bytes,
        "transaction_bytes": weight.transaction_bytes,
        "subscriptions": len(session.subscriptions.by_key),
    }
