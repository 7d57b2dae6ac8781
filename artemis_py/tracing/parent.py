"""The header ``traceparent`` of a message (W3C Trace Context, "Traceparent Header"), and its ``tracestate``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from artemis_py.message import Head, HeaderName

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
