"""A finished span as plain data, the sender's span above it (the headers ``traceparent`` and ``tracestate``, W3C Trace
Context), and the ids of spans.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

from artemis_py.message import Head, HeaderName

Attributes = Mapping[str, str | int]
_ID_BYTES: Final = 8
MARK: Final = b"traceparent:"
"""In the bytes of each message that has the header."""
_PARENT: Final = HeaderName("traceparent")
_STATE: Final = HeaderName("tracestate")
_FORM: Final = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?",
    re.ASCII | re.DOTALL,
)
_INVALID_VERSION: Final = "ff"
_SAMPLED: Final = 1


@dataclass(frozen=True, slots=True)
class Parent:
    """The sender's span. Ids are lower-case hexadecimal; ``state`` is the header ``tracestate`` as it came."""

    trace_id: str
    span_id: str
    state: str = ""


def parent_of(head: Head) -> Parent | None:
    """The sender's span, if the message has a valid ``traceparent`` and its trace is recorded (flag ``sampled``)."""
    text = head.first(_PARENT)
    found = None if text is None else _FORM.fullmatch(text)
    if found is None or found["version"] == _INVALID_VERSION or (found["version"] == "00" and found["more"]):
        return None
    trace_id, span_id = found["trace"], found["span"]
    if not int(found["flags"], 16) & _SAMPLED or not int(trace_id, 16) or not int(span_id, 16):
        return None
    return Parent(trace_id, span_id, head.first(_STATE) or "")


@dataclass(frozen=True, slots=True)
class Happening:
    """An event of a span, at epoch milliseconds."""

    time_ms: int
    name: str
    attributes: Attributes


@dataclass(frozen=True, slots=True)
class FinishedSpan:
    """A span from the log. Times are epoch milliseconds. ``error`` is empty, or says why its status is an error.
    ``lsn`` is that of the record which ended it.
    """

    name: str
    span_id: str
    parent: Parent
    start_ms: int
    end_ms: int
    lsn: int
    attributes: Attributes
    error: str = ""
    happenings: tuple[Happening, ...] = ()
    links: tuple[Parent, ...] = field(default=())

    def fields(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name,
            "trace_id": self.parent.trace_id,
            "span_id": self.span_id,
            "parent_span_id": self.parent.span_id,
            "trace_state": self.parent.state,
            "start_ms": self.start_ms,
            "end_ms": self.end_ms,
            "error": self.error,
            "attributes": dict(self.attributes),
            "events": [
                {"time_ms": one.time_ms, "name": one.name, "attributes": dict(one.attributes)}
                for one in self.happenings
            ],
            "links": [{"trace_id": one.trace_id, "span_id": one.span_id} for one in self.links],
        }


def span_id_of(log: str, message_id: int, queue: str, delivery: int = 0, recalled: int = 0) -> str:
    """The id of the span of a message in a queue, or of its delivery that the log recorded at this lsn. It is the same
    each time the log is read. ``log`` is the id of the log, because the numbers are unique in one log only. With
    ``recalled``, the message came to the queue from the log, at that lsn; it may have been there before.
    """
    text = f"{log}\0{message_id}\0{queue}\0{delivery}"
    if recalled:
        text = f"{text}\0{recalled}"
    return blake2b(text.encode(), digest_size=_ID_BYTES).hexdigest()
