"""An object store that speaks as much of S3 as deltalake asks of one, in the memory of a process, on loopback.

A process of its own, because deltalake lets no other thread run while it asks whether there is a table.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Store:
    """Objects by ``bucket/key``. Uploads in parts are there when they are completed, and not before."""

    objects: dict[str, bytes] = field(default_factory=dict)
    parts: dict[str, dict[int, bytes]] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    store = Store()

    def _asked(self) -> tuple[str, dict[str, str], bytes]:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        return unquote(parts.path).lstrip("/"), query, self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _answer(self, code: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _refused(self, code: int, why: str) -> None:
        self._answer(code, f"<Error><Code>{why}</Code><Message>{why}</Message></Error>".encode())

    def do_PUT(self) -> None:
        name, query, body = self._asked()
        with self.store.lock:
            if "uploadId" in query:
                self.store.parts[query["uploadId"]][int(query["partNumber"])] = body
            elif self.headers.get("If-None-Match") == "*" and name in self.store.objects:
                self._refused(412, "PreconditionFailed")
                return
            else:
                self.store.objects[name] = body
        self._answer(200, ETag=_tag(body))

    def do_POST(self) -> None:
        name, query, body = self._asked()
        with self.store.lock:
            if "uploads" in query:
                upload = uuid.uuid4().hex
                self.store.parts[upload] = {}
                told = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            elif "uploadId" in query:
                whole = b"".join(part for _, part in sorted(self.store.parts.pop(query["uploadId"]).items()))
                self.store.objects[name] = whole
                told = f"<CompleteMultipartUploadResult><ETag>{_tag(whole)}</ETag></CompleteMultipartUploadResult>"
            else:  # several to delete
                keys = [one.text or "" for one in ElementTree.fromstring(body).iter() if one.tag.endswith("Key")]
                for key in keys:
                    self.store.objects.pop(f"{name.rstrip('/')}/{key}", None)
                deleted = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
                told = f"<DeleteResult>{deleted}</DeleteResult>"
        self._answer(200, told.encode())

    def do_DELETE(self) -> None:
        name, _, _ = self._asked()
        with self.store.lock:
            self.store.objects.pop(name, None)
        self._answer(204)

    def do_GET(self) -> None:
        name, query, _ = self._asked()
        if "list-type" in query:
            self._list(name.rstrip("/"), query)
            return
        with self.store.lock:
            body = self.store.objects.get(name)
        if body is None:
            self._refused(404, "NoSuchKey")
            return
        headers = {"ETag": _tag(body), "Last_Modified": formatdate(usegmt=True)}
        span = self.headers.get("Range")
        if span is None:
            self._answer(200, body, **headers)
            return
        first, _, last = span.removeprefix("bytes=").partition("-")
        begin = int(first) if first else len(body) - int(last)
        end = min(int(last) + 1, len(body)) if first and last else len(body)
        self._answer(206, body[begin:end], Content_Range=f"bytes {begin}-{end - 1}/{len(body)}", **headers)

    do_HEAD = do_GET  # noqa: N815

    def _list(self, bucket: str, query: dict[str, str]) -> None:
        prefix, divider = query.get("prefix", ""), query.get("delimiter", "")
        folders, found = set(), []
        with self.store.lock:
            objects = sorted(self.store.objects.items())
        for name, body in objects:
            key = name.removeprefix(f"{bucket}/")
            if key == name or not key.startswith(prefix) or key <= query.get("start-after", ""):
                continue
            inside, divided, _ = key.removeprefix(prefix).partition(divider) if divider else (key, "", "")
            if divided:
                folders.add(f"{prefix}{inside}{divider}")
                continue
            found.append(
                f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-31T00:00:00.000Z</LastModified>"
                f"<ETag>{_tag(body)}</ETag><Size>{len(body)}</Size></Contents>"
            )
        found += [f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in sorted(folders)]
        told = f"<IsTruncated>false</IsTruncated><KeyCount>{len(found)}</KeyCount>{''.join(found)}"
        self._answer(200, f"<ListBucketResult>{told}</ListBucketResult>".encode())

    def log_message(self, *_: object) -> None:
        """Nothing on standard error."""


def _tag(body: bytes) -> str:
    return hashlib.md5(body).hexdigest()


def main() -> None:
    """Says its port, and answers until it is ended."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()


@contextmanager
def object_store() -> Iterator[dict[str, str]]:
    """The options by which deltalake reaches one that is gone in the end."""
    command = [sys.executable, "-m", "tests.spark.object_store"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield {
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{int(process.stdout.readline())}", "AWS_ALLOW_HTTP": "true",
                "AWS_REGION": "local", "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
            }  # fmt: skip
        finally:
            process.kill()


if __name__ == "__main__":
    main()
