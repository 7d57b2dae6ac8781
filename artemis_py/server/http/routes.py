"""The broker's routes: metrics for Prometheus, and health checks."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from artemis_py.metrics import MetricsExporter
from artemis_py.server.http.messages import Request, Response, json_response
from artemis_py.server.http.routing import Route


def metrics_routes(exporter: MetricsExporter) -> list[Route]:
    """``/metrics``, also with a slash at the end as in Artemis."""

    def metrics(request: Request) -> Response:
        content_type, pieces = exporter.scrape(request.headers.get("accept", ""))
        return Response(HTTPStatus.OK, content_type, pieces)

    operations = {"GET": "getMetrics"}
    return [Route(path, {"GET": metrics}, operations, is_open=True) for path in ("/metrics", "/metrics/")]


def health_routes(not_ready_because: Callable[[], str | None]) -> list[Route]:
    """``/health/live``: the process responds. ``/health/ready``: 200 if it accepts messages, else 503 with the reason.

    ``not_ready_because`` returns None when the broker is ready.
    """

    def live(_request: Request) -> Response:
        return _health(HTTPStatus.OK, "UP", None)

    def ready(_request: Request) -> Response:
        reason = not_ready_because()
        if reason is None:
            return _health(HTTPStatus.OK, "UP", None)
        return _health(HTTPStatus.SERVICE_UNAVAILABLE, "DOWN", reason)

    operations = {"GET": "getHealth"}
    return [
        Route("/health/live", {"GET": live}, operations, is_open=True),
        Route("/health/ready", {"GET": ready}, operations, is_open=True),
    ]


def _health(status: HTTPStatus, state: str, reason: str | None) -> Response:
    return json_response(status, {"status": state} if reason is None else {"status": state, "reason": reason})
