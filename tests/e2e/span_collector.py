"""A collector of spans: a tiny HTTP server that decodes OTLP, and can be out of order."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class SpanCollector:
    """``spans`` are all that arrived. ``status`` other than 200 refuses what comes."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.services: set[str] = set()
        self.status = 200
        self.refused = 0
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                collector.take(self)

            def log_message(self, *_args: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1/traces"

    def take(self, request: BaseHTTPRequestHandler) -> None:
        """One request."""
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
        if self.status == 200:
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.services |= {one.value.string_value for one in resource.resource.attributes}
                for scope in resource.scope_spans:
                    self.spans += scope.spans
        else:
            self.refused += 1
        request.send_response(self.status)
        request.send_header("content-length", "0")
        request.end_headers()

    def named(self, name: str) -> list[Span]:
        """The spans of this name."""
        return [span for span in [*self.spans] if span.name == name]


@contextmanager
def collecting() -> Iterator[SpanCollector]:
    """A collector on a free port."""
    collector = SpanCollector()
    thread = threading.Thread(target=collector.server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield collector
    finally:
        collector.server.shutdown()
        thread.join()
        collector.server.server_close()
