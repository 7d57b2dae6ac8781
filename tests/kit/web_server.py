"""HTTP servers for programs of ours that ask others, among them one that answers as a test says."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer

WAIT_S = 120.0


class Handler(BaseHTTPRequestHandler):
    """It says nothing on standard error."""

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Underscores in names of headers stand for hyphens."""
        self.send_response(status)
        for name, value in {**headers, "Content_Length": str(len(body))}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class WebServer(ThreadingHTTPServer):
    """Each request gets the next of ``contents``, and the last again and again; with ``status``, or with that in the
    path: ``/301``. Who asks is noted: method, path, headers and body.
    """

    daemon_threads = True

    def __init__(self, *contents: bytes) -> None:
        self.contents = list(contents)
        self.status = 200
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []
        self.clients: set[tuple[str, int]] = set()
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Handler(Handler):
    protocol_version = "HTTP/1.1"
    server: WebServer

    def do_GET(self) -> None:
        server = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        server.asked.append((self.command, self.path, dict(self.headers), body))
        server.clients.add(self.client_address)
        server.may_answer.wait(WAIT_S)
        content = server.contents.pop(0) if len(server.contents) > 1 else server.contents[0]
        status = int(self.path[1:]) if self.path[1:].isdigit() else server.status
        self.answer(status, content, Location="https://elsewhere")

    do_POST = do_CONNECT = do_GET  # noqa: N815


@contextmanager
def serving(server: HTTPServer, may_answer: threading.Event | None = None) -> Iterator[None]:
    """It runs meanwhile. In the end whoever waits until it ``may_answer`` waits no more."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        if may_answer is not None:
            may_answer.set()
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def web_server(*contents: bytes) -> Iterator[WebServer]:
    """One that runs meanwhile."""
    server = WebServer(*contents)
    with serving(server, server.may_answer):
        yield server
