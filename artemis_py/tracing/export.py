"""Exports the spans of a log, once or for as long as somebody wants; with a cursor also across restarts.

They go to a collector, with OpenTelemetry's own exporter (OTLP over HTTP, Protobuf): headers, certificates and
compression are those of the environment (``OTEL_EXPORTER_OTLP_HEADERS`` and others). Or to any other sink.

Two cursors on the broker remember the place: NAME is the lsn before the oldest message that is still in a queue, where
a restart has to read from, and which holds the log. ``NAME.sent`` is how far everything that had ended was sent, so
that a restart sends nothing of it again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from artemis_py.spark.log.http import HttpLog
from artemis_py.spark.log.log import AwayError
from artemis_py.tracing.client import TracingError, require
from artemis_py.tracing.journeys import FinishedSpan, Journeys, Parent
from artemis_py.tracing.source import LogSource
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


class CollectorAwayError(TracingError):
    """The collector does not answer, or is too busy."""


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


SENT: Final = ".sent"
CURSOR_TTL_S: Final = 86_400
OPEN_S_MAX: Final = 86_400
"""A message that is in a queue for longer is given up when following: else one forgotten dead letter would hold the log
for ever.
"""
_POLL_S: Final = 0.5
_AGAIN_S: Final = 1.0
_MOVE_S: Final = 2.0
_AGE_S: Final = 60.0
_MS: Final = 1000

Sink = Callable[[Sequence[FinishedSpan]], None]


@dataclass(slots=True)
class Cursor:
    """Where a reader of a broker's log is, kept on the broker."""

    log: HttpLog
    name: str
    _placed: tuple[int, int] = (-1, -1)
    _placed_s: float = 0.0

    def known(self) -> tuple[int, int]:
        """Where to read from, and how far everything was sent; 0 for a new cursor. Raises PipelineError."""
        return self.log.cursor(self.name) or 0, self.log.cursor(self.name + SENT) or 0

    def move(self, lsn: int, sent_lsn: int, *, now: bool = False) -> None:
        """Move both, but not too often, and also when nothing is new, so that they do not lapse. Raises
        PipelineError.
        """
        age_s = time.monotonic() - self._placed_s
        is_new = (lsn, sent_lsn) != self._placed
        if (is_new and (now or age_s >= _MOVE_S)) or age_s >= CURSOR_TTL_S / 4:
            self.log.set_cursor(self.name + SENT, sent_lsn, CURSOR_TTL_S)
            self.log.set_cursor(self.name, lsn, CURSOR_TTL_S)
            self._placed, self._placed_s = (lsn, sent_lsn), time.monotonic()


@dataclass(slots=True)
class Export:
    """Sends the spans of a log to a sink. ``tell`` gets lines for people. The sink may raise CollectorAwayError; with
    ``waits`` it is then asked again until it takes them.
    """

    source: LogSource
    journeys: Journeys
    sink: Sink
    tell: Callable[[str], None]
    cursor: Cursor | None = None
    waits: bool = False
    show: Callable[[str], None] = lambda _text: None
    """Gets the current activity."""
    sent: int = 0
    is_stopped: bool = False
    _pending: list[FinishedSpan] = field(default_factory=list)
    _read_lsn: int = 0
    """Everything up to it was read, and sent if it had ended."""
    _place: tuple[int, int] | None = None
    """Where the cursor may be. It changes between two parts only: inside of one, a second Ctrl-C may come at any
    moment.
    """
    _aged_s: float = 0.0

    @property
    def unsent(self) -> int:
        """How many finished spans were not sent."""
        return len(self._pending) + self.journeys.waiting

    def stop(self) -> None:
        """End ``once`` or ``follow`` behind the part that it reads now. A handler of signals may call it."""
        self.is_stopped = True

    def once(self) -> None:
        """Everything that the log has now, or less after ``stop``. Raises ArtemisError."""
        for part in self.source.parts():
            if self.is_stopped:
                return
            if part.begins_segment:
                self.journeys.begin_segment()
            self.show(f"{part.name}, {self.sent} spans")
            for event in part.events():
                self.journeys.take(event)
                if self.journeys.waiting >= BATCH_SPANS:
                    self._send()
            self._send()
            if part.is_news or not self._read_lsn:
                self._read_lsn = max(self._read_lsn, part.last_lsn)
                oldest = self.journeys.oldest_lsn()
                self._place = self._read_lsn if oldest is None else oldest - 1, self._read_lsn
                self._move()

    def follow(self) -> None:
        """The same, again and again, until ``stop``. Raises ArtemisError."""
        away = ""
        while not self.is_stopped:
            try:
                self.once()
                self._move()
                if away:
                    self.tell("the broker is back")
                    away = ""
            except CollectorAwayError:
                if not self.is_stopped:
                    raise
            except AwayError as error:
                if not away:
                    away = str(error)
                    self.tell(f"waiting: {away}")
            self._forget_old()
            self.show(f"following, {self.sent} spans, {self.journeys.open} messages open")
            time.sleep(_POLL_S)

    def finish(self) -> None:
        """Move the cursor to where it may go. Raises ArtemisError."""
        self._move(now=True)

    def _send(self) -> None:
        self._pending += self.journeys.finished()
        while self._pending:
            batch = self._pending[:BATCH_SPANS]
            self._deliver(batch)
            self.sent += len(batch)
            del self._pending[: len(batch)]

    def _deliver(self, batch: Sequence[FinishedSpan]) -> None:
        is_told = False
        while True:
            try:
                self.sink(batch)
            except CollectorAwayError as error:
                if not self.waits or self.is_stopped:
                    raise
                if not is_told:
                    self.tell(f"waiting: {error}")
                    is_told = True
                time.sleep(_AGAIN_S)
                continue
            if is_told:
                self.tell("the collector is back")
            return

    def _move(self, *, now: bool = False) -> None:
        if self.cursor is not None and self._place is not None:
            self.cursor.move(*self._place, now=now)

    def _forget_old(self) -> None:
        if time.monotonic() - self._aged_s >= _AGE_S:
            self._aged_s = time.monotonic()
            self.journeys.give_up_before(time.time_ns() // 1_000_000 - OPEN_S_MAX * _MS)
