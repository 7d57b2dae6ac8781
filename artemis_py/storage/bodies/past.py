"""Large bodies as readers of the log need them: also those that no message of a queue needs any more."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping

from artemis_py.message import BodyFiles, LargeBody
from artemis_py.storage.bodies.upload import LargeFile
from artemis_py.storage.disk.disk import Disk, DiskError


class FormerBodies(BodyFiles):
    """Bodies that no message of a queue needs any more, kept for readers of the log."""

    @abstractmethod
    def hold_if_known(self, number: int) -> bool:
        """Add a holder of a body that is here; False if it is not."""

    @abstractmethod
    def is_whole(self, number: int, size_bytes: int) -> bool:
        """Is a body here, with at least so many bytes?"""

    @abstractmethod
    def read(self, number: int, offset: int, size_bytes: int) -> bytes:
        """A part of a body. For any thread. Raises DiskError."""


class PastBodies:
    """Finds a body in use (one of ``in_use``, which ``current`` keeps on ``disk``), one on its way to the ``former``
    ones, and one of those.
    """

    def __init__(
        self, disk: Disk, in_use: Mapping[int, LargeFile], current: BodyFiles, former: FormerBodies | None
    ) -> None:
        self._disk = disk
        self._in_use = in_use
        self._current = current
        self._former = former
        self._retiring: set[int] = set()
        """Bodies that were released and are not among the former ones yet."""

    def held(self, body: LargeBody) -> LargeBody | None:
        """A body that the log names, to be read: its file exists as long as the result does. None if it was removed."""
        number, former = body.number, self._former
        if number in self._in_use:
            return LargeBody(number, body.size_bytes, self._current, body.checksum)
        if former is None:
            return None
        if number in self._retiring:
            return LargeBody(number, body.size_bytes, former, body.checksum)
        if not former.hold_if_known(number):
            return None
        held = LargeBody(number, body.size_bytes, None, body.checksum)
        held.files = former
        return held

    @property
    def keeper(self) -> BodyFiles:
        """Who keeps bodies that are not in use."""
        return self._current if self._former is None else self._former

    def is_whole(self, body: LargeBody) -> bool:
        """Is a body among the former ones, with all of its bytes? Raises DiskError."""
        return self._former is not None and self._former.is_whole(body.number, body.size_bytes)

    def begin_to_retire(self, files: Iterable[LargeFile]) -> None:
        """These were released. Those that only the log needs will be among the former ones."""
        if self._former is not None:
            self._retiring.update(file.number for file in files if file.durable and file.is_whole)

    def note_retired(self, number: int) -> None:
        """A body is among the former ones. In the thread that moves it."""
        self._retiring.discard(number)

    def descriptor(self, body: LargeBody) -> int | None:
        """A descriptor of a body in use, for whoever reads it by himself, and closes it; None for a former one. Raises
        DiskError.
        """
        file = self._in_use.get(body.number)
        return None if file is None else self._disk.descriptor(file.name)

    def read_former(self, body: LargeBody) -> bytes:
        """A former body. Raises DiskError."""
        if self._former is None:
            raise DiskError(f"the body {body.number} is not there any more")
        return self._former.read(body.number, 0, body.size_bytes)

    def read(self, name: str, number: int, offset: int, size_bytes: int) -> bytes:
        """A part of a body, which may just be moving. For the thread that reads bodies. Raises DiskError."""
        try:
            return self._disk.read(name, offset, size_bytes)
        except DiskError:
            if self._former is None:
                raise
            return self._former.read(number, offset, size_bytes)
