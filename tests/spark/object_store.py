"""An object store that speaks as much of S3 as deltalake asks of one, in the memory of a process, on loopback.

A process of its own, because deltalake lets no other thread run while it asks whether there is a table.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from email.utils import formatdate
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from tests.kit.web_server import Handler

ROOT: Final = Path(__file__).resolve().parents[2]
OBJECTS: Final[dict[str, bytes]] = {}
"""By ``bucket/key``."""
PARTS: Final[dict[str, dict[int, bytes]]] = {}
"""Of uploads that are not completed; before that the object is not there."""
LOCK: Final = Lock()

Answer = tuple[int, str | bytes, dict[str, str]]
"""Status, body and headers."""


def answer(command: str, name: str, query: Mapping[str, str], body: bytes, headers: Message) -> Answer:
    """What the store does."""
    upload = query.get("uploadId", "")
    match command:
        case "PUT" if upload:
            PARTS[upload][int(query["partNumber"])] = body
            return 200, b"", {"ETag": hashlib.md5(body).hexdigest()}
        case "PUT" if headers.get("If-None-Match") == "*" and name in OBJECTS:
            return 412, "<Error><Code>PreconditionFailed</Code><Message>It is there</Message></Error>", {}
        case "PUT":
            OBJECTS[name] = body
            return 200, b"", {"ETag": hashlib.md5(body).hexdigest()}
        case "POST" if "uploads" in query:
            PARTS[upload := uuid.uuid4().hex] = {}
            told = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            return 200, told, {}
        case "POST" if upload:
            OBJECTS[name] = whole = b"".join(part for _, part in sorted(PARTS.pop(upload).items()))
            tag = f"<ETag>{hashlib.md5(whole).hexdigest()}</ETag>"
            return 200, f"<CompleteMultipartUploadResult>{tag}</CompleteMultipartUploadResult>", {}
        case "POST":  # several to delete
            keys = [one.text or "" for one in ElementTree.fromstring(body).iter() if one.tag.endswith("Key")]
            for key in keys:
                OBJECTS.pop(f"{name.rstrip('/')}/{key}", None)
            deleted = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
            return 200, f"<DeleteResult>{deleted}</DeleteResult>", {}
        case "DELETE":
            OBJECTS.pop(name, None)
            return 204, b"", {}
        case _ if "list-type" in query:
            return 200, listed(name.rstrip("/"), query), {}
    if name not in OBJECTS:
        return 404, "<Error><Code>NoSuchKey</Code><Message>It is not there</Message></Error>", {}
    body = OBJECTS[name]
    told_of = {"ETag": hashlib.md5(body).hexdigest(), "Last-Modified": formatdate(usegmt=True)}
    if "Range" not in headers:
        return 200, body, told_of
    first, _, last = headers["Range"].removeprefix("bytes=").partition("-")
    begin = int(first) if first else len(body) - int(last)
    end = min(int(last) + 1, len(body)) if first and last else len(body)
    return 206, body[begin:end], {**told_of, "Content-Range": f"bytes {begin}-{end - 1}/{len(body)}"}


def listed(bucket: str, query: Mapping[str, str]) -> str:
    """What begins with a prefix; what goes on with a delimiter behind it, as folders."""
    prefix, divider = query.get("prefix", ""), query.get("delimiter", "")
    folders, found = set(), []
    for name, body in sorted(OBJECTS.items()):
        key = name.removeprefix(f"{bucket}/")
        if key == name or not key.startswith(prefix) or key <= query.get("start-after", ""):
            continue
        inside, divided, _ = key.removeprefix(prefix).partition(divider) if divider else (key, "", "")
        if divided:
            folders.add(f"{prefix}{inside}{divider}")
            continue
        found.append(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-31T00:00:00.000Z</LastModified>"
            f"<ETag>{hashlib.md5(body).hexdigest()}</ETag><Size>{len(body)}</Size></Contents>"
        )
    found += [f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in sorted(folders)]
    count = f"<IsTruncated>false</IsTruncated><KeyCount>{len(found)}</KeyCount>"
    return f"<ListBucketResult>{count}{''.join(found)}</ListBucketResult>"


class _Answers(Handler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with LOCK:
            code, told, headers = answer(self.command, unquote(parts.path).lstrip("/"), query, body, self.headers)
        told = told if isinstance(told, bytes) else told.encode()
        self.send_response(code)
        for name, value in {"Content-Length": str(len(told)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(told)

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815


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
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()
