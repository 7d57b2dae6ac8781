"""A collector of spans: a tiny HTTP server that decodes OTLP, and can be out of order."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class SpanCollector:
    """``spans`` are all that arrived. ``status`` other than 200 refuses what comes."""

    url: str
    spans: list[Span] = field(default_factory=list)
    services: set[str] = field(default_factory=set)
    status: int = 200
    refused: int = 0

    def take(self, request: BaseHTTPRequestHandler) -> None:
        """The spans of one request."""
        if "content-length" in request.headers:
            body = request.rfile.read(int(request.headers["content-length"]))
        else:  # in chunks, as Node sends it
            body = b""
            while size := int(request.rfile.readline(), 16):
                body += request.rfile.read(size)
                request.rfile.readline()
            request.rfile.readline()
        if request.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        if self.status != 200:
            self.refused += 1
            return
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.services |= {one.value.string_value for one in resource.resource.attributes}
            for scope in resource.scope_spans:
                self.spans += scope.spans

    def named(self, name: str) -> list[Span]:
        """The spans of this name."""
        return [span for span in [*self.spans] if span.name == name]


@contextmanager
def collecting() -> Iterator[SpanCollector]:
    """A collector on a free port."""
    collector = SpanCollector("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.take(self)
            self.send_response_only(collector.status)
            self.send_header("content-length", "0")
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.url = f"http://127.0.0.1:{server.server_port}/v1/traces"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
