"""The routes of the web console: files of the package, which a browser reads before anybody has logged in. They hold no
data of the broker.

The page itself is asked for again each time (``ETag``). All other files have a digest of the whole console in their path,
so a browser keeps them for ever, and never mixes those of two versions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Final

import artemis_py
from artemis_py.server.http.messages import Handler, Request, Response, text_response
from artemis_py.server.http.routing import Route

CONSOLE: Final = Path(artemis_py.__file__).parent / "console"
PAGE: Final = "index.html"
PATH: Final = "/ui/"
_FORMER_PATHS: Final = ("/ui", "/console", "/console/")
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
"""The page runs and loads nothing but files of the console, and makes no markup of text."""
_FOR_EVER: Final = "public, max-age=31536000, immutable"
_VERSION: Final = b"{version}"
_MODULES: Final = b"{modules}"
_PRELOADED: Final = '<link rel="modulepreload" href="{}">'


def console_routes(folder: Path = CONSOLE) -> list[Route]:
    """``/ui/``, the files below it, and the other paths that lead there."""
    files = {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if _is_sent(file)}
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    version = digest.hexdigest()[:16]
    page = _page(files.pop(PAGE), version, files)
    routes = [_route(PATH, partial(_sent, "text/html; charset=utf-8", page, version, "no-cache"))]
    for name, content in files.items():
        type = _TYPES[Path(name).suffix]
        routes.append(_route(f"{PATH}{version}/{name}", partial(_sent, type, content, version, _FOR_EVER)))
    return routes + [_route(path, _moved) for path in _FORMER_PATHS]


def _is_sent(file: Path) -> bool:
    return file.suffix in _TYPES


def _page(page: bytes, version: str, files: Mapping[str, bytes]) -> bytes:
    """The page with the paths of this version. It names all modules, so that a browser asks for them at once."""
    modules = [f"{version}/{name}" for name in files if name.endswith(".js") and not name.startswith("vendor/")]
    return page.replace(_MODULES, "\n".join(map(_PRELOADED.format, modules)).encode()).replace(
        _VERSION, version.encode()
    )


def _route(path: str, handler: Handler) -> Route:
    return Route(path, {"GET": handler}, needs_login=False)


def _sent(type: str, content: bytes, version: str, kept: str, request: Request) -> Response:
    tag = f'"{version}"'
    headers = (("Cache-Control", kept), ("ETag", tag), ("Content-Security-Policy", POLICY))
    if tag in request.headers.get("if-none-match", ""):
        return Response(HTTPStatus.NOT_MODIFIED, type, content, headers)
    return Response(HTTPStatus.OK, type, content, headers)


def _moved(_request: Request) -> Response:
    return text_response(HTTPStatus.FOUND, f"the console is at {PATH}", (("Location", PATH),))
