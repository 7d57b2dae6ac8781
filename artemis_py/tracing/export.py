"""Sends spans to a collector, with OpenTelemetry's own exporter (OTLP over HTTP, Protobuf).

Headers, certificates and compression are those of the environment (``OTEL_EXPORTER_OTLP_HEADERS`` and others), as for
each program with OpenTelemetry.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from artemis_py.tracing.errors import CollectorAwayError, TracingError, require
from artemis_py.tracing.parent import Parent
from artemis_py.tracing.span import FinishedSpan
from artemis_py.version import VERSION

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext

BATCH_SPANS: Final = 512
_TIMEOUT_S: Final = 3.0
_MS_NS: Final = 1_000_000
_AGAIN: Final = frozenset({408, 429, 502, 503, 504})
"""For these the same request may succeed later (OTLP, "Retryable Response Codes"; and 408)."""
_LOGGERS: Final = "opentelemetry.exporter.otlp"


class Collector:
    """The collector at a URL such as ``http://127.0.0.1:4318/v1/traces``. Raises TracingError for another kind of URL
    and without the extra ``otel``.
    """

    def __init__(self, url: str, broker: str, log: str) -> None:
        require("opentelemetry.sdk", "opentelemetry-sdk")
        require("opentelemetry.exporter.otlp.proto.http", "opentelemetry-exporter-otlp-proto-http")
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise TracingError(f"{url} is not the URL of a collector; write http://HOST:4318/v1/traces")
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope
        from requests import Session

        logging.getLogger(_LOGGERS).setLevel(logging.CRITICAL)  # what fails is said here, once
        self._url = url
        self._status = 0
        self._said = ""
        session = Session()
        session.hooks["response"].append(self._note)
        self._exporter = OTLPSpanExporter(endpoint=url, session=session, timeout=_TIMEOUT_S)
        self._resource = Resource.create({"service.name": broker, "service.instance.id": log})
        self._scope = InstrumentationScope("artemis_py", VERSION)

    def send(self, spans: Sequence[FinishedSpan]) -> None:
        """Send at most ``BATCH_SPANS`` spans, and wait until the collector has them. Raises CollectorAwayError if they
        may be sent again later, TracingError if the collector refuses them.
        """
        from opentelemetry.sdk.trace.export import SpanExportResult

        self._status, self._said = 0, ""
        if self._exporter.export([self._made(span) for span in spans]) is SpanExportResult.SUCCESS:
            return
        if not self._status or self._status in _AGAIN:
            why = f"status {self._status}" if self._status else "no answer"
            raise CollectorAwayError(f"the collector at {self._url} does not take spans ({why})")
        advice = "; its path is usually /v1/traces" if self._status == HTTPStatus.NOT_FOUND else ""
        said = f": {self._said}" if self._said else ""
        raise TracingError(f"the collector at {self._url} refuses spans with status {self._status}{advice}{said}")

    def close(self) -> None:
        """Close the connection."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def _note(self, answer: Any, *_args: Any, **_named: Any) -> None:
        self._status = answer.status_code
        self._said = "" if answer.ok else answer.text[:300].strip()

    def _made(self, span: FinishedSpan) -> ReadableSpan:
        from opentelemetry.sdk.trace import Event, ReadableSpan
        from opentelemetry.trace import Link
        from opentelemetry.trace.status import Status, StatusCode

        status = Status(StatusCode.ERROR, span.error) if span.error else Status(StatusCode.UNSET)
        return ReadableSpan(
            span.name,
            context=_context(Parent(span.parent.trace_id, span.span_id, span.parent.state), is_remote=False),
            parent=_context(span.parent, is_remote=True),
            resource=self._resource,
            attributes=dict(span.attributes),
            events=[Event(one.name, dict(one.attributes), one.time_ms * _MS_NS) for one in span.happenings],
            links=[Link(_context(one, is_remote=False)) for one in span.links],
            status=status,
            start_time=span.start_ms * _MS_NS,
            end_time=span.end_ms * _MS_NS,
            instrumentation_scope=self._scope,
        )


def _context(parent: Parent, *, is_remote: bool) -> SpanContext:
    from opentelemetry.trace import SpanContext, TraceFlags, TraceState

    state = TraceState.from_header([parent.state]) if parent.state else TraceState()
    flags = TraceFlags(TraceFlags.SAMPLED)
    return SpanContext(int(parent.trace_id, 16), int(parent.span_id, 16), is_remote, flags, state)
