"""Traces of messages with OpenTelemetry: helpers for clients (here), and spans made from the broker's log.

The broker never touches the headers ``traceparent``, ``tracestate`` and ``baggage``. Clients write and read them with
these functions. ``artemis-py spans`` reads the log afterwards and adds how long each message waited in which queue, and
each of its deliveries. So the broker itself does nothing for a trace.
"""

from __future__ import annotations

from artemis_py.tracing.client import extract, inject, processing, sending

__all__ = ["extract", "inject", "processing", "sending"]
