"""Bodies of messages as downloads. They are what clients have sent, so a browser must never carry them out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Final, final

from artemis_py.errors import BrokerError
from artemis_py.management.managed import Download, InPieces, Lines
from artemis_py.management.messages.lines import piece_line
from artemis_py.message import LargeBody
from artemis_py.server.body_pieces import BodyPieces
from artemis_py.server.http.messages import Response
from artemis_py.storage.bodies import LargeStore

_PIECE_BYTES: Final = 262_144
_BLOCK_BYTES: Final = 65_536
_UNKNOWN: Final = "application/octet-stream"
_TYPE: Final = re.compile(r"[\w!#$&^.+-]{1,80}/[\w!#$&^.+-]{1,80}(?:; ?charset=[\w-]{1,40})?", re.ASCII)
_LINES: Final = "application/jsonl"
_ENDINGS: Final = {"application/json": "json", "text/plain": "txt", "application/xml": "xml", "text/xml": "xml"}


@final
class Downloads:
    """Makes responses of bodies. Large ones are read from ``large``, a piece at a time, by its thread."""

    def __init__(self, large: LargeStore | None) -> None:
        self._large = large

    def response(self, download: Download) -> Response:
        """The body under the content-type that its sender named, or as bytes if that is none."""
        named = download.content_type or ""
        content_type = named if _TYPE.fullmatch(named) else _UNKNOWN
        ending = _ENDINGS.get(content_type.partition(";")[0], "bin")
        headers = _harmless(f"{download.name}.{ending}")
        body = download.body
        if isinstance(body, LargeBody):
            headers = (*headers, ("Content-Length", str(body.size_bytes)))
            return Response(HTTPStatus.OK, content_type, self._pieces(body), headers)
        if len(body) <= _PIECE_BYTES:
            return Response(HTTPStatus.OK, content_type, body, headers)
        headers = (*headers, ("Content-Length", str(len(body))))
        return Response(HTTPStatus.OK, content_type, _cut(body), headers)

    def lines(self, lines: Lines) -> Response:
        """The lines, of which no more are made than the client takes."""
        return Response(HTTPStatus.OK, _LINES, self._parts(lines.parts), _harmless(f"{lines.name}.jsonl"))

    def _parts(self, parts: Iterable[bytes | InPieces]) -> Iterator[bytes]:
        """Some lines at a time: to send a piece costs more than to make a line."""
        block: list[bytes] = []
        size_bytes = 0
        for part in parts:
            if isinstance(part, InPieces):
                yield b"".join(block)
                block, size_bytes, body = [], 0, part.body
                for piece in self._pieces(body) if isinstance(body, LargeBody) else _cut(body):
                    yield piece_line(piece) if piece else piece
                continue
            block.append(part)
            size_bytes += len(part)
            if size_bytes >= _BLOCK_BYTES:
                yield b"".join(block)
                block, size_bytes = [], 0
        yield b"".join(block)

    def _pieces(self, body: LargeBody) -> Iterator[bytes]:
        """The pieces in order; an empty one while the next is being read."""
        assert self._large is not None, "a large body has a store"
        pieces, left = BodyPieces(self._large, None), body.size_bytes
        while left:
            piece = pieces.next(body)
            if piece is None:
                if pieces.failure is not None:
                    raise BrokerError(f"a body cannot be read: {pieces.failure}")
                piece = b""
            left -= len(piece)
            yield piece


def _harmless(name: str) -> tuple[tuple[str, str], ...]:
    """Headers that have a browser keep it as a file of this name, and never carry it out."""
    return (
        ("Content-Disposition", f'attachment; filename="{name}"'),
        ("Content-Security-Policy", "sandbox"),
    )


def _cut(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), _PIECE_BYTES):
        yield body[start : start + _PIECE_BYTES]
