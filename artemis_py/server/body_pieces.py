"""Reads large bodies piece by piece for a connection. A thread reads them, because the disk may take its time."""

from __future__ import annotations

from typing import Final, final

from artemis_py.message import LargeBody
from artemis_py.storage.bodies import LargeStore, Piece

PIECE_BYTES: Final = 262144
"""How much of a body is read at once."""


@final
class BodyPieces:
    """One body after the other. ``owner`` is told when a piece is ready."""

    __slots__ = ("_checksum", "_large", "_offset", "_owner", "_piece", "failure")

    def __init__(self, large: LargeStore, owner: object) -> None:
        self.failure: str | None = None
        """Why a body cannot be read."""
        self._large = large
        self._owner = owner
        self._piece: Piece | None = None
        self._offset = 0
        self._checksum = 0
        """The checksum of the body, up to the offset."""

    @property
    def is_at_start(self) -> bool:
        """Was a body just completed, or none begun?"""
        return self._offset == 0

    def next(self, body: LargeBody) -> bytes | None:
        """The next piece of this body; None if it must be read first, or cannot be read."""
        piece = self._piece
        if piece is None:
            size_bytes = min(PIECE_BYTES, body.size_bytes - self._offset)
            self._piece = self._large.read(body, self._offset, size_bytes, self._owner, self._checksum)
            return None
        if piece.data is None:
            self.failure = piece.failure
            return None
        self._piece = None
        self._offset += piece.size_bytes
        self._checksum = piece.checksum
        if self._offset == body.size_bytes:
            self.rewind()
        return piece.data

    def rewind(self) -> None:
        """Begin a body, perhaps the same one again. No piece may be under way."""
        self._offset = self._checksum = 0
