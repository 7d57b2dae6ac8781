"""The routes of the web console: files of the package, which a browser reads before anybody has logged in. They hold
nothing of the broker but its name, for the form of the login, and the brokers that ``consoleBrokers`` of the acceptor
names.

The page itself is asked for again each time (``ETag``). All other files have a digest of the whole console in their
path, so a browser keeps them for ever, and never mixes those of two versions.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable, Mapping
from functools import cached_property
from html import escape
from http import HTTPStatus
from pathlib import Path
from typing import Final, final

import artemis_py
from artemis_py.server.http.origins import as_browsers_say
from artemis_py.server.http.requests import Request, Response, text_response
from artemis_py.server.http.routing import Route

CONSOLE: Final = Path(artemis_py.__file__).parent / "console"
PAGE: Final = "index.html"
PATH: Final = "/ui/"
_LEADING_THERE: Final = ("/", "/ui", "/console", "/console/")
"""Where people look first. The last two are where Artemis has its console."""
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self' http: https:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
"""The page runs and loads nothing but files of the console, and makes no markup of text. First of all it narrows
``connect-src`` to the brokers of its list (theme.js): only the browser knows which ones the user has added.
"""
_FOR_EVER: Final = "public, max-age=31536000, immutable"
_VERSION: Final = b"{version}"
_MODULES: Final = b"{modules}"
_BROKER: Final = b"{broker}"
_BROKERS: Final = b"{brokers}"
_PRELOADED: Final = '<link rel="modulepreload" href="{}">'


@final
class _File:
    """A file as it is sent: ``kept`` says how long a browser may keep it."""

    def __init__(self, name: str, content: bytes, version: str, kept: str) -> None:
        self._type = _TYPES[Path(name).suffix]
        self._content = content
        self._version = version
        self._kept = kept

    @cached_property
    def _packed(self) -> bytes:
        """Made when a browser first asks for it, not when the broker starts."""
        return gzip.compress(self._content, mtime=0)

    def answer(self, request: Request) -> Response:
        """The file, or that a browser has it already."""
        is_packed = "gzip" in request.headers.get("accept-encoding", "")
        tag = f'"{self._version}{"-gz" if is_packed else ""}"'
        packing = (("Content-Encoding", "gzip"),) if is_packed else ()
        headers = (
            *packing,
            ("Cache-Control", self._kept),
            ("ETag", tag),
            ("Vary", "Accept-Encoding"),
            ("Content-Security-Policy", POLICY),
        )
        content = self._packed if is_packed else self._content
        is_known = tag in request.headers.get("if-none-match", "")
        return Response(HTTPStatus.NOT_MODIFIED if is_known else HTTPStatus.OK, self._type, content, headers)

    def route(self, path: str) -> Route:
        """Its route."""
        return Route(path, {"GET": self.answer}, needs_login=False)


def console_routes(broker: str = "", brokers: Iterable[str] = (), folder: Path = CONSOLE) -> list[Route]:
    """``/ui/`` of the broker with this name, the files below it, and the other paths that lead there, as ``/`` does.
    ``brokers`` are the URLs of others that the page shows, too.
    """
    files = {file.relative_to(folder).as_posix(): file.read_bytes() for file in sorted(folder.rglob("*.*"))}
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    version = digest.hexdigest()[:16]
    page = _page(files.pop(PAGE), version, files)
    page = page.replace(_BROKERS, escape(" ".join(map(as_browsers_say, brokers))).encode())
    page = page.replace(_BROKER, escape(broker).encode())
    tag = hashlib.sha256(page).hexdigest()[:16]
    routes = [_File(PAGE, page, tag, "no-cache").route(PATH)]
    routes += [_File(name, files[name], version, _FOR_EVER).route(f"{PATH}{version}/{name}") for name in files]
    return routes + [Route(path, {"GET": _moved}, needs_login=False) for path in _LEADING_THERE]


def _page(page: bytes, version: str, files: Mapping[str, bytes]) -> bytes:
    """The page with the paths of this version. It names all modules, so that a browser asks for them at once."""
    modules = [f"{version}/{name}" for name in files if name.endswith(".js") and name.startswith(("js/", "pages/"))]
    links = "\n".join(map(_PRELOADED.format, modules)).encode()
    return page.replace(_MODULES, links).replace(_VERSION, version.encode())


def _moved(request: Request) -> Response:
    """With the query: an OpenID provider may send people back to where Artemis has its console."""
    there = f"{PATH}?{request.query}" if request.query else PATH
    return text_response(HTTPStatus.FOUND, f"the console is at {PATH}", (("Location", there),))
