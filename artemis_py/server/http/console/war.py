"""The files of a console: a ``console.war``, packed or unpacked."""

from __future__ import annotations

import mimetypes
import re
import zipfile
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import Final, final
from urllib.parse import unquote

from artemis_py.server.http.messages import Response, text_response

_FILE_BYTES_MAX: Final = 32 * 1024 * 1024
_INDEX: Final = "index.html"
_PRIVATE: Final = frozenset({"WEB-INF", "META-INF"})
_BASE: Final = re.compile(rb'<base href="[^"]*"')
_TYPES: Final = {".js": "text/javascript", ".json": "application/json", ".woff2": "font/woff2", ".ico": "image/x-icon"}
_POLICY: Final = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self' data:; worker-src 'self' blob:; frame-ancestors 'none'; form-action 'self'"
)
_HEADERS: Final = (("Content-Security-Policy", _POLICY),)
_KEPT: Final = (("Content-Security-Policy", _POLICY), ("Cache-Control", "private, max-age=3600"))


@final
class War:
    """Reads a war: a zip, or a folder. ``base`` is the path under which it is served."""

    def __init__(self, path: str, base: str) -> None:
        self._path = Path(path)
        self._base = base

    def answer(self, path: str) -> Response:
        """The file of a path below the base, as it is in a request; the console's page for one that only the console
        knows. For a thread: it reads files.
        """
        name = unquote(path).strip("/")
        parts = PurePosixPath(name).parts
        if "\\" in name or "\0" in name or ".." in parts or (parts and parts[0].upper() in _PRIVATE):
            return text_response(HTTPStatus.NOT_FOUND, "no such file")
        found = self._read(name) if name and name != _INDEX else None
        if found is not None:
            suffix = PurePosixPath(name).suffix.lower()
            type = _TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
            return Response(HTTPStatus.OK, type, found, _KEPT if parts[0] == "static" else _HEADERS)
        index = None if PurePosixPath(name).suffix and name != _INDEX else self._read(_INDEX)
        if index is None:
            return text_response(HTTPStatus.NOT_FOUND, "no such file")
        page = _BASE.sub(b'<base href="%s"' % f"{self._base}/".encode(), index, count=1)
        return Response(HTTPStatus.OK, "text/html; charset=utf-8", page, _HEADERS)

    def _read(self, name: str) -> bytes | None:
        """A file; None if there is none of a reasonable size."""
        try:
            if self._path.is_dir():
                return self._of_folder(name)
            with zipfile.ZipFile(self._path) as war:
                entry = war.getinfo(name)
                return None if entry.is_dir() or entry.file_size > _FILE_BYTES_MAX else war.read(entry)
        except (OSError, KeyError, zipfile.BadZipFile):
            return None

    def _of_folder(self, name: str) -> bytes | None:
        file = (self._path / name).resolve()
        if not file.is_relative_to(self._path.resolve()) or not file.is_file():
            return None
        return None if file.stat().st_size > _FILE_BYTES_MAX else file.read_bytes()
