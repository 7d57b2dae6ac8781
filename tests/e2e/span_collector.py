"""A collector of spans: a tiny HTTP server that decodes OTLP, and can be out of order."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.kit.web_server import Handler, serving


@dataclass
class SpanCollector:
    """``spans`` are all that arrived. ``status`` other than 200 refuses what comes."""

    url: str
    spans: list[Span] = field(default_factory=list)
    services: set[str] = field(default_factory=set)
    status: int = 200
    refused: int = 0

    def named(self, name: str) -> list[Span]:
        """The spans of this name."""
        return [span for span in [*self.spans] if span.name == name]


@contextmanager
def collecting() -> Iterator[SpanCollector]:
    """A collector on a free port."""
    collector = SpanCollector("")

    class Collecting(Handler):
        def do_POST(self) -> None:
            if "content-length" in self.headers:
                body = self.rfile.read(int(self.headers["content-length"]))
            else:  # in chunks, as Node sends it
                body = b""
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            if collector.status != 200:
                collector.refused += 1
            else:
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    collector.services |= {one.value.string_value for one in resource.resource.attributes}
                    for scope in resource.scope_spans:
                        collector.spans += scope.spans
            self.answer(collector.status)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collecting)
    collector.url = f"http://127.0.0.1:{server.server_port}/v1/traces"
    with serving(server):
        yield collector
