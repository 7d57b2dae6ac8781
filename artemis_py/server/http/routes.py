"""The broker's routes: metrics for Prometheus, and health checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final

from artemis_py.metrics import MetricsExporter
from artemis_py.server.http.messages import Request, Response, json_response, text_response
from artemis_py.server.http.routing import Route

READING_LOG: Final = {"GET": "broker.getLog"}
"""What reading the log is called where users log in."""


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

    ``not_ready_because`` returns None when the broker is ready. ``warnings`` returns what an operator must see to all
    the same, such as a certificate that expires soon; they change no status.
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


def no_log_routes() -> list[Route]:
    """``/log`` and the paths below it, of a broker without a journal: 404 with the reason."""

    def no_log(_request: Request) -> Response:
        return text_response(HTTPStatus.NOT_FOUND, "this broker keeps no log: persistence-enabled is false")

    paths = ("/log", "/log/{part}", "/log/{part}/{name}", "/log/{part}/{name}/{file}")
    return [Route(path, {"GET": no_log}, READING_LOG) for path in paths]


def _health(status: HTTPStatus, state: str, reason: str | None, warnings: Sequence[str] = ()) -> Response:
    value: dict[str, object] = {"status": state}
    if reason is not None:
        value["reason"] = reason
    if warnings:
        value["warnings"] = warnings
    return json_response(status, value)
