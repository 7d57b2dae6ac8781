"""For programs that send and receive messages: their trace travels in the headers of a message.

Needs only ``opentelemetry-api``. Which spans are recorded and where they go is up to the program: without an SDK all of
this does nothing, and costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, TypeVar

from artemis_py.errors import ArtemisError
from artemis_py.version import VERSION

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

INSTALL: Final = "in a checkout of artemis_py: pip install '.[otel]' (or with the path of its wheel instead of the dot)"
SYSTEM: Final = "artemis_py"
"""The attribute ``messaging.system``."""
Headers = TypeVar("Headers", bound=MutableMapping[str, str])


class TracingError(ArtemisError):
    """A trace cannot be written or read; the text says what to do."""


def require(package: str, named: str) -> None:
    """Raise TracingError if a package is not installed; ``named`` is how the index of packages calls it."""
    try:
        found = find_spec(package)
    except ModuleNotFoundError:  # the package that would contain it is missing
        found = None
    if found is None:
        raise TracingError(f"{named} is missing: {INSTALL}")


def inject(headers: Headers) -> Headers:
    """Add ``traceparent``, ``tracestate`` and ``baggage`` of the current context to the headers of a SEND frame, as far
    as the program's propagator does. Returns the same headers. Raises TracingError without ``opentelemetry-api``.
    """
    _require()
    from opentelemetry import propagate

    propagate.inject(headers)
    return headers


def extract(headers: Mapping[str, str]) -> Context:
    """The context in the headers of a MESSAGE frame; an empty one if they have none. Raises TracingError without
    ``opentelemetry-api``.
    """
    _require()
    from opentelemetry import propagate
    from opentelemetry.context import Context

    return propagate.extract(headers, Context())


@contextmanager
def sending(destination: str, headers: MutableMapping[str, str]) -> Iterator[Span]:
    """A span ``send DESTINATION`` around the sending of one message, whose headers get its context. Attributes are
    those of OpenTelemetry's conventions for messaging. Raises TracingError without ``opentelemetry-api``.
    """
    _require()
    from opentelemetry.trace import SpanKind

    attributes = _attributes("send", "send", destination, headers)
    with _tracer().start_as_current_span(f"send {destination}", kind=SpanKind.PRODUCER, attributes=attributes) as span:
        inject(headers)
        yield span


@contextmanager
def processing(headers: Mapping[str, str]) -> Iterator[Span]:
    """A span ``process DESTINATION`` around the work on one received message. It belongs to the sender's trace; inside
    of another span of the program it belongs to that one, and links to the sender's. An exception is recorded and
    raised again. Raises TracingError without ``opentelemetry-api``.
    """
    sent = extract(headers)
    from opentelemetry.trace import Link, SpanKind, get_current_span

    destination = headers.get("destination", "")
    attributes = _attributes("process", "process", destination, headers)
    if "message-id" in headers:
        attributes["messaging.message.id"] = headers["message-id"]
    sender = get_current_span(sent).get_span_context()
    is_inside = get_current_span().get_span_context().is_valid
    links = [Link(sender)] if is_inside and sender.is_valid else []
    with _tracer().start_as_current_span(
        f"process {destination}",
        context=None if is_inside else sent,
        kind=SpanKind.CONSUMER,
        attributes=attributes,
        links=links,
    ) as span:
        yield span


def _attributes(name: str, kind: str, destination: str, headers: Mapping[str, str]) -> dict[str, str]:
    found = {
        "messaging.system": SYSTEM,
        "messaging.operation.name": name,
        "messaging.operation.type": kind,
        "messaging.destination.name": destination,
    }
    if "correlation-id" in headers:
        found["messaging.message.conversation_id"] = headers["correlation-id"]
    return found


def _tracer() -> Tracer:
    from opentelemetry import trace

    return trace.get_tracer(SYSTEM, VERSION)


def _require() -> None:
    require("opentelemetry.propagate", "opentelemetry-api")
