"""``/metrics`` for Prometheus, ``/health`` for whoever starts and stops the broker, and ``/memory``: who holds it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, Final

from artemis_py.metrics import MetricsExporter
from artemis_py.server.http.requests import Request, Response, json_response
from artemis_py.server.http.routing import Route
from artemis_py.server.memory import MemoryGuard
from artemis_py.server.turn_client import Client

CONNECTIONS_SHOWN: Final = 20
"""How many connections ``/memory`` names."""


def metrics_routes(exporter: MetricsExporter) -> list[Route]:
    """``/metrics``, also with a slash at the end as in Artemis."""

    def metrics(request: Request) -> Response:
        content_type, pieces = exporter.scrape(request.headers.get("accept", ""))
        return Response(HTTPStatus.OK, content_type, pieces)

    operations = {"GET": "broker.getMetrics"}
    return [Route(path, {"GET": metrics}, operations, is_open=True) for path in ("/metrics", "/metrics/")]


def health_routes(not_ready_because: Callable[[], str | None], warnings: Callable[[], list[str]] = list) -> list[Route]:
    """``/health/live``: the process responds. ``/health/ready`` and ``/health``: 200 if it accepts messages, else 503
    with the reason.

    ``not_ready_because`` returns None when the broker is ready. ``warnings`` returns what an operator must
    still fix, such as a certificate that expires soon; they change no status.
    """

    def live(_request: Request) -> Response:
        return _health(HTTPStatus.OK, "UP", None)

    def ready(_request: Request) -> Response:
        reason = not_ready_because()
        if reason is None:
            return _health(HTTPStatus.OK, "UP", None, warnings())
        return _health(HTTPStatus.SERVICE_UNAVAILABLE, "DOWN", reason, warnings())

    operations = {"GET": "broker.getHealth"}
    return [
        Route("/health/live", {"GET": live}, operations, is_open=True),
        *(Route(path, {"GET": ready}, operations, is_open=True) for path in ("/health/ready", "/health")),
    ]


def _health(status: HTTPStatus, state: str, reason: str | None, warnings: Sequence[str] = ()) -> Response:
    value: dict[str, object] = {"status": state}
    if reason is not None:
        value["reason"] = reason
    if warnings:
        value["warnings"] = warnings
    return json_response(status, value)


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
