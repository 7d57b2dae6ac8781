"""The helpers for clients: a trace in the headers of a frame."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from artemis_py.tracing import extract, inject, processing, sending


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """What the program records."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", lambda name, version: provider.get_tracer(name, version))
    yield exporter
    provider.shutdown()


def spans(recorded: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in recorded.get_finished_spans()}


def test_a_trace_goes_from_the_sender_to_the_receiver(recorded: InMemorySpanExporter) -> None:
    headers = {"persistent": "true", "correlation-id": "order-1"}
    with sending("/queue/a", headers):
        pass
    with processing({**headers, "destination": "/queue/a", "message-id": "1-2"}):
        pass
    sent, processed = spans(recorded)["send /queue/a"], spans(recorded)["process /queue/a"]
    assert (sent.kind, processed.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert headers["traceparent"].startswith(f"00-{sent.context.trace_id:032x}-{sent.context.span_id:016x}-")
    assert processed.parent is not None
    assert processed.parent.span_id == sent.context.span_id
    assert processed.attributes is not None
    assert processed.attributes["messaging.message.id"] == "1-2"
    assert processed.attributes["messaging.message.conversation_id"] == "order-1"


def test_inside_of_a_span_of_the_program_the_sender_is_linked(recorded: InMemorySpanExporter) -> None:
    headers: dict[str, str] = {}
    with sending("/queue/a", headers):
        pass
    with trace.get_tracer("mine", "1").start_as_current_span("mine") as mine:
        with processing({**headers, "destination": "/queue/a"}):
            pass
        assert extract(headers) != extract({})
        empty: dict[str, str] = {}
        assert inject(empty)["traceparent"].split("-")[1] == f"{mine.get_span_context().trace_id:032x}"
    processed = spans(recorded)["process /queue/a"]
    assert processed.parent is not None
    assert processed.parent.span_id == mine.get_span_context().span_id
    assert [link.context.span_id for link in processed.links] == [spans(recorded)["send /queue/a"].context.span_id]


def test_an_exception_is_recorded_and_raised(recorded: InMemorySpanExporter) -> None:

    with pytest.raises(ValueError, match="no such order"), processing({"destination": "/queue/a"}):
        raise ValueError("no such order")
    (event,) = spans(recorded)["process /queue/a"].events
    assert event.attributes is not None
    assert event.attributes["exception.message"] == "no such order"


def test_without_the_package_the_error_names_the_extra_and_the_log_can_still_be_read() -> None:
    program = """
import sys
sys.modules["opentelemetry"] = None
import artemis_py.cli.spans, artemis_py.tracing.journeys
from artemis_py.tracing import sending
try:
    with sending("/queue/a", {}):
        pass
except Exception as error:
    print(error)
print(*({"pyspark", "pyarrow", "numpy"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert "opentelemetry-api is missing" in done.stdout
    assert ".[otel]" in done.stdout
    assert done.stdout.splitlines()[-1] == ""
